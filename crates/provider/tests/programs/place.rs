//! A folder with a configuration of OpenSSL that names the provider, and its counters.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

/// Where a program's ciphers come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum From {
    Cipherlane,
    Default,
}

pub(crate) struct Place {
    folder: TempDir,
    counted: bool,
}

/// Bytes of each cipher that processes of the place had from the provider.
pub(crate) type Used = BTreeMap<String, u64>;

impl Place {
    pub(crate) fn new() -> Place {
        let place = Place {
            folder: TempDir::new().unwrap(),
            counted: true,
        };
        // Cargo puts the library beside the tests that depend on it.
        let library = std::env::current_exe()
            .unwrap()
            .with_file_name("libcipherlane_provider.so");
        assert!(library.exists(), "{} was built", library.display());
        fs::create_dir(place.modules()).unwrap();
        symlink(&library, place.modules().join("cipherlane.so")).unwrap();
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o711)).unwrap();
        empty(&place.statistics());
        let configuration = format!(
            "openssl_conf = start\n\
             [start]\nproviders = providers\nalg_section = algorithms\n\
             [providers]\ndefault = with_default\ncipherlane = with_cipherlane\n\
             [with_default]\nactivate = 1\n\
             [with_cipherlane]\nactivate = 1\nmodule = {}\n\
             [algorithms]\ndefault_properties = ?provider=cipherlane\n",
            library.display()
        );
        fs::write(place.configuration(), configuration).unwrap();
        place
    }

    /// Where programs are timed, and count nothing.
    #[allow(dead_code, reason = "benches/openssl has it")]
    pub(crate) fn uncounted() -> Place {
        Place {
            counted: false,
            ..Place::new()
        }
    }

    /// Puts the library itself into the place, for programs whose user may not read it where
    /// it was built.
    #[allow(dead_code, reason = "benches/openssl has no such programs")]
    pub(crate) fn copy_library(&self) {
        let link = self.modules().join("cipherlane.so");
        let library = fs::read_link(&link).unwrap();
        fs::remove_file(&link).unwrap();
        fs::copy(&library, &link).unwrap();
        let [library, copy] = [&library, &link].map(|path| path.display().to_string());
        let configuration = fs::read_to_string(self.configuration()).unwrap();
        fs::write(self.configuration(), configuration.replace(&library, &copy)).unwrap();
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn configuration(&self) -> PathBuf {
        self.path().join("openssl.cnf")
    }

    /// A directory where OpenSSL finds the provider by its name.
    pub(crate) fn modules(&self) -> PathBuf {
        self.path().join("modules")
    }

    fn statistics(&self) -> PathBuf {
        self.path().join("statistics")
    }

    /// A program of the place.
    pub(crate) fn command(&self, program: impl AsRef<Path>, from: From) -> Command {
        let mut command = Command::new(program.as_ref());
        command
            .current_dir(self.path())
            .env_remove("OPENSSL_MODULES")
            .env_remove("CIPHERLANE_OPENSSL_STATS");
        if self.counted {
            command.env("CIPHERLANE_OPENSSL_STATS", self.statistics());
        }
        match from {
            From::Cipherlane => command.env("OPENSSL_CONF", self.configuration()),
            From::Default => command.env("OPENSSL_CONF", "/dev/null"),
        };
        command
    }

    /// What each process used that has ended since the last question.
    pub(crate) fn processes(&self) -> BTreeMap<u32, Used> {
        take(&self.statistics())
    }

    /// What all of them used.
    pub(crate) fn used(&self) -> Used {
        sum(self.processes())
    }
}

/// An empty file for counters. Processes that gave up root's rights, as nginx's workers, write
/// there too.
pub(crate) fn empty(file: &Path) {
    fs::write(file, "").unwrap();
    fs::set_permissions(file, fs::Permissions::from_mode(0o666)).unwrap();
}

/// What processes told in a file, which is empty then. A line that comes between the reading and
/// the emptying is lost, so this is for processes that have ended.
pub(crate) fn take(file: &Path) -> BTreeMap<u32, Used> {
    let processes = told(file);
    fs::write(file, "").unwrap();
    processes
}

/// What processes have told in a file so far, without a line that is still being written.
pub(crate) fn told(file: &Path) -> BTreeMap<u32, Used> {
    let mut processes = BTreeMap::<u32, Used>::new();
    let text = fs::read_to_string(file).unwrap();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    for line in whole.lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let process = u32::try_from(line["process"].as_u64().unwrap()).unwrap();
        let used = processes.entry(process).or_default();
        for (cipher, counts) in line["ciphers"].as_object().unwrap() {
            *used.entry(cipher.clone()).or_default() += counts["bytes"].as_u64().unwrap();
        }
    }
    processes
}

/// What all processes used.
pub(crate) fn sum(processes: BTreeMap<u32, Used>) -> Used {
    let mut all = Used::new();
    for (cipher, bytes) in processes.into_values().flatten() {
        *all.entry(cipher).or_default() += bytes;
    }
    all
}

/// A program's output, once it has succeeded. Where it fails, the end of each log of its folder is
/// shown too: the reason may be a server's.
pub(crate) fn succeeded(command: &mut Command) -> Output {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}; scripts/needs test installs it"));
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
        command.get_current_dir().map(logs).unwrap_or_default()
    );
    output
}

/// The last lines of each file `*.log` of a folder.
fn logs(folder: &Path) -> String {
    const LINES: usize = 30;
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    let logs = files.filter(|file| file.path().extension().is_some_and(|of| of == "log"));
    let shown = logs.map(|log| {
        let text = fs::read(log.path()).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        let last = lines[lines.len().saturating_sub(LINES)..].join("\n");
        format!("-- {}\n{last}\n", log.file_name().display())
    });
    shown.collect()
}

/// Says that a test proves nothing here: to the stream itself, since the harness keeps what
/// `eprintln!` writes to itself unless the test fails.
pub(crate) fn skip(test: &str, reason: &str) {
    let message = format!("SKIPPED: {test}: {reason}\n");
    std::io::stderr().write_all(message.as_bytes()).unwrap();
}
