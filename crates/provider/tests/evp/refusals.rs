//! What is wrong is refused with an entry on the error queue, and nothing crashes.

use crate::libcrypto::{Context, Lib, Refused};

#[track_caller]
fn refused<T: std::fmt::Debug>(result: Result<T, Refused>, words: &str) {
    match result {
        Err(Refused(said)) => assert!(said.contains(words), "{said:?} for {words:?}"),
        Ok(done) => panic!("{done:?} for {words:?}"),
    }
}

fn context(name: &str) -> Context {
    // The cipher is counted by what it is used in.
    Lib::ours().cipher(name).context()
}

fn begun(name: &str, encrypt: bool) -> Context {
    let lib = Lib::ours();
    let cipher = lib.cipher(name);
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
    ] {
        refused(context(name).update(&[0; 16]), "no key set");
    }
    for name in ["AES-128-ECB", "AES-192-CBC", "AES-256-CTR"] {
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
}

#[test]
fn wrong_lengths() {
    let mut gcm = context("AES-128-GCM");
    refused(gcm.set_iv_length(0), "");
    refused(gcm.set_iv_length(129), "");
    refused(begun("AES-128-GCM", false).set_tag(&[0; 17]), "");
    refused(begun("AES-128-GCM", false).set_tag(&[]), "");
    refused(begun("AES-128-XTS", true).update(&[0; 15]), "");
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

#[test]
fn a_tag_that_comes_never_late_or_wrong() {
    let mut sealing = begun("AES-128-GCM", true);
    let data = sealing.update(b"something").unwrap();
    refused(sealing.tag(16), "");
    sealing.finish().unwrap();
    let tag = sealing.tag(16).unwrap();
    refused(sealing.set_tag(&tag), "");

    let mut never = begun("AES-128-GCM", false);
    never.update(&data).unwrap();
    refused(never.finish(), "");

    let mut late = begun("AES-128-GCM", false);
    late.update(&data).unwrap();
    late.set_tag(&tag).unwrap();
    assert_eq!(late.finish(), Ok(vec![]));

    let mut wrong = begun("AES-128-GCM", false);
    wrong.update(&data).unwrap();
    wrong.set_tag(&[0; 16]).unwrap();
    refused(wrong.finish(), "");
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
}
