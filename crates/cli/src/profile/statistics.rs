//! Bytes of work as programs that use Cipherlane count them themselves: the gateway tells them by its
//! socket, the provider for OpenSSL writes them when a process ends.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use cipherlane_core::environment;
use cipherlane_gateway::{CONFIG, Config, SOCKET, status};
use cipherlane_profile::record::{Meter, Target};

use crate::openssl::watch::{Statistics, VARIABLE};

/// Who tells of the target's work, if anybody may.
pub(super) fn meter(target: &Target) -> Option<Meter> {
    match target {
        Target::Command(_) => of_provider(),
        Target::Process(pid) => of_gateway(*pid),
        Target::Machine => None,
    }
}

fn of_provider() -> Option<Meter> {
    // Who has set it wants the counters elsewhere.
    if environment::text(VARIABLE).is_some() {
        return None;
    }
    let statistics = Statistics::new().ok()?;
    let file = statistics.file();
    let bytes = move || {
        let processes = statistics.processes().ok()?;
        let uses = processes.iter().flat_map(|of| of.ciphers.values());
        Some(uses.fold(0, |sum: u64, of| sum.saturating_add(of.bytes)))
    };
    Some(Meter {
        source: "bytes that the OpenSSL provider of Cipherlane counted".to_owned(),
        bytes: Arc::new(bytes),
        variable: Some((VARIABLE, file.into())),
    })
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
    // A relative path is one in the gateway's working directory.
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
