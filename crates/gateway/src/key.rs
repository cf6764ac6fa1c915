//! Keys of static SAs: digits in the configuration, or better in a file of their own.

use std::path::Path;

use cipherlane_esp::{Integrity, Keys, Suite};
use zeroize::{Zeroize, Zeroizing};

/// The longest key file.
const LONGEST: u64 = 4096;

/// A key, with all that belongs to it: salt, integrity key.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(Zeroizing<Vec<u8>>);

impl Key {
    /// Reads hexadecimal digits, or `@file:NAME` for digits that are in a file; names that are
    /// not absolute are looked for in `directory`.
    pub(crate) fn read(text: &str, directory: &Path) -> Result<Key, String> {
        let Some(source) = text.strip_prefix('@') else {
            return Key::decode(text.as_bytes(), "the key");
        };
        let Some(name) = source.strip_prefix("file:") else {
            // Not shown: it may be a key.
            return Err(
                "what begins with '@' names the place of a key; write @file:NAME".to_owned(),
            );
        };
        let path = directory.join(name);
        let file = format!("the key file '{}'", path.display());
        let bytes = cipherlane_core::read_bounded(&path, LONGEST).map(Zeroizing::new);
        let bytes = bytes.map_err(|error| format!("the key cannot be read: {error}"))?;
        warn_if_open(&path);
        Key::decode(&bytes, &file)
    }

    /// That of an SA of IKE, which is nowhere but in the SA.
    pub(crate) fn elsewhere() -> Key {
        Key(Zeroizing::new(Vec::new()))
    }

    /// A random one of `len` bytes.
    pub(crate) fn random(len: usize) -> Result<Key, getrandom::Error> {
        let mut bytes = Zeroizing::new(vec![0; len]);
        getrandom::fill(&mut bytes)?;
        Ok(Key(bytes))
    }

    fn decode(text: &[u8], what: &str) -> Result<Key, String> {
        let is_digit = |byte: &&u8| !byte.is_ascii_whitespace();
        let mut digits = Zeroizing::new(Vec::with_capacity(text.len()));
        digits.extend(text.iter().filter(is_digit).copied());
        let mut bytes = Zeroizing::new(vec![0; digits.len() / 2]);
        match hex::decode_to_slice(&digits[..], &mut bytes) {
            Ok(()) if !bytes.is_empty() => Ok(Key(bytes)),
            _ => Err(format!(
                "{what} is not made of pairs of hexadecimal digits; write it as 'xxd -p' does"
            )),
        }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Its digits.
    pub(crate) fn digits(&self) -> Zeroizing<String> {
        let mut digits = Zeroizing::new(vec![0; 2 * self.0.len()]);
        // The room is right by its making.
        let _ = hex::encode_to_slice(&self.0[..], &mut digits);
        let text = String::from_utf8_lossy(&digits).into_owned();
        digits.zeroize();
        Zeroizing::new(text)
    }

    /// As a transform takes it: the integrity key stands last.
    pub(crate) fn keys(&self, transform: Suite) -> Keys {
        let integrity = match transform {
            Suite::AesCbc(integrity) | Suite::AesCtr(integrity) => match integrity {
                Integrity::HmacSha256 => 32,
                Integrity::HmacSha512 => 64,
            },
            _ => 0,
        };
        // A key that is too short is refused by ESP, which names the lengths that it takes.
        let cipher = self.0.len().saturating_sub(integrity);
        Keys::pair(&self.0[..cipher], &self.0[cipher..])
    }
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Key({} bytes)", self.0.len())
    }
}

fn warn_if_open(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::metadata(path).map(|metadata| metadata.permissions().mode() & 0o777);
    if let Ok(mode) = mode
        && mode & 0o044 != 0
    {
        tracing::warn!(
            "the key file '{}' can be read by others (mode {mode:o}); change that by 'chmod 600'",
            path.display()
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_from_digits_and_files() {
        let directory = tempfile::tempdir().unwrap();
        let here = directory.path();
        assert_eq!(Key::read("00ff", here).unwrap().bytes(), [0, 255]);
        std::fs::write(here.join("key"), "00 01\n0203\n").unwrap();
        let key = Key::read("@file:key", here).unwrap();
        assert_eq!(key.bytes(), [0, 1, 2, 3]);
        assert_eq!(key.digits().as_str(), "00010203");
        assert_eq!(format!("{key:?}"), "Key(4 bytes)");
        for (wrong, says) in [
            ("", "digits"),
            ("0", "digits"),
            ("0g", "digits"),
            ("@env:KEY", "@file:NAME"),
            ("@file:none", "cannot be read"),
        ] {
            let error = Key::read(wrong, here).unwrap_err();
            assert!(error.contains(says), "{wrong}: {error}");
        }
    }

    #[test]
    fn the_integrity_key_stands_last() {
        let key = Key((0..48).collect::<Vec<u8>>().into());
        let keys = key.keys(Suite::AesCbc(Integrity::HmacSha256));
        assert_eq!((keys.encryption.len(), keys.integrity.len()), (16, 32));
        assert_eq!(keys.integrity[0], 16);
        let short = Key(vec![1; 8].into());
        let keys = short.keys(Suite::AesCbc(Integrity::HmacSha512));
        assert_eq!((keys.encryption.len(), keys.integrity.len()), (0, 8));
    }
}
