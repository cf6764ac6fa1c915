//! Large calls of a program in whose configuration cores are dedicated to the provider.

use std::fs;

use crate::place::{From, Place, succeeded};

/// Runs `openssl speed` with calls of 4 MiB, and gives what its process told at its end.
fn speed(setting: &str) -> serde_json::Value {
    let place = Place::new();
    let configuration = fs::read_to_string(place.configuration()).unwrap();
    let section = "[with_cipherlane]\n";
    assert!(configuration.contains(section));
    let configuration = configuration.replace(section, &format!("{section}{setting}\n"));
    fs::write(place.configuration(), configuration).unwrap();
    let told = place.path().join("told");
    let mut command = place.command("openssl", From::Cipherlane);
    command
        .args(["speed", "-elapsed", "-seconds", "1", "-bytes", "4194304"])
        .args(["-evp", "aes-128-ctr"])
        .env_remove("CIPHERLANE_CORES")
        .env("CIPHERLANE_OPENSSL_STATS", &told);
    succeeded(&mut command);
    let told = fs::read_to_string(told).unwrap();
    let mut lines = told.lines().map(|line| serde_json::from_str(line).unwrap());
    let used = |line: &serde_json::Value| line["ciphers"]["AES-128-CTR"].is_object();
    lines.find(used).unwrap()
}

#[test]
fn cores_in_the_provider_section_share_them() {
    let told = speed("cores = 0");
    let used = &told["ciphers"]["AES-128-CTR"];
    assert!(used["split"].as_u64().unwrap() > 0, "{told}");
    assert!(
        used["operations"].as_u64() > used["split"].as_u64(),
        "{told}"
    );
    assert!(told["problem"].is_null(), "{told}");
}

#[test]
fn without_cores_nobody_does() {
    for (setting, problem) in [
        ("", None),
        ("cores = 1-", Some("no list of cores that are online")),
    ] {
        let told = speed(setting);
        assert_eq!(told["ciphers"]["AES-128-CTR"]["split"], 0, "{told}");
        match problem {
            None => assert!(told["problem"].is_null(), "{told}"),
            Some(words) => assert!(told["problem"].as_str().unwrap().contains(words), "{told}"),
        }
    }
}
