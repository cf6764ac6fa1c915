//! GOST 28147-89: ECB, CNT and CFB both ways, with key meshing and without, the MAC, and the
//! diversification of keys; S-boxes of many kinds in one batch.
#![no_main]

use cipherlane_kernels::gost28147::diversify::{Diversify, diversify};
use cipherlane_kernels::gost28147::{Key, Sbox, cfb, cnt, ecb, imit};
use cipherlane_kernels::job::{CipherJob, Direction};
use cipherlane_kernels::naive;
use fuzz::{Batch, Message, Place, check, check_macs};
use libfuzzer_sys::fuzz_target;

fn sbox(m: &Message) -> Sbox {
    let named = [
        Sbox::param_z,
        Sbox::crypto_pro_a,
        Sbox::crypto_pro_b,
        Sbox::crypto_pro_c,
        Sbox::crypto_pro_d,
    ];
    match named.get(m.choice() % 6) {
        Some(named) => named(),
        // The same rows in the reverse order: a set of one's own.
        None => {
            let mut rows = *Sbox::param_z().rows();
            rows.reverse();
            Sbox::custom(&rows).expect("permutations")
        }
    }
}

fn key(m: &Message) -> Key {
    Key::new(m.key_32(), &sbox(m)).expect("32 bytes")
}

fn ciphers(
    messages: &[Message],
    run: fn(&mut [CipherJob<'_, Key>]),
    expected: impl Fn(&[[u8; 16]; 8], &Message) -> Vec<u8>,
) {
    check(
        messages,
        key,
        |places| {
            let mut jobs: Vec<_> = places.iter_mut().map(Place::cipher).collect();
            run(&mut jobs);
            vec![Vec::new(); jobs.len()]
        },
        |m| (expected(sbox(m).rows(), m), Vec::new()),
    );
}

fuzz_target!(|input: (u8, Batch)| {
    let (mode, batch) = input;
    let encrypts = batch.direction() == Direction::Encrypt;
    let messages = batch.messages(|len| len);
    let meshed = mode & 1 == 1;
    match mode >> 1 & 3 {
        0 => {
            let blocks = batch.messages(|len| len & !7);
            match encrypts {
                true => ciphers(&blocks, ecb::encrypt, |rows, m| {
                    naive::gost28147_ecb_encrypt(rows, m.key_32(), &m.data)
                }),
                false => ciphers(&blocks, ecb::decrypt, |rows, m| {
                    naive::gost28147_ecb_decrypt(rows, m.key_32(), &m.data)
                }),
            }
        }
        1 => ciphers(
            &messages,
            [cnt::apply, cnt::apply_meshed][usize::from(meshed)],
            |rows, m| naive::gost28147_cnt(rows, m.key_32(), &m.iv[..8], &m.data, meshed),
        ),
        2 if encrypts => ciphers(
            &messages,
            [cfb::encrypt, cfb::encrypt_meshed][usize::from(meshed)],
            |rows, m| naive::gost28147_cfb_encrypt(rows, m.key_32(), &m.iv[..8], &m.data, meshed),
        ),
        2 => ciphers(
            &messages,
            [cfb::decrypt, cfb::decrypt_meshed][usize::from(meshed)],
            |rows, m| naive::gost28147_cfb_decrypt(rows, m.key_32(), &m.iv[..8], &m.data, meshed),
        ),
        _ => {
            let run = [imit::mac, imit::mac_meshed][usize::from(meshed)];
            check_macs(&messages, key, run, |m| {
                let whole = [&m.aad[..], &m.data].concat();
                naive::gost28147_imit(sbox(m).rows(), m.key_32(), &whole, meshed).to_vec()
            });
            diversified(&messages);
        }
    }
});

fn diversified(messages: &[Message]) {
    let d = |m: &Message| m.iv[..8].try_into().expect("8 bytes");
    let keys: Vec<Key> = messages.iter().map(key).collect();
    let mut derived: Vec<Key> = messages.iter().map(key).collect();
    let mut jobs: Vec<_> = keys
        .iter()
        .zip(messages)
        .zip(&mut derived)
        .map(|((key, m), derived)| Diversify {
            key,
            d: d(m),
            derived,
        })
        .collect();
    diversify(&mut jobs);
    for (derived, m) in derived.iter().zip(messages) {
        let expected = naive::gost28147_divers(sbox(m).rows(), m.key_32(), d(m));
        assert_eq!(derived.bytes(), expected);
    }
}
