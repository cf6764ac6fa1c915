//! What a driver got wrong.

use serde::{Serialize, Serializer};
use zeroize::ZeroizeOnDrop;

/// A request that a driver got wrong. The key is not kept: the session wipes the key.
///
/// The input or the output is a user's plaintext. So all data is wiped when the mismatch is
/// dropped, and the data is serialised only where
/// [`Config::mismatch_data`](crate::Config::mismatch_data) asks for that. Otherwise the algorithm,
/// the direction, the length and the words of `Display` are serialised.
#[derive(Clone, PartialEq, Eq, ZeroizeOnDrop)]
pub struct Mismatch {
    /// CryptoAPI name.
    #[zeroize(skip)]
    pub algorithm: &'static str,
    /// Whether it was to decrypt.
    pub decrypting: bool,
    /// IV.
    pub iv: Vec<u8>,
    /// Additional data.
    pub aad: Vec<u8>,
    /// Input.
    pub input: Vec<u8>,
    /// The driver's result.
    pub found: Answer,
    /// The result of software.
    pub expected: Answer,
    /// Whether the data is serialised too.
    pub(super) with_data: bool,
}

/// The result of a request. It is wiped when it is dropped.
#[derive(Clone, PartialEq, Eq, ZeroizeOnDrop)]
pub struct Answer {
    /// Whether the tag was found to be right; always when encrypting.
    pub authentic: bool,
    /// Output; zeros where the tag was wrong.
    pub output: Vec<u8>,
    /// The tag; as given when decrypting.
    pub tag: Vec<u8>,
}

/// A mismatch as it is serialised.
#[derive(Serialize)]
struct Told<'m> {
    algorithm: &'static str,
    decrypting: bool,
    bytes: usize,
    what: String,
    #[serde(flatten)]
    data: Option<Data<'m>>,
}

#[derive(Serialize)]
struct Data<'m> {
    #[serde(serialize_with = "hex")]
    iv: &'m [u8],
    #[serde(serialize_with = "hex")]
    aad: &'m [u8],
    #[serde(serialize_with = "hex")]
    input: &'m [u8],
    found: AnswerData<'m>,
    expected: AnswerData<'m>,
}

#[derive(Serialize)]
struct AnswerData<'m> {
    authentic: bool,
    #[serde(serialize_with = "hex")]
    output: &'m [u8],
    #[serde(serialize_with = "hex")]
    tag: &'m [u8],
}

impl<'m> AnswerData<'m> {
    fn of(answer: &'m Answer) -> Self {
        AnswerData {
            authentic: answer.authentic,
            output: &answer.output,
            tag: &answer.tag,
        }
    }
}

fn hex<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    serializer.serialize_str(&digits)
}

impl Serialize for Mismatch {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let data = self.with_data.then(|| Data {
            iv: &self.iv,
            aad: &self.aad,
            input: &self.input,
            found: AnswerData::of(&self.found),
            expected: AnswerData::of(&self.expected),
        });
        let told = Told {
            algorithm: self.algorithm,
            decrypting: self.decrypting,
            bytes: self.input.len(),
            what: self.to_string(),
            data,
        };
        told.serialize(serializer)
    }
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
    /// In words and without the data, which may be long and secret.
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
            with_data: false,
        };
        let text = format!("{:?}", mismatch(answer(3, true), answer(4, true)));
        assert!(text.contains("encrypting 3 bytes by gcm(aes)") && text.contains("byte 2"));
        let text = mismatch(answer(3, true), answer(3, false)).to_string();
        assert!(text.contains("accepted a wrong tag"), "{text}");
        let mut wrong = mismatch(answer(3, true), answer(4, true));
        let json = |wrong: &Mismatch| serde_json::to_value(wrong).unwrap();
        let told = serde_json::json!({
            "algorithm": "gcm(aes)", "decrypting": false, "bytes": 3,
            "what": "encrypting 3 bytes by gcm(aes) it gave a wrong byte 2",
        });
        assert_eq!(json(&wrong), told);
        wrong.with_data = true;
        assert_eq!(json(&wrong)["found"]["output"], "010203");
    }
}
