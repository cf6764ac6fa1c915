//! The modes of AES that are no AEADs.

use cipherlane_kernels::aes::AesKey;
use cipherlane_kernels::job::CipherJob;
use cipherlane_kernels::job::Direction::{Decrypt, Encrypt};
use cipherlane_kernels::xts::{self, XtsKey};
use cipherlane_kernels::{cbc, ctr, ecb, naive};
use inout::InOutBuf;

use super::harness::{
    Hidden, LONG, Message, Reference, any, blocks, check, jobs, messages, messages_of,
};
use crate::watch::{kernel, piece};

pub(super) fn run() {
    block_modes();
    next_parts();
    xts_units();
}

fn block_modes() {
    #[track_caller]
    fn cipher(messages: &[Message], run: fn(&mut [CipherJob<'_, AesKey>]), expected: Reference) {
        check(messages, AesKey::new, expected, |hidden| {
            let mut jobs = jobs(hidden, Hidden::cipher);
            kernel(|| run(&mut jobs));
            Vec::new()
        });
    }
    let keys = [16, 24, 32];
    let whole = &messages(&keys, blocks);
    cipher(
        whole,
        |jobs| ecb::crypt(Encrypt, jobs),
        |m| (naive::ecb_encrypt(&m.key, &m.data), vec![]),
    );
    cipher(
        whole,
        |jobs| ecb::crypt(Decrypt, jobs),
        |m| (naive::ecb_decrypt(&m.key, &m.data), vec![]),
    );
    cipher(whole, cbc::encrypt, |m| {
        (naive::cbc_encrypt(&m.key, &m.iv, &m.data), vec![])
    });
    cipher(whole, cbc::decrypt, |m| {
        (naive::cbc_decrypt(&m.key, &m.iv, &m.data), vec![])
    });
    for messages in [messages(&keys, any), messages_of(&LONG, &keys)] {
        cipher(&messages, ctr::apply, |m| {
            (naive::ctr_apply(&m.key, &m.iv, &m.data), vec![])
        });
    }
}

/// Messages part by part, as calls of a stream bring them.
fn next_parts() {
    #[track_caller]
    fn by_parts(
        fit: fn(usize) -> bool,
        part: fn(&AesKey, &mut [u8; 16], InOutBuf<'_, '_, u8>),
        expected: Reference,
    ) {
        check(
            &messages(&[16, 24, 32], fit),
            AesKey::new,
            expected,
            |hidden| {
                for hidden in hidden {
                    let CipherJob { key, mut iv, data } = hidden.cipher();
                    let len = data.len().min(48);
                    let (first, second) = data.split_at(len);
                    for data in [first, second] {
                        piece(data.len(), || part(key, &mut iv, data));
                    }
                }
                Vec::new()
            },
        );
    }
    by_parts(
        blocks,
        |key, _, data| ecb::crypt_one(Encrypt, key, data),
        |m| (naive::ecb_encrypt(&m.key, &m.data), vec![]),
    );
    by_parts(
        blocks,
        |key, _, data| ecb::crypt_one(Decrypt, key, data),
        |m| (naive::ecb_decrypt(&m.key, &m.data), vec![]),
    );
    by_parts(blocks, cbc::encrypt_one, |m| {
        (naive::cbc_encrypt(&m.key, &m.iv, &m.data), vec![])
    });
    by_parts(blocks, cbc::decrypt_one, |m| {
        (naive::cbc_decrypt(&m.key, &m.iv, &m.data), vec![])
    });
    by_parts(any, ctr::apply_one, |m| {
        (naive::ctr_apply(&m.key, &m.iv, &m.data), vec![])
    });
}

fn xts_units() {
    let directions: [(_, Reference); 2] = [
        (Encrypt, |m| {
            (naive::xts_encrypt(&m.key, &m.iv, &m.data), vec![])
        }),
        (Decrypt, |m| {
            (naive::xts_decrypt(&m.key, &m.iv, &m.data), vec![])
        }),
    ];
    for (dir, expected) in directions {
        let units = messages(&[32, 48, 64], |len| len >= 16);
        check(&units, XtsKey::new, expected, |hidden| {
            let mut jobs = jobs(hidden, Hidden::cipher);
            kernel(|| xts::crypt(dir, &mut jobs));
            Vec::new()
        });
        check(&units, XtsKey::new, expected, |hidden| {
            for hidden in hidden {
                let CipherJob { key, iv, data } = hidden.cipher();
                let mut tweak = [0; 16];
                kernel(|| xts::first_tweak(key, &iv, &mut tweak));
                kernel(|| xts::crypt_one(dir, key, &tweak, data));
            }
            Vec::new()
        });
        // In two parts, the second of which begins with a tweak made for it.
        let units = messages(&[32, 64], |len| len > 500);
        check(&units, XtsKey::new, expected, |hidden| {
            for hidden in hidden {
                let CipherJob { key, iv, data } = hidden.cipher();
                let (first, second) = data.split_at(208);
                for (data, block) in [(first, 0), (second, 13)] {
                    let mut job = CipherJob { key, iv, data };
                    kernel(|| xts::crypt_from(dir, &mut job, block));
                }
            }
            Vec::new()
        });
    }
}
