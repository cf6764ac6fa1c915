//! What is wrong is refused with an entry on the error queue, and nothing crashes.

use crate::libcrypto::{Context, OURS, Placed, Refused};
use crate::sequences::CIPHERS;

#[track_caller]
fn refused<T: std::fmt::Debug>(result: Result<T, Refused>, words: &str) {
    match result {
        Err(Refused(said)) => assert!(said.contains(words), "{said:?} for {words:?}"),
        Ok(done) => panic!("{done:?} for {words:?}"),
    }
}

fn context(name: &str) -> Context {
    // The cipher is counted by what it is used in.
    OURS.cipher(name).context()
}

fn begun(name: &str, encrypt: bool) -> Context {
    let cipher = OURS.cipher(name);
    let mut context = cipher.context();
    let key: Vec<u8> = (0..cipher.key_len() as u8).collect();
    context
        .init(encrypt, Some(&key), Some(&vec![9; cipher.iv_len()]))
        .unwrap();
    context
}

#[test]
fn data_without_a_key() {
    for name in [
        "AES-128-ECB",
        "AES-192-CBC",
        "AES-256-CTR",
        "AES-128-GCM",
        "AES-256-XTS",
        "ChaCha20-Poly1305",
    ] {
        refused(context(name).update(&[0; 16]), "no key set");
    }
    refused(context("AES-128-CBC-CTS").update(&[0; 16]), "");
    for name in [
        "AES-128-ECB",
        "AES-192-CBC",
        "AES-256-CTR",
        "ChaCha20-Poly1305",
    ] {
        refused(context(name).finish(), "no key set");
    }
}

#[test]
fn data_without_an_iv() {
    let mut xts = context("AES-128-XTS");
    let key: Vec<u8> = (0..32).collect();
    xts.init(true, Some(&key), None).unwrap();
    refused(xts.update(&[0; 16]), "no iv set");
    let mut gcm = context("AES-128-GCM");
    gcm.init(false, Some(&[1; 16]), None).unwrap();
    refused(gcm.update(&[0; 16]), "no iv set");
    let mut chacha = context("ChaCha20-Poly1305");
    chacha.init(true, Some(&[1; 32]), None).unwrap();
    refused(chacha.update(&[0; 16]), "no iv set");
    refused(chacha.aad(&[0; 16]), "no iv set");
    refused(chacha.finish(), "no iv set");
}

#[test]
fn wrong_lengths() {
    let mut gcm = context("AES-128-GCM");
    refused(gcm.set_iv_length(0), "");
    refused(gcm.set_iv_length(129), "");
    refused(begun("AES-128-GCM", false).set_tag(&[0; 17]), "");
    refused(begun("AES-128-GCM", false).set_tag(&[]), "");
    refused(begun("ChaCha20-Poly1305", false).set_tag(&[0; 17]), "");
    refused(begun("ChaCha20-Poly1305", false).set_tag(&[]), "");
    let mut chacha = context("ChaCha20-Poly1305");
    refused(chacha.set_iv_length(11), "invalid iv length");
    refused(chacha.set_iv_length(16), "invalid iv length");
    refused(begun("AES-128-XTS", true).update(&[0; 15]), "");
    refused(begun("AES-128-CBC-CTS", true).update(&[0; 15]), "");
    let mut cbc = begun("AES-128-CBC", true);
    cbc.set_padding(false);
    cbc.update(&[0; 17]).unwrap();
    refused(cbc.finish(), "wrong final block length");
    let mut cbc = begun("AES-128-CBC", false);
    cbc.update(&[0; 17]).unwrap();
    refused(cbc.finish(), "wrong final block length");
    refused(
        begun("AES-128-CBC", false).finish(),
        "wrong final block length",
    );
}

#[test]
fn wrong_padding() {
    let mut cbc = begun("AES-128-CBC", false);
    assert_eq!(cbc.update(&[0; 16]), Ok(vec![]));
    refused(cbc.finish(), "bad decrypt");
}

#[test]
fn equal_halves_of_a_key_for_xts() {
    let mut xts = context("AES-128-XTS");
    refused(
        xts.init(true, Some(&[1; 32]), Some(&[0; 16])),
        "xts duplicated keys",
    );
}

const WITH_TAG: [&str; 2] = ["AES-128-GCM", "ChaCha20-Poly1305"];

#[test]
fn a_tag_that_comes_never_late_or_wrong() {
    for name in WITH_TAG {
        let mut sealing = begun(name, true);
        let data = sealing.update(b"something").unwrap();
        refused(sealing.tag(16), "");
        sealing.finish().unwrap();
        let tag = sealing.tag(16).unwrap();
        refused(sealing.set_tag(&tag), "");
        refused(sealing.tag(17), "");
        refused(sealing.tag(0), "");

        let mut never = begun(name, false);
        never.update(&data).unwrap();
        refused(never.finish(), "");

        for late in [false, true] {
            for len in 1..=16 {
                let mut right = begun(name, false);
                if !late {
                    right.set_tag(&tag[..len]).unwrap();
                }
                right.update(&data).unwrap();
                if late {
                    right.set_tag(&tag[..len]).unwrap();
                }
                assert_eq!(right.finish(), Ok(vec![]));
            }
        }

        for bit in 0..128 {
            let mut tag = tag.clone();
            tag[bit / 8] ^= 1 << (bit % 8);
            let mut wrong = begun(name, false);
            wrong.update(&data).unwrap();
            wrong.set_tag(&tag).unwrap();
            // Programs know a forged message by an empty queue.
            assert_eq!(wrong.finish(), Err(Refused(String::new())));
        }
    }
}

#[test]
fn pieces_after_the_end_and_headers_after_data() {
    let mut gcm = begun("AES-128-GCM", true);
    gcm.update(&[0; 5]).unwrap();
    refused(gcm.aad(&[0; 5]), "");
    gcm.finish().unwrap();
    refused(gcm.update(&[0; 5]), "");
    refused(gcm.finish(), "");
    gcm.init(true, None, Some(&[8; 12])).unwrap();
    gcm.update(&[0; 5]).unwrap();
    for mut chacha in [true, false].map(|encrypt| begun("ChaCha20-Poly1305", encrypt)) {
        chacha.update(&[0; 5]).unwrap();
        refused(chacha.aad(&[0; 5]), "");
    }
}

/// It would tell both messages' data. The default provider takes it.
#[test]
fn a_second_message_under_the_same_iv() {
    for name in WITH_TAG {
        for encrypt in [true, false] {
            let mut context = begun(name, encrypt);
            context.aad(&[0; 5]).unwrap();
            context.update(&[0; 5]).unwrap();
            if !encrypt {
                context.set_tag(&[0; 16]).unwrap();
            }
            let ended = context.finish();
            assert_eq!(ended.is_ok(), encrypt);
            refused(context.update(&[0; 5]), "no iv set");
            refused(context.aad(&[0; 5]), "no iv set");
            refused(context.finish(), "");
            // The key alone does not make it another.
            let key: Vec<u8> = (0..OURS.cipher(name).key_len() as u8).collect();
            context.init(encrypt, Some(&key), None).unwrap();
            refused(context.update(&[0; 5]), "no iv set");
            context.init(encrypt, None, Some(&[8; 12])).unwrap();
            context.update(&[0; 5]).unwrap();
        }
    }
}

/// The first record's nonce is what all of them are counted from.
#[test]
fn a_message_under_the_iv_of_records() {
    let mut chacha = context("ChaCha20-Poly1305");
    chacha.init(true, Some(&[1; 32]), None).unwrap();
    chacha.set_fixed_iv(&[2; 12]).unwrap();
    for number in 0..2 {
        let header = [0, 0, 0, 0, 0, 0, 0, number, 0x17, 3, 3, 0, 4];
        chacha.announce(&header).unwrap();
        chacha.update(&[0; 20]).unwrap();
        refused(chacha.update(&[0; 20]), "no iv set");
    }
}

/// A counter goes on from what the program gave, which a message has used without it.
#[test]
fn an_iv_counted_from_one_that_was_used() {
    let mut gcm = begun("AES-128-GCM", true);
    gcm.restore_iv(&[7; 12]).unwrap();
    gcm.update(&[0; 5]).unwrap();
    gcm.finish().unwrap();
    refused(gcm.generate_iv(8), "iv was used up");
}

#[test]
fn a_length_below_zero() {
    for name in CIPHERS {
        let mut context = begun(name, true);
        for len in [-1, -16, i32::MIN] {
            let reply = context.any_update(false, Placed::Apart, &[], len);
            assert!(reply.returned == 0, "{name} {len}");
        }
    }
}

#[test]
fn a_data_unit_of_xts_that_is_too_long() {
    let longest = vec![7; 1 << 24];
    assert_eq!(
        begun("AES-128-XTS", true)
            .update(&longest)
            .map(|sealed| sealed.len()),
        Ok(1 << 24)
    );
    let longer = vec![7; (1 << 24) + 1];
    refused(
        begun("AES-128-XTS", true).update(&longer),
        "xts data unit is too large",
    );
}

/// The default provider writes to the null pointer.
#[test]
fn data_with_nowhere_to_go() {
    for name in ["AES-128-ECB", "AES-192-CBC", "AES-256-CTR", "AES-128-XTS"] {
        refused(begun(name, true).aad(&[0; 32]), "output buffer too small");
    }
    let mut stealing = begun("AES-128-CBC-CTS", true);
    stealing.aad(&[0; 32]).unwrap();
    stealing.update(&[0; 32]).unwrap();
}

#[test]
fn a_wrong_length_of_key() {
    for name in [
        "AES-128-ECB",
        "AES-192-CBC",
        "AES-256-CTR",
        "AES-128-GCM",
        "AES-128-XTS",
        "ChaCha20-Poly1305",
    ] {
        let mut context = context(name);
        for len in [0, 8, 15, 17, 33, 48, 65, 1 << 20] {
            refused(context.set_key_length(len), "");
        }
    }
}

#[test]
fn neither_key_nor_iv_nor_data() {
    for name in [
        "AES-128-ECB",
        "AES-192-CBC",
        "AES-256-CTR",
        "AES-128-GCM",
        "ChaCha20-Poly1305",
    ] {
        let mut context = begun(name, true);
        context.init(true, None, None).unwrap();
        for output in [true, false] {
            assert_eq!(context.update_with_nothing(output), Ok(vec![]), "{name}");
        }
    }
}
