//! HMAC over SHA-256 and SHA-512, with keys of any length, and the hashes alone.
#![no_main]

use cipherlane_kernels::hmac::{self, HmacSha256Key, HmacSha512Key};
use cipherlane_kernels::{naive, sha2};
use fuzz::{Batch, Message, check_macs};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|batch: Batch| {
    let messages = batch.messages(|len| len);
    let whole = |m: &Message| [&m.aad[..], &m.data].concat();
    check_macs(
        &messages,
        |m| HmacSha256Key::new(&m.any_key()),
        hmac::sha256,
        |m| naive::hmac_sha256(&m.any_key(), &whole(m)).to_vec(),
    );
    check_macs(
        &messages,
        |m| HmacSha512Key::new(&m.any_key()),
        hmac::sha512,
        |m| naive::hmac_sha512(&m.any_key(), &whole(m)).to_vec(),
    );
    let none = |_: &Message| ();
    check_macs(&messages, none, sha2::sha256, |m| {
        naive::sha256(&whole(m)).to_vec()
    });
    check_macs(&messages, none, sha2::sha512, |m| {
        naive::sha512(&whole(m)).to_vec()
    });
});
