//! The provider under valgrind's memcheck: it reads and writes no byte beyond what it was
//! given, looks at none that was never written, and loses no memory.

use std::io::{ErrorKind, Write};
use std::process::Command;

use crate::differential::{CIPHERS, has_tag};
use crate::libcrypto::{Cipher, OURS};

const LENGTHS: [usize; 22] = [
    0, 1, 15, 16, 17, 31, 32, 33, 63, 64, 65, 95, 127, 128, 129, 255, 257, 511, 513, 1400, 4096,
    5000,
];

fn message(cipher: &Cipher, tag: bool, encrypt: bool, data: &[u8], piece: usize, in_place: bool) {
    let mut context = cipher.context();
    let key: Vec<u8> = (0..cipher.key_len() as u8).collect();
    let iv = vec![9; cipher.iv_len()];
    // The key first and the IV later, as many programs do.
    context.init(encrypt, Some(&key), None).unwrap();
    context.init(encrypt, None, Some(&iv)).unwrap();
    if tag {
        context.aad(&data[..data.len() / 3]).unwrap();
    }
    for piece in data.chunks(piece) {
        // Data that is too short, or a second call where there may be one, is refused.
        let _ = match in_place {
            true => context.update_in_place(piece),
            false => context.update(piece),
        };
        context = context.duplicate();
    }
    if tag && !encrypt {
        context.set_tag(&[1; 12]).unwrap();
    }
    let _ = context.finish();
    if tag && encrypt {
        context.tag(16).unwrap();
    }
}

#[test]
#[ignore = "what the test below runs under valgrind"]
fn messages_of_every_cipher() {
    for name in CIPHERS.into_iter().chain(["AES-192-CBC-CTS"]) {
        let cipher = OURS.cipher(name);
        for (i, len) in LENGTHS.into_iter().enumerate() {
            let data = vec![i as u8; len];
            for piece in [usize::MAX, 100] {
                for encrypt in [true, false] {
                    message(&cipher, has_tag(name), encrypt, &data, piece, i % 2 == 0);
                }
            }
        }
    }
}

#[test]
fn memcheck_finds_nothing() {
    let checked = Command::new("valgrind")
        .args(["-q", "--error-exitcode=9", "--leak-check=full"])
        .args(["--errors-for-leak-kinds=definite,indirect"])
        .args(["--show-leak-kinds=definite,indirect"])
        .arg(std::env::current_exe().unwrap())
        .args(["--include-ignored", "--test-threads=1", "--exact"])
        .args([
            "memcheck::messages_of_every_cipher",
            "sequences::nothing_crashes",
            "stealing::wrong_use_is_refused",
            "refusals::wrong_lengths",
            "refusals::data_with_nowhere_to_go",
        ])
        .env("PROPTEST_CASES", "60")
        .output();
    let output = match checked {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            // To the stream itself: the harness keeps what a test that passes prints.
            let message = b"SKIPPED: memcheck_finds_nothing: valgrind is not installed\n";
            return std::io::stderr().write_all(message).unwrap();
        }
        output => output.unwrap(),
    };
    let (said, found) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{said}{found}");
    assert!(said.contains("5 passed"), "{said}{found}");
}
