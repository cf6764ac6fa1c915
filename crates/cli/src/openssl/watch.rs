//! A program run to see what it uses the provider for.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Serialize};
use signal_hook::consts::{SIGINT, SIGQUIT};
use tempfile::TempDir;

use crate::failure::Failure;
use crate::openssl::cnf::Setting;
use crate::openssl::diagnosis::{Diagnosis, Problem};
use crate::openssl::status;
use crate::output;

/// The provider appends a line for each process that ends to the file named there.
pub(crate) const VARIABLE: &str = "CIPHERLANE_OPENSSL_STATS";

/// The ciphers that OpenSSL's random generator fetches.
const RANDOM: [&str; 2] = ["AES-256-CTR", "AES-256-ECB"];

/// What a process used.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Process {
    process: u32,
    pub(crate) ciphers: BTreeMap<String, Use>,
    /// A setting of the provider's that it did not follow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
    /// The same of the list of ciphers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ciphers_problem: Option<String>,
}

impl Process {
    /// Bytes that it encrypted or decrypted by a cipher.
    pub(crate) fn bytes(&self, cipher: &str) -> u64 {
        self.ciphers.get(cipher).map_or(0, |used| used.bytes)
    }
}

/// How much it used of a cipher.
#[derive(Debug, Default, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Use {
    contexts: u64,
    operations: u64,
    pub(crate) bytes: u64,
    /// Calls of pipelines, and calls that were shared with workers.
    #[serde(default)]
    pipelines: u64,
    #[serde(default)]
    split: u64,
}

/// A place for the provider's statistics.
pub(crate) struct Statistics {
    dir: TempDir,
}

impl Statistics {
    pub(crate) fn new() -> Result<Statistics, Failure> {
        let failed = |error| Failure::path("keep statistics in", &std::env::temp_dir(), &error);
        let dir = tempfile::tempdir().map_err(failed)?;
        let statistics = Statistics { dir };
        // Workers that gave up their rights, as those of nginx, write there too. The directory
        // can be passed but not listed, and its name is random.
        let set = |path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode));
        fs::write(statistics.file(), "")
            .and_then(|()| set(statistics.file(), 0o666))
            .and_then(|()| set(statistics.dir.path().to_owned(), 0o711))
            .map_err(failed)?;
        Ok(statistics)
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.dir.path().join("statistics")
    }

    /// Has the provider in a program and its children write them.
    pub(crate) fn of(&self, program: &mut Command) {
        program.env(VARIABLE, self.file());
    }

    /// What the processes that have ended told.
    pub(crate) fn processes(&self) -> Result<Vec<Process>, Failure> {
        let text = fs::read_to_string(self.file())
            .map_err(|error| Failure::path("read the statistics in", &self.file(), &error))?;
        text.lines()
            .map(|line| {
                serde_json::from_str(line).map_err(|error| {
                    Failure::Runtime(format!(
                        "the provider's statistics '{line}' cannot be read: {error}; is it of \
                         another version? 'cipherlane openssl status' tells"
                    ))
                })
            })
            .collect()
    }

    /// Where glibc's loader tells which libraries each process loads.
    fn loader(&self) -> PathBuf {
        self.dir.path().join("loader")
    }

    /// The libraries and modules that the processes loaded.
    fn libraries(&self) -> Vec<String> {
        let entries = fs::read_dir(self.dir.path())
            .into_iter()
            .flatten()
            .flatten();
        let logs = entries.filter(|entry| entry.file_name() != "statistics");
        let mut libraries: Vec<String> = logs
            .filter_map(|log| fs::read(log.path()).ok())
            .flat_map(|log| {
                let text = String::from_utf8_lossy(&log).into_owned();
                let named = |line: &str| Some(line.split_once("calling init: ")?.1.to_owned());
                text.lines().filter_map(named).collect::<Vec<_>>()
            })
            .collect();
        libraries.sort();
        libraries.dedup();
        libraries
    }
}

#[derive(Serialize)]
struct Report {
    exit_status: u8,
    processes: Vec<Process>,
    totals: BTreeMap<String, Use>,
    /// The libcrypto that the program loaded.
    libcrypto: Vec<String>,
    /// Why the provider was not used, or what may be why the program failed.
    problems: Vec<Problem>,
}

/// Runs the program; what it used goes to standard error, as the rest is the program's.
pub(crate) fn run(command: &[OsString], json: bool) -> Result<ExitCode, Failure> {
    let statistics = Statistics::new()?;
    // Interrupted at the terminal, the program ends and this one reports.
    for signal in [SIGINT, SIGQUIT] {
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))
            .map_err(|error| Failure::io("wait for", "the program", &error))?;
    }
    let name = PathBuf::from(&command[0]);
    let mut program = Command::new(&name);
    statistics.of(&mut program);
    let status = program
        .args(&command[1..])
        .env("LD_DEBUG", "libs")
        .env("LD_DEBUG_OUTPUT", statistics.loader())
        .status();
    let status = match status {
        Ok(status) => exit_status(status),
        Err(error) => {
            Failure::path("run", &name, &error).report();
            // As shells have it.
            let found = error.kind() != std::io::ErrorKind::NotFound;
            return Ok(ExitCode::from(if found { 126 } else { 127 }));
        }
    };
    let processes = statistics.processes()?;
    let mut libcrypto = statistics.libraries();
    let loader_spoke = !libcrypto.is_empty();
    libcrypto.retain(|path| path.contains("libcrypto.so"));
    let totals = totals(&processes);
    let mut problems = match totals.is_empty() {
        true => why_not(&processes, &libcrypto, loader_spoke),
        // Used or not, a mistake in the configuration may be why it failed.
        false if status != 0 => configuration(),
        false => Vec::new(),
    };
    problems.extend(settings(&processes));
    let report = Report {
        exit_status: status,
        processes,
        totals,
        libcrypto,
        problems,
    };
    match json {
        true => eprint!("{}", output::to_json("openssl-watch", &report)),
        false => eprint!("{}", text(&report)),
    }
    Ok(ExitCode::from(status))
}

fn exit_status(status: ExitStatus) -> u8 {
    let code = status.code().or(status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

fn totals(processes: &[Process]) -> BTreeMap<String, Use> {
    let mut totals: BTreeMap<String, Use> = BTreeMap::new();
    for (cipher, used) in processes.iter().flat_map(|process| &process.ciphers) {
        let total = totals.entry(cipher.clone()).or_default();
        total.contexts += used.contexts;
        total.operations += used.operations;
        total.bytes += used.bytes;
        total.pipelines += used.pipelines;
        total.split += used.split;
    }
    totals
}

/// Why a program used no cipher of the provider.
fn why_not(processes: &[Process], libcrypto: &[String], loader_spoke: bool) -> Vec<Problem> {
    let mut problems = configuration();
    let configured = problems.is_empty();
    let mut add = |what: &str, remedy: &str| {
        problems.push(Problem {
            what: what.to_owned(),
            remedy: remedy.to_owned(),
        });
    };
    let three = libcrypto
        .iter()
        .any(|path| !path.contains("libcrypto.so.1"));
    if !processes.is_empty() {
        // With a mistake in the configuration, that is why.
        if configured {
            add(
                "the program loaded the provider, but used none of its ciphers",
                "have it encrypt by AES in ECB, CBC, CTR, GCM or XTS, or by ChaCha20-Poly1305; 'openssl \
             list -cipher-algorithms' lists the names, 'cipherlane openssl status' those that are \
             left to OpenSSL because it is faster",
            );
        }
    } else if !loader_spoke {
        add(
            "the program is linked statically, so it has its own libcrypto if any, or it runs \
             with other rights than its caller's",
            "use a build that links to the system's OpenSSL",
        );
    } else if libcrypto.is_empty() {
        add(
            "the program did not load OpenSSL's libcrypto: it uses another library, or a copy of \
             its own, or did not come so far as to encrypt",
            "use a build that links to the system's OpenSSL, and have it encrypt something",
        );
    } else if !three {
        add(
            "the program uses an OpenSSL before 3.0, which has no providers",
            "use a build for OpenSSL 3.0 or later",
        );
    } else if configured {
        add(
            "the program uses OpenSSL, but did not load the provider: it does not read the \
             configuration (or another one), or was killed, or runs on",
            "see its documentation for OPENSSL_CONF, do not clear its environment, and let it end \
             by itself",
        );
    }
    problems
}

/// Settings that the provider did not follow, each once.
fn settings(processes: &[Process]) -> Vec<Problem> {
    let once = |of: fn(&Process) -> Option<&String>| {
        let mut told: Vec<_> = processes.iter().filter_map(of).collect();
        told.sort();
        told.dedup();
        told
    };
    let cores = once(|process| process.problem.as_ref());
    let ciphers = once(|process| process.ciphers_problem.as_ref());
    let problem = |what: &String| Problem {
        what: format!("large calls are not shared with other cores: {what}"),
        remedy: "correct CIPHERLANE_CORES, or 'cores' in the provider's section of the \
                 configuration, or take it out"
            .to_owned(),
    };
    let ciphers = ciphers.into_iter().map(|what| ciphers_problem(what, None));
    cores.into_iter().map(problem).chain(ciphers).collect()
}

/// What the provider told of its list of ciphers, and where that stands, if it is known.
pub(crate) fn ciphers_problem(what: &str, setting: Option<&Setting>) -> Problem {
    let place = setting.map_or(String::new(), |setting| format!(" of {}", setting.place()));
    Problem {
        what: format!("the setting 'ciphers'{place} {what}"),
        remedy: "write names that 'openssl list -cipher-algorithms' has for the provider, with \
                 commas between them, or 'none'; or let 'cipherlane openssl env --measure' or \
                 'install --measure' write the line"
            .to_owned(),
    }
}

/// What is wrong with the configuration.
fn configuration() -> Vec<Problem> {
    match Diagnosis::make() {
        Ok(diagnosis) => diagnosis.problems,
        Err(failure) => vec![Problem {
            what: "the configuration cannot be looked at".to_owned(),
            remedy: failure.to_string(),
        }],
    }
}

fn text(report: &Report) -> String {
    if report.totals.is_empty() {
        let text = "cipherlane: the program did not use the provider\n".to_owned();
        return text + &status::problems(&report.problems);
    }
    let mut table = output::table(
        &["process", "cipher", "contexts", "operations", "bytes"],
        &[2, 3, 4],
    );
    let mut row = |process: &str, cipher: &str, used: &Use| {
        table.add_row([
            process.to_owned(),
            cipher.to_owned(),
            used.contexts.to_string(),
            used.operations.to_string(),
            used.bytes.to_string(),
        ]);
    };
    let users = || {
        report
            .processes
            .iter()
            .filter(|process| !process.ciphers.is_empty())
    };
    for process in users() {
        for (cipher, used) in &process.ciphers {
            row(&process.process.to_string(), cipher, used);
        }
    }
    if users().count() > 1 {
        for (cipher, used) in &report.totals {
            row("all", cipher, used);
        }
    }
    let by_random = |cipher: &String| RANDOM.contains(&cipher.as_str());
    let random = match () {
        () if report.totals.keys().all(by_random) => {
            "Nothing else: this may have been OpenSSL's random generator alone, and the program \
             have encrypted by a cipher that is not the provider's.\n"
        }
        () if report.totals.keys().any(by_random) => {
            "AES-256-CTR and AES-256-ECB: OpenSSL's random generator uses them too.\n"
        }
        () => "",
    };
    let table = table.trim_fmt();
    let problems = status::problems(&report.problems);
    format!("cipherlane: the program used the provider:\n{table}\n{random}{problems}")
}
