//! AES in CBC mode (SP 800-38A section 6.2): `cbc(aes)`.

use cipherlane_kernels::aes::AesKey;
use cipherlane_kernels::job::CipherJob;
use cipherlane_kernels::{cbc, naive};
use inout::InOutBuf;

use super::{AadLengths, Algorithm, KeyLengths, Kind, KnownAnswer, Sample, every_key, lanes};
use crate::driver::{PieceState, Split};
use crate::request::{Request, Status};
use crate::{Direction, Transform};

/// AES in CBC mode (SP 800-38A section 6.2): `cbc(aes)`.
pub(super) static CBC_AES: Algorithm = Algorithm {
    name: "cbc(aes)",
    kind: Kind::Cipher,
    keys: KeyLengths::OneOf(&[(16, 128), (24, 192), (32, 256)]),
    check_key: every_key,
    iv_len: 16,
    iv_mask: 0xff,
    block: 16,
    min_len: 0,
    max_len: u64::MAX,
    tags: &[],
    aad: AadLengths::None,
    software: |key| Box::new(Cbc(AesKey::new(key).expect("the key's length was checked"))),
    reference,
    known_answers: &[
        KnownAnswer {
            source: "SP 800-38A F.2",
            key: "2b7e151628aed2a6abf7158809cf4f3c",
            iv: "000102030405060708090a0b0c0d0e0f",
            aad: "",
            plaintext: "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e5130c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710",
            ciphertext: "7649abac8119b246cee98e9b12e9197d5086cb9b507219ee95db113a917678b273bed6b8e3c1743b7116e69e222295163ff1caa1681fac09120eca307586e1a7",
            tag: "",
        },
        KnownAnswer {
            source: "SP 800-38A F.2",
            key: "8e73b0f7da0e6452c810f32b809079e562f8ead2522c6b7b",
            iv: "000102030405060708090a0b0c0d0e0f",
            aad: "",
            plaintext: "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e5130c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710",
            ciphertext: "4f021db243bc633d7178183a9fa071e8b4d9ada9ad7dedf4e5e738763f69145a571b242012fb7ae07fa9baac3df102e008b0e27988598881d920a9e64f5615cd",
            tag: "",
        },
        KnownAnswer {
            source: "SP 800-38A F.2",
            key: "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4",
            iv: "000102030405060708090a0b0c0d0e0f",
            aad: "",
            plaintext: "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e5130c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710",
            ciphertext: "f58c4c04d6e5f1ba779eabfb5f7bfbd69cfc4e967edb808d679f777bc6702c7d39f23369a9d9bacfa530e26304231461b2eb05e2c39be9fcda6c19078c6a9d1b",
            tag: "",
        },
    ],
};

fn reference(s: Sample<'_>) -> (Vec<u8>, Vec<u8>) {
    let iv = s.iv.try_into().expect("an IV of 16 bytes");
    let data = match s.direction {
        Direction::Encrypt => naive::cbc_encrypt(s.key, iv, s.data),
        Direction::Decrypt => naive::cbc_decrypt(s.key, iv, s.data),
    };
    (data, Vec::new())
}

struct Cbc(AesKey);

impl Transform for Cbc {
    fn run(&self, direction: Direction, requests: &mut [Request<'_>]) {
        match direction {
            Direction::Encrypt => lanes::cipher(&self.0, requests, cbc::encrypt),
            Direction::Decrypt => lanes::cipher(&self.0, requests, cbc::decrypt),
        }
    }

    fn split(&self) -> Option<&dyn Split> {
        Some(self)
    }
}

impl Split for Cbc {
    /// Encryption is a chain: each block needs the one before it.
    fn granule(&self, direction: Direction) -> Option<usize> {
        (direction == Direction::Decrypt).then_some(16)
    }

    /// In place, a piece overwrites the ciphertext that the next one starts from.
    fn prepare(
        &self,
        _: Direction,
        request: &Request<'_>,
        starts: &dyn Fn(usize) -> usize,
        states: &mut [PieceState],
    ) {
        for (i, state) in states.iter_mut().enumerate() {
            state.iv = match starts(i) {
                0 => request.iv_block(),
                start => *request.input()[..start]
                    .last_chunk()
                    .expect("pieces begin at whole blocks"),
            };
        }
    }

    fn piece(
        &self,
        _: Direction,
        _: &[u8; 16],
        _: usize,
        data: InOutBuf<'_, '_, u8>,
        state: &mut PieceState,
    ) {
        cbc::decrypt(&mut [CipherJob {
            key: &self.0,
            iv: state.iv,
            data,
        }]);
    }

    fn join(&self, _: Direction, request: &mut Request<'_>, _: &[PieceState]) {
        request.set_status(Status::Done);
    }
}
