//! Encrypt-then-MAC as in the Linux CryptoAPI template: `authenc(hmac(sha256),cbc(aes))`.

use cipherlane_kernels::authenc::{self, AuthencKey};
use cipherlane_kernels::naive;

use super::{Aad, Algorithm, Keys, Kind, KnownAnswer, Sample, lanes};
use crate::{Direction, Request, Transform};

/// Bytes of the HMAC key (RFC 4868 section 2.1.1); it stands first.
const MAC_KEY: usize = 32;

/// `authenc(hmac(sha256),cbc(aes))`: the key is 32 bytes for the HMAC, then the AES key.
/// The MAC covers additional data and ciphertext; ESP puts SPI, sequence number and IV
/// into the additional data.
pub(super) static AUTHENC_SHA256_CBC_AES: Algorithm = Algorithm {
    name: "authenc(hmac(sha256),cbc(aes))",
    kind: Kind::Aead,
    keys: Keys::OneOf(&[(48, 128), (56, 192), (64, 256)]),
    iv_len: 16,
    block: 16,
    least: 0,
    most: u64::MAX >> 4,
    tags: &[12, 16, 32],
    aad: Aad::Any,
    kernel: |key| {
        let (mac, enc) = key.split_at(MAC_KEY);
        Box::new(Authenc(
            AuthencKey::new(mac, enc).expect("the key's length was checked"),
        ))
    },
    reference,
    known_answers: &[KnownAnswer {
        source: "RFC 3602 section 4 case 1, its IV as additional data; MAC by Python's hashlib",
        key: "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f06a9214036b8a15b512e03d534120006",
        iv: "3dafba429d9eb430b422da802c9fac41",
        aad: "3dafba429d9eb430b422da802c9fac41",
        plaintext: "53696e676c6520626c6f636b206d7367",
        ciphertext: "e353779c1079aeb82708942dbe77181a",
        tag: "8a89ec6c8249090f1007d08d5e6fc6f26f7c675361553ecf2e8198c53c3ab5c0",
    }],
};

fn reference(s: Sample<'_>) -> (Vec<u8>, Vec<u8>) {
    let (mac, enc) = s.key.split_at(MAC_KEY);
    let iv = s.iv.try_into().expect("an IV of 16 bytes");
    let (data, tag) = match s.direction {
        Direction::Encrypt => naive::authenc_seal(mac, enc, iv, s.aad, s.data),
        Direction::Decrypt => naive::authenc_open(mac, enc, iv, s.aad, s.data),
    };
    (data, tag.to_vec())
}

struct Authenc(AuthencKey);

impl Transform for Authenc {
    fn run(&self, direction: Direction, requests: &mut [Request<'_>]) {
        match direction {
            Direction::Encrypt => {
                lanes::aead(direction, &self.0, requests, |iv| *iv, authenc::seal)
            }
            Direction::Decrypt => {
                lanes::aead(direction, &self.0, requests, |iv| *iv, authenc::open)
            }
        }
    }
}
