//! `cipherlane openssl env`: a configuration for one user or one shell.

use std::path::{Path, PathBuf};

use cipherlane_core::environment;
use clap::Args;
use serde::Serialize;

use crate::failure::Failure;
use crate::openssl::block::{block, plain, without};
use crate::openssl::cnf::{self, Cnf};
use crate::openssl::fips;
use crate::openssl::measure::{Known, Measured, Measuring};
use crate::openssl::module;
use crate::openssl::program::Openssl;
use crate::output::{self, JsonFlag};

/// Write a configuration for the programs of this shell: eval "$(cipherlane openssl env)"
///
/// It includes the configuration that programs of this shell have now (OPENSSL_CONF, or else the
/// system's), which stays as it is, and adds the provider to it. Where it was not done for this
/// libcrypto, processor and provider, each cipher is measured (some seconds), and the provider
/// offers those that are ahead of OpenSSL's own; the figures are kept in FILE.measured.json.
#[derive(Args, Debug)]
pub(crate) struct EnvArgs {
    /// The provider [default: found beside this program, in ../lib, or in OpenSSL's directory]
    #[arg(long, value_name = "FILE")]
    module: Option<PathBuf>,
    /// Write this file [default: ~/.config/cipherlane/openssl.cnf]
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    measuring: Measuring,
    #[command(flatten)]
    json: JsonFlag,
}

#[derive(Serialize)]
struct Written<'a> {
    openssl_conf: &'a Path,
    module: &'a Path,
    /// The ciphers that the provider offers; none: all of them.
    ciphers: Option<Vec<&'a str>>,
}

pub(crate) fn run(args: &EnvArgs) -> Result<(), Failure> {
    let openssl = Openssl::ask()?;
    let module = module::find(args.module.as_deref(), &openssl.modules)?;
    module::try_out(&module)?;
    let path = match &args.output {
        Some(path) => std::path::absolute(path)
            .map_err(|error| Failure::path("write the configuration", path, &error))?,
        None => default_path()?,
    };
    let base = Base::find(&openssl, &path)?;
    if let Some(why) = fips::restricted(&base.cnf) {
        return Err(Failure::Runtime(format!(
            "{why}; the provider is not validated and would encrypt in place of one that is, so \
             no configuration was written; unset OPENSSL_CONF or name another, if this shell need \
             not have FIPS 140"
        )));
    }
    if let Some(why) = fips::demanded(&base.cnf) {
        eprintln!("cipherlane: warning: {why}, so the provider will not be used");
    }
    let known = args.measuring.settle(&openssl, &module, &path)?;
    let measured = known.measured();
    let text = base.text + &block(&base.cnf, &module, measured)?;
    path.parent()
        .map_or(Ok(()), std::fs::create_dir_all)
        .and_then(|()| keep(&known, &path))
        .and_then(|()| cipherlane_files::write(&path, text.as_bytes()))
        .map_err(|error| Failure::path("write the configuration", &path, &error))?;
    match args.json.json {
        true => output::json(
            "openssl-env",
            &Written {
                openssl_conf: &path,
                module: &module,
                ciphers: measured.map(Measured::taken),
            },
        ),
        false => output::print(format!("export OPENSSL_CONF={}\n", quoted(&path))),
    }
}

/// Keeps what was measured beside the configuration, or takes away what holds no more.
fn keep(known: &Known, cnf: &Path) -> std::io::Result<()> {
    let file = Measured::file(cnf);
    match known {
        Known::New(measured) => cipherlane_files::write(&file, measured.to_json().as_bytes()),
        Known::Unmeasured if file.exists() => std::fs::remove_file(file),
        _ => Ok(()),
    }
}

/// The configuration that is there already, and the lines that take it in.
struct Base {
    text: String,
    cnf: Cnf,
}

impl Base {
    /// What programs of this shell read now. Where that is the file to be written, it is what
    /// that file was made from.
    fn find(openssl: &Openssl, output: &Path) -> Result<Base, Failure> {
        let Some(named) = environment::variable("OPENSSL_CONF").map(PathBuf::from) else {
            return Base::include(&openssl.system_cnf, output);
        };
        if !same_file(&named, output) {
            if !named.exists() {
                return Err(Failure::Usage(format!(
                    "OPENSSL_CONF names '{}', which is not there; unset it, or let it name the \
                     configuration that is to be kept",
                    named.display()
                )));
            }
            return Base::include(&named, output);
        }
        let old = cnf::read(output).map_err(|error| cnf::unreadable(output, error))?;
        match without(&String::from_utf8_lossy(&old)) {
            (text, true) => Ok(Base {
                cnf: Cnf::parse(&text, output),
                text,
            }),
            (_, false) => Err(Failure::Usage(format!(
                "'{}' is a configuration of your own, named by OPENSSL_CONF; name another file \
                 with --output, which will include it",
                output.display()
            ))),
        }
    }

    /// A file as it is, where it is there.
    fn include(file: &Path, output: &Path) -> Result<Base, Failure> {
        let Ok(file) = file.canonicalize() else {
            return Ok(Base {
                text: String::new(),
                cnf: Cnf::default(),
            });
        };
        if same_file(&file, output) {
            return Err(Failure::Usage(format!(
                "'{}' is the system's own configuration; 'cipherlane openssl install' changes it",
                output.display()
            )));
        }
        Ok(Base {
            text: format!(".include = {}\n", plain(&file)?),
            cnf: Cnf::read(&file)?,
        })
    }
}

fn same_file(a: &Path, b: &Path) -> bool {
    match (a.canonicalize(), b.canonicalize()) {
        (Ok(a), Ok(b)) => a == b,
        _ => false,
    }
}

fn default_path() -> Result<PathBuf, Failure> {
    let home = environment::config_home();
    home.map(|home| home.join("cipherlane/openssl.cnf"))
        .ok_or_else(|| {
            Failure::Usage(
                "neither XDG_CONFIG_HOME nor HOME is set; name a file with --output".to_owned(),
            )
        })
}

/// A path as a shell takes it.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_back_what_was_quoted() {
        assert_eq!(quoted(Path::new("/a b")), "'/a b'");
        assert_eq!(quoted(Path::new("/it's")), r"'/it'\''s'");
    }
}
