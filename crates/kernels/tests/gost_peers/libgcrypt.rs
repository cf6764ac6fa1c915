//! Judged by libgcrypt: GOST 28147-89 in ECB, CFB with and without key meshing, and IMIT.

use std::ffi::CStr;

use cipherlane_kernels::gost28147::{Sbox, cfb, ecb, imit};
use proptest::prelude::*;

use crate::gcrypt::{CFB, CIPHERS, ECB, gcrypt};
use crate::{Message, Mode, batches, expand, imits, skipped, through};

/// The sets that it knows, by object identifier.
fn sets() -> [(Sbox, &'static CStr); 5] {
    [
        (Sbox::crypto_pro_a(), c"1.2.643.2.2.31.1"),
        (Sbox::crypto_pro_b(), c"1.2.643.2.2.31.2"),
        (Sbox::crypto_pro_c(), c"1.2.643.2.2.31.3"),
        (Sbox::crypto_pro_d(), c"1.2.643.2.2.31.4"),
        (Sbox::param_z(), c"1.2.643.7.1.2.5.1.1"),
    ]
}

#[test]
fn libgcrypt_gives_the_same() {
    let Some(gcrypt) = gcrypt() else {
        return skipped("libgcrypt");
    };
    let config = ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(24)
    };
    proptest!(config, |(messages in batches())| {
        for (sbox, oid) in &sets() {
            let ours = through(&messages, 8, |key| expand(key, sbox), ecb::encrypt);
            for (message, ours) in messages.iter().zip(ours) {
                let mut theirs = message.whole(8).to_vec();
                gcrypt.cipher(CIPHERS[0], ECB, oid, &message.key).encrypt(None, &mut theirs);
                prop_assert_eq!(ours, theirs, "ECB {:?}", oid);
            }
            let modes: [Mode<_>; 2] = [cfb::encrypt, cfb::encrypt_meshed];
            for (cipher, mode) in CIPHERS.into_iter().zip(modes) {
                let ours = through(&messages, 1, |key| expand(key, sbox), mode);
                for (message, ours) in messages.iter().zip(ours) {
                    let mut theirs = message.data.clone();
                    let mut cipher = gcrypt.cipher(cipher, CFB, oid, &message.key);
                    cipher.encrypt(Some(&message.iv[..8]), &mut theirs);
                    prop_assert_eq!(ours, theirs, "CFB {:?}", oid);
                }
            }
        }
        // It does not compute the MAC of nothing.
        let messages: Vec<Message> =
            messages.into_iter().filter(|m| !m.data.is_empty()).collect();
        let ours = imits(&messages, &Sbox::crypto_pro_a(), imit::mac);
        for (message, ours) in messages.iter().zip(ours) {
            prop_assert_eq!(ours, gcrypt.imit(&message.key).mac(&message.data));
        }
    });
}
