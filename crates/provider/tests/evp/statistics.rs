//! What processes say that they used.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::Value;

use crate::libcrypto::Lib;

const VARIABLE: &str = "CIPHERLANE_OPENSSL_STATS";

fn encrypt(lib: &Lib, name: &str, bytes: usize) {
    let cipher = lib.cipher(name);
    let mut context = cipher.context();
    let (key, iv) = (vec![1; cipher.key_len()], vec![2; cipher.iv_len()]);
    context.init(true, Some(&key), Some(&iv)).unwrap();
    context.update(&vec![3; bytes]).unwrap();
}

/// Uses ciphers on both sides of a fork, and tells how.
fn parent_and_child() {
    let lib = Lib::ours();
    encrypt(&lib, "AES-128-CTR", 1000);
    encrypt(&lib, "AES-128-CBC", 160);
    // SAFETY: the child only computes, and leaves without the harness's handlers at exit.
    let child = unsafe { libc::fork() };
    if child == 0 {
        encrypt(&lib, "AES-128-CTR", 10);
        drop(lib);
        // SAFETY: ends the child here.
        unsafe { libc::_exit(0) };
    }
    // SAFETY: our own child.
    assert_eq!(unsafe { libc::waitpid(child, &mut 0, 0) }, child);
    encrypt(&lib, "AES-128-CTR", 5);
    drop(lib);
    println!("child {child}");
}

/// Runs a test of this file in a process of its own: what it said, and what it told.
fn run(test: &str) -> (String, Vec<Value>) {
    let folder = tempfile::tempdir().unwrap();
    let told = folder.path().join("told");
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--nocapture", "--test-threads", "1"])
        .arg(format!("statistics::{test}"))
        .env(VARIABLE, &told)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let told = std::fs::read_to_string(told).unwrap_or_default();
    let lines = told.lines().map(|line| serde_json::from_str(line).unwrap());
    (String::from_utf8(output.stdout).unwrap(), lines.collect())
}

fn bytes(line: &Value) -> BTreeMap<String, u64> {
    let ciphers = line["ciphers"].as_object().unwrap().iter();
    ciphers
        .map(|(name, counts)| (name.clone(), counts["bytes"].as_u64().unwrap()))
        .collect()
}

/// Programs that keep an `SSL_CTX` to their end do so, and OpenSSL keeps the provider for it.
#[test]
fn a_program_that_frees_nothing_tells_too() {
    if cipherlane_core::environment::variable(VARIABLE).is_some() {
        let lib = Lib::ours();
        encrypt(&lib, "AES-128-CTR", 1000);
        return std::mem::forget(lib);
    }
    let (_, lines) = run("a_program_that_frees_nothing_tells_too");
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert_eq!(bytes(&lines[0])["AES-128-CTR"], 1000);
}

/// Runs in a process of its own, for only there the environment is set from the start.
#[test]
fn a_child_tells_what_it_used_itself() {
    if cipherlane_core::environment::variable(VARIABLE).is_some() {
        return parent_and_child();
    }
    let (said, lines) = run("a_child_tells_what_it_used_itself");
    let (_, child) = said.split_once("child ").unwrap();
    let child: u64 = child.lines().next().unwrap().parse().unwrap();

    assert_eq!(lines.len(), 2, "{lines:?}");
    assert_eq!(lines[0]["process"], child, "{lines:?}");
    let expected = |counts: &[(&str, u64)]| {
        let counts = counts.iter();
        counts
            .map(|&(name, bytes)| (name.to_owned(), bytes))
            .collect()
    };
    assert_eq!(bytes(&lines[0]), expected(&[("AES-128-CTR", 10)]));
    let parent = expected(&[("AES-128-CBC", 160), ("AES-128-CTR", 1005)]);
    assert_eq!(bytes(&lines[1]), parent);
}
