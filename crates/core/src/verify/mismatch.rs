//! What a driver got wrong.

use serde::{Serialize, Serializer};

/// A request that a driver got wrong. The key is not kept: it is wiped with its session.
#[derive(Clone, PartialEq, Eq, Serialize)]
pub struct Mismatch {
    /// CryptoAPI name.
    pub algorithm: &'static str,
    /// Whether it was to decrypt.
    pub decrypting: bool,
    /// IV.
    #[serde(serialize_with = "hex")]
    pub iv: Vec<u8>,
    /// Additional data.
    #[serde(serialize_with = "hex")]
    pub aad: Vec<u8>,
    /// Input.
    #[serde(serialize_with = "hex")]
    pub input: Vec<u8>,
    /// What the driver made of it.
    pub found: Answer,
    /// What software makes of it.
    pub expected: Answer,
}

/// What came of a request.
#[derive(Clone, PartialEq, Eq, Serialize)]
pub struct Answer {
    /// Whether the tag was found to be right; always when encrypting.
    pub authentic: bool,
    /// Output; zeros where the tag was wrong.
    #[serde(serialize_with = "hex")]
    pub output: Vec<u8>,
    /// The tag; as given when decrypting.
    #[serde(serialize_with = "hex")]
    pub tag: Vec<u8>,
}

fn hex<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    serializer.serialize_str(&digits)
}

impl std::fmt::Display for Mismatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let way = match self.decrypting {
            true => "decrypting",
            false => "encrypting",
        };
        let bytes = self.input.len();
        write!(f, "{way} {bytes} bytes by {} it ", self.algorithm)?;
        let pairs = self.found.output.iter().zip(&self.expected.output);
        match (self.found.authentic, self.expected.authentic) {
            (true, false) => write!(f, "accepted a wrong tag"),
            (false, true) => write!(f, "refused a right tag"),
            _ => match pairs.clone().position(|(a, b)| a != b) {
                Some(at) => write!(f, "gave a wrong byte {at}"),
                None => write!(f, "gave a wrong tag"),
            },
        }
    }
}

impl std::fmt::Debug for Mismatch {
    /// In words: the data may be long, and somebody's.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Mismatch({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mismatch_is_told_in_words_without_the_data() {
        let answer = |byte: u8, authentic| Answer {
            authentic,
            output: vec![1, 2, byte],
            tag: vec![9],
        };
        let mismatch = |found, expected| Mismatch {
            algorithm: "gcm(aes)",
            decrypting: false,
            iv: vec![],
            aad: vec![],
            input: vec![0; 3],
            found,
            expected,
        };
        let text = format!("{:?}", mismatch(answer(3, true), answer(4, true)));
        assert!(text.contains("encrypting 3 bytes by gcm(aes)") && text.contains("byte 2"));
        let text = mismatch(answer(3, true), answer(3, false)).to_string();
        assert!(text.contains("accepted a wrong tag"), "{text}");
        let json = serde_json::to_string(&answer(3, true)).unwrap();
        assert!(json.contains("\"010203\""), "{json}");
    }
}
