//! Judged by gost-engine: GOST 28147-89 in ECB, CFB and CNT with and without key meshing,
//! and IMIT with it; Magma in ECB and CTR; Kuznyechik in ECB and CTR.
//!
//! It has no ECB of the ciphers with small blocks: that is read off their CBC.

use std::ffi::CStr;

use cipherlane_kernels::gost28147::{Sbox, cfb, cnt, ecb, imit};
use cipherlane_kernels::job::Direction;
use cipherlane_kernels::kuznyechik::{self, KuznyechikKey};
use cipherlane_kernels::magma::{self, MagmaKey};
use proptest::prelude::*;

use crate::engine::engine;
use crate::{Message, Mode, batches, expand, imits, skipped, through};

/// The sets that it knows.
fn sets() -> [(Sbox, &'static CStr); 5] {
    [
        (
            Sbox::crypto_pro_a(),
            c"id-Gost28147-89-CryptoPro-A-ParamSet",
        ),
        (
            Sbox::crypto_pro_b(),
            c"id-Gost28147-89-CryptoPro-B-ParamSet",
        ),
        (
            Sbox::crypto_pro_c(),
            c"id-Gost28147-89-CryptoPro-C-ParamSet",
        ),
        (
            Sbox::crypto_pro_d(),
            c"id-Gost28147-89-CryptoPro-D-ParamSet",
        ),
        (Sbox::param_z(), c"id-tc26-gost-28147-param-Z"),
    ]
}

/// What ECB has to encrypt, and to what, if CBC with blocks of eight bytes makes this of
/// the message.
fn ecb_in_cbc(message: &Message, cbc: &[u8]) -> Vec<u8> {
    let before = message.iv[..8].iter().chain(cbc);
    let plain = message.whole(8).iter().zip(before);
    plain.map(|(plain, before)| plain ^ before).collect()
}

#[test]
fn gost_engine_gives_the_same() {
    let Some(engine) = engine() else {
        return skipped("gost-engine");
    };
    let config = ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(16)
    };
    let theirs = |name: &CStr, set, message: &Message, data: &[u8]| {
        let mut data = data.to_vec();
        let mut cipher = engine.cipher(name, set, &message.key);
        let iv = (name != c"kuznyechik-ecb").then_some(&message.iv);
        cipher.encrypt(iv, &mut data);
        data
    };
    proptest!(config, |(mut messages in batches())| {
        for (sbox, name) in &sets() {
            let modes: [(_, _, Mode<_>); 4] = [
                (c"gost89", false, cfb::encrypt),
                (c"gost89", true, cfb::encrypt_meshed),
                (c"gost89-cnt", false, cnt::apply),
                (c"gost89-cnt", true, cnt::apply_meshed),
            ];
            for (cipher, meshed, mode) in modes {
                let ours = through(&messages, 1, |key| expand(key, sbox), mode);
                for (message, ours) in messages.iter().zip(ours) {
                    let theirs = theirs(cipher, Some((name, meshed)), message, &message.data);
                    prop_assert_eq!(ours, theirs, "{:?} {} {:?}", cipher, meshed, name);
                }
            }
            let ours = imits(&messages, sbox, imit::mac_meshed);
            for (message, ours) in messages.iter().zip(ours) {
                let theirs = engine.imit(name, &message.key).mac(&message.data);
                prop_assert_eq!(ours, theirs, "IMIT {:?}", name);
            }
            let chained: Vec<_> = messages
                .iter()
                .map(|m| theirs(c"gost89-cbc", Some((name, false)), m, m.whole(8)))
                .collect();
            let single = messages.iter().zip(&chained).map(|(m, cbc)| Message {
                data: ecb_in_cbc(m, cbc),
                ..m.clone()
            });
            let single: Vec<_> = single.collect();
            let ours = through(&single, 8, |key| expand(key, sbox), ecb::encrypt);
            prop_assert_eq!(ours, chained, "ECB {:?}", name);
        }

        let magma = |key: &[u8; 32]| MagmaKey::new(key).expect("32 bytes");
        let chained: Vec<_> =
            messages.iter().map(|m| theirs(c"magma-cbc", None, m, m.whole(8))).collect();
        let single = messages.iter().zip(&chained).map(|(m, cbc)| Message {
            data: ecb_in_cbc(m, cbc),
            ..m.clone()
        });
        let single: Vec<_> = single.collect();
        let ours = through(&single, 8, magma, |jobs| magma::ecb(Direction::Encrypt, jobs));
        prop_assert_eq!(ours, chained, "ECB of Magma");

        let kuznyechik = |key: &[u8; 32]| KuznyechikKey::new(key).expect("32 bytes");
        let ecb: Mode<_> = |jobs| kuznyechik::ecb(Direction::Encrypt, jobs);
        for (message, ours) in messages.iter().zip(through(&messages, 16, kuznyechik, ecb)) {
            let theirs = theirs(c"kuznyechik-ecb", None, message, message.whole(16));
            prop_assert_eq!(ours, theirs, "ECB of Kuznyechik");
        }

        // IVs of half a block, over zeros.
        messages.iter_mut().for_each(|m| m.iv[4..].fill(0));
        for (message, ours) in messages.iter().zip(through(&messages, 1, magma, magma::ctr)) {
            let theirs = theirs(c"magma-ctr", None, message, &message.data);
            prop_assert_eq!(ours, theirs, "CTR of Magma");
        }
        for (message, ours) in messages.iter().zip(through(&messages, 1, kuznyechik, kuznyechik::ctr)) {
            let theirs = theirs(c"kuznyechik-ctr", None, message, &message.data);
            prop_assert_eq!(ours, theirs, "CTR of Kuznyechik");
        }
    });
}
