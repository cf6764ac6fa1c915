//! `cipherlane enc` against `openssl enc`, byte for byte.

use std::io::Write;
use std::process::Stdio;

use crate::place::{HEX, IV, Place, data, run, same};

const CIPHERS: [&str; 9] = [
    "aes-128-ctr",
    "aes-192-ctr",
    "aes-256-ctr",
    "aes-128-cbc",
    "aes-192-cbc",
    "aes-256-cbc",
    "aes-128-ecb",
    "aes-192-ecb",
    "aes-256-ecb",
];

/// Cipher, key and IV of a command line.
fn options(cipher: &str) -> String {
    let bits: usize = cipher[4..7].parse().unwrap();
    let iv = match cipher.ends_with("ecb") {
        true => String::new(),
        false => format!("-iv {IV}"),
    };
    format!("enc -{cipher} -K {} {iv}", &HEX[..bits / 4])
}

#[test]
fn files_are_the_same_as_openssl_makes_them_and_come_back() {
    let place = Place::new();
    let everything = data((1 << 20) + 3);
    for cipher in CIPHERS {
        let options = options(cipher);
        for size in [0, 1, 15, 16, 17, (1 << 20) + 3] {
            let input = place.write("in", &everything[..size]);
            run(
                &mut place.openssl(&format!("{options} -in in -out theirs")),
                0,
            );
            run(
                &mut place.cipherlane(&format!("{options} -in in -out ours")),
                0,
            );
            assert!(
                same(&place.path("ours"), &place.path("theirs")),
                "{cipher}, {size} bytes"
            );
            run(
                &mut place.cipherlane(&format!("{options} -d -in theirs -out back")),
                0,
            );
            assert!(
                same(&place.path("back"), &input),
                "{cipher} decrypting, {size} bytes"
            );
        }
        // A whole number of chunks and of blocks, with and without padding.
        place.write("in", &everything[..1 << 20]);
        for padding in ["", "-nopad"] {
            let options = format!("{options} {padding}");
            run(
                &mut place.openssl(&format!("{options} -in in -out theirs")),
                0,
            );
            run(
                &mut place.cipherlane(&format!("{options} -in in -out ours")),
                0,
            );
            assert!(
                same(&place.path("ours"), &place.path("theirs")),
                "{cipher} {padding}"
            );
            run(
                &mut place.cipherlane(&format!("{options} -d -in ours -out back")),
                0,
            );
            assert!(
                same(&place.path("back"), &place.path("in")),
                "{cipher} {padding}"
            );
        }
    }
}

#[test]
fn streams_are_the_same_as_files() {
    let place = Place::new();
    let plain = data((3 << 20) + 5);
    place.write("in", &plain);
    for cipher in ["aes-128-ctr", "aes-256-cbc", "aes-192-ecb"] {
        let options = options(cipher);
        run(
            &mut place.openssl(&format!("{options} -in in -out theirs")),
            0,
        );
        let theirs = std::fs::read(place.path("theirs")).unwrap();
        // From a file to a pipe.
        let output = run(&mut place.cipherlane(&format!("{options} -in in")), 0);
        assert!(output.stdout == theirs, "{cipher}, to a pipe");
        for (direction, input, want) in [("-e", &plain, &theirs), ("-d", &theirs, &plain)] {
            // From a pipe to a pipe, in uneven pieces.
            let mut child = place
                .cipherlane(&format!("{options} {direction}"))
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let mut stdin = child.stdin.take().unwrap();
            let output = std::thread::scope(|scope| {
                scope.spawn(move || {
                    for piece in input.chunks(70_001) {
                        stdin.write_all(piece).unwrap();
                    }
                });
                child.wait_with_output().unwrap()
            });
            assert!(
                output.status.success() && output.stdout == *want,
                "{cipher} {direction}"
            );
        }
    }
}

#[test]
fn a_file_of_256_mb_is_the_same() {
    let place = Place::new();
    place.write("in", data(256_000_001));
    let options = options("aes-128-ctr");
    run(
        &mut place.openssl(&format!("{options} -in in -out theirs")),
        0,
    );
    run(
        &mut place.cipherlane(&format!("{options} -in in -out ours")),
        0,
    );
    assert!(same(&place.path("ours"), &place.path("theirs")));
    run(
        &mut place.cipherlane(&format!("--cores 0 {options} -d -in ours -out ours")),
        0,
    );
    assert!(
        same(&place.path("ours"), &place.path("in")),
        "in place, on a dedicated core"
    );
}

#[test]
fn warnings_and_keys_are_printed_as_openssl_prints_them() {
    let place = Place::new();
    place.write("in", "hello");
    for line in [
        "enc -aes-128-cbc -K 0a0B -iv 01 -in in -p -nosalt -out",
        "enc -AES-192-CTR -K 0a0 -iv 0 -in in -p -nosalt -out",
        "enc -aes-256-ecb -K 12 -iv 34 -in in -p -nosalt -out",
        "enc -aes128 -d -e -K 1 -K 2 -iv 1 -in in -p -nosalt -out",
    ] {
        let ours = run(&mut place.cipherlane(&format!("{line} ours")), 0);
        let theirs = run(&mut place.openssl(&format!("{line} theirs")), 0);
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        assert_eq!(text(ours.stdout), text(theirs.stdout), "{line}");
        assert_eq!(text(ours.stderr), text(theirs.stderr), "{line}");
        assert!(same(&place.path("ours"), &place.path("theirs")), "{line}");
    }
    let printed = run(
        &mut place.cipherlane("enc -aes-128-ctr -P -K 01 -iv 02 -out none"),
        0,
    );
    assert!(printed.stdout.starts_with(b"key=0100") && !place.path("none").exists());
}
