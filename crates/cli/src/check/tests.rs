use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use proptest::prelude::*;

use super::case::{Case, Padding, Verdict};
use super::*;

fn vector_files() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors");
    let mut files = Vec::new();
    for directory in fs::read_dir(root).unwrap() {
        let directory = directory.unwrap().path();
        if directory.is_dir() {
            files.extend(fs::read_dir(directory).unwrap().map(|f| f.unwrap().path()));
        }
    }
    files.retain(|f| {
        !f.file_name()
            .unwrap()
            .to_str()
            .unwrap()
            .starts_with("LICENSE")
    });
    files.sort();
    files
}

/// The numbers were counted in the files by other means: their `CIPHERTEXT`, `CT` and `MD` lines,
/// their bracketed lengths, and the tests of the JSON files.
#[test]
fn every_vector_in_the_repository_is_read() {
    let mut run: BTreeMap<String, usize> = BTreeMap::new();
    let mut direct: BTreeMap<String, usize> = BTreeMap::new();
    let mut skipped: BTreeMap<String, usize> = BTreeMap::new();
    for path in vector_files() {
        let vectors = load(&path).unwrap_or_else(|error| panic!("{error}"));
        for case in &vectors.cases {
            well_formed(case);
            *run.entry(case.algorithm.clone()).or_default() += 1;
        }
        for vector in &vectors.direct {
            *direct.entry(vector.case.algorithm.clone()).or_default() += 1;
        }
        for skip in vectors.skipped {
            *skipped.entry(skip.reason).or_default() += skip.count;
        }
    }
    let run: Vec<(&str, usize)> = run.iter().map(|(a, n)| (a.as_str(), *n)).collect();
    let expected = [
        ("authenc(hmac(sha256),cbc(aes))", 41),
        ("authenc(hmac(sha256),rfc3686(ctr(aes)))", 10),
        ("authenc(hmac(sha512),cbc(aes))", 8),
        ("authenc(hmac(sha512),rfc3686(ctr(aes)))", 10),
        ("authencesn(hmac(sha256),cbc(aes))", 9),
        ("authencesn(hmac(sha256),rfc3686(ctr(aes)))", 11),
        ("authencesn(hmac(sha512),cbc(aes))", 9),
        ("authencesn(hmac(sha512),rfc3686(ctr(aes)))", 11),
        ("cbc(aes)", 2138 + 216),
        ("ctr(aes)", 9),
        ("ecb(aes)", 2138),
        ("ecb(kuznyechik)", 1 + 1),
        ("ecb(magma)", 9 + 1),
        ("gcm(aes)", 10181 + 203),
        ("hmac(sha256)", 6 + 174),
        ("hmac(sha512)", 6 + 174),
        ("mgm(kuznyechik)", 2),
        ("mgm(magma)", 2),
        ("rfc4106(gcm(aes))", 16),
        ("rfc4543(gcm(aes))", 7),
        ("rfc7539(chacha20,poly1305)", 325),
        ("xts(aes)", 2800 + 123),
    ];
    assert_eq!(run, expected);
    let esp = |start: &str| {
        let of = direct.iter().filter(|(name, _)| name.starts_with(start));
        of.map(|(_, count)| count).sum::<usize>()
    };
    assert_eq!(esp("ESP_GOST-"), 2 + 61);
    assert_eq!(esp("ENCR_"), 8);
    assert_eq!(esp("esp "), 33);
    assert_eq!(esp("gost28147"), 19 + 10);
    assert_eq!(esp("KDF_"), 2);
    assert_eq!(esp("streebog") + esp("hmac_streebog"), 6 + 2);
    assert_eq!(direct.values().sum::<usize>(), 63 + 8 + 33 + 29 + 2 + 8);
    let skipped: Vec<(&str, usize)> = skipped.iter().map(|(r, n)| (r.as_str(), *n)).collect();
    let expected = [
        ("an SPI below 256 is reserved", 1),
        ("gcm(aes) takes 12-byte IVs", 147),
        (case::NOT_SUPPORTED, 7),
        ("parameters that other vectors use, nothing to run", 6),
        ("xts(aes) takes whole bytes", 1200),
    ];
    assert_eq!(skipped, expected);
}

/// What holds of every vector that is to be accepted, whatever its source.
fn well_formed(case: &Case) {
    if case.verdict == Verdict::Reject {
        return;
    }
    let place = format!("{}:{}", case.file, case.line);
    assert_eq!(case.tag.is_empty(), !takes_tag(&case.algorithm), "{place}");
    assert_eq!(
        case.auth_key.is_empty(),
        !case.algorithm.starts_with("authenc"),
        "{place}"
    );
    let iv = match case.algorithm.as_str() {
        "hmac(sha256)" | "hmac(sha512)" => 0,
        name if name.starts_with("ecb(") => 0,
        "mgm(magma)" => 8,
        "rfc4106(gcm(aes))" | "rfc4543(gcm(aes))" => 8,
        name if name.contains("rfc3686(") => 8,
        "gcm(aes)" | "rfc7539(chacha20,poly1305)" => 12,
        _ => 16,
    };
    assert_eq!(case.iv.len(), iv, "{place}");
    if !case.algorithm.starts_with("hmac(") {
        assert!([128, 192, 256].contains(&case.key_bits()), "{place}");
        let padded = match case.padding {
            Padding::None => case.plaintext.len(),
            Padding::Pkcs7 => (case.plaintext.len() / 16 + 1) * 16,
        };
        assert_eq!(case.ciphertext.len(), padded, "{place}");
    }
}

fn takes_tag(algorithm: &str) -> bool {
    let without = ["ecb(", "cbc(", "ctr(", "xts("];
    !without.iter().any(|mode| algorithm.starts_with(mode))
}

#[test]
fn the_name_of_the_file_does_not_matter() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("vectors.json");
    let rsp = "\u{feff}# XTSGen information\nCOUNT = 1\nDataUnitLen = 1\n\
               Key = 0101010101010101010101010101010101010101010101010101010101010101\n\
               i = 02020202020202020202020202020202\nPT = 80\nCT = 00\n";
    fs::write(&path, rsp).unwrap();
    assert_eq!(load(&path).unwrap().total(), 1);
}

#[test]
fn unreadable_endless_and_foreign_files() {
    let directory = tempfile::tempdir().unwrap();
    let absent = load(&directory.path().join("absent"))
        .unwrap_err()
        .to_string();
    assert!(
        absent.contains("absent: cannot be read: No such file"),
        "{absent}"
    );
    let not_file = load(directory.path()).unwrap_err().to_string();
    assert!(
        not_file.contains("cannot be read: Is a directory"),
        "{not_file}"
    );
    let endless = load(Path::new("/dev/zero")).unwrap_err().to_string();
    assert!(endless.contains("more than 67108864 bytes"), "{endless}");
    for (bytes, expected) in [
        (&b""[..], "f: not a vector file: it has no records"),
        (b"{}", "f: not a vector file: JSON with neither"),
        (
            b"{\"vectors\": []}",
            "f: not a vector file: it holds no vectors",
        ),
        (b"# ok\n\xff\n", "f:2: bytes that are not UTF-8 text"),
        (
            b"\x7fELF\x02\x01\x01\0",
            "f: not a vector file: line 1, \"\\u{7f}ELF",
        ),
    ] {
        let message = parse("f", bytes).unwrap_err().to_string();
        assert!(message.starts_with(expected), "{message}");
    }
}

/// One small file of every format, to cut and to damage.
fn samples() -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors");
    [
        "nist-cavp/CBCMMT128.rsp",
        "rfc/rfc3686-aes-128-ctr.txt",
        "rfc/rfc4231-hmac-sha256.txt",
        "rfc/rfc4106-esp.json",
        "authenc/dpdk-esp.json",
        "gost/esp-gost-draft04.json",
        "gost/gost28147-kernel.json",
        "esp/rfc7634-appendix-a.json",
        "gost/gost28147-sboxes.json",
        "gost/rfc7801-8891-7836.json",
        "gost/rfc9058.json",
        "gost/rfc9227.json",
    ]
    .iter()
    .map(|f| fs::read(root.join(f)).unwrap())
    .chain(
        [
            "nist-cavp/gcmDecrypt128.rsp",
            "nist-cavp/XTSGenAES128-SeqNo.rsp",
        ]
        .iter()
        .map(|f| {
            let mut bytes = fs::read(root.join(f)).unwrap();
            bytes.truncate(6000);
            bytes
        }),
    )
    .chain([
        b"{\"algorithm\": \"AES-GCM\", \"numberOfTests\": 1, \"testGroups\": [{\"tests\": [\
        {\"tcId\": 1, \"key\": \"00\", \"iv\": \"00\", \"aad\": \"\", \"msg\": \"\", \
        \"ct\": \"\", \"tag\": \"00\", \"result\": \"valid\"}]}]}"
            .to_vec(),
    ])
    .collect()
}

/// Parses and, where that fails, requires an error that names the file.
fn survives(bytes: &[u8]) {
    if let Err(error) = parse("some file", bytes) {
        assert!(error.to_string().starts_with("some file:"), "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..512)) {
        survives(&bytes);
    }

    #[test]
    fn random_lines_never_panic(
        header in "# (AESVS MMT test data for (CBC|ECB|CTR|OFB)|GCM |XTSGen |HMAC|HMAC-SHA256|\"SHA-1\")",
        lines in prop::collection::vec(
            "(\\[?(Count|L|Len|Klen|Tlen|KEY|IV|i|PT|CT|AAD|Tag|Msg|MD|Mac|PLAINTEXT|CIPHERTEXT|\
             DataUnitLen|DataUnitSeqNumber|IVlen|Taglen|Keylen) ?= ?([0-9]{0,21}|[0-9a-f]{0,66})\\]?|FAIL|)",
            0..24,
        ),
    ) {
        survives(format!("{header}\n{}", lines.join("\n")).as_bytes());
    }

    #[test]
    fn cut_files_never_panic(which in 0usize..15, at in any::<prop::sample::Index>()) {
        let sample = &samples()[which];
        survives(&sample[..at.index(sample.len())]);
    }

    #[test]
    fn damaged_files_never_panic(
        which in 0usize..15,
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut sample = samples()[which].clone();
        for (at, byte) in damage {
            let at = at.index(sample.len());
            sample[at] = byte;
        }
        survives(&sample);
    }
}
