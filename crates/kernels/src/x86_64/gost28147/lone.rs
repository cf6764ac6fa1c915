//! One block at a time, at the least latency.
//!
//! Every nibble of a sum has its own shuffle. The index of a shuffle is the sum with
//! everything masked out but its nibble, so that the other bytes look up 0, for which
//! the tables hold 0; what they ought to hold for it is a constant of the S-box, and
//! stands ready before the sum does.

use core::arch::x86_64::*;

use crate::cpu::HaveAvx2;
use crate::gost28147::engine::Rounds;
use crate::gost28147::{Block, Tables, Words};

/// One block through the rounds.
#[inline(always)]
pub(super) fn crypt(
    _: HaveAvx2,
    sbox: &Tables,
    rounds: Rounds,
    key: &Words,
    block: Block,
) -> Block {
    // SAFETY: the token proves the features.
    unsafe { crypt_inner(sbox, rounds, key, block) }
}

/// The MAC of whole blocks.
#[inline(always)]
pub(super) fn mac(_: HaveAvx2, sbox: &Tables, key: &Words, state: &mut Block, data: &[Block]) {
    // SAFETY: the token proves the features.
    unsafe { mac_inner(sbox, key, state, data) }
}

/// The tables in registers.
#[derive(Clone, Copy)]
struct Substitution {
    nibbles: [__m128i; 8],
    zeros: __m128i,
}

impl Substitution {
    #[inline]
    #[target_feature(enable = "avx2")]
    fn new(sbox: &Tables) -> Self {
        Substitution {
            // SAFETY: a table has 16 bytes.
            nibbles: sbox
                .nibbles
                .map(|table| unsafe { _mm_loadu_si128(table.as_ptr().cast()) }),
            zeros: _mm_cvtsi32_si128(sbox.zeros.cast_signed()),
        }
    }

    /// `other` plus the rotated substitutes of the sum of `half` and a subkey. Only the
    /// first word of each is used.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn round(&self, half: __m128i, key: u32, other: __m128i) -> __m128i {
        let sum = _mm_add_epi32(half, _mm_cvtsi32_si128(key.cast_signed()));
        let upper = _mm_srli_epi32::<4>(sum);
        let only = |i: i32| _mm_cvtsi32_si128(15 << (8 * i));
        let pick = |i: usize| {
            let from = if i % 2 == 0 { sum } else { upper };
            _mm_shuffle_epi8(self.nibbles[i], _mm_and_si128(from, only(i as i32 / 2)))
        };
        let add = |x, y| _mm_xor_si128(x, y);
        let even = add(add(pick(0), pick(2)), add(pick(4), pick(6)));
        let odd = add(add(pick(1), pick(3)), add(pick(5), pick(7)));
        let all = add(even, odd);
        let other = add(other, self.zeros);
        let other = add(other, _mm_slli_epi32::<11>(all));
        add(other, _mm_srli_epi32::<21>(all))
    }

    /// Eight rounds.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn pass(&self, forward: bool, key: &Words, (a, b): &mut (__m128i, __m128i)) {
        let flip = if forward { 0 } else { 7 };
        for i in [0, 2, 4, 6] {
            *b = self.round(*a, key[i ^ flip], *b);
            *a = self.round(*b, key[(i + 1) ^ flip], *a);
        }
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn load(block: Block) -> (__m128i, __m128i) {
    let block = u64::from_le_bytes(block);
    (
        _mm_cvtsi32_si128((block as u32).cast_signed()),
        _mm_cvtsi32_si128(((block >> 32) as u32).cast_signed()),
    )
}

#[inline]
#[target_feature(enable = "avx2")]
fn store(first: __m128i, second: __m128i) -> Block {
    let word = |half| u64::from(_mm_cvtsi128_si32(half).cast_unsigned());
    (word(first) | word(second) << 32).to_le_bytes()
}

#[target_feature(enable = "avx2")]
fn crypt_inner(sbox: &Tables, rounds: Rounds, key: &Words, block: Block) -> Block {
    let sbox = Substitution::new(sbox);
    let mut halves = load(block);
    for &forward in rounds.passes() {
        sbox.pass(forward, key, &mut halves);
    }
    let (a, b) = halves;
    if rounds.exchanged() {
        store(b, a)
    } else {
        store(a, b)
    }
}

#[target_feature(enable = "avx2")]
fn mac_inner(sbox: &Tables, key: &Words, state: &mut Block, data: &[Block]) {
    let sbox = Substitution::new(sbox);
    let mut halves = load(*state);
    for block in data {
        let (first, second) = load(*block);
        halves.0 = _mm_xor_si128(halves.0, first);
        halves.1 = _mm_xor_si128(halves.1, second);
        for &forward in Rounds::Mac.passes() {
            sbox.pass(forward, key, &mut halves);
        }
    }
    *state = store(halves.0, halves.1);
}
