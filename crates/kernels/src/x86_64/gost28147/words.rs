//! Words with AVX-512 VBMI: a register of 16 words holds a half of 16 blocks.
//!
//! A byte permutation looks up 64 entries, which are the four substitutions that the
//! even nibbles of a word need, or the odd ones: the upper bits of the index are the
//! position of the byte. Halves are kept rotated back by 11 bits, so that what comes
//! out of the substitution is added where it stands, in one instruction.

// Arrays of registers and of lanes are gone through together, by one number.
#![allow(clippy::needless_range_loop)]

use core::arch::x86_64::*;

use arrayvec::ArrayVec;
use inout::InOutBuf;

use super::{Counters, by_registers};
use crate::cpu::HaveAvx512Vbmi;
use crate::gost28147::engine::{Beside, Block, CHUNK, Engine, MAX_BLOCKS, Rounds, STREAMED};
use crate::gost28147::key::Words;
use crate::gost28147::sbox::Tables;
use crate::x86_64::chacha_lanes;
use crate::x86_64::memory;
use crate::x86_64::rows::transpose512;

const LANES: usize = 16;
const REGISTERS: usize = 6;

/// Steps of [`Engine::mac`].
const STEPS: usize = CHUNK / 8;

/// Rounds of 16 blocks to two registers.
#[derive(Clone, Copy)]
pub(crate) struct WideWords(pub(crate) HaveAvx512Vbmi);

/// By subkey, then lane.
#[derive(Clone, Copy, Default)]
#[repr(align(64))]
pub(crate) struct Keys([[u32; LANES]; 8]);

impl Engine for WideWords {
    const LANES: usize = LANES;
    const REGISTERS: usize = REGISTERS;
    type Keys = Keys;
    type Bank = ArrayVec<Keys, REGISTERS>;

    #[inline(always)]
    fn splat(self, key: &Words, keys: &mut Keys) {
        for (row, word) in keys.0.iter_mut().zip(key) {
            *row = [*word; LANES];
        }
    }

    #[inline(always)]
    fn gather(self, lanes: &[&Words], keys: &mut Keys) {
        let Some(lanes) = lanes.first_chunk() else {
            unreachable!("a key for each lane")
        };
        // SAFETY: the token proves the features.
        unsafe { gather(lanes, keys) }
    }

    #[inline(always)]
    fn crypt(self, sbox: &Tables, rounds: Rounds, blocks: &mut [Block], keys: &[Keys]) {
        assert_eq!(blocks.len(), keys.len() * LANES);
        for (blocks, keys) in blocks
            .chunks_mut(REGISTERS * LANES)
            .zip(keys.chunks(REGISTERS))
        {
            // SAFETY: the token proves the features, and there are as many registers
            // of blocks as of keys.
            unsafe { by_registers!(keys, crypt(sbox, rounds, blocks, keys), 1 2 3 4 5 6) }
        }
    }

    #[inline(always)]
    fn mac(
        self,
        sbox: &Tables,
        states: &mut [Block],
        data: &[&[u8; CHUNK]],
        blocks: &[u8],
        keys: &[Keys],
    ) {
        let lanes = keys.len() * LANES;
        assert!(states.len() == lanes && data.len() == lanes && blocks.len() == lanes);
        // SAFETY: the token proves the features, and all have as many lanes as keys.
        unsafe { by_registers!(keys, mac(sbox, states, data, blocks, keys, None), 1 2 3 4 5 6) }
    }

    #[inline(always)]
    fn xor(self, data: InOutBuf<'_, '_, u8>, stream: &[u8]) {
        // In place, the compiler would go byte by byte.
        chacha_lanes::xor(self.0.avx2(), data, stream);
    }
}

impl Beside for WideWords {
    const BUSY: usize = 3;
    const COSTS: [usize; 2] = [1, 1];

    #[inline(always)]
    fn mac_beside_counters(
        self,
        sbox: &Tables,
        states: &mut [Block],
        data: &[&[u8; CHUNK]],
        blocks: &[u8],
        counters: &[u8],
        keys: &[Keys],
        last: &[Keys],
        streams: &mut [[Block; MAX_BLOCKS]; STREAMED],
    ) {
        let lanes = keys.len() * LANES;
        assert!(states.len() == lanes && data.len() == lanes && blocks.len() == lanes);
        assert!(counters.len() == lanes && last.len() == keys.len() && lanes <= MAX_BLOCKS);
        let counters = Some(Counters {
            lanes: counters,
            last,
            streams,
        });
        // SAFETY: the token proves the features, and all have as many lanes as keys.
        unsafe { by_registers!(keys, mac(sbox, states, data, blocks, keys, counters), 1 2 3 4 5 6) }
    }
}

/// The S-box and the constants of a round.
#[derive(Clone, Copy)]
struct Substitution {
    even: __m512i,
    odd: __m512i,
    position: __m512i,
    nibble: __m512i,
}

impl Substitution {
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn new(sbox: &Tables) -> Self {
        // SAFETY: the tables have 64 bytes each.
        let (even, odd) = unsafe {
            (
                memory::load(sbox.even.as_ptr()),
                memory::load(sbox.odd.as_ptr()),
            )
        };
        Substitution {
            even,
            odd,
            position: _mm512_set1_epi32(0x3020_1000),
            nibble: _mm512_set1_epi8(15),
        }
    }

    /// `other` plus the substitutes of the sum of `half`, rotated, and a subkey.
    ///
    /// # Safety
    /// AVX-512 VBMI is there.
    #[inline(always)]
    unsafe fn round(self, half: __m512i, key: __m512i, other: __m512i) -> __m512i {
        // (a & b) | c
        const INDEX: i32 = 0xea;
        const SUM: i32 = 0x96;
        // SAFETY: as for this function.
        unsafe {
            let sum = _mm512_add_epi32(_mm512_rol_epi32::<11>(half), key);
            let even = _mm512_ternarylogic_epi32::<INDEX>(sum, self.nibble, self.position);
            let upper = _mm512_srli_epi32::<4>(sum);
            let odd = _mm512_ternarylogic_epi32::<INDEX>(upper, self.nibble, self.position);
            let even = _mm512_permutexvar_epi8(even, self.even);
            let odd = _mm512_permutexvar_epi8(odd, self.odd);
            _mm512_ternarylogic_epi32::<SUM>(other, even, odd)
        }
    }
}

/// Halves of `W` registers of blocks, rotated back by 11 bits: the one that goes into
/// the next round, and the one that it changes.
type Halves<const W: usize> = ([__m512i; W], [__m512i; W]);

/// # Safety
/// `blocks` are `W` registers of them.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn load<const W: usize>(blocks: &[Block]) -> Halves<W> {
    let even = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
    let odd = _mm512_or_si512(even, _mm512_set1_epi32(1));
    let mut halves = ([even; W], [even; W]);
    for r in 0..W {
        // SAFETY: within the blocks.
        let (front, back) = unsafe {
            let from = blocks.as_ptr().add(r * LANES);
            (memory::load(from.cast()), memory::load(from.add(8).cast()))
        };
        halves.0[r] = _mm512_ror_epi32::<11>(_mm512_permutex2var_epi32(front, even, back));
        halves.1[r] = _mm512_ror_epi32::<11>(_mm512_permutex2var_epi32(front, odd, back));
    }
    halves
}

/// # Safety
/// `blocks` are `W` registers of them.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn store<const W: usize>((first, second): Halves<W>, blocks: &mut [Block]) {
    let front = _mm512_set_epi32(23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    let back = _mm512_add_epi32(front, _mm512_set1_epi32(8));
    for r in 0..W {
        let first = _mm512_rol_epi32::<11>(first[r]);
        let second = _mm512_rol_epi32::<11>(second[r]);
        // SAFETY: within the blocks.
        unsafe {
            let to = blocks.as_mut_ptr().add(r * LANES);
            let joined = _mm512_permutex2var_epi32(first, front, second);
            _mm512_storeu_si512(to.cast(), joined);
            let joined = _mm512_permutex2var_epi32(first, back, second);
            _mm512_storeu_si512(to.add(8).cast(), joined);
        }
    }
}

/// Eight rounds. Their number is even, so that the halves end in their places.
///
/// # Safety
/// AVX-512 VBMI is there, and there are keys of `W` registers.
#[inline(always)]
unsafe fn pass<const W: usize>(
    sbox: Substitution,
    forward: bool,
    keys: &[Keys],
    (a, b): &mut Halves<W>,
) {
    let (mut i, step) = if forward { (0, 1) } else { (7, -1_isize) };
    for _ in 0..4 {
        // SAFETY: `i` goes through 0 to 7.
        unsafe {
            let key = |r: usize, i: isize| {
                let first = keys.as_ptr().add(r).cast::<__m512i>();
                _mm512_load_si512(first.offset(i))
            };
            for r in 0..W {
                b[r] = sbox.round(a[r], key(r, i), b[r]);
            }
            for r in 0..W {
                a[r] = sbox.round(b[r], key(r, i + step), a[r]);
            }
        }
        i += 2 * step;
    }
}

/// # Safety
/// There are `W` registers of blocks and of keys.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
unsafe fn crypt<const W: usize>(
    sbox: &Tables,
    rounds: Rounds,
    blocks: &mut [Block],
    keys: &[Keys],
) {
    let sbox = Substitution::new(sbox);
    // SAFETY: as for this function.
    unsafe {
        let mut halves = load::<W>(blocks);
        for &forward in rounds.passes() {
            pass::<W>(sbox, forward, keys, &mut halves);
        }
        let (a, b) = halves;
        store::<W>(if rounds.exchanged() { (b, a) } else { (a, b) }, blocks);
    }
}

/// # Safety
/// There are `W` registers of each, also of what counters have, and of their streams as many
/// lanes or more.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
unsafe fn mac<const W: usize>(
    sbox: &Tables,
    states: &mut [Block],
    data: &[&[u8; CHUNK]],
    blocks: &[u8],
    keys: &[Keys],
    mut beside: Option<Counters<'_, Keys>>,
) {
    let sbox = Substitution::new(sbox);
    let mut staged = [[[_mm512_setzero_si512(); 2]; STEPS]; W];
    let mut counts = [_mm512_setzero_si512(); W];
    // The lanes that are not counters.
    let mut chains = [u16::MAX; W];
    // SAFETY: as for this function.
    let mut halves = unsafe {
        for r in 0..W {
            staged[r] = stage(&data[r * LANES..]);
            let count = memory::load(blocks.as_ptr().add(r * LANES));
            counts[r] = _mm512_cvtepu8_epi32(count);
            if let Some(beside) = &beside {
                let ones = memory::load(beside.lanes.as_ptr().add(r * LANES));
                chains[r] =
                    _mm512_testn_epi32_mask(_mm512_cvtepu8_epi32(ones), _mm512_set1_epi32(1));
            }
        }
        load::<W>(states)
    };
    for step in 0..STEPS {
        let before = halves;
        let is_odd = !step.is_multiple_of(2);
        for r in 0..W {
            let [first, second] = staged[r][step];
            if !is_odd {
                halves.0[r] = _mm512_maskz_mov_epi32(chains[r], halves.0[r]);
                halves.1[r] = _mm512_maskz_mov_epi32(chains[r], halves.1[r]);
            }
            halves.0[r] = _mm512_xor_si512(halves.0[r], first);
            halves.1[r] = _mm512_xor_si512(halves.1[r], second);
        }
        // SAFETY: as for this function.
        unsafe {
            pass::<W>(sbox, true, keys, &mut halves);
            let last = beside.as_ref().filter(|_| is_odd);
            let last = last.map_or(keys, |beside| beside.last);
            pass::<W>(sbox, true, last, &mut halves);
            if let (Some(beside), true) = (&mut beside, is_odd) {
                let (a, b) = halves;
                store::<W>((b, a), &mut beside.streams[step / 2]);
            }
        }
        for r in 0..W {
            let on = _mm512_cmpgt_epi32_mask(counts[r], _mm512_set1_epi32(step as i32));
            halves.0[r] = _mm512_mask_mov_epi32(before.0[r], on, halves.0[r]);
            halves.1[r] = _mm512_mask_mov_epi32(before.1[r], on, halves.1[r]);
        }
    }
    // SAFETY: as for this function.
    unsafe { store::<W>(halves, states) };
}

/// The halves of the blocks of 16 lanes, step by step, rotated back by 11 bits.
///
/// # Safety
/// There are 16 lanes.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn stage(data: &[&[u8; CHUNK]]) -> [[__m512i; 2]; STEPS] {
    let zero = _mm512_setzero_si512();
    // In each 128 bits `q` of `fours[c][g]`: word `4q + c` of lanes `4g` to `4g + 3`.
    let mut fours = [[zero; 4]; 4];
    for g in 0..4 {
        // SAFETY: a lane has 64 bytes.
        let rows =
            [0, 1, 2, 3].map(|i| unsafe { memory::load(data.get_unchecked(4 * g + i).as_ptr()) });
        for (c, column) in transpose512(rows).into_iter().enumerate() {
            fours[c][g] = column;
        }
    }
    let mut words = [zero; 16];
    for (c, [x0, x1, x2, x3]) in fours.into_iter().enumerate() {
        let (even, odd) = (
            _mm512_shuffle_i32x4::<0x88>(x0, x1),
            _mm512_shuffle_i32x4::<0xdd>(x0, x1),
        );
        let (even_2, odd_2) = (
            _mm512_shuffle_i32x4::<0x88>(x2, x3),
            _mm512_shuffle_i32x4::<0xdd>(x2, x3),
        );
        words[c] = _mm512_shuffle_i32x4::<0x88>(even, even_2);
        words[4 + c] = _mm512_shuffle_i32x4::<0x88>(odd, odd_2);
        words[8 + c] = _mm512_shuffle_i32x4::<0xdd>(even, even_2);
        words[12 + c] = _mm512_shuffle_i32x4::<0xdd>(odd, odd_2);
    }
    let mut steps = [[zero; 2]; STEPS];
    for (step, halves) in steps.iter_mut().enumerate() {
        *halves = [
            _mm512_ror_epi32::<11>(words[2 * step]),
            _mm512_ror_epi32::<11>(words[2 * step + 1]),
        ];
    }
    steps
}

/// # Safety
/// The processor has AVX-512 F.
#[target_feature(enable = "avx512f,avx512dq")]
unsafe fn gather(lanes: &[&Words; LANES], keys: &mut Keys) {
    let row = |low: usize, high: usize| {
        // SAFETY: a key has 32 bytes.
        unsafe {
            let low = memory::load(lanes[low].as_ptr().cast());
            let high = memory::load(lanes[high].as_ptr().cast());
            _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high)
        }
    };
    let front = transpose512([row(0, 4), row(1, 5), row(2, 6), row(3, 7)]);
    let back = transpose512([row(8, 12), row(9, 13), row(10, 14), row(11, 15)]);
    for c in 0..4 {
        let low = _mm512_shuffle_i32x4::<0x88>(front[c], back[c]);
        let high = _mm512_shuffle_i32x4::<0xdd>(front[c], back[c]);
        // SAFETY: rows of 64 bytes, aligned.
        unsafe {
            _mm512_store_si512(keys.0[c].as_mut_ptr().cast(), low);
            _mm512_store_si512(keys.0[c + 4].as_mut_ptr().cast(), high);
        }
    }
}
