//! AES in XTS mode (IEEE 1619, SP 800-38E) with ciphertext stealing: `xts(aes)`.

use cipherlane_kernels::is_same;
use cipherlane_kernels::job::CipherJob;
use cipherlane_kernels::naive;
use cipherlane_kernels::xts::{self, XtsKey};
use inout::InOutBuf;

use super::{AadLengths, Algorithm, KeyLengths, Kind, KnownAnswer, Sample, lanes};
use crate::driver::{PieceState, Split};
use crate::request::{Request, Status};
use crate::{Direction, Error, Transform};

/// `xts(aes)`: the IV is the tweak (a sector number, little-endian), the key is two keys.
/// A data unit has at most 2^20 blocks (SP 800-38E section 4).
pub(super) static XTS_AES: Algorithm = Algorithm {
    name: "xts(aes)",
    kind: Kind::Cipher,
    keys: KeyLengths::OneOf(&[(32, 128), (48, 192), (64, 256)]),
    check_key: halves_differ,
    iv_len: 16,
    iv_mask: 0xff,
    block: 1,
    min_len: 16,
    max_len: 16 << 20,
    tags: &[],
    aad: AadLengths::None,
    software: |key| Box::new(Xts(XtsKey::new(key).expect("the key's length was checked"))),
    reference,
    known_answers: &[
        KnownAnswer {
            source: "IEEE 1619-2007 vector 2",
            key: "1111111111111111111111111111111122222222222222222222222222222222",
            iv: "33333333330000000000000000000000",
            aad: "",
            plaintext: "4444444444444444444444444444444444444444444444444444444444444444",
            ciphertext: "c454185e6a16936e39334038acef838bfb186fff7480adc4289382ecd6d394f0",
            tag: "",
        },
        KnownAnswer {
            source: "IEEE 1619-2007 vector 15",
            key: "fffefdfcfbfaf9f8f7f6f5f4f3f2f1f0bfbebdbcbbbab9b8b7b6b5b4b3b2b1b0",
            iv: "9a785634120000000000000000000000",
            aad: "",
            plaintext: "000102030405060708090a0b0c0d0e0f10",
            ciphertext: "6c1625db4671522d3d7599601de7ca09ed",
            tag: "",
        },
    ],
};

/// Refuses a data key that is the tweak key too, which IEEE 1619 and FIPS 140-3 forbid.
fn halves_differ(algorithm: &Algorithm, key: &[u8]) -> Result<(), Error> {
    let (data, tweak) = key.split_at(key.len() / 2);
    match is_same(data, tweak) {
        false => Ok(()),
        true => Err(Error::KeyHalvesEqual {
            algorithm: algorithm.name,
        }),
    }
}

fn reference(s: Sample<'_>) -> (Vec<u8>, Vec<u8>) {
    let tweak = s.iv.try_into().expect("a tweak of 16 bytes");
    let data = match s.direction {
        Direction::Encrypt => naive::xts_encrypt(s.key, tweak, s.data),
        Direction::Decrypt => naive::xts_decrypt(s.key, tweak, s.data),
    };
    (data, Vec::new())
}

struct Xts(XtsKey);

impl Transform for Xts {
    fn run(&self, direction: Direction, requests: &mut [Request<'_>]) {
        lanes::cipher(&self.0, requests, |jobs| xts::crypt(direction, jobs));
    }

    fn split(&self) -> Option<&dyn Split> {
        Some(self)
    }
}

impl Split for Xts {
    /// Two blocks, so that the last piece has a whole block to steal from.
    fn granule(&self, _: Direction) -> Option<usize> {
        Some(32)
    }

    fn piece(
        &self,
        direction: Direction,
        iv: &[u8; 16],
        start: usize,
        data: InOutBuf<'_, '_, u8>,
        _: &mut PieceState,
    ) {
        let mut job = CipherJob {
            key: &self.0,
            iv: *iv,
            data,
        };
        xts::crypt_from(direction, &mut job, start as u64 / 16);
    }

    fn join(&self, _: Direction, request: &mut Request<'_>, _: &[PieceState]) {
        request.set_status(Status::Done);
    }
}
