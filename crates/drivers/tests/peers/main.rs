//! Drivers over foreign libraries (`openssl`, `gcrypt`, `ipsec_mb`): every algorithm that they are admitted for gives
//! what software gives, and an absent library is a reason that the user can read.

mod against_software;
#[path = "../skip/mod.rs"]
mod skip;

use cipherlane_core::{Algorithm, Config, Direction, Framework, SelfTest};

use against_software::{Message, Random, process};

/// What none of the libraries has, or has as a package of its own.
const GOST: [&str; 3] = ["gost28147", "kuznyechik", "magma"];

/// Checks a driver against software in every algorithm but those of GOST and those with one
/// of `lacking` in their names, which it must refuse with a reason.
fn check(driver: &str, lacking: &[&str]) {
    let Some(framework) = against_software::with(driver) else {
        return;
    };
    for row in framework.rows().iter().filter(|row| row.driver == driver) {
        let reason = row.not_used_because.as_ref();
        let reason = reason.map(ToString::to_string).unwrap_or_default();
        if GOST
            .iter()
            .chain(lacking)
            .any(|part| row.algorithm.contains(part))
        {
            assert_eq!(
                row.self_test,
                SelfTest::NotRun,
                "{}: {reason}",
                row.algorithm
            );
            assert!(!reason.is_empty());
        } else {
            assert_eq!(
                row.self_test,
                SelfTest::Passed,
                "{}: {reason}",
                row.algorithm
            );
            assert!(reason.contains("auto = ["), "'auto' takes {driver} unasked");
            let algorithm = Algorithm::find(row.algorithm).unwrap();
            against_software::check(&framework, driver, algorithm);
        }
    }
}

/// The reason in the row of a driver whose library is said to be `library`.
fn reason_with_library(driver: &str, library: &str) -> String {
    let text = format!("library = '{library}'");
    let config = Config {
        drivers: [(driver.to_owned(), toml::from_str(&text).unwrap())].into(),
        ..Config::default()
    };
    let framework: Framework = cipherlane_drivers::framework(config).unwrap();
    let mut rows = framework
        .rows()
        .into_iter()
        .filter(|row| row.driver == driver);
    let first = rows.next().unwrap();
    assert_eq!(first.self_test, SelfTest::NotRun);
    first.not_used_because.unwrap().to_string()
}

/// A setting that does not exist.
fn check_misspelt(driver: &str) {
    let config = Config {
        drivers: [(driver.to_owned(), toml::from_str("libary = 'x'").unwrap())].into(),
        ..Config::default()
    };
    let refused = cipherlane_drivers::framework(config).unwrap_err();
    let message = refused.to_string();
    assert!(
        message.contains("libary") && message.contains(driver),
        "{message}"
    );
}

/// A file that is absent, and a library that is another one.
fn check_reasons(driver: &str, package: &str, function: &str) {
    let reason = reason_with_library(driver, "/no/such/library.so");
    for part in [
        "/no/such/library.so",
        package,
        &format!("[drivers.{driver}]"),
    ] {
        assert!(reason.contains(part), "{reason}");
    }
    let reason = reason_with_library(driver, "libc.so.6");
    assert!(reason.contains("libc.so.6 has no function"), "{reason}");
    assert!(reason.contains(function), "{reason}");
}

#[test]
fn openssl_gives_what_software_gives() {
    check("openssl", &["cipher_null"]);
}

#[test]
fn openssl_says_why_it_is_absent() {
    check_reasons("openssl", "libssl3", "OPENSSL_init_crypto");
}

#[test]
fn openssl_refuses_a_misspelt_setting_by_name() {
    check_misspelt("openssl");
}

#[test]
fn gcrypt_gives_what_software_gives() {
    check("gcrypt", &["cipher_null", "rfc4543"]);
}

#[test]
fn gcrypt_says_why_it_is_absent() {
    check_reasons("gcrypt", "libgcrypt20", "gcry_check_version");
}

#[test]
fn gcrypt_refuses_a_misspelt_setting_by_name() {
    check_misspelt("gcrypt");
}

#[test]
fn ipsec_mb_gives_what_software_gives() {
    let lacking = ["xts(aes)", "cipher_null", "rfc4543", "rfc3686"];
    check("ipsec_mb", &lacking);
}

#[test]
fn ipsec_mb_says_why_it_is_absent() {
    check_reasons("ipsec_mb", "libipsec-mb1", "imb_get_version");
}

#[test]
fn ipsec_mb_refuses_a_misspelt_setting_by_name() {
    check_misspelt("ipsec_mb");
}

/// What the library refuses goes back to the session, which does it in software; what stands
/// beside it in the batch is done by the library.
#[test]
fn ipsec_mb_gives_back_what_is_too_long() {
    let Some(framework) = against_software::with("ipsec_mb") else {
        return;
    };
    for name in [
        "cbc(aes)",
        "ecb(aes)",
        "hmac(sha256)",
        "hmac(sha512)",
        "authenc(hmac(sha256),cbc(aes))",
    ] {
        let algorithm = Algorithm::find(name).unwrap();
        let mut random = Random(1);
        let key = random.bytes(algorithm.key_lengths()[0]);
        let open = |driver: &str| {
            let builder = framework.session(name, &key).unwrap();
            builder.driver(driver).open().unwrap()
        };
        let (session, software) = (open("ipsec_mb"), open("software"));
        let plain = [64, 65_520, 65_536, 1400, 100_000].map(|len| {
            let mut message = Message::random(&mut random, algorithm, session.tag_len(), len);
            message.aad.clear();
            message
        });
        let (mut got, mut want) = (plain.clone(), plain.clone());
        let (result, _) = process(&session, Direction::Encrypt, &mut got);
        result.unwrap();
        let (result, _) = process(&software, Direction::Encrypt, &mut want);
        result.unwrap();
        for (got, want) in got.iter().zip(&want) {
            assert!(got.data == want.data && got.tag == want.tag, "{name}");
        }
        let totals = framework.statistics("ipsec_mb", name).unwrap();
        assert_eq!((totals.requests, totals.retries), (5, 2), "{name}");
        let (result, _) = process(&session, Direction::Decrypt, &mut got);
        result.unwrap();
        for (got, plain) in got.iter().zip(&plain) {
            assert!(got.data == plain.data, "{name}");
        }
    }
}

/// Every set of functions that the processor has; of one that it lacks the features are named.
#[test]
#[cfg(target_arch = "x86_64")]
fn ipsec_mb_takes_an_architecture() {
    for architecture in ["sse", "avx", "avx2", "avx512", "mmx"] {
        let text = format!("architecture = '{architecture}'");
        let config = Config {
            drivers: [("ipsec_mb".to_owned(), toml::from_str(&text).unwrap())].into(),
            ..Config::default()
        };
        let framework = match cipherlane_drivers::framework(config) {
            Ok(framework) => framework,
            Err(refused) => {
                assert!(refused.to_string().contains("mmx"), "{refused}");
                assert_eq!(architecture, "mmx");
                continue;
            }
        };
        let present = match architecture {
            "sse" => is_x86_feature_detected!("aes") && is_x86_feature_detected!("sse4.2"),
            "avx" => is_x86_feature_detected!("avx"),
            "avx2" => is_x86_feature_detected!("avx2"),
            _ => is_x86_feature_detected!("avx512vl"),
        };
        for row in framework.rows().iter().filter(|r| r.driver == "ipsec_mb") {
            assert_ne!(row.self_test, SelfTest::Failed, "{architecture} {row:?}");
            let reason = row.not_used_because.as_ref();
            let reason = reason.map(ToString::to_string).unwrap_or_default();
            assert!(present || !reason.is_empty(), "{architecture} {row:?}");
            if reason.contains("this processor has no") {
                assert!(!present && reason.contains("'architecture'"), "{reason}");
            }
        }
    }
}
