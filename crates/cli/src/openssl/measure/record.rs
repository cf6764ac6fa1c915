//! What was measured, and the file beside the configuration that keeps it.

use std::path::{Path, PathBuf};

use cipherlane_core::read_text;
use cipherlane_kernels::job::MacJob;
use cipherlane_kernels::sha2;
use cipherlane_measure::machine::Machine;
use serde::{Deserialize, Serialize};

use super::rule::Cipher;
use crate::failure::Failure;

/// Bytes of the longest file that is read, ciphers in it, and bytes of a name or a sentence.
const MAX_FILE: u64 = 1 << 20;
const MAX_CIPHERS: usize = 256;
const MAX_TEXT: usize = 200;

/// The figures of every cipher, and what they hold for.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Measured {
    /// In UTC.
    pub(crate) date: String,
    pub(crate) held_for: HeldFor,
    pub(crate) ciphers: Vec<Cipher>,
}

/// What other figures may come out with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HeldFor {
    /// As libcrypto calls itself, such as `OpenSSL 3.0.19 27 Jan 2026`.
    pub(crate) libcrypto: String,
    pub(crate) processor: String,
    /// The processor's extensions that ciphers use.
    pub(crate) features: Vec<String>,
    /// SHA-256 of the provider's file, in hexadecimal digits.
    pub(crate) provider: String,
}

impl HeldFor {
    /// What there is now.
    pub(crate) fn now(libcrypto: &str, module: &Path) -> Result<HeldFor, Failure> {
        let bytes = std::fs::read(module)
            .map_err(|error| Failure::path("read the provider", module, &error))?;
        let mut digest = [0; 32];
        sha2::sha256(&mut [MacJob {
            key: &(),
            head: &[],
            data: &bytes,
            suffix: &[],
            mac: &mut digest,
        }]);
        let machine = Machine::detect();
        Ok(HeldFor {
            libcrypto: libcrypto.to_owned(),
            processor: machine.cpu,
            features: machine.features,
            provider: hex::encode(digest),
        })
    }

    /// What has changed since, in words.
    pub(crate) fn changed(&self, now: &HeldFor) -> Option<String> {
        if self.libcrypto != now.libcrypto {
            Some(format!(
                "with {}, and it is {} now",
                self.libcrypto, now.libcrypto
            ))
        } else if self.processor != now.processor {
            Some(format!(
                "on {}, and this is {}",
                self.processor, now.processor
            ))
        } else if self.features != now.features {
            Some("with other extensions of the processor than it has now".to_owned())
        } else if self.provider != now.provider {
            Some("with another build of the provider".to_owned())
        } else {
            None
        }
    }
}

impl Measured {
    /// The file that belongs to a configuration.
    pub(crate) fn file(cnf: &Path) -> PathBuf {
        let mut file = cnf.as_os_str().to_owned();
        file.push(".measured.json");
        file.into()
    }

    /// The ciphers that the provider takes, for the setting `ciphers`.
    pub(crate) fn taken(&self) -> Vec<&str> {
        let taken = self.ciphers.iter().filter(|cipher| cipher.judge().is_ok());
        taken.map(|cipher| cipher.name.as_str()).collect()
    }

    pub(crate) fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("figures are plain data") + "\n"
    }

    /// What is kept beside a configuration. `Ok(None)`: nothing. `Err`: it cannot be read, or is
    /// none that was written by us, so that its names are fit neither for a configuration nor for
    /// a terminal.
    pub(crate) fn read(cnf: &Path) -> Result<Option<Measured>, String> {
        let file = Measured::file(cnf);
        let text = match read_text(&file, MAX_FILE) {
            Ok(text) => text,
            Err(cipherlane_core::Error::Io { source, .. })
                if source.kind() == std::io::ErrorKind::NotFound =>
            {
                return Ok(None);
            }
            Err(error) => return Err(error.to_string()),
        };
        let refused = |why: &str| format!("'{}' {why}", file.display());
        let measured: Measured = serde_json::from_str(&text)
            .map_err(|error| refused(&format!("is no record of figures: {error}")))?;
        match measured.is_plain() {
            true => Ok(Some(measured)),
            false => Err(refused("has names that no cipher has")),
        }
    }

    fn is_plain(&self) -> bool {
        let plain = |text: &str| text.len() <= MAX_TEXT && !text.contains(char::is_control);
        let name = |text: &str| {
            let letter = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            (1..=MAX_TEXT).contains(&text.len()) && text.chars().all(letter)
        };
        let held_for = &self.held_for;
        let texts = [
            &self.date,
            &held_for.libcrypto,
            &held_for.processor,
            &held_for.provider,
        ];
        let texts = texts.into_iter().chain(&held_for.features);
        let problems = self
            .ciphers
            .iter()
            .filter_map(|cipher| cipher.problem.as_ref());
        self.ciphers.len() <= MAX_CIPHERS
            && texts.chain(problems).all(|text| plain(text))
            && self.ciphers.iter().all(|cipher| name(&cipher.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(name: &str, date: &str) -> Measured {
        Measured {
            date: date.to_owned(),
            held_for: HeldFor {
                libcrypto: "OpenSSL 3.0.19 27 Jan 2026".to_owned(),
                processor: "Some CPU".to_owned(),
                features: vec!["aes".to_owned()],
                provider: "00".to_owned(),
            },
            ciphers: vec![Cipher {
                name: name.to_owned(),
                figures: Vec::new(),
                problem: None,
            }],
        }
    }

    #[test]
    fn what_is_written_is_read_and_hostile_records_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let cnf = dir.path().join("openssl.cnf");
        assert!(Measured::read(&cnf).unwrap().is_none());
        let write = |text: &str| std::fs::write(Measured::file(&cnf), text).unwrap();
        write(&measured("AES-128-GCM", "2026-11-22").to_json());
        let read = Measured::read(&cnf).unwrap().unwrap();
        assert_eq!(read.taken(), ["AES-128-GCM"]);
        for hostile in [
            measured("AES\nmodule = /tmp/evil.so", "2026-11-22"),
            measured("A, B", "2026-11-22"),
            measured("", "2026-11-22"),
            measured(&"A".repeat(300), "2026-11-22"),
            measured("AES-128-GCM", "\u{1b}[2J"),
        ] {
            write(&hostile.to_json());
            let reason = Measured::read(&cnf).unwrap_err();
            assert!(reason.contains("openssl.cnf.measured.json"), "{reason}");
        }
        write("{");
        assert!(Measured::read(&cnf).is_err());
        write(&" ".repeat(2 << 20));
        assert!(Measured::read(&cnf).unwrap_err().contains("too long"));
    }

    #[test]
    fn each_change_has_its_words() {
        let then = measured("x", "").held_for;
        assert_eq!(then.changed(&then), None);
        let mut now = then.clone();
        now.provider = "01".to_owned();
        assert!(then.changed(&now).unwrap().contains("another build"));
        now.features.clear();
        assert!(then.changed(&now).unwrap().contains("extensions"));
        now.processor = "Other CPU".to_owned();
        assert!(then.changed(&now).unwrap().contains("this is Other CPU"));
        now.libcrypto = "OpenSSL 3.5.0".to_owned();
        assert!(
            then.changed(&now)
                .unwrap()
                .contains("it is OpenSSL 3.5.0 now")
        );
    }
}
