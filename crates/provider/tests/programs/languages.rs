//! PHP, Ruby and Erlang, whose own functions for ciphers are the system's libcrypto: with the provider every line
//! that a script prints is the one that it prints without.

use std::collections::BTreeSet;
use std::path::Path;

use crate::ends::lacks;
use crate::place::{From, Place, Used, succeeded};

/// The different lines that a script prints, and what the provider did.
fn lines(program: &str, script: &str, from: From) -> (BTreeSet<String>, Used) {
    let place = Place::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/languages");
    let mut command = place.command(program, from);
    let said = succeeded(command.arg(folder.join(script))).stdout;
    let said = String::from_utf8(said).unwrap();
    (said.lines().map(str::to_owned).collect(), place.used())
}

/// Runs a script with and without the provider. It must have printed `least` lines, and the provider must have
/// encrypted by each of the ciphers.
fn compare(program: &str, script: &str, least: usize, ciphers: &[&str]) {
    if lacks(script, &[program]) {
        return;
    }
    let (ours, used) = lines(program, script, From::Cipherlane);
    let (default, none) = lines(program, script, From::Default);
    let differ: Vec<_> = ours.symmetric_difference(&default).take(10).collect();
    assert!(differ.is_empty(), "{differ:#?}");
    assert!(ours.len() >= least, "{}", ours.len());
    assert!(
        !ours
            .iter()
            .any(|line| line.contains("LOST") || line.contains("FORGED"))
    );
    for cipher in ciphers {
        assert!(used.get(*cipher) > Some(&100_000), "{cipher}: {used:?}");
    }
    assert!(none.is_empty(), "{none:?}");
}

const ALL: [&str; 5] = [
    "AES-128-ECB",
    "AES-256-CBC",
    "AES-192-CTR",
    "AES-128-GCM",
    "ChaCha20-Poly1305",
];

#[test]
fn php() {
    compare("/usr/bin/php", "ciphers.php", 4000, &ALL);
}

#[test]
fn ruby() {
    compare("/usr/bin/ruby", "ciphers.rb", 500, &ALL[..4]);
}

#[test]
fn erlang() {
    compare("/usr/bin/escript", "ciphers.escript", 700, &ALL);
}
