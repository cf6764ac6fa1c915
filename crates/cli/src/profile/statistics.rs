//! Bytes of work as programs that use Cipherlane count them themselves: the gateway tells them by its
//! socket, the provider for OpenSSL writes them when a process ends.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use cipherlane_core::environment;
use cipherlane_gateway::{Config, SOCKET, status};
use cipherlane_profile::record::{Meter, Target};
use serde::Deserialize;
use tempfile::NamedTempFile;

/// The variable that makes the provider write its counters into a file (docs/openssl.md).
const PROVIDERS: &str = "CIPHERLANE_OPENSSL_STATS";
/// The gateway's configuration, unless its command line names another one.
const CONFIG: &str = "/etc/cipherlane/gateway.toml";

/// A line that the provider has written.
#[derive(Deserialize)]
struct Line {
    ciphers: BTreeMap<String, Counted>,
}

#[derive(Deserialize)]
struct Counted {
    bytes: u64,
}

/// Who tells of the target's work, if anybody may.
pub(super) fn meter(target: &Target) -> Option<Meter> {
    match target {
        Target::Command(_) => of_provider(),
        Target::Process(pid) => of_gateway(*pid),
        Target::Machine => None,
    }
}

fn of_provider() -> Option<Meter> {
    // The file is removed with the last one who reads it.
    let (file, own): (PathBuf, _) = match environment::text(PROVIDERS) {
        // Standard error belongs to the command, and its words are not ours to read.
        Some(name) if name == "-" => return None,
        Some(name) => (name.into(), None),
        None => {
            let own = NamedTempFile::with_prefix("cipherlane-statistics-").ok()?;
            (own.path().to_owned(), Some(own))
        }
    };
    let variable = own.is_some().then(|| (PROVIDERS, file.clone().into()));
    let bytes = move || {
        let _kept = &own;
        Some(written(&file))
    };
    Some(Meter {
        source: "bytes that the OpenSSL provider of Cipherlane counted".to_owned(),
        bytes: Arc::new(bytes),
        variable,
    })
}

/// Bytes of all lines in such a file.
fn written(file: &Path) -> u64 {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let lines = text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    lines
        .flat_map(|line: Line| line.ciphers.into_values())
        .fold(0, |sum, of| sum.saturating_add(of.bytes))
}

fn of_gateway(pid: u32) -> Option<Meter> {
    let words = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let words: Vec<_> = words
        .split(|byte| *byte == 0)
        .map(String::from_utf8_lossy)
        .collect();
    if !words.iter().any(|word| word == "gateway") {
        return None;
    }
    let config =
        words
            .iter()
            .enumerate()
            .find_map(|(at, word)| match word.strip_prefix("--config") {
                Some("") => words.get(at + 1).map(AsRef::as_ref),
                Some(file) => file.strip_prefix('='),
                None => None,
            });
    // A path of its own is one of its own directory.
    let root = PathBuf::from(format!("/proc/{pid}/cwd"));
    let config = root.join(config.unwrap_or(CONFIG));
    let socket = match config.exists() {
        true => Config::read(&config).ok()?.socket,
        false => PathBuf::from(SOCKET),
    };
    let first = OnceLock::new();
    let bytes = move || {
        let status = status::ask(&socket)
            .ok()
            .filter(|status| status.pid == pid)?;
        let sas = status
            .tunnels
            .iter()
            .flat_map(|of| [&of.outbound, &of.inbound]);
        let (spis, bytes): (Vec<u32>, Vec<u64>) = sas.map(|of| (of.spi, of.bytes)).unzip();
        // Other SAs count from zero, and what the old ones did last is known no more.
        let is_same = *first.get_or_init(|| spis.clone()) == spis;
        is_same.then(|| bytes.iter().fold(0, |sum: u64, of| sum.saturating_add(*of)))
    };
    // What cannot be asked now will not be later.
    bytes()?;
    Some(Meter {
        source: "bytes that the gateway's SAs counted, sealed and opened".to_owned(),
        bytes: Arc::new(bytes),
        variable: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_of_all_processes_and_ciphers_are_added_up() {
        let file = NamedTempFile::new().unwrap();
        assert_eq!(written(file.path()), 0);
        let line = r#"{"process":9,"ciphers":{"AES-128-GCM":{"contexts":1,"operations":2,"bytes":30,
            "pipelines":0,"split":0},"ChaCha20-Poly1305":{"contexts":1,"operations":1,"bytes":4,
            "pipelines":0,"split":0}},"problem":"none"}"#;
        let line = line.replace('\n', "");
        let text = format!("{line}\nrubbish\n{line}\n{{\"process\":3,\"ciphers\":{{}}}}\n");
        std::fs::write(file.path(), text).unwrap();
        assert_eq!(written(file.path()), 68);
        assert_eq!(written(Path::new("/nowhere")), 0);
    }
}
