//! The `af_alg` drivers against the kernel of this machine, where it has `AF_ALG`, and against
//! that of a Linux guest, which has: there with processor instructions, without, and with a
//! device, QEMU's own virtio-crypto.

#![cfg(feature = "af-alg")]

#[path = "skip/mod.rs"]
mod skip;

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use cipherlane_core::conformance::check;
use cipherlane_core::{Algorithm, Config, Driver};
use cipherlane_drivers::af_alg::{AfAlg, PREFIX, Settings};

/// What `scripts/guest` ends with where there can be no guest.
const NO_GUESTS: i32 = 125;

/// Of what the guest has, one of each sort. The first is a device, and those over `generic` are made once somebody asks for them.
const SOME: [&str; 9] = [
    "virtio_crypto_aes_cbc",
    "cbc(aes-generic)",
    "ctr-aes-aesni",
    "xts-aes-aesni",
    "generic-gcm-aesni",
    "rfc4106-gcm-aesni",
    "rfc7539(chacha20-generic,poly1305-generic)",
    "hmac(sha512-generic)",
    "authencesn(hmac(sha256-generic),cbc(aes-generic))",
];

const MODULES: [&str; 21] = [
    "af_alg",
    "algif_skcipher",
    "algif_aead",
    "algif_hash",
    "ecb",
    "cbc",
    "ctr",
    "xts",
    "sha512_generic",
    "hmac",
    "drbg",
    "ghash-generic",
    "gcm",
    "chacha_generic",
    "poly1305_generic",
    "chacha20poly1305",
    "authencesn",
    "crypto_null",
    "aesni_intel",
    "virtio_pci",
    "virtio_crypto",
];

/// Runs drivers through the conformance kit.
fn conform(drivers: Vec<AfAlg>) {
    for driver in drivers {
        let driver: Arc<dyn Driver> = Arc::new(driver);
        if let Err(reason) = driver.probe() {
            return skip::skip(driver.name(), &reason.to_string());
        }
        let offered = Algorithm::all()
            .iter()
            .filter(|algorithm| driver.offers(algorithm).is_ok());
        let names: Vec<_> = offered.map(|algorithm| algorithm.name).collect();
        let report = check(&driver);
        assert!(report.passed(), "{report}");
        println!("{} conforms: {}", driver.name(), names.join(" "));
    }
}

fn configured() -> Vec<AfAlg> {
    let mut config = Config::default();
    for name in SOME {
        Settings::add(&mut config, name);
    }
    AfAlg::configured(&config).unwrap()
}

#[test]
fn some_of_the_kernel_conform() {
    let mut drivers = configured();
    let is_wanted = |driver: &AfAlg| {
        SOME.iter()
            .any(|name| driver.name() == format!("{PREFIX}{name}"))
    };
    drivers.retain(is_wanted);
    conform(drivers);
}

#[test]
#[ignore = "long"]
fn all_of_the_kernel_conform() {
    conform(configured());
}

/// Runs a test of this program in a guest; what it has printed.
fn in_guest(test: &str, limit: &str) -> Option<String> {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("script");
    let program = std::env::current_exe().unwrap();
    let name = program.file_name().unwrap().to_str().unwrap();
    let options = "--nocapture --include-ignored --test-threads 1";
    std::fs::write(
        &script,
        format!("/bin/{name} --exact {test} {options} 2>&1\n"),
    )
    .unwrap();
    let mut guest = Command::new(top.join("scripts/guest"));
    for module in MODULES {
        guest.args(["--module", module]);
    }
    let ran = guest
        .args(["--limit", limit, "--program"])
        .args([&program, &script])
        .args(["--", "-object", "cryptodev-backend-builtin,id=c"])
        // Interrupts by message crash QEMU 7.2 under emulation.
        .args(["-device", "virtio-crypto-pci,cryptodev=c,vectors=0"])
        .output()
        .unwrap();
    if ran.status.code() == Some(NO_GUESTS) {
        let reason = String::from_utf8_lossy(&ran.stderr);
        skip::skip("af_alg in a guest", &reason);
        return None;
    }
    let output = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(ran.status.success(), "{output}");
    Some(output)
}

#[test]
fn some_of_a_guest_conform() {
    let Some(output) = in_guest("some_of_the_kernel_conform", "300") else {
        return;
    };
    for name in SOME {
        let expected = format!("{PREFIX}{name} conforms: ");
        assert!(output.contains(&expected), "no '{expected}' in\n{output}");
    }
}

#[test]
#[ignore = "long"]
fn all_of_a_guest_conform() {
    let Some(output) = in_guest("all_of_the_kernel_conform", "3600") else {
        return;
    };
    assert!(output.contains("af_alg conforms: ecb(aes)"), "{output}");
}
