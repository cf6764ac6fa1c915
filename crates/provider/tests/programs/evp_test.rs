//! OpenSSL's own test of ciphers through EVP.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::place::{From, Place, skip, succeeded};

/// Where `scripts/evp-test` has built it; `None` where the source cannot be had.
fn built() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("evp-test");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/evp-test");
    let output = Command::new(script).arg(&folder).output().unwrap();
    if !output.status.success() {
        skip(
            "evp_test of OpenSSL",
            &format!(
                "scripts/evp-test cannot build it: {}",
                String::from_utf8_lossy(&output.stderr)
            ),
        );
        return None;
    }
    Some(folder)
}

/// Runs a file of tests: how many there were.
fn run(place: &Place, folder: &Path, file: &str, from: From) -> u32 {
    let mut command = place.command(folder.join("evp_test"), from);
    if from == From::Cipherlane {
        command.arg("-config").arg(place.configuration());
    }
    let output = succeeded(command.arg(folder.join("recipes").join(file)));
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    let completed = said
        .lines()
        .find_map(|line| line.split_once("Completed ")?.1.split_once(" tests with "))
        .unwrap_or_else(|| panic!("{file}: {said}"));
    assert!(completed.1.starts_with("0 errors"), "{file}: {said}");
    completed.0.parse().unwrap()
}

#[test]
fn openssls_own_test_passes() {
    let Some(folder) = built() else {
        return;
    };
    let place = Place::new();
    assert!(run(&place, &folder, "evpciph_aes_common.txt", From::Cipherlane) >= 164);
    let used = place.used();
    for cipher in [
        "AES-128-ECB",
        "AES-192-ECB",
        "AES-256-ECB",
        "AES-128-CBC",
        "AES-192-CBC",
        "AES-256-CBC",
        "AES-128-CTR",
        "AES-192-CTR",
        "AES-256-CTR",
        "AES-128-GCM",
        "AES-192-GCM",
        "AES-256-GCM",
        "AES-128-XTS",
        "AES-256-XTS",
    ] {
        assert!(used.get(cipher) > Some(&0), "{cipher}: {used:?}");
    }
    assert!(run(&place, &folder, "evpciph_chacha.txt", From::Cipherlane) >= 27);
    let used = place.used();
    assert!(used.get("ChaCha20-Poly1305") > Some(&0), "{used:?}");
    assert!(run(&place, &folder, "evpciph_aes_cts.txt", From::Cipherlane) >= 42);
    let used = place.used();
    for bits in [128, 192, 256] {
        let cipher = format!("AES-{bits}-CBC-CTS");
        assert!(used.get(&cipher) > Some(&0), "{cipher}: {used:?}");
    }
    // Files whose ciphers, or parts of them, are the default provider's: both get along. Where the
    // processor has no instructions for AES, OpenSSL has no stitched ciphers.
    for file in [
        "evpciph_aes_ccm_cavs.txt",
        "evpciph_aes_ocb.txt",
        "evpciph_aes_siv.txt",
        "evpciph_aes_wrap.txt",
        "evpciph_aes_stitched.txt",
        "evpmac_common.txt",
        "evppbe_pkcs12.txt",
    ] {
        let tests = run(&place, &folder, file, From::Cipherlane);
        assert_eq!(
            tests,
            run(&place, &folder, file, From::Default),
            "{file}: the default provider by itself runs as many"
        );
        assert!(tests > 0 || file.contains("stitched"), "{file}");
    }
}
