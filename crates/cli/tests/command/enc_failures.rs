//! `cipherlane enc` when things go wrong: a message, an exit status, and no half file.

use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::place::{HEX, IV, Place, data, refused, run};
use rustix::process::{Pid, Signal, kill_process};

fn ctr(rest: &str) -> String {
    format!("enc -aes-128-ctr -K {} -iv {IV} {rest}", &HEX[..32])
}

fn cbc(rest: &str) -> String {
    format!("enc -aes-128-cbc -K {} -iv {IV} {rest}", &HEX[..32])
}

#[test]
fn wrong_padding_and_lengths_are_errors_that_leave_nothing() {
    let place = Place::new();
    place.write("noise", data(1 << 20));
    place.write("odd", data(33));
    place.write("empty", "");
    let bad = "bad decrypt: wrong key or damaged file";
    refused(
        &mut place.cipherlane(&cbc("-d -in noise -out out")),
        1,
        &[bad, "noise"],
    );
    refused(
        &mut place.cipherlane(&cbc("-d -in odd -out out")),
        1,
        &["33 bytes", "odd"],
    );
    refused(
        &mut place.cipherlane(&cbc("-d -in empty -out out")),
        1,
        &["0 bytes", "empty"],
    );
    refused(
        &mut place.cipherlane(&cbc("-nopad -in odd -out out")),
        1,
        &["33 bytes", "-nopad"],
    );
    refused(
        &mut place.cipherlane(&cbc("-nopad -d -in odd -out out")),
        1,
        &["33 bytes"],
    );
    run(
        &mut place.cipherlane(&cbc("-nopad -d -in empty -out gone")),
        0,
    );
    std::fs::remove_file(place.path("gone")).unwrap();
    assert_eq!(place.names(), ["empty", "noise", "odd"]);
}

#[test]
fn a_wrong_command_line_is_refused_by_name() {
    let place = Place::new();
    place.write("in", "hello");
    let out = format!("-iv {IV} -in in -out out");
    for (line, words) in [
        (
            format!("enc -aes-128-ctr -K {HEX} {out}"),
            ["-K", "64"].as_slice(),
        ),
        (
            format!("enc -aes-128-ctr -K 00xx {out}"),
            &["-K", "'x' in place 3"],
        ),
        (
            format!("enc -aes-128-ctr -K 00 -iv {HEX} -in in"),
            &["-iv", "64"],
        ),
        (
            "enc -aes-128-ctr -K 00 -in in".to_owned(),
            &["iv undefined", "-iv"],
        ),
        (
            "enc -aes-128-gcm -K 00 -in in".to_owned(),
            &["aes-128-gcm", "authenticated", "age"],
        ),
        (format!("enc -aes-128-ctr {out}"), &["--K"]),
        (format!("enc -K 00 {out}"), &["--cipher"]),
        (
            format!("enc -aes-128-cfb -K 00 {out}"),
            &["aes-128-cfb", "aes-128-ctr"],
        ),
        (format!("enc -aes-128-cbc -k secret {out}"), &["-k"]),
        (
            format!("enc -aes-128-cbc -pbkdf2 {out}"),
            &["-pbkdf2", "-K"],
        ),
        ("enc -aes-128-cbc -K".to_owned(), &["--K"]),
        (
            format!("--cores 3-1 enc -aes-128-ctr -K 00 {out}"),
            &["'3-1'", "1-3"],
        ),
        (
            format!("--cores 1000 enc -aes-128-ctr -K 00 {out}"),
            &["core 1000"],
        ),
        (
            format!("--driver nosuch enc -aes-128-ctr -K 00 {out}"),
            &["nosuch", "software"],
        ),
    ] {
        refused(&mut place.cipherlane(&line), 2, words);
    }
    assert_eq!(place.names(), ["in"]);
}

#[test]
fn files_that_cannot_be_read_or_written_are_named() {
    let place = Place::new();
    place.write("in", data(100_000));
    std::fs::create_dir(place.path("dir")).unwrap();
    refused(
        &mut place.cipherlane(&ctr("-in none -out out")),
        1,
        &["'none'", "check the name"],
    );
    refused(
        &mut place.cipherlane(&ctr("-in dir -out out")),
        1,
        &["'dir'", "directory"],
    );
    // Root may read any file, but not one that the kernel refuses to read.
    refused(
        &mut place.cipherlane(&ctr("-in /proc/self/mem -out out")),
        1,
        &["/proc/self/mem"],
    );
    refused(
        &mut place.cipherlane(&ctr("-in in -out dir")),
        1,
        &["'dir'", "directory"],
    );
    refused(
        &mut place.cipherlane(&ctr("-in in -out none/out")),
        1,
        &["none/out"],
    );
    refused(
        &mut place.cipherlane(&ctr("-in in -out /proc/out")),
        1,
        &["/proc/out"],
    );
    refused(
        &mut place.cipherlane(&ctr("-in in -out /dev/full")),
        1,
        &["/dev/full", "space"],
    );
    assert_eq!(place.names(), ["dir", "in"]);
}

#[test]
fn a_limit_on_file_size_is_an_error_that_leaves_the_old_file() {
    let place = Place::new();
    place.write("in", data(1 << 20));
    place.write("out", "old");
    let binary = env!("CARGO_BIN_EXE_cipherlane");
    // From a file, whose length is known beforehand, and from a stream.
    for input in ["-in in -out out", "-out out < in"] {
        let mut shell = place.command("sh");
        shell.args([
            "-c",
            &format!("ulimit -f 100; exec {binary} {}", ctr(input)),
        ]);
        refused(&mut shell, 1, &["'out'", "ulimit"]);
        assert_eq!(std::fs::read(place.path("out")).unwrap(), b"old");
    }
    assert_eq!(place.names(), ["in", "out"]);
}

#[test]
fn an_interrupted_run_leaves_nothing() {
    let place = Place::new();
    for signal in [Signal::TERM, Signal::INT] {
        // A test that runs in the background may have inherited that signals are ignored, and
        // what is ignored stays so.
        let mut child = place
            .command("env")
            .args(["--default-signal", env!("CARGO_BIN_EXE_cipherlane")])
            .args(ctr("-out out").split(' '))
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        // Larger than a pipe: when it is written, the command is at work and wants more.
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(&data(8 << 20)).unwrap();
        kill_process(Pid::from_child(&child), signal).unwrap();
        let started = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            assert!(
                started.elapsed() < Duration::from_secs(30),
                "it goes on after {signal:?}"
            );
            std::thread::sleep(Duration::from_millis(5));
        };
        assert_eq!(status.signal(), Some(signal.as_raw()));
        assert!(place.names().is_empty(), "{:?}", place.names());
    }
}

#[test]
fn a_reader_that_goes_away_ends_it_quietly() {
    let place = Place::new();
    place.write("in", data(8 << 20));
    let mut child = place
        .cipherlane(&ctr("-in in"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.signal(), Some(Signal::PIPE.as_raw()));
    assert!(
        output.stderr.is_empty(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
