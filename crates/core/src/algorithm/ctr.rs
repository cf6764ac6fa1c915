//! AES in counter mode (SP 800-38A section 6.5), the whole block a big-endian counter: `ctr(aes)`.

use cipherlane_kernels::aes::AesKey;
use cipherlane_kernels::job::CipherJob;
use cipherlane_kernels::{ctr, naive};
use inout::InOutBuf;

use super::{AadLengths, Algorithm, KeyLengths, Kind, KnownAnswer, Sample, every_key, lanes};
use crate::driver::{PieceState, Split};
use crate::request::{Request, Status};
use crate::{Direction, Transform};

/// AES in counter mode (SP 800-38A section 6.5), the whole block a big-endian counter: `ctr(aes)`.
pub(super) static CTR_AES: Algorithm = Algorithm {
    name: "ctr(aes)",
    kind: Kind::Cipher,
    keys: KeyLengths::OneOf(&[(16, 128), (24, 192), (32, 256)]),
    check_key: every_key,
    iv_len: 16,
    iv_mask: 0xff,
    block: 1,
    min_len: 0,
    max_len: u64::MAX,
    tags: &[],
    aad: AadLengths::None,
    software: |key| Box::new(Ctr(AesKey::new(key).expect("the key's length was checked"))),
    reference,
    known_answers: &[
        KnownAnswer {
            source: "SP 800-38A F.5",
            key: "2b7e151628aed2a6abf7158809cf4f3c",
            iv: "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff",
            aad: "",
            plaintext: "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e5130c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710",
            ciphertext: "874d6191b620e3261bef6864990db6ce9806f66b7970fdff8617187bb9fffdff5ae4df3edbd5d35e5b4f09020db03eab1e031dda2fbe03d1792170a0f3009cee",
            tag: "",
        },
        KnownAnswer {
            source: "SP 800-38A F.5",
            key: "8e73b0f7da0e6452c810f32b809079e562f8ead2522c6b7b",
            iv: "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff",
            aad: "",
            plaintext: "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e5130c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710",
            ciphertext: "1abc932417521ca24f2b0459fe7e6e0b090339ec0aa6faefd5ccc2c6f4ce8e941e36b26bd1ebc670d1bd1d665620abf74f78a7f6d29809585a97daec58c6b050",
            tag: "",
        },
        KnownAnswer {
            source: "SP 800-38A F.5",
            key: "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4",
            iv: "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff",
            aad: "",
            plaintext: "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e5130c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710",
            ciphertext: "601ec313775789a5b7a7f504bbf3d228f443e3ca4d62b59aca84e990cacaf5c52b0930daa23de94ce87017ba2d84988ddfc9c58db67aada613c2dd08457941a6",
            tag: "",
        },
    ],
};

fn reference(s: Sample<'_>) -> (Vec<u8>, Vec<u8>) {
    let iv = s.iv.try_into().expect("an IV of 16 bytes");
    (naive::ctr_apply(s.key, iv, s.data), Vec::new())
}

struct Ctr(AesKey);

impl Transform for Ctr {
    #[inline]
    fn run(&self, _: Direction, requests: &mut [Request<'_>]) {
        lanes::cipher(&self.0, requests, ctr::apply);
    }

    fn split(&self) -> Option<&dyn Split> {
        Some(self)
    }
}

impl Split for Ctr {
    fn granule(&self, _: Direction) -> Option<usize> {
        Some(16)
    }

    fn piece(
        &self,
        _: Direction,
        iv: &[u8; 16],
        start: usize,
        data: InOutBuf<'_, '_, u8>,
        _: &mut PieceState,
    ) {
        let iv = ctr::counter_add(iv, start as u128 / 16);
        ctr::apply(&mut [CipherJob {
            key: &self.0,
            iv,
            data,
        }]);
    }

    fn join(&self, _: Direction, request: &mut Request<'_>, _: &[PieceState]) {
        request.set_status(Status::Done);
    }
}
