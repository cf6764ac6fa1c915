//! Where the key of `cipherlane enc` is while it works, and where it is not.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::place::{HEX, IV, Place, data, refused, run, same};

/// The user and the group that own nothing.
const NOBODY: u32 = 65534;

fn is_root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        eprintln!("NOT TESTED: root only may read another process's memory; run the tests as root");
    }
    root
}

/// Digits of a key that is nowhere but in this test.
fn fresh() -> String {
    let mut key = [0; 32];
    let mut source = File::open("/dev/urandom").unwrap();
    std::io::Read::read_exact(&mut source, &mut key).unwrap();
    hex::encode(key)
}

/// A file with the key.
fn key_file(place: &Place, key: &str) -> String {
    let path = place.write("key", format!("{}\n{}\n", &key[..30], &key[30..]));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    path.display().to_string()
}

/// The command in a shell, so that descriptor 3 can be opened.
fn shell(place: &Place, line: &str) -> Command {
    let mut command = place.command("sh");
    let program = env!("CARGO_BIN_EXE_cipherlane");
    command.args(["-c", &format!("exec {program} {line}")]);
    command
}

/// The same key from every place it can come from: the options, and what follows the command.
fn places(key: &str, file: &str) -> [(String, &'static str); 4] {
    [
        (format!("-K {key}"), ""),
        (format!("-K @file:{file}"), ""),
        ("-K @fd:3".to_owned(), "3< key"),
        ("-K @env:SECRET_OF_TEST".to_owned(), ""),
    ]
}

#[test]
fn a_key_is_the_same_wherever_it_comes_from() {
    let place = Place::new();
    place.write("in", data(100_000));
    let file = key_file(&place, HEX);
    place.write("iv", IV);
    let line = format!("enc -aes-256-cbc -K {HEX} -iv {IV} -in in -out theirs");
    run(&mut place.openssl(&line), 0);
    for (key, after) in places(HEX, &file) {
        let line = format!("enc -aes-256-cbc {key} -iv @file:iv -in in -out ours {after}");
        let output = run(shell(&place, &line).env("SECRET_OF_TEST", HEX), 0);
        assert!(same(&place.path("ours"), &place.path("theirs")), "{key}");
        let said = String::from_utf8(output.stderr).unwrap();
        // Nothing but that others can read the file of the IV, as the tests' umask may have it.
        assert!(
            !said.contains("'key'") && !said.contains("padding"),
            "{said}"
        );
    }
    // Others can read it: the user is told.
    let mode = std::fs::Permissions::from_mode(0o644);
    std::fs::set_permissions(&file, mode).unwrap();
    let line = format!("enc -aes-256-cbc -K @file:key -iv {IV} -in in -out ours");
    let output = run(&mut place.cipherlane(&line), 0);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("'key'") && said.contains("chmod 600"),
        "{said}"
    );
}

#[test]
fn places_without_a_key_are_refused() {
    let place = Place::new();
    place.write("in", "x");
    place.write("short", "0011");
    for (key, status, words) in [
        ("@file:short", 2, ["4 hexadecimal digits", "32"]),
        ("@file:none", 1, ["'none'", "check the name"]),
        ("@env:NO_SUCH", 2, ["'NO_SUCH'", "not set"]),
        ("@fd:9", 2, ["descriptor 9", "9< FILE"]),
        ("@pass:geheim", 2, ["-K", "@file:NAME"]),
    ] {
        let line = format!("enc -aes-128-ctr -K {key} -iv {IV} -in in -out out");
        let mut command = place.cipherlane(&line);
        refused(&mut command, status, &words);
        let said = String::from_utf8(run(&mut command, status).stderr).unwrap();
        assert!(!said.contains("geheim"), "{said}");
    }
    assert_eq!(place.names(), ["in", "short"]);
}

/// A piece of a process's memory, with the kernel's flags of it (proc(5), VmFlags).
struct Piece {
    name: String,
    flags: String,
    bytes: Vec<u8>,
}

/// All memory of a process that can be read.
fn memory(child: &Child) -> Vec<Piece> {
    let smaps = std::fs::read_to_string(format!("/proc/{}/smaps", child.id())).unwrap();
    let memory = File::open(format!("/proc/{}/mem", child.id())).unwrap();
    let mut pieces: Vec<Piece> = Vec::new();
    for line in smaps.lines() {
        if let Some(flags) = line.strip_prefix("VmFlags:") {
            pieces.last_mut().unwrap().flags = format!("{flags} ");
            continue;
        }
        let range = line
            .split(' ')
            .next()
            .and_then(|range| range.split_once('-'));
        let Some((start, end)) = range else { continue };
        let address = |text| u64::from_str_radix(text, 16);
        let (Ok(start), Ok(end)) = (address(start), address(end)) else {
            continue;
        };
        // Not mapped for anybody, as what allocators reserve.
        let readable = line
            .split(' ')
            .nth(1)
            .is_some_and(|access| access.starts_with('r'));
        let mut bytes = vec![0; if readable { (end - start) as usize } else { 0 }];
        match memory.read_exact_at(&mut bytes, start) {
            Ok(()) => {}
            // Not to be read: a guard page, or one that belongs to the kernel.
            Err(error) if error.kind() != ErrorKind::PermissionDenied => bytes.clear(),
            Err(error) => panic!("{line}: {error}"),
        }
        pieces.push(Piece {
            name: line.to_owned(),
            flags: String::new(),
            bytes,
        });
    }
    pieces
}

/// Whether any of these is among the bytes.
fn holds(bytes: &[u8], parts: &[&[u8]]) -> bool {
    let mut begins = [false; 256];
    parts
        .iter()
        .for_each(|part| begins[usize::from(part[0])] = true);
    let places = bytes
        .iter()
        .enumerate()
        .filter(|&(_, &byte)| begins[usize::from(byte)]);
    places
        .into_iter()
        .any(|(at, _)| parts.iter().any(|part| bytes[at..].starts_with(part)))
}

/// Waits until each thread of a process waits for something.
fn idle(child: &Child) {
    let tasks = format!("/proc/{}/task", child.id());
    let waits = || {
        std::fs::read_dir(&tasks).unwrap().all(|task| {
            let stat = std::fs::read_to_string(task.unwrap().path().join("stat"));
            stat.is_ok_and(|stat| stat.rsplit_once(") ").unwrap().1.starts_with('S'))
        })
    };
    // Twice: one that was woken in between has had time to run.
    while !(waits() && waits()) {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

/// The key is in memory that is locked and left out of core dumps, its schedule too, and nowhere
/// else: not as text, not on a stack, not in what the kernel shows of the process.
#[test]
fn a_key_at_work_is_only_where_it_is_safe() {
    if !is_root() {
        return;
    }
    let place = Place::new();
    let text = fresh();
    let file = key_file(&place, &text);
    let key = hex::decode(&text).unwrap();
    for (option, after) in places(&text, &file) {
        let line = format!("enc -aes-256-ctr -v {option} -iv {IV} -out out {after}");
        let mut command = shell(&place, &format!("{line} 2> said"));
        if option.contains("@env:") {
            command.env("SECRET_OF_TEST", &text);
        }
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        // Larger than a pipe: when it is written, the command is at work and wants more.
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(&data(8 << 20)).unwrap();
        idle(&child);
        let mut found = 0;
        let upper = text.to_uppercase();
        // Both halves of the key are round keys as well.
        let binary = [&key[..16], &key[16..]];
        let digits = [&text[..30], &text[34..], &upper[..30], &upper[34..]].map(str::as_bytes);
        for piece in memory(&child) {
            let safe = [" lo ", " dd "]
                .iter()
                .all(|flag| piece.flags.contains(flag));
            let key = holds(&piece.bytes, &binary);
            assert!(
                safe || !key,
                "{option}: the key is in {}{}",
                piece.name,
                piece.flags
            );
            found += u32::from(key);
            let digits = holds(&piece.bytes, &digits);
            assert!(!digits, "{option}: the digits are in {}", piece.name);
        }
        assert!(found > 0, "the test does not find what it looks for");
        for shown in ["cmdline", "environ"] {
            let shown = std::fs::read(format!("/proc/{}/{shown}", child.id())).unwrap();
            let shown = String::from_utf8_lossy(&shown);
            assert!(!shown.contains(&text[..30]), "{option}: {shown}");
        }
        // It would dump its core, were it allowed.
        kill_process(Pid::from_child(&child), Signal::ABORT).unwrap();
        let status = child.wait().unwrap();
        assert!(
            status.signal().is_some() && !status.core_dumped(),
            "{status:?}"
        );
        let said = std::fs::read_to_string(place.path("said")).unwrap();
        assert!(!said.contains("note"), "{said}");
        assert_eq!(place.names(), ["key", "said"]);
    }
}

#[test]
fn a_user_whose_limit_is_too_low_is_served_and_told() {
    if !is_root() {
        return;
    }
    let place = Place::new();
    let plain = data(300_000);
    let program = place.path("cipherlane");
    std::fs::copy(env!("CARGO_BIN_EXE_cipherlane"), &program).unwrap();
    let dir = tempfile::tempdir().unwrap();
    std::os::unix::fs::chown(dir.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    std::fs::copy(&program, dir.path().join("cipherlane")).unwrap();
    std::fs::write(dir.path().join("in"), &plain).unwrap();
    let line = format!("-aes-256-ctr -K {HEX} -iv {IV} -in in -out out");
    for (limit, told) in [("0", true), ("64", true), ("8192", false)] {
        let script = format!("ulimit -l {limit} && exec ./cipherlane enc -v {line}");
        let output = place
            .command("sh")
            .args(["-c", &script])
            .current_dir(dir.path())
            .uid(NOBODY)
            .gid(NOBODY)
            .output()
            .unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{said}");
        assert_eq!(said.contains("ulimit -l"), told, "{limit}: {said}");
    }
    place.write("in", &plain);
    run(&mut place.openssl(&format!("enc {line}")), 0);
    assert!(same(&place.path("out"), &dir.path().join("out")));
}
