//! The choice among the SHA-2 kernels by the number of messages in flight.

use super::lanes::Compress;
use crate::cpu::{HaveAvx2, HaveAvx512, HaveBmi2, HaveShaNi};
use crate::portable::sha2::OneByOne;
use crate::sha2::hash::{Sha256, Sha512};
use crate::x86_64::{sha2_wide, sha256, sha512, wipe};

/// Messages from which on 16 lanes of AVX-512 take less time than the SHA
/// instructions, and than one message after the other.
const WIDE_256: usize = 9;
const WIDE_256_WITHOUT_SHA_NI: usize = 3;

/// Messages from which on vectors take less time than one message after the
/// other: 8 lanes of AVX-512, and 4 of AVX2. Without BMI2 the other way takes longer.
const WIDE_512: usize = 3;
const WIDE_512_WITHOUT_BMI2: usize = 2;
const WIDE_512_AVX2: usize = 3;

/// What this processor has for SHA-256.
#[derive(Clone, Copy)]
pub(crate) struct Sha256Features {
    pub(crate) sha_ni: Option<HaveShaNi>,
    pub(crate) avx512: Option<HaveAvx512>,
}

impl Sha256Features {
    #[inline]
    pub(crate) fn new() -> Self {
        Sha256Features {
            sha_ni: HaveShaNi::new(),
            avx512: HaveAvx512::new(),
        }
    }
}

impl Compress<Sha256> for Sha256Features {
    #[inline]
    fn compress(self, states: &mut [[u32; 8]], blocks: &[&[u8]]) {
        match (self.sha_ni, self.avx512) {
            (Some(_), Some(avx512)) if states.len() >= WIDE_256 => {
                sha2_wide::sha256_x16(avx512, states, blocks);
            }
            (Some(sha_ni), _) => {
                for (states, blocks) in states.chunks_mut(4).zip(blocks.chunks(4)) {
                    sha256::compress(sha_ni, states, blocks);
                }
            }
            (None, Some(avx512)) if states.len() >= WIDE_256_WITHOUT_SHA_NI => {
                sha2_wide::sha256_x16(avx512, states, blocks);
            }
            _ => Compress::<Sha256>::compress(OneByOne, states, blocks),
        }
    }

    #[inline]
    fn wipe_registers(self) {
        if let Some(avx2) = HaveAvx2::new() {
            wipe::vectors(avx2, self.avx512);
        }
    }
}

/// What this processor has for SHA-512.
#[derive(Clone, Copy)]
pub(crate) struct Sha512Features {
    pub(crate) avx2: Option<HaveAvx2>,
    pub(crate) bmi2: Option<HaveBmi2>,
    pub(crate) avx512: Option<HaveAvx512>,
}

impl Sha512Features {
    #[inline]
    pub(crate) fn new() -> Self {
        Sha512Features {
            avx2: HaveAvx2::new(),
            bmi2: HaveBmi2::new(),
            avx512: HaveAvx512::new(),
        }
    }
}

impl Compress<Sha512> for Sha512Features {
    #[inline]
    fn compress(self, states: &mut [[u64; 8]], blocks: &[&[u8]]) {
        match (self.avx2, self.avx512) {
            (_, Some(avx512))
                if states.len() >= WIDE_512
                    || self.bmi2.is_none() && states.len() >= WIDE_512_WITHOUT_BMI2 =>
            {
                sha2_wide::sha512_x8(avx512, states, blocks);
            }
            (Some(avx2), None) if states.len() >= WIDE_512_AVX2 => {
                for (states, blocks) in states.chunks_mut(4).zip(blocks.chunks(4)) {
                    sha2_wide::sha512_x4(avx2, states, blocks);
                }
            }
            _ => match self.bmi2 {
                Some(bmi2) => {
                    for (state, blocks) in states.iter_mut().zip(blocks) {
                        sha512::compress(bmi2, state, blocks);
                    }
                }
                None => Compress::<Sha512>::compress(OneByOne, states, blocks),
            },
        }
    }

    #[inline]
    fn wipe_registers(self) {
        if let Some(avx2) = self.avx2 {
            wipe::vectors(avx2, self.avx512);
        }
    }
}
