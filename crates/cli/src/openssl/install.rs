//! `cipherlane openssl install`: the provider for every program of this machine, and back.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use cipherlane_core::read_text;
use cipherlane_files::Destination;
use clap::Args;
use serde::Serialize;

use crate::failure::Failure;
use crate::openssl::block::{block, without};
use crate::openssl::cnf::{self, Cnf, MAX_FILE};
use crate::openssl::fips;
use crate::openssl::measure::{Known, Measured, Measuring};
use crate::openssl::module::{self, FILE};
use crate::openssl::program::Openssl;
use crate::openssl::way;
use crate::output::{self, JsonFlag};

/// Install the provider for every program of this machine that uses OpenSSL
///
/// Copies the provider into OpenSSL's directory of modules and adds a few lines at the end of
/// its configuration, of which a backup is kept beside it. Done again, it renews both. Where it was
/// not done for this libcrypto, processor and provider, each cipher is measured (some seconds), and
/// the provider offers those that are ahead of OpenSSL's own; the figures are kept beside the
/// configuration in openssl.cnf.measured.json.
#[derive(Args, Debug)]
pub(crate) struct InstallArgs {
    /// Only print what would be done
    #[arg(long)]
    print: bool,
    /// Remove the provider and its lines
    #[arg(long, conflicts_with = "module")]
    uninstall: bool,
    /// The provider [default: found beside this program or in ../lib]
    #[arg(long, value_name = "FILE")]
    module: Option<PathBuf>,
    /// Copy the provider there [default: what 'openssl version -m' says]
    #[arg(long, value_name = "DIR")]
    modules_dir: Option<PathBuf>,
    /// Change this configuration of OpenSSL [default: openssl.cnf where 'openssl version -d' says]
    #[arg(long, value_name = "FILE")]
    openssl_conf: Option<PathBuf>,
    #[command(flatten)]
    measuring: Measuring,
    #[command(flatten)]
    json: JsonFlag,
}

/// A step, done or printed.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Step {
    /// Only printed: what comes of it is not known before.
    Measure,
    Keep {
        to: PathBuf,
        #[serde(skip)]
        json: String,
    },
    Copy {
        from: PathBuf,
        to: PathBuf,
    },
    Backup {
        from: PathBuf,
        to: PathBuf,
    },
    Append {
        to: PathBuf,
        lines: String,
    },
    RemoveLines {
        from: PathBuf,
    },
    Remove {
        file: PathBuf,
    },
}

#[derive(Serialize)]
struct Report {
    done: bool,
    steps: Vec<Step>,
}

pub(crate) fn run(args: &InstallArgs) -> Result<(), Failure> {
    let openssl = Openssl::ask()?;
    // OPENSSL_MODULES is for programs that are started here, and not for all of this machine; and
    // with sudo it would be the choice of another user.
    let modules = args
        .modules_dir
        .clone()
        .unwrap_or_else(|| openssl.system_modules.clone());
    let modules = std::path::absolute(&modules)
        .map_err(|error| Failure::path("use the directory", &modules, &error))?;
    let cnf = args
        .openssl_conf
        .clone()
        .unwrap_or_else(|| openssl.system_cnf.clone());
    // Distributions have a link there; what it points to is changed.
    let cnf = cnf.canonicalize().unwrap_or(cnf);
    let installed = modules.join(FILE);
    let text = match read_text(&cnf, MAX_FILE) {
        Err(cipherlane_core::Error::Io { source, .. })
            if source.kind() == io::ErrorKind::NotFound =>
        {
            String::new()
        }
        read => read.map_err(|error| cnf::unreadable(&cnf, error))?,
    };
    let (bare, had) = without(&text);
    let steps = match args.uninstall {
        true => {
            // First the lines: no program shall look for a file that is gone.
            let lines = had.then(|| Step::RemoveLines { from: cnf.clone() });
            let there = |file: PathBuf| file.exists().then_some(Step::Remove { file });
            let files = [installed, backup(&cnf), Measured::file(&cnf)].map(there);
            lines
                .into_iter()
                .chain(files.into_iter().flatten())
                .collect()
        }
        false => {
            for place in [&installed, &cnf] {
                way::check(place)?;
            }
            if let Some(why) = fips::restricted(&Cnf::parse(&bare, &cnf)) {
                return Err(Failure::Runtime(format!(
                    "{why}; the provider is not validated and would encrypt in place of one that \
                     is, so nothing was installed"
                )));
            }
            let from = module::find(args.module.as_deref(), &modules)?;
            module::try_out(&from)?;
            let known = match args.print {
                true => args.measuring.look(&openssl, &from, &cnf)?,
                false => args.measuring.settle(&openssl, &from, &cnf)?,
            };
            steps(from, installed, &cnf, &known, &text, &bare)?
        }
    };
    if !args.print {
        for step in &steps {
            carry_out(step, &bare)?;
        }
    }
    let report = Report {
        done: !args.print,
        steps,
    };
    match args.json.json {
        true => output::json("openssl-install", &report),
        false => output::print(sentences(&report)),
    }
}

/// What is to be done yet.
fn steps(
    from: PathBuf,
    to: PathBuf,
    cnf: &Path,
    known: &Known,
    text: &str,
    bare: &str,
) -> Result<Vec<Step>, Failure> {
    let lines = block(&Cnf::parse(bare, cnf), &to, known.measured())?;
    let mut steps = Vec::new();
    if !same(&from, &to) {
        steps.push(Step::Copy { from, to });
    }
    let file = Measured::file(cnf);
    match known {
        Known::Wanted => steps.push(Step::Measure),
        Known::New(measured) => steps.push(Step::Keep {
            to: file,
            json: measured.to_json(),
        }),
        Known::Unmeasured if file.exists() => steps.push(Step::Remove { file }),
        Known::Unmeasured | Known::Kept(_) => {}
    }
    if text == joined(bare, &lines) {
        return Ok(steps);
    }
    // The backup is the file as it was before us.
    if cnf.exists() && text == bare {
        steps.push(Step::Backup {
            from: cnf.to_owned(),
            to: backup(cnf),
        });
    }
    steps.push(Step::Append {
        to: cnf.to_owned(),
        lines,
    });
    Ok(steps)
}

/// Where the configuration is kept as it was.
fn backup(cnf: &Path) -> PathBuf {
    let mut backup = cnf.as_os_str().to_owned();
    backup.push(".before-cipherlane");
    backup.into()
}

fn same(a: &Path, b: &Path) -> bool {
    match (fs::read(a), fs::read(b)) {
        (Ok(a), Ok(b)) => a == b,
        _ => false,
    }
}

fn joined(bare: &str, lines: &str) -> String {
    let end = match bare.is_empty() || bare.ends_with('\n') {
        true => "",
        false => "\n",
    };
    format!("{bare}{end}{lines}")
}

fn carry_out(step: &Step, bare: &str) -> Result<(), Failure> {
    match step {
        Step::Measure => Ok(()),
        Step::Keep { to, json } => replace(to, json.as_bytes(), 0o644),
        Step::Copy { from, to } => fs::read(from)
            .map_err(|error| Failure::path("read the provider", from, &error))
            .and_then(|bytes| replace(to, &bytes, 0o755)),
        Step::Backup { from, to } => fs::read(from)
            .map_err(|error| Failure::path("read the configuration of OpenSSL in", from, &error))
            .and_then(|bytes| replace(to, &bytes, 0o644)),
        Step::Append { to, lines } => replace(to, joined(bare, lines).as_bytes(), 0o644),
        Step::RemoveLines { from } => replace(from, bare.as_bytes(), 0o644),
        Step::Remove { file } => {
            fs::remove_file(file).map_err(|error| Failure::path("remove", file, &error))
        }
    }
}

/// Puts a file in the place of another at once: programs that run keep the provider that they
/// have, and none reads half a configuration. Nobody but its owner may write it.
fn replace(path: &Path, bytes: &[u8], mode: u32) -> Result<(), Failure> {
    let mode = fs::metadata(path).map_or(mode, |old| old.permissions().mode());
    let dir = path.parent().unwrap_or(Path::new("/"));
    let written = || {
        fs::create_dir_all(dir)?;
        let Destination::Regular(target) = Destination::open(path)? else {
            return Err(io::Error::other("it is no regular file"));
        };
        let mut file = target.file();
        file.write_all(bytes)?;
        file.set_permissions(fs::Permissions::from_mode(mode & 0o755))?;
        file.sync_all()?;
        target.commit(bytes.len() as u64)
    };
    written().map_err(|error| Failure::path("write", path, &error))
}

fn sentences(report: &Report) -> String {
    let mut text = String::new();
    if !report.done && !report.steps.is_empty() {
        text.push_str("This would be done:\n");
    }
    for step in &report.steps {
        text.push_str(&match step {
            Step::Measure => {
                "measure each cipher, and name in a line 'ciphers' of the lines below \
                              those that are ahead of OpenSSL's own\n"
                    .to_owned()
            }
            Step::Keep { to, .. } => format!("keep what was measured in '{}'\n", to.display()),
            Step::Copy { from, to } => {
                format!("copy '{}' to '{}'\n", from.display(), to.display())
            }
            Step::Backup { from, to } => {
                format!("keep '{}' as '{}'\n", from.display(), to.display())
            }
            Step::Append { to, lines } => {
                format!("add at the end of '{}':\n\n{lines}\n", to.display())
            }
            Step::RemoveLines { from } => {
                format!("remove cipherlane's lines from '{}'\n", from.display())
            }
            Step::Remove { file } => format!("remove '{}'\n", file.display()),
        });
    }
    match (report.steps.is_empty(), report.done) {
        (true, _) => text.push_str("Nothing to do: all is as it should be.\n"),
        (false, true) => text.push_str("Done; programs that start from now on see it.\n"),
        (false, false) => {}
    }
    text
}
