//! Other VPNs beside the gateway: each that is installed is measured, and of each other one it is
//! said why not.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use super::can_bench;
use crate::provider::provider;

/// What each peer needs here.
const NEEDED: [(&str, &[&str]); 5] = [
    ("wireguard-go", &["/usr/bin/wireguard-go", "/usr/bin/wg"]),
    ("boringtun", &["/usr/bin/boringtun-cli", "/usr/bin/wg"]),
    ("openvpn", &[OPENVPN]),
    ("openvpn-cipherlane", &[OPENVPN]),
    (
        "strongswan",
        &[
            "/usr/sbin/charon-systemd",
            "/usr/sbin/swanctl",
            "/usr/lib/ipsec/plugins/libstrongswan-kernel-libipsec.so",
            "/usr/lib/ipsec/plugins/libstrongswan-openssl.so",
        ],
    ),
];

const OPENVPN: &str = "/usr/sbin/openvpn";

/// A short bench of some peers, by the command in a file.
fn bench(command: &Path, peers: &str, test: &str) -> Command {
    let mut bench = Command::new(command);
    bench.args(["gateway", "bench", "--peers", peers, "--tests", test]);
    bench.args(["--rounds", "1", "--seconds", "1", "--json", "-"]);
    bench
}

fn own() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_cipherlane"))
}

/// What is said besides the JSON, with one space between words.
fn said(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn has_openvpn() -> bool {
    let is_there = Path::new(OPENVPN).exists();
    if !is_there {
        let message = format!(
            "SKIPPED, gateway bench beside OpenVPN is NOT tested: {OPENVPN} is missing; \
             'scripts/needs test' installs it\n"
        );
        std::io::Write::write_all(&mut std::io::stderr(), message.as_bytes()).unwrap();
    }
    is_there
}

#[test]
fn every_peer_that_is_installed_is_measured() {
    if !can_bench() {
        return;
    }
    provider();
    let names: Vec<&str> = NEEDED.iter().map(|(name, _)| *name).collect();
    let output = bench(own(), &names.join(","), "tcp").output().unwrap();
    let said = said(&output);
    assert!(output.status.success(), "{said}");
    assert!(!said.contains("Failed:"), "{said}");
    crate::schema::judge("gateway-bench", &output.stdout);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let cells = report["cells"].as_array().unwrap();
    for (name, files) in NEEDED {
        let cell = cells.iter().find(|cell| cell["peer"] == name);
        let Some(missing) = files.iter().find(|file| !Path::new(file).exists()) else {
            let cell = cell.unwrap_or_else(|| panic!("{name}: {said}"));
            assert!(cell["bits_per_second"].as_f64().unwrap() > 0.0, "{cell}");
            assert!(cell["cpu_seconds_per_gb"].as_f64().unwrap() > 0.0, "{cell}");
            continue;
        };
        // It may be elsewhere; where it was not found, the reason is told.
        let is_absent = said.contains(&format!("{name} (no "));
        assert!(cell.is_some() || is_absent, "{name}: {said}");
        let message = format!("SKIPPED, {name} is NOT measured: {missing} is missing\n");
        std::io::Write::write_all(&mut std::io::stderr(), message.as_bytes()).unwrap();
    }
}

#[test]
fn a_provider_that_cannot_be_loaded_makes_its_peer_absent() {
    if !can_bench() || !has_openvpn() {
        return;
    }
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let command = directory.path().join("cipherlane");
    std::fs::hard_link(own(), &command).unwrap();
    std::fs::write(directory.path().join("cipherlane.so"), "no library").unwrap();
    let peers = "bare,openvpn-cipherlane";
    let output = bench(&command, peers, "ping").output().unwrap();
    let said = said(&output);
    assert!(output.status.success(), "{said}");
    let why = "Absent: openvpn-cipherlane (OpenSSL cannot load '";
    assert!(said.contains(why), "{said}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["cells"].as_array().unwrap().len(), 1, "{report}");
}

/// Figures of OpenSSL's own ciphers are not shown as those of the provider.
#[test]
fn an_openvpn_that_does_not_use_the_provider_has_no_figures() {
    if !can_bench() || !has_openvpn() {
        return;
    }
    provider();
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let deaf = directory.path().join("openvpn");
    let script = format!("#!/bin/sh\nOPENSSL_CONF=/dev/null exec {OPENVPN} \"$@\"\n");
    std::fs::write(&deaf, script).unwrap();
    std::fs::set_permissions(&deaf, PermissionsExt::from_mode(0o755)).unwrap();
    let path = cipherlane_core::environment::text("PATH").unwrap();
    let path = format!("{}:{path}", directory.path().display());
    let mut bench = bench(own(), "openvpn,openvpn-cipherlane", "tcp");
    let output = bench.env("PATH", path).output().unwrap();
    let said = said(&output);
    assert!(output.status.success(), "{said}");
    let why = "Failed: openvpn-cipherlane: gateway bench: OpenVPN carried";
    assert!(said.contains(why), "{said}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let peers: Vec<_> = report["cells"].as_array().unwrap().iter().collect();
    assert_eq!(peers.len(), 1, "{report}");
    assert_eq!(peers[0]["peer"], "openvpn");
}

#[test]
fn a_peer_that_nobody_knows_is_refused_with_those_that_there_are() {
    let output = bench(own(), "openvpn,ipsec", "tcp").output().unwrap();
    let said = said(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    for name in NEEDED.map(|(name, _)| name) {
        assert!(said.contains(name), "{name}: {said}");
    }
}
