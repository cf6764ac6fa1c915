//! Options of `cipherlane speed`, and the file that holds the same settings.

use std::path::{Path, PathBuf};

use cipherlane_core::{Error, read_text};
use clap::Args;
use serde::Deserialize;

use super::unit::Unit;
use crate::failure::Failure;
use crate::suggest;
use crate::units;

/// The longest definition that is read, in bytes.
const MAX_FILE: u64 = 1 << 20;

/// Measure drivers side by side, as `openssl speed -evp ALG -elapsed` does one
///
/// Every operation has a fresh IV and works in place on memory that is in the cache as far as
/// it fits; the key is set once. Additional data, where the algorithm takes any, is 8 bytes, as
/// in ESP. Decryption of an AEAD reads a kept ciphertext and writes beside it, always under the
/// IV that the ciphertext was made with, since in place only the first tag would be right.
/// All drivers of a cell take turns in short blocks.
///
/// Without options that ask for more it answers within ten seconds: the usual ciphers at three
/// sizes, by software and OpenSSL, one request at a time.
#[derive(Args, Debug)]
pub(crate) struct SpeedArgs {
    /// Algorithms by CryptoAPI or OpenSSL name, such as 'gcm(aes)' or aes-256-gcm
    /// [default: some; with --full gcm(aes) ctr(aes) cbc(aes) xts(aes)
    /// rfc7539(chacha20,poly1305) hmac(sha256)]
    #[arg(value_name = "ALG", value_parser = suggest::algorithms(), hide_possible_values = true)]
    pub(super) algorithms: Vec<String>,
    /// Drivers; 'auto' is the dispatcher's choice [default: software,cores,openssl,auto]
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = suggest::drivers(), hide_possible_values = true)]
    pub(super) drivers: Vec<String>,
    /// Bytes of a request [default: 16,64,256,1024,1400,8K,16K,64K,1M]
    #[arg(long, value_name = "BYTES", value_delimiter = ',', value_parser = units::parse_size)]
    pub(super) sizes: Vec<usize>,
    /// Requests in a batch [default: 1,16]
    #[arg(long, value_name = "N", value_delimiter = ',')]
    pub(super) batch: Vec<usize>,
    /// Threads that call at once [default: 1]
    #[arg(long, value_name = "N", value_delimiter = ',')]
    pub(super) threads: Vec<usize>,
    /// Batches that a caller who does not wait keeps under way; 0 is a caller who waits
    /// [default: 0]
    #[arg(long, value_name = "DEPTH", value_delimiter = ',')]
    pub(super) submit: Vec<usize>,
    /// Microseconds that a caller who waits does something else for between two calls, as programs
    /// do that are not always busy: helpers fall asleep meanwhile. Only the calls are timed
    /// [default: 0]
    #[arg(long, value_name = "US", value_delimiter = ',')]
    pub(super) pause: Vec<usize>,
    /// Measure software with every set of instructions that this processor has, side by side: as it
    /// would run on older processors
    #[arg(long, conflicts_with = "profile")]
    pub(super) instruction_sets: bool,
    /// Take turns of a measurement from standard input, with this set of instructions alone
    #[arg(long, value_name = "SET", hide = true)]
    pub(super) turns_with: Option<String>,
    /// Decrypt; for a MAC, verify
    #[arg(long)]
    pub(super) decrypt: bool,
    /// Bits of the key [default: the least that the algorithm takes]
    #[arg(long, value_name = "BITS")]
    pub(super) keybits: Option<u32>,
    /// Seconds for each cell and driver [default: 0.25, with --profile 1]
    #[arg(long, value_name = "S")]
    pub(super) seconds: Option<f64>,
    /// Milliseconds of a block, after which the next driver has its turn; shorter ones are less
    /// disturbed on a busy machine, but helpers that sleep have less time to wake
    /// [default: a twelfth of --seconds, 30 at most]
    #[arg(long, value_name = "MS")]
    pub(super) block: Option<f64>,
    /// Take what the options leave open from this TOML file, such as bench/auto-matrix.toml
    #[arg(long, value_name = "FILE")]
    pub(super) definition: Option<PathBuf>,
    /// Record the drivers while they take turns, and say of each that is slower than the fastest
    /// one why, by phase of the work; docs/profile.md explains the phases
    #[arg(long)]
    pub(super) profile: bool,
    /// Print latency, processor time, context switches and page faults of every cell too, as is
    /// done anyhow where one of the drivers is a device (dma:NAME)
    #[arg(long, short)]
    pub(super) verbose: bool,
    /// Measure everything that is the default of the other options: minutes
    #[arg(long)]
    pub(super) full: bool,
    /// In what the figures of the tables are told
    #[arg(long, value_enum, value_name = "UNIT", default_value_t)]
    pub(super) unit: Unit,
    /// Print JSON instead of the table, or write it into a file: --json=FILE
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    pub(super) json: Option<PathBuf>,
    /// Write the cells as CSV
    #[arg(long, value_name = "FILE")]
    pub(super) csv: Option<PathBuf>,
    /// Write the tables as Markdown; '-' is standard output, without the table then
    #[arg(long, value_name = "FILE")]
    pub(super) markdown: Option<PathBuf>,
    /// Write a page with charts, which needs no network; with --profile it tells why, too, with
    /// flame graphs
    #[arg(long, value_name = "FILE")]
    pub(super) html: Option<PathBuf>,
}

impl SpeedArgs {
    /// Whether nothing asks for more than the short answer.
    pub(super) fn is_bare(&self) -> bool {
        let lists = [
            &self.sizes,
            &self.batch,
            &self.threads,
            &self.submit,
            &self.pause,
        ];
        lists.into_iter().all(Vec::is_empty)
            && self.algorithms.is_empty()
            && self.drivers.is_empty()
            && self.definition.is_none()
            && !self.full
            && !self.verbose
            && !self.decrypt
    }
}

/// A definition file: the options by name, and a title. Every field may be left out.
///
/// ```toml
/// title = "Packets"
/// algorithms = ["gcm(aes)"]
/// drivers = ["software", "auto"]
/// sizes = [64, 1400]
/// batch = [1, 16]
/// threads = [1, 2]
/// submit = [0, 8]
/// pause = [0, 100]
/// decrypt = false
/// keybits = 256
/// seconds = 0.5
/// block = 5.0
/// ```
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Definition {
    pub(super) title: Option<String>,
    pub(super) algorithms: Vec<String>,
    pub(super) drivers: Vec<String>,
    pub(super) sizes: Vec<usize>,
    pub(super) batch: Vec<usize>,
    pub(super) threads: Vec<usize>,
    pub(super) submit: Vec<usize>,
    pub(super) pause: Vec<usize>,
    pub(super) decrypt: bool,
    pub(super) keybits: Option<u32>,
    pub(super) seconds: Option<f64>,
    pub(super) block: Option<f64>,
}

impl Definition {
    pub(super) fn read(path: &Path) -> Result<Definition, Failure> {
        let text = read_text(path, MAX_FILE).map_err(|error| match error {
            Error::Io { path, source } => Failure::path("read the definition", &path, &source),
            error => error.into(),
        })?;
        toml::from_str(&text).map_err(|error| {
            Failure::Usage(format!(
                "the definition '{}' cannot be used: {}",
                path.display(),
                error.to_string().trim_end()
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_is_read_or_refused_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("d.toml");
        std::fs::write(&path, "title = 'T'\nsizes = [64]\nsubmit = [0, 4]").unwrap();
        let definition = Definition::read(&path).unwrap();
        assert_eq!(definition.title.as_deref(), Some("T"));
        assert_eq!(
            (definition.sizes, definition.submit),
            (vec![64], vec![0, 4])
        );
        for text in ["sizes = [64", "size = [64]", "sizes = ['64']"] {
            std::fs::write(&path, text).unwrap();
            let message = Definition::read(&path).unwrap_err().to_string();
            assert!(message.contains("d.toml"), "{message}");
        }
        assert!(Definition::read(&dir.path().join("none.toml")).is_err());
    }
}
