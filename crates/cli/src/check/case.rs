//! One test vector, whatever file it came from.

use std::sync::Arc;

use serde::de::{Deserialize, Deserializer, Error, Unexpected, Visitor};

use super::direct::Direct;

/// What a correct implementation does with a vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Encryption gives the ciphertext and the tag; decryption gives the plaintext.
    Accept,
    /// Decryption (or verification) refuses: the tag, the padding or a parameter is wrong.
    Reject,
}

/// Padding that the vector has and the transform does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Padding {
    /// The ciphertext is that of the plaintext as it stands.
    None,
    /// PKCS #7 (RFC 5652 section 6.3), added before encryption and checked after decryption.
    Pkcs7,
}

/// One test vector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Case {
    /// The file it stands in, as the user named it.
    pub(crate) file: Arc<str>,
    /// Line of the file at which the vector begins, from 1.
    pub(crate) line: usize,
    /// The vector's name within the file: `Count 3`, `tcId 17`.
    pub(crate) id: String,
    /// Algorithm by its Linux CryptoAPI name.
    pub(crate) algorithm: String,
    /// Key of the cipher, or of the MAC where there is no cipher. Keys for ESP end with
    /// the 4-byte salt or nonce (RFC 4106 section 8.1), `xts` keys are the two AES keys one after the other.
    pub(crate) key: Vec<u8>,
    /// Key of the MAC in `authenc` and `authencesn`; empty elsewhere.
    pub(crate) auth_key: Vec<u8>,
    /// IV, nonce, initial counter block or tweak; empty where the algorithm has none.
    pub(crate) iv: Vec<u8>,
    /// Additional authenticated data. In `authenc` all that is authenticated before the
    /// ciphertext, the IV included where the source authenticates it.
    pub(crate) aad: Vec<u8>,
    /// Plaintext, or the message of a MAC. Unknown, and empty, in some vectors to be rejected.
    pub(crate) plaintext: Vec<u8>,
    /// Ciphertext; empty for a MAC.
    pub(crate) ciphertext: Vec<u8>,
    /// Authentication tag or MAC, perhaps truncated; empty where the algorithm has none.
    pub(crate) tag: Vec<u8>,
    /// What a correct implementation does.
    pub(crate) verdict: Verdict,
    /// Padding that the one who runs the vector adds and removes.
    pub(crate) padding: Padding,
    /// What the source says the vector is about, such as `ModifiedTag`.
    pub(crate) flags: Vec<String>,
}

impl Case {
    /// An empty vector of `algorithm`, to be filled in by a parser.
    pub(crate) fn new(file: &Arc<str>, line: usize, id: String, algorithm: &str) -> Self {
        Self {
            file: Arc::clone(file),
            line,
            id,
            algorithm: algorithm.to_owned(),
            key: Vec::new(),
            auth_key: Vec::new(),
            iv: Vec::new(),
            aad: Vec::new(),
            plaintext: Vec::new(),
            ciphertext: Vec::new(),
            tag: Vec::new(),
            verdict: Verdict::Accept,
            padding: Padding::None,
            flags: Vec::new(),
        }
    }

    /// Strength of the key in bits as `--keybits` counts it: without the salt or nonce
    /// at the end of those for ESP, and half of what `xts` carries.
    pub(crate) fn key_bits(&self) -> usize {
        let bytes = match self.algorithm.as_str() {
            name if ["rfc4106(", "rfc4543(", "rfc3686("]
                .iter()
                .any(|salted| name.contains(salted)) =>
            {
                self.key.len().saturating_sub(4)
            }
            name if name.starts_with("xts(") => self.key.len() / 2,
            _ => self.key.len(),
        };
        bytes * 8
    }
}

/// Vectors that are in the file and are not run, with the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Skipped {
    /// Algorithm by its Linux CryptoAPI name, or as the file names it where there is none.
    pub(crate) algorithm: String,
    /// Why they are not run.
    pub(crate) reason: String,
    /// How many vectors.
    pub(crate) count: usize,
}

/// Reason for vectors of algorithms that do not exist here.
pub(crate) const NOT_SUPPORTED: &str = "not supported yet by any driver";

/// All that one file holds.
#[derive(Debug)]
pub(crate) struct Vectors {
    /// What the file was recognised as.
    pub(crate) format: &'static str,
    /// The vectors to run, in the order of the file.
    pub(crate) cases: Vec<Case>,
    /// The vectors to run on the library itself.
    pub(crate) direct: Vec<Direct>,
    /// The vectors that are only counted.
    pub(crate) skipped: Vec<Skipped>,
}

impl Vectors {
    /// An empty collection.
    pub(crate) fn new(format: &'static str) -> Self {
        Self {
            format,
            cases: Vec::new(),
            direct: Vec::new(),
            skipped: Vec::new(),
        }
    }

    /// Takes a vector, or counts it as skipped where the algorithm cannot take its parameters.
    pub(crate) fn push(&mut self, case: Case) {
        // Other lengths are legal in SP 800-38D; a vector that must be rejected anyway is run.
        if case.algorithm == "gcm(aes)" && case.iv.len() != 12 && case.verdict == Verdict::Accept {
            self.skip("gcm(aes)", "gcm(aes) takes 12-byte IVs");
        } else {
            self.cases.push(case);
        }
    }

    /// Counts one vector as skipped.
    pub(crate) fn skip(&mut self, algorithm: &str, reason: &str) {
        let known = self
            .skipped
            .iter_mut()
            .find(|s| s.algorithm == algorithm && s.reason == reason);
        match known {
            Some(skipped) => skipped.count += 1,
            None => self.skipped.push(Skipped {
                algorithm: algorithm.to_owned(),
                reason: reason.to_owned(),
                count: 1,
            }),
        }
    }

    /// All vectors of the file, run or not.
    pub(crate) fn total(&self) -> usize {
        self.cases.len() + self.direct.len() + self.skipped.iter().map(|s| s.count).sum::<usize>()
    }
}

/// Bytes written as a JSON string of hexadecimal digits.
#[derive(Debug, Default)]
pub(crate) struct Hex(pub(crate) Vec<u8>);

impl<'de> Deserialize<'de> for Hex {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct HexVisitor;
        impl Visitor<'_> for HexVisitor {
            type Value = Hex;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an even number of hexadecimal digits")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Hex, E> {
                hex::decode(text)
                    .map(Hex)
                    .map_err(|_| E::invalid_value(Unexpected::Str(text), &self))
            }
        }
        deserializer.deserialize_str(HexVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(algorithm: &str) -> Case {
        Case::new(&Arc::from("f"), 1, String::new(), algorithm)
    }

    #[test]
    fn key_bits_leave_out_salt_and_second_xts_key() {
        for (algorithm, bytes, bits) in [
            ("cbc(aes)", 24, 192),
            ("rfc4106(gcm(aes))", 36, 256),
            ("rfc4106(gcm(aes))", 3, 0),
            ("rfc4543(gcm(aes))", 20, 128),
            ("authenc(hmac(sha256),rfc3686(ctr(aes)))", 28, 192),
            ("xts(aes)", 32, 128),
        ] {
            let mut case = case(algorithm);
            case.key = vec![0; bytes];
            assert_eq!(case.key_bits(), bits, "{algorithm}");
        }
    }

    #[test]
    fn long_ivs_of_gcm_are_counted_unless_they_must_be_rejected() {
        let mut vectors = Vectors::new("test");
        for (iv, verdict) in [
            (12, Verdict::Accept),
            (16, Verdict::Accept),
            (1, Verdict::Accept),
            (0, Verdict::Reject),
        ] {
            let mut case = case("gcm(aes)");
            case.iv = vec![0; iv];
            case.verdict = verdict;
            vectors.push(case);
        }
        assert_eq!(vectors.cases.len(), 2);
        assert_eq!(vectors.skipped.len(), 1);
        assert_eq!(vectors.skipped[0].count, 2);
        assert_eq!(vectors.total(), 4);
    }

    #[test]
    fn hex_refuses_odd_and_foreign_digits() {
        assert_eq!(
            serde_json::from_str::<Hex>(r#""00fF""#).unwrap().0,
            [0, 255]
        );
        for bad in [r#""0""#, r#""0g""#, "7", "null", r#""é""#] {
            assert!(serde_json::from_str::<Hex>(bad).is_err(), "{bad}");
        }
    }
}
