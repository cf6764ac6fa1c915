//! AES key expansion by AES-NI (FIPS 197 section 5.2).
//!
//! Four words are made at a time. In a block of four equal columns ShiftRows changes
//! nothing, so a last round with the round constant as its key is SubWord of that
//! column, plus Rcon, in every word. That takes less time than `aeskeygenassist`.

use core::arch::x86_64::*;

use super::wipe;
use crate::aes::key::{Block, RoundKeys};
use crate::cpu::HaveAesNi;
use crate::x86_64::memory;

/// Fills the schedule of encryption from a key of 16, 24 or 32 bytes.
pub(crate) fn expand(_: HaveAesNi, key: &[u8], enc: &mut RoundKeys) {
    // SAFETY: the token proves AES-NI with SSSE3.
    unsafe { expand_aes_ni(key, enc) }
}

/// Fills the schedule of the equivalent inverse cipher (section 5.3.5), in order of use.
pub(crate) fn inverse(_: HaveAesNi, rounds: usize, enc: &RoundKeys, dec: &mut RoundKeys) {
    // SAFETY: the token proves AES-NI.
    unsafe { inverse_aes_ni(rounds, enc, dec) }
}

#[target_feature(enable = "aes,ssse3")]
fn expand_aes_ni(key: &[u8], enc: &mut RoundKeys) {
    match key.len() {
        16 => expand_128(key, enc),
        24 => expand_192(key, enc),
        _ => expand_256(key, enc),
    }
    wipe::registers_128();
}

// Each round key is stored as a whole: what is encrypted next would wait for parts of one.

#[target_feature(enable = "aes,ssse3")]
fn expand_128(key: &[u8], enc: &mut RoundKeys) {
    let mut last = load(key, 0);
    store(&mut enc[0], last);
    for i in 0..10 {
        last = _mm_xor_si128(sums(last), sub_word::<ROTATED_3>(last, rcon(i + 1)));
        store(&mut enc[i + 1], last);
    }
}

#[target_feature(enable = "aes,ssse3")]
fn expand_192(key: &[u8], enc: &mut RoundKeys) {
    // Six words, of which the last two stand in the lower half.
    let mut first = load(key, 0);
    let mut last = _mm_srli_si128::<8>(load(key, 8));
    store(&mut enc[0], first);
    for i in 1..=8 {
        let before = last;
        first = _mm_xor_si128(sums(first), sub_word::<ROTATED_1>(last, rcon(i)));
        let carried = _mm_shuffle_epi32::<0xff>(first);
        last = _mm_xor_si128(_mm_xor_si128(last, _mm_slli_si128::<4>(last)), carried);
        // Twelve words are three round keys.
        let at = 3 * i / 2;
        match i % 2 {
            1 => {
                store(&mut enc[at], _mm_unpacklo_epi64(before, first));
                let middle = _mm_srli_si128::<8>(first);
                store(&mut enc[at + 1], _mm_unpacklo_epi64(middle, last));
            }
            _ => store(&mut enc[at], first),
        }
    }
}

#[target_feature(enable = "aes,ssse3")]
fn expand_256(key: &[u8], enc: &mut RoundKeys) {
    let (mut first, mut second) = (load(key, 0), load(key, 16));
    store(&mut enc[0], first);
    store(&mut enc[1], second);
    for i in 1..=7 {
        first = _mm_xor_si128(sums(first), sub_word::<ROTATED_3>(second, rcon(i)));
        store(&mut enc[2 * i], first);
        if i < 7 {
            let zero = _mm_setzero_si128();
            second = _mm_xor_si128(sums(second), sub_word::<PLAIN_3>(first, zero));
            store(&mut enc[2 * i + 1], second);
        }
    }
}

#[target_feature(enable = "aes")]
fn inverse_aes_ni(rounds: usize, enc: &RoundKeys, dec: &mut RoundKeys) {
    dec[0] = enc[rounds];
    for i in 1..rounds {
        store(&mut dec[i], _mm_aesimc_si128(load(&enc[rounds - i], 0)));
    }
    dec[rounds] = enc[0];
    wipe::registers_128();
}

/// Which word SubWord is taken of: bytes of a block in the order of one word.
const ROTATED_1: i32 = i32::from_le_bytes([5, 6, 7, 4]);
const ROTATED_3: i32 = i32::from_le_bytes([13, 14, 15, 12]);
const PLAIN_3: i32 = i32::from_le_bytes([12, 13, 14, 15]);

/// SubWord of a word of `block`, plus `rcon`, in every word.
#[inline]
#[target_feature(enable = "aes,ssse3")]
fn sub_word<const WORD: i32>(block: __m128i, rcon: __m128i) -> __m128i {
    _mm_aesenclast_si128(_mm_shuffle_epi8(block, _mm_set1_epi32(WORD)), rcon)
}

/// Each word plus all words before it.
#[inline]
#[target_feature(enable = "sse2")]
fn sums(block: __m128i) -> __m128i {
    let pairs = _mm_xor_si128(block, _mm_slli_si128::<4>(block));
    _mm_xor_si128(pairs, _mm_slli_si128::<8>(pairs))
}

/// Rcon of 1 to 10, in every word.
#[inline]
#[target_feature(enable = "sse2")]
fn rcon(i: usize) -> __m128i {
    const RCON: [i32; 11] = [0, 1, 2, 4, 8, 0x10, 0x20, 0x40, 0x80, 0x1b, 0x36];
    _mm_set1_epi32(RCON[i])
}

#[inline]
#[target_feature(enable = "sse2")]
fn load(bytes: &[u8], at: usize) -> __m128i {
    // SAFETY: the slice has 16 bytes, and unaligned access is allowed.
    unsafe { memory::load(bytes[at..][..16].as_ptr()) }
}

#[inline]
#[target_feature(enable = "sse2")]
fn store(key: &mut Block, block: __m128i) {
    // SAFETY: the round key has 16 bytes, and unaligned access is allowed.
    unsafe { _mm_storeu_si128(key.as_mut_ptr().cast(), block) }
}
