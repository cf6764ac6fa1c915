//! Debian's Python: its module ssl, and the package cryptography, which there links to the
//! system's libcrypto too.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::certificate::certify;
use crate::place::{From, Place, Used, skip, succeeded};

/// Not one that the user built, whose OpenSSL may be another.
const PYTHON: &str = "/usr/bin/python3";

/// What `tls.py` sends each way.
const DATA: u64 = (3 << 20) + 77;

fn script(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/python");
    folder.join(name)
}

fn has(import: &str) -> bool {
    let mut python = Command::new(PYTHON);
    python.args(["-c", import]);
    python.output().is_ok_and(|output| output.status.success())
}

#[test]
fn the_ssl_module_speaks_through_the_provider() {
    if !has("import ssl; assert ssl.OPENSSL_VERSION_INFO >= (3,)") {
        skip(
            "Python's ssl",
            "no Python with OpenSSL 3; scripts/needs test",
        );
        return;
    }
    let place = Place::new();
    certify(&place);
    for (protocol, suite, cipher) in [
        (
            "TLSv1_2",
            Some("ECDHE-RSA-AES128-GCM-SHA256"),
            "AES-128-GCM",
        ),
        (
            "TLSv1_2",
            Some("ECDHE-RSA-AES256-GCM-SHA384"),
            "AES-256-GCM",
        ),
        ("TLSv1_2", Some("ECDHE-RSA-AES256-SHA384"), "AES-256-CBC"),
        (
            "TLSv1_2",
            Some("ECDHE-RSA-CHACHA20-POLY1305"),
            "ChaCha20-Poly1305",
        ),
        ("TLSv1_3", None, "AES-256-GCM"),
    ] {
        let mut python = place.command(PYTHON, From::Cipherlane);
        python
            .arg(script("tls.py"))
            .args(["rsa.pem", "rsa.key", protocol])
            .args(suite);
        let said = succeeded(&mut python).stdout;
        let spoken = suite.unwrap_or("TLS_AES_256_GCM_SHA384");
        assert_eq!(String::from_utf8_lossy(&said).trim(), spoken);
        // Both ends are in the process.
        let used = place.used();
        assert!(used.get(cipher) >= Some(&(4 * DATA)), "{spoken}: {used:?}");
    }
}

/// What a script prints.
fn told(place: &Place, name: &str, from: From) -> String {
    let mut python = place.command(PYTHON, from);
    let said = succeeded(python.arg(script(name))).stdout;
    String::from_utf8(said).unwrap()
}

fn has_cryptography(test: &str) -> bool {
    let import = "import cryptography.hazmat.primitives.ciphers.aead as a; a.AESGCM";
    let there = has(import);
    if !there {
        skip(test, "python3-cryptography is absent; scripts/needs test");
    }
    there
}

#[test]
fn a_fork_counts_what_it_did_itself() {
    if !has_cryptography("fork after use") {
        return;
    }
    let place = Place::new();
    let mut python = place.command(PYTHON, From::Cipherlane);
    let said = succeeded(python.arg(script("fork.py"))).stdout;
    let child: u32 = String::from_utf8(said).unwrap().trim().parse().unwrap();
    let used = place.processes();
    assert_eq!(used.len(), 2, "{used:?}");
    for (process, used) in used {
        let bytes = if process == child { 10 } else { 1000 };
        assert_eq!(
            used.get("AES-192-CTR"),
            Some(&bytes),
            "{process} of {child}"
        );
    }
}

#[test]
fn the_package_cryptography_finds_the_same_faults() {
    if !has_cryptography("faults in the package cryptography") {
        return;
    }
    let place = Place::new();
    let ours = told(&place, "refusals.py", From::Cipherlane);
    assert_eq!(ours, told(&place, "refusals.py", From::Default));
    assert_eq!(ours.matches(" InvalidTag").count(), 6, "{ours}");
    assert!(place.used().contains_key("AES-256-GCM"));
}

#[test]
fn the_package_cryptography_gets_the_same_bytes() {
    if !has_cryptography("the package cryptography") {
        return;
    }
    let place = Place::new();
    let ours = told(&place, "cryptography_ciphers.py", From::Cipherlane);
    let used = place.used();
    assert_eq!(ours, told(&place, "cryptography_ciphers.py", From::Default));
    // Encrypted once and decrypted at least once, all of it by the provider.
    let mut told = Used::new();
    for line in ours.lines() {
        let mut words = line.split(' ');
        let cipher = words.next().unwrap().to_owned();
        *told.entry(cipher).or_default() += words.next().unwrap().parse::<u64>().unwrap();
    }
    for (cipher, bytes) in told {
        assert!(
            used.get(&cipher) >= Some(&(2 * bytes)),
            "{cipher} {bytes}: {used:?}"
        );
    }
}
