//! `cipherlane check` as a user runs it: on every vector file of the repository, and on files that
//! have a wrong answer, a wrong format, or do not exist.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::place::{Place, printed, run, text};

/// Every algorithm, with the number of its vectors in `vectors/`.
const EXPECTED: [(&str, u64); 22] = [
    ("ecb(aes)", 2138),
    ("cbc(aes)", 2354),
    ("ctr(aes)", 9),
    ("xts(aes)", 2923),
    ("gcm(aes)", 10384),
    ("rfc4106(gcm(aes))", 16),
    ("rfc7539(chacha20,poly1305)", 325),
    ("hmac(sha256)", 180),
    ("hmac(sha512)", 180),
    ("authenc(hmac(sha256),cbc(aes))", 41),
    ("authenc(hmac(sha512),cbc(aes))", 8),
    ("authencesn(hmac(sha256),cbc(aes))", 9),
    ("authencesn(hmac(sha512),cbc(aes))", 9),
    ("authenc(hmac(sha256),rfc3686(ctr(aes)))", 10),
    ("authencesn(hmac(sha256),rfc3686(ctr(aes)))", 11),
    ("authenc(hmac(sha512),rfc3686(ctr(aes)))", 10),
    ("authencesn(hmac(sha512),rfc3686(ctr(aes)))", 11),
    ("rfc4543(gcm(aes))", 7),
    ("ecb(kuznyechik)", 2),
    ("ecb(magma)", 10),
    ("mgm(kuznyechik)", 2),
    ("mgm(magma)", 2),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors")
}

fn vector_files() -> Vec<PathBuf> {
    let mut files = Vec::new();
    for folder in fs::read_dir(root()).unwrap() {
        let folder = folder.unwrap().path();
        if folder.is_dir() {
            files.extend(fs::read_dir(folder).unwrap().map(|f| f.unwrap().path()));
        }
    }
    files.retain(|f| {
        f.extension()
            .is_some_and(|e| ["rsp", "json", "txt"].contains(&e.to_str().unwrap()))
    });
    files.sort();
    assert!(
        files.len() > 50,
        "{} files under {}",
        files.len(),
        root().display()
    );
    files
}

fn check(place: &Place, arguments: &[&str], files: &[PathBuf]) -> Command {
    let mut command = place.cipherlane("check");
    command.args(arguments).args(files);
    command
}

#[test]
fn every_driver_passes_every_vector() {
    let report = printed(&mut check(&Place::new(), &["--json"], &vector_files()));
    let report: Value = serde_json::from_str(&report).unwrap();
    let rows = report["results"].as_array().unwrap();
    for (algorithm, vectors) in EXPECTED {
        let row = rows
            .iter()
            .find(|r| r["driver"] == "software" && r["algorithm"] == algorithm)
            .unwrap_or_else(|| panic!("no row for {algorithm}"));
        assert_eq!(row["passed"], vectors, "{row}");
    }
    for row in rows.iter().filter(|r| r["driver"] == "library") {
        assert_eq!(row["failed"], 0, "{row}");
    }
    let drivers = |row: &&Value| row["driver"] != "none" && row["driver"] != "library";
    for row in rows.iter().filter(drivers) {
        assert_eq!(row["failed"], 0, "{row}");
        let skipped = row["skipped"]
            .as_array()
            .unwrap()
            .iter()
            .map(|s| s["count"].as_u64().unwrap());
        let all = row["passed"].as_u64().unwrap() + skipped.sum::<u64>();
        let expected = EXPECTED
            .iter()
            .find(|(a, _)| row["algorithm"] == *a)
            .unwrap()
            .1;
        assert_eq!(all, expected, "{row}");
    }
}

#[test]
fn a_wrong_answer_is_named_and_the_status_is_1() {
    let place = Place::new();
    let right = fs::read_to_string(root().join("nist-cavp/ECBMMT256.rsp")).unwrap();
    let at = right.find("CIPHERTEXT = ").unwrap() + "CIPHERTEXT = ".len();
    let mut wrong = right.into_bytes();
    wrong[at] = if wrong[at] == b'0' { b'1' } else { b'0' };
    // COUNT, KEY and PLAINTEXT stand above it, and the vector begins with the first of them.
    let line = wrong[..at].split(|&b| b == b'\n').count() - 3;
    let path = place.write("wrong.rsp", &wrong);
    let output = run(&mut check(&place, &["--driver", "software"], &[path]), 1);
    let printed = text(&output.stdout);
    let named = format!(
        "wrong.rsp:{line}: Count 0: ecb(aes) with a key of 256 bits on software: encrypting in place, alone"
    );
    assert!(printed.contains(&named), "{printed}");
    assert_eq!(printed.matches("FAILED").count(), 1, "{printed}");
}

#[test]
fn esp_packets_hashes_and_derivations_are_run_on_the_library() {
    let files = [
        "rfc9227",
        "esp-gost-draft04",
        "esp-gost-derived",
        "gost28147-kernel",
        "rfc7801-8891-7836",
    ];
    let files = files.map(|name| root().join(format!("gost/{name}.json")));
    let place = Place::new();
    let report = printed(&mut check(&place, &["--json"], &files));
    let report: Value = serde_json::from_str(&report).unwrap();
    let rows = report["results"].as_array().unwrap();
    for (algorithm, passed) in [
        ("ENCR_KUZNYECHIK_MGM_KTREE", 2),
        ("ENCR_KUZNYECHIK_MGM_MAC_KTREE", 2),
        ("ENCR_MAGMA_MGM_KTREE", 2),
        ("ENCR_MAGMA_MGM_MAC_KTREE", 2),
        ("ESP_GOST-4M-IMIT", 1 + 30),
        ("ESP_GOST-1K-IMIT", 1 + 31),
        ("gost28147_cpa_cnt", 2),
        ("streebog_256", 3),
        ("streebog_512", 3),
        ("hmac_streebog256", 1),
        ("hmac_streebog512", 1),
        ("KDF_TREE_GOSTR3411_2012_256", 1),
    ] {
        let mut rows = rows.iter().filter(|row| row["driver"] == "library");
        let row = rows.find(|row| row["algorithm"] == algorithm).unwrap();
        assert_eq!(
            (&row["passed"], &row["failed"]),
            (&passed.into(), &0.into()),
            "{row}"
        );
    }
    let printed = printed(&mut check(&place, &[], &files));
    assert!(
        printed.contains("not run: not supported yet by any driver: "),
        "{printed}"
    );
    assert!(printed.contains("4 of gosthash94"), "{printed}");
}

#[test]
fn a_wrong_packet_is_named() {
    let place = Place::new();
    let right = fs::read_to_string(root().join("gost/rfc9227.json")).unwrap();
    // The ICV of the first packet ends so.
    assert_eq!(right.matches("9738689f8ed\"").count(), 2);
    let wrong = right.replace("9738689f8ed\"", "9738689f8ee\"");
    let path = place.write("wrong.json", wrong);
    let output = run(&mut check(&place, &[], &[path]), 1);
    let printed = text(&output.stdout);
    let named = "vector 1: ENCR_KUZNYECHIK_MGM_KTREE with a key of 352 bits on library: \
                 ended as Refused(BadIcv)";
    assert!(printed.contains(named), "{printed}");
}

#[test]
fn unusable_files_and_unknown_drivers_are_told_with_status_2() {
    let place = Place::new();
    let absent = place.path("absent.rsp");
    let foreign = place.write("foreign.json", "{}");
    let good = root().join("rfc/rfc4106-esp.json");
    for (arguments, file, message) in [
        (&[][..], &absent, "absent.rsp: cannot be read: No such file"),
        (&[], &foreign, "foreign.json: not a vector file: "),
        (
            &["--driver", "nonesuch"],
            &good,
            "unknown driver 'nonesuch': present are software",
        ),
    ] {
        let output = run(&mut check(&place, arguments, std::slice::from_ref(file)), 2);
        let printed = text(&output.stderr);
        assert!(
            printed.starts_with("cipherlane: ") && printed.contains(message),
            "{printed}"
        );
        assert!(output.stdout.is_empty());
    }
}
