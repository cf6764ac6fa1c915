//! The provider in a program that has rights which its caller does not have.

use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

const VARIABLE: &str = "CIPHERLANE_OPENSSL_STATS";
/// The user and the group that own nothing.
const NOBODY: u32 = 65534;

/// The provider as cargo builds it for these tests.
fn provider() -> PathBuf {
    std::env::current_exe()
        .unwrap()
        .with_file_name("libcipherlane_provider.so")
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[track_caller]
fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
    output
}

/// A directory that everyone may pass, with the program in it. `None`, with a loud word, where
/// the tests do not run as root, and so cannot make a setuid program.
fn place() -> Option<TempDir> {
    // SAFETY: asks only.
    if unsafe { libc::geteuid() } != 0 {
        eprintln!("NOT TESTED: a setuid program can be made by root only; run the tests as root");
        return None;
    }
    let place = tempfile::tempdir().unwrap();
    set_mode(place.path(), 0o755);
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/privileges/encrypt.c");
    run(Command::new("cc")
        .arg(source)
        .arg("-lcrypto")
        .arg("-o")
        .arg(place.path().join("plain")));
    // The user must be able to read the provider: the target directory may be closed to others.
    std::fs::copy(provider(), place.path().join("provider.so")).unwrap();
    set_mode(&place.path().join("provider.so"), 0o755);
    Some(place)
}

/// A copy of the program with these bits of its mode.
fn program(place: &TempDir, name: &str, mode: u32) -> PathBuf {
    let path = place.path().join(name);
    std::fs::copy(place.path().join("plain"), &path).unwrap();
    set_mode(&path, mode);
    path
}

/// The program, run by the user who owns nothing.
fn by_nobody(place: &TempDir, program: &Path, statistics: &Path) -> Output {
    run(Command::new(program)
        .arg(place.path().join("provider.so"))
        .env(VARIABLE, statistics)
        .env("CIPHERLANE_CORES", "a core \" of the user's choice")
        .uid(NOBODY)
        .gid(NOBODY))
}

#[test]
fn a_privileged_program_obeys_no_variable_of_its_caller() {
    let Some(place) = place() else { return };
    let plain = program(&place, "without", 0o755);
    let capable = program(&place, "capable", 0o755);
    let setcap = Command::new("setcap")
        .arg("cap_net_raw+ep")
        .arg(&capable)
        .status();
    let mut programs = vec![
        program(&place, "setuid", 0o4755),
        program(&place, "setgid", 0o2755),
    ];
    match setcap {
        Ok(status) if status.success() => programs.push(capable),
        _ => eprintln!("NOT TESTED: setcap (libcap2-bin) is absent or not allowed here"),
    }
    let open = place.path().join("open");
    std::fs::create_dir(&open).unwrap();
    set_mode(&open, 0o777);

    // The test can fail: without rights of its own, the program obeys.
    let statistics = open.join("plain");
    let output = by_nobody(&place, &plain, &statistics);
    assert!(String::from_utf8_lossy(&output.stdout).contains("secure 0"));
    let told = std::fs::read_to_string(&statistics).unwrap();
    assert!(told.contains("AES-128-CTR"), "{told}");

    for program in programs {
        let name = program.file_name().unwrap();
        let statistics = open.join(name);
        let output = by_nobody(&place, &program, &statistics);
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.contains("secure 1"), "{name:?}: {said}");
        // AES-128 of a block of zeros under a key of zeros (FIPS 197 has no such example; the
        // GCM specification's test case 1 has it as H).
        assert!(said.contains("first byte 66"), "{name:?}: {said}");
        assert!(!statistics.exists(), "{name:?} wrote what its caller asked");
        let output = by_nobody(&place, &program, Path::new("-"));
        assert!(output.stderr.is_empty(), "{name:?}: {output:?}");
    }
}

#[test]
fn statistics_go_into_no_file_that_somebody_else_chose() {
    let Some(place) = place() else { return };
    let plain = program(&place, "plain-too", 0o755);
    let shared = place.path().join("shared");
    std::fs::create_dir(&shared).unwrap();
    set_mode(&shared, 0o1777);
    let as_root = |statistics: &Path| {
        run(Command::new(&plain)
            .arg(place.path().join("provider.so"))
            .env(VARIABLE, statistics))
    };
    // A symbolic link is not followed, whoever made it.
    let victim = place.path().join("victim");
    std::fs::write(&victim, "precious\n").unwrap();
    let link = shared.join("link");
    symlink(&victim, &link).unwrap();
    as_root(&link);
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious\n");
    // Somebody else's file in a directory where everyone may write.
    let planted = shared.join("planted");
    std::fs::write(&planted, "").unwrap();
    chown(&planted, Some(NOBODY), Some(NOBODY)).unwrap();
    as_root(&planted);
    assert_eq!(std::fs::read_to_string(&planted).unwrap(), "");
    // A pipe that nobody reads does not hold the program up.
    let pipe = place.path().join("pipe");
    run(Command::new("mkfifo").arg(&pipe));
    as_root(&pipe);
    // The directory's owner, and whoever opens the file, may have made it.
    let own = shared.join("own");
    as_root(&own);
    as_root(&own);
    assert_eq!(std::fs::read_to_string(&own).unwrap().lines().count(), 2);
}

#[test]
fn no_text_of_a_setting_is_quoted() {
    let Some(place) = place() else { return };
    let statistics = place.path().join("statistics");
    run(Command::new(place.path().join("plain"))
        .arg(place.path().join("provider.so"))
        .env(VARIABLE, &statistics)
        .env("CIPHERLANE_CORES", "root::0:0:chosen text:/:/bin/sh"));
    let told = std::fs::read_to_string(&statistics).unwrap();
    assert!(told.contains("\"problem\":"), "{told}");
    assert!(!told.contains("chosen text"), "{told}");
    let line: serde_json::Value = serde_json::from_str(told.trim_end()).unwrap();
    assert!(
        line["problem"]
            .as_str()
            .unwrap()
            .contains("CIPHERLANE_CORES")
    );
}
