use super::*;
use crate::check::case::Skipped;

fn read(text: &str) -> Result<Vectors, VectorError> {
    parse(&Arc::from("f.rsp"), text)
}

fn error(text: &str) -> String {
    read(text).unwrap_err().to_string()
}

const CBC: &str = "# AESVS MMT test data for CBC\n\n[DECRYPT]\n\nCOUNT = 4\n\
    KEY = 000102030405060708090a0b0c0d0e0f\nIV = 101112131415161718191a1b1c1d1e1f\n\
    CIPHERTEXT = 202122232425262728292a2b2c2d2e2f\n\
    PLAINTEXT = 303132333435363738393a3b3c3d3e3f\n";

#[test]
fn block_modes() {
    let vectors = read(CBC).unwrap();
    let [case] = &vectors.cases[..] else { panic!() };
    assert_eq!((case.line, case.id.as_str()), (5, "Count 4"));
    assert_eq!(
        (case.algorithm.as_str(), case.key_bits()),
        ("cbc(aes)", 128)
    );
    assert_eq!(
        (case.iv[0], case.ciphertext[0], case.plaintext[0]),
        (0x10, 0x20, 0x30)
    );
    let ecb = read(&CBC.replace("CBC", "ECB")).unwrap();
    assert_eq!(ecb.cases[0].algorithm, "ecb(aes)");
    assert!(ecb.cases[0].iv.is_empty());
    let cfb = read(&CBC.replace("CBC", "CFB8")).unwrap();
    assert!(cfb.cases.is_empty());
    assert_eq!(
        (cfb.skipped[0].algorithm.as_str(), cfb.skipped[0].count),
        ("cfb8(aes)", 1)
    );
    let monte_carlo = read(&CBC.replace("MMT", "MCT")).unwrap();
    assert_eq!(
        monte_carlo.skipped,
        [Skipped {
            algorithm: "cbc(aes)".into(),
            reason: MONTE_CARLO.into(),
            count: 1
        }]
    );
}

#[test]
fn cut_short_at_every_byte_is_an_error_or_the_same_vector() {
    let whole = read(CBC).unwrap().cases;
    for end in 0..CBC.len() {
        match read(&CBC[..end]) {
            Ok(vectors) => assert_eq!(vectors.cases, whole, "cut at {end}"),
            Err(VectorError::Malformed { line, .. }) => assert!((1..=9).contains(&line)),
            Err(VectorError::Unknown { .. }) => assert!(end < CBC.len()),
            Err(other) => panic!("{other}"),
        }
    }
}

const GCM: &str = "# GCM Decrypt with keysize 128\n[Keylen = 128]\n[IVlen = 96]\n[PTlen = 8]\n\
    [AADlen = 0]\n[Taglen = 32]\n\nCount = 0\nKey = 000102030405060708090a0b0c0d0e0f\n\
    IV = 101112131415161718191a1b\nCT = 20\nAAD = \nTag = 30313233\nPT = 40\n\nCount = 1\n\
    Key = 000102030405060708090a0b0c0d0e0f\nIV = 101112131415161718191a1b\nCT = 20\nAAD = \n\
    Tag = 30313233\nFAIL\n";

#[test]
fn gcm_with_truncated_tags_and_failures() {
    let vectors = read(GCM).unwrap();
    let [good, bad] = &vectors.cases[..] else {
        panic!()
    };
    assert_eq!(
        (good.verdict, bad.verdict),
        (Verdict::Accept, Verdict::Reject)
    );
    assert_eq!(
        (good.tag.len(), good.plaintext.as_slice()),
        (4, &[0x40][..])
    );
    assert!(bad.plaintext.is_empty());
    let other_iv = GCM
        .replace("[IVlen = 96]", "[IVlen = 8]")
        .replace("IV = 101112131415161718191a1b", "IV = 10");
    let vectors = read(&other_iv).unwrap();
    assert_eq!((vectors.cases.len(), vectors.skipped[0].count), (1, 1));
    let message = error(&GCM.replacen("Tag = 30313233", "Tag = 303132", 1));
    assert!(
        message.starts_with("f.rsp:13: Tag has 3 bytes, [Taglen = 32]"),
        "{message}"
    );
    let message = error(&GCM.replacen("PT = 40\n", "", 1));
    assert!(
        message.starts_with("f.rsp:8: the record that begins here has no PT"),
        "{message}"
    );
}

#[test]
fn xts_counts_units_that_end_within_a_byte() {
    let xts = |bits: u32, tweak: &str| {
        format!(
            "# XTSGen information\n[ENCRYPT]\n\nCOUNT = 1\nDataUnitLen = {bits}\n\
             Key = {}\n{tweak}\nPT = {}\nCT = {}\n",
            "01".repeat(32),
            "02".repeat(17),
            "03".repeat(17)
        )
    };
    let vectors = read(&xts(136, "DataUnitSeqNumber = 258")).unwrap();
    assert_eq!(vectors.cases[0].iv[..3], [2, 1, 0]);
    assert_eq!(vectors.cases[0].key_bits(), 128);
    let vectors = read(&xts(130, "i = 000102030405060708090a0b0c0d0e0f")).unwrap();
    assert_eq!((vectors.cases.len(), vectors.skipped[0].count), (0, 1));
    let message = error(&xts(128, "i = 000102030405060708090a0b0c0d0e0f"));
    assert!(
        message.starts_with("f.rsp:8: 17 bytes, DataUnitLen = 128"),
        "{message}"
    );
    assert!(error(&xts(136, "i = 00")).contains("a tweak of 1 bytes"));
}

#[test]
fn hmac_of_both_manners() {
    let cavp = "#  HMAC information\n\n[L=32]\n\nCount = 0\nKlen = 2\nTlen = 4\nKey = 0102\n\
                Msg = 03\nMac = 04050607\n\n[L=20]\n\nCount = 0\nKlen = 1\nTlen = 1\nKey = 01\n\
                Msg = 03\nMac = 04\n";
    let vectors = read(cavp).unwrap();
    assert_eq!((vectors.cases.len(), vectors.total()), (1, 2));
    assert_eq!(vectors.cases[0].algorithm, "hmac(sha256)");
    assert_eq!(vectors.cases[0].tag, [4, 5, 6, 7]);
    assert_eq!(vectors.skipped[0].algorithm, "hmac(sha1)");
    let message = error(&cavp.replacen("Tlen = 4", "Tlen = 32", 1));
    assert!(
        message.starts_with("f.rsp:10: Mac has 4 bytes, Tlen = 32"),
        "{message}"
    );
    let rfc = "# Test Cases for HMAC-SHA512\n\nLen = 0\nKey = 01\n# empty\nMsg = 00\nMD = 02\n";
    let vectors = read(rfc).unwrap();
    assert_eq!(vectors.cases[0].algorithm, "hmac(sha512)");
    assert!(vectors.cases[0].plaintext.is_empty());
    let vectors = read(&rfc.replace("SHA512", "SHA1")).unwrap();
    assert_eq!(vectors.skipped[0].algorithm, "hmac(sha1)");
}

#[test]
fn what_is_no_response_file_is_refused() {
    for text in ["# only a comment\n", "", "A = 1\n"] {
        let message = error(text);
        assert!(
            message.starts_with("f.rsp: not a vector file: "),
            "{message}"
        );
    }
    let message = error(&CBC.replace("KEY = 00", "KEY = "));
    assert!(
        message.starts_with("f.rsp:6: an AES key of 15 bytes"),
        "{message}"
    );
}
