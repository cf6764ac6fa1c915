//! SHA-256 with the SHA instructions: one to four messages side by side.
//!
//! `sha256rnds2` has a latency of four cycles and waits for the one before it,
//! so a lone message leaves the unit idle half of the time or more; blocks of
//! other messages fill the gaps.

use core::arch::x86_64::*;

use crate::cpu::HaveShaNi;
use crate::sha2::constants::K256;
use crate::x86_64::memory;

/// Compresses whole blocks of 1 to 4 messages; all have the same length.
#[inline]
pub(crate) fn compress(_: HaveShaNi, states: &mut [[u32; 8]], blocks: &[&[u8]]) {
    // SAFETY: the token is made only where the instructions are present.
    unsafe {
        match states.len() {
            1 => lanes::<1>(states, blocks),
            2 => lanes::<2>(states, blocks),
            3 => lanes::<3>(states, blocks),
            4 => lanes::<4>(states, blocks),
            lanes => panic!("{lanes} lanes of SHA-256, of 4"),
        }
    }
}

/// Four rounds, the `$j`th of 16 times, with the words of `$w[$j % 4]`, which then
/// become those of 16 rounds later.
macro_rules! four_rounds {
    ($j:literal, $w:expr, $feba:expr, $hgdc:expr) => {{
        let w = &mut $w;
        // SAFETY: a load of four words from the table of 64.
        let k = unsafe { memory::load(K256.as_ptr().add(4 * $j).cast()) };
        let wk = _mm_add_epi32(w[$j % 4], k);
        $hgdc = _mm_sha256rnds2_epu32($hgdc, $feba, wk);
        let wk = _mm_shuffle_epi32(wk, 0x0e);
        $feba = _mm_sha256rnds2_epu32($feba, $hgdc, wk);
        if $j < 12 {
            let sum = _mm_sha256msg1_epu32(w[$j % 4], w[($j + 1) % 4]);
            let seven_back = _mm_alignr_epi8(w[($j + 3) % 4], w[($j + 2) % 4], 4);
            let sum = _mm_add_epi32(sum, seven_back);
            w[$j % 4] = _mm_sha256msg2_epu32(sum, w[($j + 3) % 4]);
        }
    }};
}
pub(super) use four_rounds;

/// Compresses a block of each message, given as words, into its state (f e b a, h g d c).
#[inline]
#[target_feature(enable = "sha,avx2")]
pub(super) fn blocks<const L: usize>(
    states: &mut [(__m128i, __m128i); L],
    mut w: [[__m128i; 4]; L],
) {
    let before = *states;
    macro_rules! quarters {
        ($($j:literal)*) => {$(
            for l in 0..L {
                four_rounds!($j, w[l], states[l].0, states[l].1);
            }
        )*};
    }
    quarters!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
    for l in 0..L {
        states[l].0 = _mm_add_epi32(states[l].0, before[l].0);
        states[l].1 = _mm_add_epi32(states[l].1, before[l].1);
    }
}

/// Compresses the blocks of `L` messages, as many as the first one has.
#[target_feature(enable = "sha,avx2")]
fn lanes<const L: usize>(states: &mut [[u32; 8]], data: &[&[u8]]) {
    let states: &mut [[u32; 8]; L] = states.try_into().expect("a state for each lane");
    let data: &[&[u8]; L] = data.try_into().expect("blocks for each lane");
    let len = data[0].len();
    assert!(data.iter().all(|b| b.len() == len));

    let big_endian = _mm_set_epi64x(0x0c0d_0e0f_0809_0a0b, 0x0405_0607_0001_0203);
    let mut vectors = [(_mm_setzero_si128(), _mm_setzero_si128()); L];
    for l in 0..L {
        vectors[l] = (load(&states[l][..4]), load(&states[l][4..]));
    }
    for offset in (0..len).step_by(64) {
        let mut w = [[_mm_setzero_si128(); 4]; L];
        for l in 0..L {
            let block = &data[l][offset..][..64];
            for (i, w) in w[l].iter_mut().enumerate() {
                // SAFETY: a load of 16 of the 64 bytes.
                let words = unsafe { memory::load(block.as_ptr().add(16 * i)) };
                *w = _mm_shuffle_epi8(words, big_endian);
            }
        }
        blocks(&mut vectors, w);
    }
    for l in 0..L {
        store(&mut states[l][..4], vectors[l].0);
        store(&mut states[l][4..], vectors[l].1);
    }
}

#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn load(words: &[u32]) -> __m128i {
    let words: &[u32; 4] = words.try_into().expect("four words");
    // SAFETY: a load of 16 bytes from four words.
    unsafe { memory::load(words.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn store(words: &mut [u32], register: __m128i) {
    let words: &mut [u32; 4] = words.try_into().expect("four words");
    // SAFETY: a store of 16 bytes to four words.
    unsafe { _mm_storeu_si128(words.as_mut_ptr().cast(), register) }
}
