//! JSON files of project Wycheproof: the schemas `aead_test`, `ind_cpa_test` and `mac_test`.
//! Files of its other algorithms are recognised and counted.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::case::{Case, Hex, NOT_SUPPORTED, Padding, Vectors, Verdict};
use super::error::{CORRECT_VALUE, VectorError};
use super::json::{self, Lines};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct File<'a> {
    #[serde(borrow)]
    algorithm: Cow<'a, str>,
    number_of_tests: usize,
    #[serde(borrow)]
    test_groups: Vec<Group<'a>>,
}

#[derive(Deserialize)]
struct Group<'a> {
    #[serde(borrow)]
    tests: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Test {
    tc_id: u64,
    #[serde(default)]
    flags: Vec<String>,
    key: Hex,
    #[serde(default)]
    iv: Hex,
    #[serde(default)]
    aad: Hex,
    msg: Hex,
    #[serde(default)]
    ct: Hex,
    #[serde(default)]
    tag: Hex,
    result: TestResult,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum TestResult {
    Valid,
    Invalid,
    Acceptable,
}

/// Reads the text of a Wycheproof file. `file` is the name that errors carry.
pub(crate) fn parse(file: &Arc<str>, text: &str) -> Result<Vectors, VectorError> {
    let content: File<'_> = json::parse(file, text)?;
    let tests = || content.test_groups.iter().flat_map(|g| &g.tests);
    let found = tests().count();
    if found != content.number_of_tests {
        return Err(VectorError::Malformed {
            file: file.to_string(),
            line: 1,
            what: format!(
                "numberOfTests is {}, and {found} are there",
                content.number_of_tests
            ),
            remedy: CORRECT_VALUE,
        });
    }
    let mut vectors = Vectors::new("Wycheproof");
    let (algorithm, padding) = match content.algorithm.as_ref() {
        "AES-GCM" => ("gcm(aes)", Padding::None),
        "AES-CBC-PKCS5" => ("cbc(aes)", Padding::Pkcs7),
        "AES-XTS" => ("xts(aes)", Padding::None),
        "CHACHA20-POLY1305" => ("rfc7539(chacha20,poly1305)", Padding::None),
        "HMACSHA256" => ("hmac(sha256)", Padding::None),
        "HMACSHA512" => ("hmac(sha512)", Padding::None),
        other => {
            tests().for_each(|_| vectors.skip(other, NOT_SUPPORTED));
            return Ok(vectors);
        }
    };
    let mut lines = Lines::new(text);
    for raw in tests() {
        let line = lines.of(raw);
        let test: Test = json::parse_at(file, raw, line)?;
        let mut case = Case::new(file, line, format!("tcId {}", test.tc_id), algorithm);
        case.verdict = match test.result {
            TestResult::Valid => Verdict::Accept,
            TestResult::Invalid => Verdict::Reject,
            TestResult::Acceptable => {
                vectors.skip(algorithm, "Wycheproof leaves open whether to accept it");
                continue;
            }
        };
        case.padding = padding;
        case.key = test.key.0;
        case.iv = test.iv.0;
        if algorithm == "xts(aes)" && case.iv.len() < 16 {
            // IEEE 1619 section 5.1: the number of the data unit, least significant byte first.
            case.iv.resize(16, 0);
        }
        case.aad = test.aad.0;
        case.plaintext = test.msg.0;
        case.ciphertext = test.ct.0;
        case.tag = test.tag.0;
        case.flags = test.flags;
        vectors.push(case);
    }
    Ok(vectors)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"{
  "algorithm": "AES-CBC-PKCS5", "schema": "ind_cpa_test_schema_v1.json",
  "numberOfTests": 3,
  "testGroups": [
    { "type": "IndCpaTest", "keySize": 128, "tests": [
      { "tcId": 1, "comment": "é", "flags": ["A", "B"], "key": "0001", "iv": "02",
        "msg": "03", "ct": "04", "result": "valid" },
      { "tcId": 2, "key": "", "iv": "", "msg": "", "ct": "05", "result": "invalid" }
    ] },
    { "tests": [
      { "tcId": 3, "key": "", "iv": "", "msg": "", "ct": "05", "result": "acceptable" } ] }
  ]
}"#;

    fn read(text: &str) -> Result<Vectors, VectorError> {
        parse(&Arc::from("f.json"), text)
    }

    #[test]
    fn cases_with_line_flags_padding_and_verdict() {
        let vectors = read(FILE).unwrap();
        let [first, second] = &vectors.cases[..] else {
            panic!()
        };
        assert_eq!((first.line, first.id.as_str()), (6, "tcId 1"));
        assert_eq!((second.line, second.id.as_str()), (8, "tcId 2"));
        assert_eq!(first.algorithm, "cbc(aes)");
        assert_eq!(first.padding, Padding::Pkcs7);
        assert_eq!(first.flags, ["A", "B"]);
        assert_eq!(
            (first.verdict, second.verdict),
            (Verdict::Accept, Verdict::Reject)
        );
        assert_eq!(
            (&first.key[..], &first.ciphertext[..]),
            (&[0, 1][..], &[4][..])
        );
        assert_eq!((vectors.skipped[0].count, vectors.total()), (1, 3));
    }

    #[test]
    fn other_algorithms_are_counted() {
        let vectors = read(&FILE.replace("AES-CBC-PKCS5", "AES-CCM")).unwrap();
        assert!(vectors.cases.is_empty());
        assert_eq!(vectors.skipped[0].algorithm, "AES-CCM");
        assert_eq!(
            (vectors.skipped[0].count, vectors.skipped[0].reason.as_str()),
            (3, NOT_SUPPORTED)
        );
    }

    #[test]
    fn short_tweaks_of_xts_are_numbers_least_byte_first() {
        let vectors = read(&FILE.replace("AES-CBC-PKCS5", "AES-XTS")).unwrap();
        assert_eq!(
            vectors.cases[0].iv,
            [2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
        );
    }

    #[test]
    fn errors_name_the_line() {
        for (from, to, line, what) in [
            (r#""ct": "04""#, r#""ct": "0""#, 7, "hexadecimal"),
            (
                r#""key": "", "iv": "", "msg": "", "ct": "05", "result": "invalid""#,
                r#""key": 1"#,
                8,
                "integer",
            ),
            (r#""valid""#, r#""maybe""#, 7, "maybe"),
            (r#""tcId": 2, "#, "", 8, "tcId"),
            (
                r#""numberOfTests": 3"#,
                r#""numberOfTests": 4"#,
                1,
                "3 are there",
            ),
        ] {
            let changed = FILE.replace(from, to);
            assert_ne!(changed, FILE);
            let message = read(&changed).unwrap_err().to_string();
            assert!(
                message.starts_with(&format!("f.json:{line}: ")),
                "{message}"
            );
            assert!(message.contains(what), "{message}");
        }
    }

    #[test]
    fn cut_short_anywhere_is_an_error() {
        for (end, _) in FILE.char_indices() {
            assert!(
                matches!(read(&FILE[..end]), Err(VectorError::Malformed { .. })),
                "cut at {end}"
            );
        }
    }
}
