//! Which ciphers the provider offers: what is measured, written, kept and told.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{cipherlane, configured, diagnosed, enc, text, under, words};
use crate::place::{Place, run};
use crate::schema::judge;

/// The line that has the ciphers before it is changed.
const ACTIVE: &str = "activate = 1\n# '?'";

/// The ciphers that a program under a configuration has from the provider, in capitals: OpenSSL
/// writes some names small.
fn offered(place: &Place, cnf: &str) -> BTreeSet<String> {
    let mut command = place.openssl("list -cipher-algorithms");
    let output = run(command.env("OPENSSL_CONF", place.path(cnf)), 0);
    let all = text(&output.stdout).to_uppercase();
    let lines = all.lines().filter_map(|line| line.split_once(" @ "));
    let own = lines.filter(|(_, provider)| provider.trim() == "CIPHERLANE");
    let name = |names: &str| {
        let mut names = names.split([' ', ',', '{', '}']).map(str::to_owned);
        names.find(|name| name.starts_with("AES-") || name.starts_with("CHACHA"))
    };
    own.filter_map(|(names, _)| name(names)).collect()
}

/// A configuration that names these ciphers.
fn listed(place: &Place, name: &str, list: &str) {
    super::changed(
        place,
        name,
        ACTIVE,
        &format!("activate = 1\nciphers = {list}\n# '?'"),
    );
}

#[test]
fn what_is_measured_is_kept_offered_and_told() {
    let place = Place::new();
    let env = "openssl env --json --output ours.cnf";
    let first = run(&mut cipherlane(&place, env), 0);
    let first: Value = serde_json::from_slice(&first.stdout).unwrap();
    let list = |json: &Value| -> BTreeSet<String> {
        let names = json.as_array().unwrap().iter();
        names
            .map(|name| name.as_str().unwrap().to_uppercase())
            .collect()
    };
    let ciphers = list(&first["ciphers"]);
    assert_eq!(offered(&place, "ours.cnf"), ciphers);

    let kept = || std::fs::read_to_string(place.path("ours.cnf.measured.json")).unwrap();
    let record = kept();
    let parsed: Value = serde_json::from_str(&record).unwrap();
    let all = parsed["ciphers"].as_array().unwrap();
    assert_eq!(all.len(), 18);
    for cipher in all {
        // Both ways at six sizes, and in new contexts at two, each with a ratio and its interval.
        assert_eq!(cipher["figures"].as_array().unwrap().len(), 16, "{cipher}");
        assert!(cipher["problem"].is_null(), "{cipher}");
    }

    let said = words(&run(&mut under(&place, "ours.cnf", "openssl status"), 0));
    for part in [
        "Measured 20",
        "with OpenSSL 3",
        "ChaCha20-Poly1305 enc",
        "16 KiB new 64 B new 1400 B taken",
    ] {
        assert!(said.contains(part), "'{part}' is not in: {said}");
    }
    let json = run(&mut under(&place, "ours.cnf", "openssl status --json"), 0);
    judge("openssl-status", &json.stdout);
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["measured"], parsed);

    // What is known is not measured again, and figures for another libcrypto are.
    run(&mut cipherlane(&place, env), 0);
    assert_eq!(kept(), record);
    let libcrypto = parsed["held_for"]["libcrypto"].as_str().unwrap();
    let other = record.replace(libcrypto, "OpenSSL 3.0.0 of another day");
    place.write("ours.cnf.measured.json", &other);
    diagnosed(
        &place,
        "ours.cnf",
        &["OpenSSL 3.0.0 of another day", "--measure"],
    );
    let other = record.replace("\"processor\": \"", "\"processor\": \"not ");
    place.write("ours.cnf.measured.json", &other);
    diagnosed(&place, "ours.cnf", &["measured on not ", "--measure"]);
    run(&mut cipherlane(&place, env), 0);
    run(&mut under(&place, "ours.cnf", "openssl status"), 0);

    // Unmeasured, each is offered, and no figures stay that nobody obeys.
    run(&mut cipherlane(&place, &format!("{env} --no-measure")), 0);
    assert_eq!(offered(&place, "ours.cnf").len(), 18);
    assert_eq!(place.names(), ["ours.cnf"]);
    let said = words(&run(&mut under(&place, "ours.cnf", "openssl status"), 0));
    assert!(said.contains("every cipher, unmeasured"), "{said}");
}

#[test]
fn a_list_is_obeyed() {
    let place = configured();
    listed(&place, "two.cnf", "aes256, AES-128-CTR");
    let two = ["AES-128-CTR", "AES-256-CBC"].map(str::to_owned);
    assert_eq!(offered(&place, "two.cnf"), BTreeSet::from(two));
    let said = words(&run(&mut under(&place, "two.cnf", "openssl status"), 0));
    assert!(
        said.contains("encrypts by it. It offers aes256, AES-128-CTR."),
        "{said}"
    );

    // A cipher that 'openssl enc' has is tried, and where there is none, nothing is wrong.
    listed(&place, "cbc.cnf", "AES-192-CBC");
    let said = words(&run(&mut under(&place, "cbc.cnf", "openssl status"), 0));
    assert!(said.contains("encrypts by it"), "{said}");
    for list in ["none", "AES-128-GCM"] {
        listed(&place, "few.cnf", list);
        let said = words(&run(&mut under(&place, "few.cnf", "openssl status"), 0));
        assert!(said.contains("no cipher that 'openssl enc' has"), "{said}");
    }
    assert_eq!(offered(&place, "few.cnf").len(), 1);
    listed(&place, "none.cnf", "none");
    assert!(offered(&place, "none.cnf").is_empty());
}

#[test]
fn a_list_with_a_name_that_no_cipher_has_is_told() {
    let place = configured();
    let unknown = ["no cipher of the provider at place 2", "unknown.cnf' line"];
    listed(&place, "unknown.cnf", "AES-128-CTR, AES-129-CTR");
    diagnosed(&place, "unknown.cnf", &unknown);
    assert_eq!(offered(&place, "unknown.cnf").len(), 1);

    let long = "AES-128-CTR, ".repeat(1000) + "AES-128-CTR";
    listed(&place, "long.cnf", &long);
    diagnosed(
        &place,
        "long.cnf",
        &["longer than 4096 bytes", "no cipher is offered"],
    );
    assert!(offered(&place, "long.cnf").is_empty());

    // A program is served by the rest, and told.
    place.write("in", "x");
    let line = format!("openssl status -- openssl {}", enc("aes-128-ctr", "out"));
    let said = words(&run(&mut under(&place, "unknown.cnf", &line), 0));
    assert!(
        said.contains("no cipher of the provider at place 2"),
        "{said}"
    );
}

#[test]
fn a_record_that_is_none_of_ours_is_refused() {
    let place = configured();
    listed(&place, "odd.cnf", "AES-128-CTR");
    for record in ["{", "\u{1b}]0;title\u{7}"] {
        place.write("odd.cnf.measured.json", record);
        diagnosed(
            &place,
            "odd.cnf",
            &["cannot be read", "odd.cnf.measured.json"],
        );
    }
    let status = run(&mut under(&place, "odd.cnf", "openssl status"), 1);
    assert!(!text(&status.stdout).contains('\u{1b}'));
    listed(&place, "odd.cnf", &"\u{1b}]0;title\u{7}, ".repeat(1000));
    let status = run(&mut under(&place, "odd.cnf", "openssl status"), 1);
    assert!(!text(&status.stdout).contains('\u{1b}'));
    assert!(status.stdout.len() < 5000);
}

#[test]
fn install_measures_and_takes_the_figures_away_again() {
    let place = Place::new();
    place.write("openssl.cnf", "a = b\n");
    let line = "openssl install --modules-dir modules --openssl-conf openssl.cnf";
    let printed = run(&mut cipherlane(&place, &format!("{line} --print")), 0);
    assert!(
        words(&printed).contains("measure each cipher"),
        "{printed:?}"
    );
    assert_eq!(place.names(), ["openssl.cnf"]);

    run(&mut cipherlane(&place, line), 0);
    let cnf = std::fs::read_to_string(place.path("openssl.cnf")).unwrap();
    assert!(cnf.contains("\nciphers = "), "{cnf}");
    assert!(place.path("openssl.cnf.measured.json").exists());
    run(&mut under(&place, "openssl.cnf", "openssl status"), 0);
    let again = run(&mut cipherlane(&place, line), 0);
    assert!(words(&again).contains("Nothing to do"), "{again:?}");

    run(&mut cipherlane(&place, &format!("{line} --uninstall")), 0);
    assert_eq!(place.names(), ["modules", "openssl.cnf"]);
}
