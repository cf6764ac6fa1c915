//! The library in a program that has rights which its caller does not have: settings, learned
//! costs and libraries of the caller's are not obeyed.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The user and the group that own nothing.
const NOBODY: u32 = 65534;

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// What the privileged program does: this test's copy, run by the test below.
#[test]
#[ignore = "run by the other test, in programs of its own"]
fn privileged() {
    let config = cipherlane_drivers::load_config(None).unwrap();
    println!("config {config:?}");
    println!("profile {:?}", config.profile_path());
    println!("features {:?}", cipherlane_kernels::cpu::features());
    let framework = cipherlane_drivers::framework(config).unwrap();
    // A session asks every driver that may serve it whether it can.
    let session = framework.session("ctr(aes)", &[1; 16]).unwrap();
    session.open().unwrap();
}

/// A library that leaves a file behind where it is loaded.
fn spy(dir: &Path, name: &str) -> (PathBuf, PathBuf) {
    let (source, library) = (dir.join("spy.c"), dir.join(format!("{name}.so")));
    let left = dir.join(format!("open/{name}-was-loaded"));
    let text = format!(
        "#include <fcntl.h>\n__attribute__((constructor)) static void load(void)\n\
         {{ open(\"{}\", O_CREAT | O_WRONLY, 0600); }}\n",
        left.display()
    );
    std::fs::write(&source, text).unwrap();
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-o"])
        .arg(&library)
        .arg(&source);
    assert!(cc.status().unwrap().success());
    (library, left)
}

#[test]
fn a_privileged_program_obeys_nothing_of_its_callers() {
    // SAFETY: asks only.
    if unsafe { libc::geteuid() } != 0 {
        eprintln!("NOT TESTED: a setuid program can be made by root only; run the tests as root");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    set_mode(dir, 0o755);
    for name in ["open", "home", "home/.config", "home/.cache"] {
        std::fs::create_dir(dir.join(name)).unwrap();
        set_mode(&dir.join(name), if name == "open" { 0o777 } else { 0o755 });
    }
    let (named, named_left) = spy(dir, "named-by-a-file");
    let (variable, variable_left) = spy(dir, "named-by-a-variable");
    let text = format!(
        "auto = ['openssl', 'gcrypt']\ngoal = 'cpu'\n[drivers.openssl]\nlibrary = '{}'\n",
        named.display()
    );
    std::fs::write(dir.join("home/.config/cipherlane.toml"), text).unwrap();
    let run = |program: &Path| {
        let output = Command::new(program)
            .args(["--exact", "privileged", "--ignored", "--nocapture"])
            .env_clear()
            .env("HOME", dir.join("home"))
            .env("CIPHERLANE_GCRYPT_LIBRARY", &variable)
            .env("CIPHERLANE_VERIFY", "77")
            .env("CIPHERLANE_DISABLE", "ipsec_mb")
            .env("CIPHERLANE_CPU_DISABLE", "aes")
            .current_dir("/")
            .uid(NOBODY)
            .gid(NOBODY)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let copy = |name: &str, mode| {
        let path = dir.join(name);
        std::fs::copy(std::env::current_exe().unwrap(), &path).unwrap();
        set_mode(&path, mode);
        path
    };
    let setuid = copy("setuid", 0o4755);
    let said = run(&setuid);
    for obeyed in ["Cpu", "77", "home", "ipsec_mb", "named-by"] {
        assert!(!said.contains(obeyed), "{obeyed}: {said}");
    }
    assert!(said.contains("profile None"), "{said}");
    let aes = std::arch::is_x86_feature_detected!("aes");
    assert_eq!(said.contains("\"aes\""), aes, "{said}");
    for left in [&named_left, &variable_left] {
        assert!(!left.exists(), "{} by euid 0", left.display());
    }

    // The test can fail: without rights of its own, the program obeys all of them.
    let said = run(&copy("plain", 0o755));
    for obeyed in [
        "Cpu",
        "77",
        "home/.cache/cipherlane",
        "ipsec_mb",
        "named-by",
    ] {
        assert!(said.contains(obeyed), "{obeyed}: {said}");
    }
    assert!(!said.contains("\"aes\""), "{said}");
    for left in [&named_left, &variable_left] {
        assert!(left.exists(), "{}", left.display());
    }
}
