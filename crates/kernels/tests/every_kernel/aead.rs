//! AES-GCM, ChaCha20-Poly1305, and AES-CBC with an HMAC.

use cipherlane_kernels::authenc::{self, AuthencKey, CbcAes};
use cipherlane_kernels::chacha::{self, ChaChaKey};
use cipherlane_kernels::gcm::{self, GcmKey, GcmStream};
use cipherlane_kernels::hmac::HmacSha256Key;
use cipherlane_kernels::job::Direction::{self, Decrypt, Encrypt};
use cipherlane_kernels::job::{AeadJob, AuthencJob};
use cipherlane_kernels::naive;

use super::harness::{
    Batch, Hidden, LONG, Message, PACKETS, Reference, aead, aead_of_one_key, any, blocks, buffer,
    check, messages, messages_of, packets,
};
use crate::watch::{kernel, publish};

pub(super) fn run() {
    gcm_messages();
    other_aeads();
}

fn gcm_messages() {
    let messages = messages(&[16, 24, 32], any);
    let long = messages_of(&LONG, &[16, 24, 32]);
    let packets = packets(&PACKETS, 16);
    let directions: [(_, Batch<GcmKey>, Reference); 2] = [
        (Encrypt, gcm::seal, |m| {
            let (data, tag) = naive::gcm_seal(&m.key, &m.iv[..12], &m.aad, &m.data);
            (data, tag.to_vec())
        }),
        (Decrypt, gcm::open, |m| {
            let (data, tag) = naive::gcm_open(&m.key, &m.iv[..12], &m.aad, &m.data);
            (data, tag.to_vec())
        }),
    ];
    for (dir, run, expected) in directions {
        for messages in [&messages, &long] {
            check(messages, GcmKey::new, expected, |hidden| {
                aead(hidden, 16, run)
            });
        }
        check(&packets, GcmKey::new, expected, |hidden| {
            aead_of_one_key(hidden, 16, run)
        });
        check(&messages, GcmKey::new, expected, |hidden| {
            hidden.iter_mut().map(|hidden| split(dir, hidden)).collect()
        });
        check(&messages, GcmKey::new, expected, |hidden| {
            hidden
                .iter_mut()
                .map(|hidden| stream(dir, hidden))
                .collect()
        });
    }
}

/// A message in parts, with the tag joined from theirs.
fn split(dir: Direction, hidden: &mut Hidden<GcmKey>) -> Vec<u8> {
    let AeadJob {
        key,
        iv,
        aad,
        mut data,
        ..
    } = hidden.aead();
    let nonce = iv[..12].try_into().expect("12 bytes");
    let (mut parts, mut block) = (Vec::new(), 0);
    while !data.is_empty() {
        let len = data.len().min(16 * [1, 20, 50][parts.len() % 3]);
        let (piece, rest) = data.split_at(len);
        parts.push(kernel(|| gcm::part(dir, key, nonce, block, piece)));
        block += (len / 16) as u32;
        data = rest;
    }
    kernel(|| gcm::join(key, nonce, aad, &parts)).to_vec()
}

/// A message in pieces of any length.
fn stream(dir: Direction, hidden: &mut Hidden<GcmKey>) -> Vec<u8> {
    let AeadJob {
        key,
        iv,
        aad,
        mut data,
        ..
    } = hidden.aead();
    let mut stream = GcmStream::new(dir, key, &iv[..12]);
    aad.chunks(7).for_each(|aad| kernel(|| stream.aad(aad)));
    for len in [5, 300, 11, 1, 16, 77].into_iter().cycle() {
        let len = len.min(data.len());
        let (piece, rest) = data.split_at(len);
        kernel(|| stream.update(piece));
        data = rest;
        if data.is_empty() {
            break;
        }
    }
    kernel(|| stream.finish()).to_vec()
}

fn other_aeads() {
    let messages_32 = messages(&[32], any);
    let parts = |m: &Message| -> ([u8; 32], [u8; 12]) {
        (
            m.key[..].try_into().expect("32 bytes"),
            m.iv[..12].try_into().expect("12 bytes"),
        )
    };
    let sealed = |m: &Message| {
        let (key, nonce) = parts(m);
        let (data, tag) = naive::chacha20poly1305_seal(&key, &nonce, &m.aad, &m.data);
        (data, tag.to_vec())
    };
    let opened = |m: &Message| {
        let (key, nonce) = parts(m);
        let (data, tag) = naive::chacha20poly1305_open(&key, &nonce, &m.aad, &m.data);
        (data, tag.to_vec())
    };
    check(&messages_32, ChaChaKey::new, sealed, |h| {
        aead(h, 16, chacha::seal)
    });
    check(&messages_32, ChaChaKey::new, opened, |h| {
        aead(h, 16, chacha::open)
    });

    // A key of 20 bytes for the MAC, and behind it that of the cipher.
    let messages = messages(&[36, 44, 52], blocks);
    let key = |key: &[u8]| CbcHmac::new(&key[..20], &key[20..]);
    let sealed = |m: &Message| {
        let (auth, enc) = m.key.split_at(20);
        let output = naive::cbc_encrypt(enc, &m.iv, &m.data);
        let mac = naive::hmac_sha256(auth, &[&m.aad[..], &output].concat());
        (output, mac.to_vec())
    };
    check(&messages, key, sealed, seal);
    // Whether a MAC is right is public, and opening decrypts only then: so what the MAC
    // is made of is known here. Its half of the key was secret above.
    let key = |key: &[u8]| CbcHmac::new(&KNOWN, &key[20..]);
    let opened = |m: &Message| (naive::cbc_decrypt(&m.key[20..], &m.iv, &m.data), vec![]);
    check(&messages, key, opened, open);
}

type CbcHmac = AuthencKey<HmacSha256Key, CbcAes>;

/// A MAC key that is no secret.
const KNOWN: [u8; 20] = [0x17; 20];

fn seal(hidden: &mut [Hidden<CbcHmac>]) -> Vec<Vec<u8>> {
    let mut tags = vec![vec![0; 32]; hidden.len()];
    let mut jobs = authencs(hidden, &mut tags);
    kernel(|| authenc::seal(&mut jobs));
    tags
}

fn open(hidden: &mut [Hidden<CbcHmac>]) -> Vec<Vec<u8>> {
    let tag = |hidden: &mut Hidden<CbcHmac>| {
        publish(&mut hidden.aad);
        publish(&mut hidden.data);
        naive::hmac_sha256(&KNOWN, &[&hidden.aad[..], &hidden.data].concat()).to_vec()
    };
    let mut tags: Vec<_> = hidden.iter_mut().map(tag).collect();
    let mut jobs = authencs(hidden, &mut tags);
    kernel(|| authenc::open(&mut jobs));
    assert!(jobs.iter().all(|job| *job.right));
    Vec::new()
}

fn authencs<'h>(
    hidden: &'h mut [Hidden<CbcHmac>],
    tags: &'h mut [Vec<u8>],
) -> Vec<AuthencJob<'h, CbcHmac>> {
    let job = |(hidden, tag): (&'h mut Hidden<CbcHmac>, &'h mut Vec<u8>)| AuthencJob {
        key: &hidden.key,
        iv: hidden.iv,
        aad: &hidden.aad,
        data: buffer(&mut hidden.data, &mut hidden.output),
        suffix: &[],
        tag,
        right: &mut hidden.right,
    };
    hidden.iter_mut().zip(tags).map(job).collect()
}
