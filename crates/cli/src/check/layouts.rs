//! The project's own layouts of vectors, and the JSON layouts in which vectors of GOST ciphers and
//! of ESP were gathered from RFCs and drafts, which [`super::shapes`] reads.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::case::{Case, Hex, Vectors, Verdict};
use super::error::{CORRECT_VALUE, VectorError};
use super::json::{self, Lines};
use super::shapes;
use super::whole_packets;

/// The value of `layout` in the project's own files.
const OWN: &str = "cipherlane-vectors-1";
/// Reason for files that other vectors refer to.
const PARAMETERS: &str = "parameters that other vectors use, nothing to run";

/// The top level of every layout: one of these is present.
#[derive(Deserialize)]
struct Top<'a> {
    #[serde(borrow)]
    layout: Option<Cow<'a, str>>,
    #[serde(borrow)]
    vectors: Option<Vec<&'a RawValue>>,
    #[serde(borrow)]
    packets: Option<Vec<&'a RawValue>>,
    #[serde(borrow)]
    sboxes: Option<&'a RawValue>,
    #[serde(borrow)]
    kuznyechik_rfc7801: Option<&'a RawValue>,
    #[serde(borrow)]
    magma_rfc8891: Option<&'a RawValue>,
    #[serde(borrow, default)]
    kdf_rfc7836: Vec<&'a RawValue>,
}

/// A vector in the project's own layout.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Own {
    name: String,
    algorithm: String,
    #[serde(default)]
    auth_key: Hex,
    key: Hex,
    #[serde(default)]
    iv: Hex,
    #[serde(default)]
    aad: Hex,
    plaintext: Hex,
    #[serde(default)]
    ciphertext: Hex,
    #[serde(default)]
    tag: Hex,
    result: OwnResult,
    #[serde(default)]
    flags: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum OwnResult {
    Valid,
    Invalid,
}

/// Reads the text of a JSON file in one of the layouts, or gives `None` where it is in none.
/// `file` is the name that errors carry.
pub(crate) fn parse(file: &Arc<str>, text: &str) -> Result<Option<Vectors>, VectorError> {
    let top: Top<'_> = json::parse(file, text)?;
    let mut lines = Lines::new(text);
    match (top.layout.as_deref(), &top.vectors) {
        (Some(OWN), Some(vectors)) => return own(file, vectors, &mut lines).map(Some),
        (Some(OWN), None) => return Err(wrong(file, 1, "no array \"vectors\"".to_owned())),
        (Some(whole_packets::LAYOUT), _) => {
            let packets = top.packets.as_deref();
            let packets =
                packets.ok_or_else(|| wrong(file, 1, "no array \"packets\"".to_owned()))?;
            return whole_packets::read(file, packets, &mut lines).map(Some);
        }
        (Some(other), _) => {
            let known = whole_packets::LAYOUT;
            let what = format!("layout \"{other}\" is not known, only \"{OWN}\" and \"{known}\"");
            return Err(wrong(file, 1, what));
        }
        (None, Some(vectors)) => {
            let shared = json::parse(file, text)?;
            return shapes::read(file, vectors, &shared, &mut lines).map(Some);
        }
        (None, None) => {}
    }
    if let Some(sboxes) = top.sboxes {
        let line = lines.of(sboxes);
        let sets: Map<String, Value> = json::parse_at(file, sboxes, line)?;
        let mut vectors = Vectors::new("S-boxes of GOST 28147-89");
        for _ in &sets {
            vectors.skip("S-boxes of GOST 28147-89", PARAMETERS);
        }
        return Ok(Some(vectors));
    }
    if top.kuznyechik_rfc7801.is_none() && top.magma_rfc8891.is_none() {
        return Ok(None);
    }
    let format = "Kuznyechik, Magma and key derivation (RFC 7801, 8891, 7836)";
    let mut vectors = shapes::read(file, &top.kdf_rfc7836, &Map::new(), &mut lines)?;
    vectors.format = format;
    for (algorithm, part) in [
        ("ecb(kuznyechik)", top.kuznyechik_rfc7801),
        ("ecb(magma)", top.magma_rfc8891),
    ] {
        let Some(part) = part else { continue };
        let line = lines.of(part);
        let object: Map<String, Value> = json::parse_at(file, part, line)?;
        vectors.push(shapes::block_cipher(file, line, algorithm, &object)?);
    }
    Ok(Some(vectors))
}

fn own<'a>(
    file: &Arc<str>,
    parts: &[&'a RawValue],
    lines: &mut Lines<'a>,
) -> Result<Vectors, VectorError> {
    let mut vectors = Vectors::new(OWN);
    for part in parts {
        let line = lines.of(part);
        let vector: Own = json::parse_at(file, part, line)?;
        let mut case = Case::new(file, line, vector.name, &vector.algorithm);
        case.auth_key = vector.auth_key.0;
        case.key = vector.key.0;
        case.iv = vector.iv.0;
        case.aad = vector.aad.0;
        case.plaintext = vector.plaintext.0;
        case.ciphertext = vector.ciphertext.0;
        case.tag = vector.tag.0;
        case.flags = vector.flags;
        case.verdict = match vector.result {
            OwnResult::Valid => Verdict::Accept,
            OwnResult::Invalid => Verdict::Reject,
        };
        vectors.push(case);
    }
    Ok(vectors)
}

pub(super) fn wrong(file: &Arc<str>, line: usize, what: String) -> VectorError {
    VectorError::Malformed {
        file: file.to_string(),
        line,
        what,
        remedy: CORRECT_VALUE,
    }
}

/// Whether the JSON text is a Wycheproof file, which has groups of tests.
pub(crate) fn is_wycheproof(file: &str, text: &str) -> Result<bool, VectorError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Probe {
        test_groups: Option<IgnoredAny>,
    }
    Ok(json::parse::<Probe>(file, text)?.test_groups.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Option<Vectors>, VectorError> {
        parse(&Arc::from("f.json"), text)
    }

    fn error(text: &str) -> String {
        read(text).unwrap_err().to_string()
    }

    const OWN_FILE: &str = r#"{ "layout": "cipherlane-vectors-1", "source": "test",
 "vectors": [
  { "name": "a", "algorithm": "gcm(aes)", "key": "01", "iv": "000000000000000000000000",
    "plaintext": "02", "ciphertext": "03", "tag": "04", "result": "valid" },
  { "name": "b", "algorithm": "authenc(hmac(sha256),cbc(aes))", "auth_key": "05", "key": "01",
    "plaintext": "", "result": "invalid", "flags": ["ModifiedTag"] } ] }"#;

    #[test]
    fn own_layout() {
        let vectors = read(OWN_FILE).unwrap().unwrap();
        let [first, second] = &vectors.cases[..] else {
            panic!()
        };
        assert_eq!((first.line, second.line), (3, 5));
        assert_eq!(
            (first.verdict, second.verdict),
            (Verdict::Accept, Verdict::Reject)
        );
        assert_eq!((first.tag[0], second.auth_key[0]), (4, 5));
        assert_eq!(second.flags, ["ModifiedTag"]);
        assert!(
            error(&OWN_FILE.replace("\"tag\"", "\"tga\"")).starts_with("f.json:4: unknown field")
        );
        assert!(error(&OWN_FILE.replace("vectors-1", "vectors-9")).contains("is not known"));
        assert!(error(&OWN_FILE.replace("\"vectors\"", "\"vector\"")).contains("no array"));
    }

    #[test]
    fn shapes_are_told_by_their_fields_and_checked() {
        let mgm = r#"{ "vectors": [
            { "cipher": "Magma", "K": "00", "ICN": "00", "A": "", "P": "", "C": "", "T": "00" } ] }"#;
        let vectors = read(mgm).unwrap().unwrap();
        assert_eq!(vectors.format, "MGM (RFC 9058)");
        assert_eq!(
            (vectors.cases[0].algorithm.as_str(), vectors.total()),
            ("mgm(magma)", 1)
        );
        let message = error(&mgm.replace("\"T\": \"00\"", "\"T\": \"0\""));
        assert!(
            message.starts_with("f.json:2: ") && message.contains(" T;"),
            "{message}"
        );
        assert!(error(&mgm.replace("ICN", "ICM")).contains("no known shape"));
    }

    #[test]
    fn other_json_is_not_ours() {
        assert!(read("{}").unwrap().is_none());
        assert!(read(r#"{"name": "package"}"#).unwrap().is_none());
        assert!(error("{").starts_with("f.json:1: EOF"));
        assert!(error("[]").starts_with("f.json:1: "));
    }
}
