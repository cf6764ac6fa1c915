//! AES in ECB mode (SP 800-38A section 6.1): `ecb(aes)`.

use cipherlane_kernels::aes::AesKey;
use cipherlane_kernels::job::CipherJob;
use cipherlane_kernels::{ecb, naive};
use inout::InOutBuf;

use super::{AadLengths, Algorithm, KeyLengths, Kind, KnownAnswer, Sample, every_key, lanes};
use crate::driver::{PieceState, Split};
use crate::request::{Request, Status};
use crate::{Direction, Transform};

/// AES in ECB mode (SP 800-38A section 6.1): `ecb(aes)`.
pub(super) static ECB_AES: Algorithm = Algorithm {
    name: "ecb(aes)",
    kind: Kind::Cipher,
    keys: KeyLengths::OneOf(&[(16, 128), (24, 192), (32, 256)]),
    check_key: every_key,
    iv_len: 0,
    iv_mask: 0xff,
    block: 16,
    min_len: 0,
    max_len: u64::MAX,
    tags: &[],
    aad: AadLengths::None,
    software: |key| Box::new(Ecb(AesKey::new(key).expect("the key's length was checked"))),
    reference,
    known_answers: &[
        KnownAnswer {
            source: "SP 800-38A F.1",
            key: "2b7e151628aed2a6abf7158809cf4f3c",
            iv: "",
            aad: "",
            plaintext: "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e5130c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710",
            ciphertext: "3ad77bb40d7a3660a89ecaf32466ef97f5d3d58503b9699de785895a96fdbaaf43b1cd7f598ece23881b00e3ed0306887b0c785e27e8ad3f8223207104725dd4",
            tag: "",
        },
        KnownAnswer {
            source: "SP 800-38A F.1",
            key: "8e73b0f7da0e6452c810f32b809079e562f8ead2522c6b7b",
            iv: "",
            aad: "",
            plaintext: "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e5130c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710",
            ciphertext: "bd334f1d6e45f25ff712a214571fa5cc974104846d0ad3ad7734ecb3ecee4eefef7afd2270e2e60adce0ba2face6444e9a4b41ba738d6c72fb16691603c18e0e",
            tag: "",
        },
        KnownAnswer {
            source: "SP 800-38A F.1",
            key: "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4",
            iv: "",
            aad: "",
            plaintext: "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e5130c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710",
            ciphertext: "f3eed1bdb5d2a03c064b5a7e3db181f8591ccb10d410ed26dc5ba74a31362870b6ed21b99ca6f4f9f153e7b1beafed1d23304b7a39f9f3ff067d8d8f9e24ecc7",
            tag: "",
        },
    ],
};

fn reference(s: Sample<'_>) -> (Vec<u8>, Vec<u8>) {
    let data = match s.direction {
        Direction::Encrypt => naive::ecb_encrypt(s.key, s.data),
        Direction::Decrypt => naive::ecb_decrypt(s.key, s.data),
    };
    (data, Vec::new())
}

struct Ecb(AesKey);

impl Transform for Ecb {
    fn run(&self, direction: Direction, requests: &mut [Request<'_>]) {
        lanes::cipher(&self.0, requests, |jobs| ecb::crypt(direction, jobs));
    }

    fn split(&self) -> Option<&dyn Split> {
        Some(self)
    }
}

impl Split for Ecb {
    fn granule(&self, _: Direction) -> Option<usize> {
        Some(16)
    }

    fn piece(
        &self,
        direction: Direction,
        _: &[u8; 16],
        _: usize,
        data: InOutBuf<'_, '_, u8>,
        _: &mut PieceState,
    ) {
        ecb::crypt(
            direction,
            &mut [CipherJob {
                key: &self.0,
                iv: [0; 16],
                data,
            }],
        );
    }

    fn join(&self, _: Direction, request: &mut Request<'_>, _: &[PieceState]) {
        request.set_status(Status::Done);
    }
}
