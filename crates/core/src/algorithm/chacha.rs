//! ChaCha20-Poly1305 (RFC 8439, obsoleting RFC 7539): `rfc7539(chacha20,poly1305)`.

use cipherlane_kernels::chacha::{self, ChaChaKey};
use cipherlane_kernels::naive;

use super::{AadLengths, Algorithm, KeyLengths, Kind, KnownAnswer, Sample, every_key, lanes};
use crate::{Direction, Request, Transform};

/// `rfc7539(chacha20,poly1305)` with a nonce of 12 bytes.
pub(super) static RFC7539: Algorithm = Algorithm {
    name: "rfc7539(chacha20,poly1305)",
    kind: Kind::Aead,
    keys: KeyLengths::OneOf(&[(32, 256)]),
    check_key: every_key,
    iv_len: 12,
    iv_mask: 0xff,
    block: 1,
    min_len: 0,
    // The block counter starts at 1 and has 32 bits (RFC 8439 section 2.8).
    max_len: ((1 << 32) - 1) * 64,
    tags: &[16],
    aad: AadLengths::Any,
    software: |key| {
        Box::new(ChaCha(
            ChaChaKey::new(key).expect("the key's length was checked"),
        ))
    },
    reference,
    known_answers: &[KnownAnswer {
        source: "RFC 8439 section 2.8.2",
        key: "808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f",
        iv: "070000004041424344454647",
        aad: "50515253c0c1c2c3c4c5c6c7",
        plaintext: "4c616469657320616e642047656e746c656d656e206f662074686520636c617373206f66202739393a204966204920636f756c64206f6666657220796f75206f6e6c79206f6e652074697020666f7220746865206675747572652c2073756e73637265656e20776f756c642062652069742e",
        ciphertext: "d31a8d34648e60db7b86afbc53ef7ec2a4aded51296e08fea9e2b5a736ee62d63dbea45e8ca9671282fafb69da92728b1a71de0a9e060b2905d6a5b67ecd3b3692ddbd7f2d778b8c9803aee328091b58fab324e4fad675945585808b4831d7bc3ff4def08e4b7a9de576d26586cec64b6116",
        tag: "1ae10b594f09e26a7e902ecbd0600691",
    }],
};

fn reference(s: Sample<'_>) -> (Vec<u8>, Vec<u8>) {
    let key = s.key.try_into().expect("a key of 32 bytes");
    let nonce = s.iv.try_into().expect("a nonce of 12 bytes");
    let (data, tag) = match s.direction {
        Direction::Encrypt => naive::chacha20poly1305_seal(key, nonce, s.aad, s.data),
        Direction::Decrypt => naive::chacha20poly1305_open(key, nonce, s.aad, s.data),
    };
    (data, tag.to_vec())
}

struct ChaCha(ChaChaKey);

impl Transform for ChaCha {
    fn run(&self, direction: Direction, requests: &mut [Request<'_>]) {
        match direction {
            Direction::Encrypt => lanes::aead(direction, &self.0, requests, |iv| *iv, chacha::seal),
            Direction::Decrypt => lanes::aead(direction, &self.0, requests, |iv| *iv, chacha::open),
        }
    }
}
