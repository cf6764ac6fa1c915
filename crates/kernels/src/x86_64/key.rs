//! AES key expansion by AES-NI.

use core::arch::x86_64::*;

use crate::aes::{Block, RoundKeys};
use crate::cpu::HaveAesNi;
use crate::portable::key::{inverse, schedule};

/// Fills both schedules from a key of 16, 24 or 32 bytes.
pub(crate) fn expand(_: HaveAesNi, key: &[u8], enc: &mut RoundKeys, dec: &mut RoundKeys) {
    // SAFETY: the token proves AES-NI.
    unsafe { expand_aes_ni(key, enc, dec) }
}

#[target_feature(enable = "aes,sse4.1")]
fn expand_aes_ni(key: &[u8], enc: &mut RoundKeys, dec: &mut RoundKeys) {
    schedule(key, enc, |word| {
        // In a block of four equal columns ShiftRows changes nothing, so the last
        // round with a zero key is the S-box alone.
        let columns = _mm_set1_epi32(word.cast_signed());
        _mm_cvtsi128_si32(_mm_aesenclast_si128(columns, _mm_setzero_si128())).cast_unsigned()
    });
    inverse(key.len() / 4 + 6, enc, dec, |block| {
        let mut out: Block = [0; 16];
        // SAFETY: both are 16 bytes, and unaligned access is allowed.
        unsafe {
            let mixed = _mm_aesimc_si128(_mm_loadu_si128(block.as_ptr().cast()));
            _mm_storeu_si128(out.as_mut_ptr().cast(), mixed);
        }
        out
    });
}
