//! Every kernel, alone and in batches, over secret keys and secret data. What comes out
//! is compared with the reference, so that nothing passes by not having run.
//!
//! Lengths and IVs are public. Additional data is made secret too, though it need not be.

mod aead;
mod aes;
mod gost;
mod harness;
mod keys;

use cipherlane_kernels::hmac::{self, HmacSha256Key, HmacSha512Key};
use cipherlane_kernels::{cpu, naive, sha2};

use harness::{Message, any, check, mac, messages, packets};

pub(crate) fn run() {
    println!("features: {}", cpu::features().join(" "));
    aes::run();
    aead::run();
    macs();
    gost::run();
}

/// HMAC, and the hashes below it.
fn macs() {
    // The last two are longer than the block of either hash.
    let messages = messages(&[32, 64, 65, 129], any);
    let whole = |m: &Message| [&m.aad[..], &m.data].concat();
    check(
        &messages,
        |key| Some(HmacSha256Key::new(key)),
        |m| {
            (
                m.data.clone(),
                naive::hmac_sha256(&m.key, &whole(m)).to_vec(),
            )
        },
        |hidden| mac(hidden, 32, hmac::sha256),
    );
    for len in [40, 300] {
        check(
            &packets(&[len; 11], 32),
            |key| Some(HmacSha256Key::new(key)),
            |m| {
                (
                    m.data.clone(),
                    naive::hmac_sha256(&m.key, &whole(m)).to_vec(),
                )
            },
            |hidden| mac(hidden, 32, hmac::sha256),
        );
    }
    check(
        &messages,
        |key| Some(HmacSha512Key::new(key)),
        |m| {
            (
                m.data.clone(),
                naive::hmac_sha512(&m.key, &whole(m)).to_vec(),
            )
        },
        |hidden| mac(hidden, 64, hmac::sha512),
    );
    check(
        &messages,
        |_| Some(()),
        |m| (m.data.clone(), naive::sha256(&whole(m)).to_vec()),
        |hidden| mac(hidden, 32, sha2::sha256),
    );
    check(
        &messages,
        |_| Some(()),
        |m| (m.data.clone(), naive::sha512(&whole(m)).to_vec()),
        |hidden| mac(hidden, 64, sha2::sha512),
    );
}
