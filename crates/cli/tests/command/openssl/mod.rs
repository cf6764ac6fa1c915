//! `cipherlane openssl` with the real provider and the real `openssl`.
//!
//! Only `ciphers` measures: what comes of it depends on the machine, so the others have every
//! cipher offered.

mod ciphers;
mod diagnosis;
mod env;
mod install;
mod programs;

use std::process::{Command, Output};

use serde_json::Value;

use crate::place::{HEX, IV, Place, run};
use crate::provider::provider;
use crate::schema::judge;

/// The command, without a configuration of OpenSSL of whoever runs the test.
fn cipherlane(place: &Place, line: &str) -> Command {
    provider();
    let mut command = place.cipherlane(line);
    command
        .env_remove("OPENSSL_CONF")
        .env_remove("OPENSSL_MODULES");
    command
}

/// Under the configuration of this name.
fn under(place: &Place, cnf: &str, line: &str) -> Command {
    let mut command = cipherlane(place, line);
    command.env("OPENSSL_CONF", place.path(cnf));
    command
}

/// A place with the configuration `ours.cnf`.
fn configured() -> Place {
    let place = Place::new();
    run(
        &mut cipherlane(&place, "openssl env --no-measure --output ours.cnf"),
        0,
    );
    place
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// The text of a table or of wrapped lines, with one space between words.
fn words(output: &Output) -> String {
    let all = text(&output.stdout) + &text(&output.stderr);
    all.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// `status` must end with 1, and say these words.
#[track_caller]
fn diagnosed(place: &Place, cnf: &str, expected: &[&str]) {
    let said = words(&run(&mut under(place, cnf, "openssl status"), 1));
    for part in expected.iter().chain(&["remedy:"]) {
        assert!(said.contains(part), "'{part}' is not in: {said}");
    }
    let json = run(&mut under(place, cnf, "openssl status --json"), 1);
    judge("openssl-status", &json.stdout);
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    let problems = json["problems"].as_array().unwrap();
    assert_eq!(problems.len(), 1, "{json:#}");
}

/// A configuration like ours but for one change.
fn changed(place: &Place, name: &str, from: &str, to: &str) {
    let ours = std::fs::read_to_string(place.path("ours.cnf")).unwrap();
    let text = ours.replacen(from, to, 1);
    assert_ne!(ours, text, "'{from}' is not in: {ours}");
    place.write(name, text);
}

fn enc(cipher: &str, out: &str) -> String {
    format!("enc -{cipher} -K {} -iv {IV} -in in -out {out}", &HEX[..32])
}
