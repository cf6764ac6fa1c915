//! What the program `openssl` says of itself and of a provider.
//!
//! It is asked rather than the library: it tells everything that is needed, it is there where
//! the library is used, and a provider that crashes takes only that program with it.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use cipherlane_core::environment;

use crate::failure::Failure;

/// The installed OpenSSL.
#[derive(Debug)]
pub(crate) struct Openssl {
    /// Such as 3.0.19.
    pub(crate) version: String,
    /// As its libcrypto calls itself, such as `OpenSSL 3.0.19 27 Jan 2026`.
    pub(crate) library: String,
    /// Its configuration, where OPENSSL_CONF names no other.
    pub(crate) system_cnf: PathBuf,
    /// Where it looks for providers, when started here.
    pub(crate) modules: PathBuf,
    /// Where it looks for them when OPENSSL_MODULES names no other directory.
    pub(crate) system_modules: PathBuf,
}

impl Openssl {
    /// Asks it, whatever the present configuration is.
    pub(crate) fn ask() -> Result<Openssl, Failure> {
        let output = run(unconfigured().args(["version", "-v", "-d", "-m"]))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let directory = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            Some(PathBuf::from(line.trim().trim_matches('"')))
        };
        let first = text.lines().next().unwrap_or_default();
        let version = first.strip_prefix("OpenSSL ").and_then(|rest| {
            let number = rest.split(' ').next()?;
            let major: u32 = number.split('.').next()?.parse().ok()?;
            (major >= 3).then(|| number.to_owned())
        });
        let library = first.split_once("(Library: ");
        let library = library.map_or(first, |(_, library)| library.trim_end_matches(')'));
        match (version, directory("OPENSSLDIR:"), directory("MODULESDIR:")) {
            (Some(version), Some(dir), Some(modules)) => Ok(Openssl {
                version,
                library: library.to_owned(),
                system_cnf: dir.join("openssl.cnf"),
                modules: environment::variable("OPENSSL_MODULES")
                    .map_or(modules.clone(), PathBuf::from),
                system_modules: modules,
            }),
            _ => Err(Failure::Runtime(format!(
                "'openssl version' says '{first}', which has no providers; install OpenSSL 3.0 or \
                 later"
            ))),
        }
    }

    /// The configuration that a program started here reads.
    #[allow(clippy::disallowed_methods)] // For OpenSSL an empty one counts, and names nothing.
    pub(crate) fn present_cnf(&self) -> PathBuf {
        std::env::var_os("OPENSSL_CONF").map_or(self.system_cnf.clone(), PathBuf::from)
    }
}

/// What a provider says of itself.
#[derive(Debug)]
pub(crate) struct Provider {
    pub(crate) title: String,
    pub(crate) version: String,
}

/// Loads a provider's file, or says why OpenSSL cannot.
pub(crate) fn load(module: &Path) -> Result<Result<Provider, String>, Failure> {
    let mut command = unconfigured();
    command.args(["list", "-providers", "-verbose", "-provider"]);
    let output = run(command.arg(module))?;
    if !output.status.success() {
        return Ok(Err(reason(&output)));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let field = |name: &str| {
        let mut lines = text.lines().map(str::trim);
        lines.find_map(|line| line.strip_prefix(name).map(|value| value.trim().to_owned()))
    };
    Ok(Ok(Provider {
        title: field("name:").unwrap_or_default(),
        version: field("version:").unwrap_or_default(),
    }))
}

/// Encrypts nothing by a cipher that has an IV or none, with a key of `key_len` bytes, under the
/// present configuration.
pub(crate) fn use_cipher(
    cipher: &str,
    key_len: usize,
    statistics: &Path,
) -> Result<Output, Failure> {
    let option = format!("-{}", cipher.to_ascii_lowercase());
    let (key, iv) = ("0".repeat(2 * key_len), "0".repeat(32));
    run(Command::new("openssl")
        .args(["enc", &option, "-K", &key, "-iv", &iv])
        .env("CIPHERLANE_OPENSSL_STATS", statistics))
}

/// The most telling words of a failure: the loader's, else the first line.
pub(crate) fn reason(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    let loader = text
        .lines()
        .find_map(|line| line.split_once("filename(").or(line.split_once("symname(")))
        .and_then(|(_, rest)| rest.split_once("): "));
    match (loader, text.lines().next()) {
        (Some((_, words)), _) => words.to_owned(),
        (None, Some(line)) => line.to_owned(),
        (None, None) => format!("it ended with {}", output.status),
    }
}

fn unconfigured() -> Command {
    let mut command = Command::new("openssl");
    command
        .env("OPENSSL_CONF", "/dev/null")
        .env_remove("CIPHERLANE_OPENSSL_STATS");
    command
}

fn run(command: &mut Command) -> Result<Output, Failure> {
    command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| {
            match error.kind() {
            io::ErrorKind::NotFound => Failure::Runtime(
                "the program 'openssl' is not found; install the package openssl, or put it on PATH"
                    .to_owned(),
            ),
            _ => Failure::io("run", "the program 'openssl'", &error),
        }
        })
}
