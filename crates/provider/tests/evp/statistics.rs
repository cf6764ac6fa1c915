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

/// Runs in a process of its own, for only there the environment is set from the start.
#[test]
fn a_child_tells_what_it_used_itself() {
    if std::env::var(VARIABLE).is_ok() {
        return parent_and_child();
    }
    let folder = tempfile::tempdir().unwrap();
    let told = folder.path().join("told");
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--nocapture", "--test-threads", "1"])
        .arg("statistics::a_child_tells_what_it_used_itself")
        .env(VARIABLE, &told)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stdout).unwrap();
    let (_, child) = said.split_once("child ").unwrap();
    let child: u64 = child.lines().next().unwrap().parse().unwrap();

    let told = std::fs::read_to_string(told).unwrap();
    let lines: Vec<Value> = told
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let bytes = |line: &Value| -> BTreeMap<String, u64> {
        let ciphers = line["ciphers"].as_object().unwrap().iter();
        ciphers
            .map(|(name, counts)| (name.clone(), counts["bytes"].as_u64().unwrap()))
            .collect()
    };
    assert_eq!(lines.len(), 2, "{told}");
    assert_eq!(lines[0]["process"], child, "{told}");
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
