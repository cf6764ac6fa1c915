//! Byte planes with AVX2: a register holds one byte of each of 32 blocks, so eight
//! registers hold them.
//!
//! The bytes of a half are kept with their upper bit flipped, so that the carry of an
//! addition is one signed comparison. Nibbles are looked up by byte shuffles; the
//! rotation by 11 bits is a renaming of planes by one, and three bits that stand in
//! the tables.

// Arrays of registers and of lanes are gone through together, by one number.
#![allow(clippy::needless_range_loop)]

mod alone;

use core::arch::asm;
use core::arch::x86_64::*;
use core::array;
use core::mem::MaybeUninit;

use arrayvec::ArrayVec;
use inout::InOutBuf;

use super::{Counters, by_registers};
use crate::cpu::HaveAvx2;
use crate::gost28147::engine::{Beside, Block, CHUNK, Engine, MAX_BLOCKS, Rounds, STREAMED};
use crate::gost28147::key::Words;
use crate::gost28147::sbox::Tables;
use crate::x86_64::chacha_lanes;
use crate::x86_64::memory;

const LANES: usize = 32;
const REGISTERS: usize = 3;

/// Rounds of 32 blocks to eight registers.
#[derive(Clone, Copy)]
pub(crate) struct Planes(pub(crate) HaveAvx2);

/// By subkey, byte, then lane in the order of [`planes`].
#[derive(Clone, Copy, Default)]
#[repr(align(32))]
pub(crate) struct Keys([[[u8; LANES]; 4]; 8]);

impl Engine for Planes {
    const LANES: usize = LANES;
    const REGISTERS: usize = REGISTERS;
    type Keys = Keys;
    type Bank = ArrayVec<Keys, REGISTERS>;

    #[inline(always)]
    fn splat(self, key: &Words, keys: &mut Keys) {
        for (rows, word) in keys.0.iter_mut().zip(key) {
            for (row, byte) in rows.iter_mut().zip(word.to_le_bytes()) {
                *row = [byte; LANES];
            }
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
            unsafe { by_registers!(keys, crypt(sbox, rounds, blocks, keys), 1 2 3) }
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
        unsafe { by_registers!(keys, mac(sbox, states, data, blocks, keys, None), 1 2 3) }
    }

    #[inline(always)]
    fn xor(self, data: InOutBuf<'_, '_, u8>, stream: &[u8]) {
        // In place, the compiler would go byte by byte.
        chacha_lanes::xor(self.0, data, stream);
    }
}

impl Beside for Planes {
    const BUSY: usize = 1;
    const COSTS: [usize; 2] = [4, 3];

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
        unsafe { by_registers!(keys, mac(sbox, states, data, blocks, keys, counters), 1 2 3) }
    }
}

/// The planes of a half.
type Half = [__m256i; 4];

/// Halves of `G` groups of blocks, upper bits flipped: the one that goes into the next
/// round, and the one that it changes.
type Halves<const G: usize> = ([Half; G], [Half; G]);

/// The eight planes of four blocks in each of eight registers. Lane `16l + 2i + p` of a
/// plane is block `4i + 2l + p`.
#[inline]
#[target_feature(enable = "avx2")]
fn planes(quads: [__m256i; 8]) -> [__m256i; 8] {
    let pairs = _mm256_broadcastsi128_si256(_mm_setr_epi8(
        0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15,
    ));
    transpose(quads.map(|quad| _mm256_shuffle_epi8(quad, pairs)))
}

/// The inverse of [`planes`].
#[inline]
#[target_feature(enable = "avx2")]
fn quads(planes: [__m256i; 8]) -> [__m256i; 8] {
    let blocks = _mm256_broadcastsi128_si256(_mm_setr_epi8(
        0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15,
    ));
    transpose(planes).map(|quad| _mm256_shuffle_epi8(quad, blocks))
}

/// Eight rows of eight 16-bit units in each 128 bits become columns; its own inverse.
#[inline]
#[target_feature(enable = "avx2")]
fn transpose(rows: [__m256i; 8]) -> [__m256i; 8] {
    let [a, b, c, d] = [0, 2, 4, 6].map(|i| {
        (
            _mm256_unpacklo_epi16(rows[i], rows[i + 1]),
            _mm256_unpackhi_epi16(rows[i], rows[i + 1]),
        )
    });
    let quarter = |x: __m256i, y: __m256i, z: __m256i, w: __m256i| {
        let (front, back) = (_mm256_unpacklo_epi32(x, y), _mm256_unpacklo_epi32(z, w));
        let (front_2, back_2) = (_mm256_unpackhi_epi32(x, y), _mm256_unpackhi_epi32(z, w));
        [
            _mm256_unpacklo_epi64(front, back),
            _mm256_unpackhi_epi64(front, back),
            _mm256_unpacklo_epi64(front_2, back_2),
            _mm256_unpackhi_epi64(front_2, back_2),
        ]
    };
    let [c0, c1, c2, c3] = quarter(a.0, b.0, c.0, d.0);
    let [c4, c5, c6, c7] = quarter(a.1, b.1, c.1, d.1);
    [c0, c1, c2, c3, c4, c5, c6, c7]
}

/// # Safety
/// `blocks` are `G` groups of 32.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn load<const G: usize>(blocks: &[Block]) -> Halves<G> {
    let flip = _mm256_set1_epi8(-128);
    let mut halves = ([[flip; 4]; G], [[flip; 4]; G]);
    for g in 0..G {
        let mut rows = [flip; 8];
        for (i, row) in rows.iter_mut().enumerate() {
            // SAFETY: within the blocks.
            *row = unsafe { memory::load(blocks.as_ptr().add(g * LANES + 4 * i).cast()) };
        }
        let planes = planes(rows).map(|plane| _mm256_xor_si256(plane, flip));
        for j in 0..4 {
            (halves.0[g][j], halves.1[g][j]) = (planes[j], planes[4 + j]);
        }
    }
    halves
}

/// # Safety
/// `blocks` are `G` groups of 32.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn store<const G: usize>((first, second): Halves<G>, blocks: &mut [Block]) {
    let flip = _mm256_set1_epi8(-128);
    for g in 0..G {
        let planes = array::from_fn(|j| {
            let half = if j < 4 { first[g] } else { second[g] };
            _mm256_xor_si256(half[j % 4], flip)
        });
        for (i, row) in quads(planes).into_iter().enumerate() {
            // SAFETY: within the blocks.
            unsafe {
                _mm256_storeu_si256(blocks.as_mut_ptr().add(g * LANES + 4 * i).cast(), row);
            }
        }
    }
}

/// The sums of a half and a subkey, byte by byte.
///
/// A byte carries either when it is added to the subkey's or when the carry of the byte before
/// is added to that, never both times, so that the two are taken from the next byte one after
/// the other, the earlier one ahead of time.
///
/// # Safety
/// AVX2 is there, and the four planes of a subkey stand at `key`.
#[inline(always)]
unsafe fn sums(half: &Half, key: *const __m256i) -> Half {
    // SAFETY: as for this function; rows of keys are as large as registers and aligned.
    unsafe {
        let bytes: Half =
            array::from_fn(|j| _mm256_add_epi8(half[j], _mm256_load_si256(key.add(j))));
        let carry = |j: usize| _mm256_cmpgt_epi8(half[j], bytes[j]);
        let second = _mm256_sub_epi8(bytes[1], carry(0));
        let late = _mm256_cmpgt_epi8(bytes[1], second);
        let third = _mm256_sub_epi8(_mm256_sub_epi8(bytes[2], carry(1)), late);
        let late = _mm256_cmpgt_epi8(bytes[2], third);
        let fourth = _mm256_sub_epi8(_mm256_sub_epi8(bytes[3], carry(2)), late);
        [bytes[0], second, third, fourth]
    }
}

/// Changes `other` by the rotated substitutes of the sum of `half` and a subkey.
///
/// # Safety
/// AVX2 is there, there are keys of `G` groups, and `i` is from 0 to 7.
#[inline(always)]
unsafe fn round<const G: usize>(
    sbox: &Tables,
    keys: &[Keys],
    i: isize,
    half: &[Half; G],
    other: &mut [Half; G],
) {
    // SAFETY: as for this function; tables have 16 bytes.
    unsafe {
        let nibble = _mm256_set1_epi8(15);
        let mut all = *half;
        for g in 0..G {
            all[g] = sums(&half[g], subkey(keys, g, i));
        }
        for j in 0..4 {
            let [even, odd_front, odd_back] = [0, 1, 2].map(|i| {
                let table = sbox.planes.as_ptr().add(j).cast::<__m128i>().add(i).cast();
                _mm256_broadcastsi128_si256(memory::load(table))
            });
            let (p, q) = ((j + 1) % 4, (j + 2) % 4);
            for g in 0..G {
                let low = _mm256_and_si256(all[g][j], nibble);
                let high = _mm256_and_si256(_mm256_srli_epi16::<4>(all[g][j]), nibble);
                let front = _mm256_xor_si256(
                    _mm256_shuffle_epi8(even, low),
                    _mm256_shuffle_epi8(odd_front, high),
                );
                other[g][p] = _mm256_xor_si256(other[g][p], front);
                let back = _mm256_shuffle_epi8(odd_back, high);
                other[g][q] = _mm256_xor_si256(other[g][q], back);
            }
        }
    }
}

/// The planes of subkey `i` of a group.
///
/// # Safety
/// There are keys of that group, and `i` is from 0 to 7.
#[inline(always)]
unsafe fn subkey(keys: &[Keys], group: usize, i: isize) -> *const __m256i {
    // SAFETY: as for this function.
    unsafe { keys.get_unchecked(group).0.as_ptr().offset(i).cast() }
}

/// Eight rounds. Their number is even, so that the halves end in their places.
///
/// # Safety
/// AVX2 is there, and there are keys of `G` groups.
#[inline(always)]
unsafe fn pass<const G: usize>(
    sbox: &Tables,
    forward: bool,
    keys: &[Keys],
    (a, b): &mut Halves<G>,
) {
    let (mut i, step) = if forward { (0, 1) } else { (7, -1_isize) };
    for _ in 0..4 {
        // SAFETY: as for this function; both are from 0 to 7.
        unsafe {
            if let ([a], [b]) = (&mut a[..], &mut b[..]) {
                let (first, second) = (subkey(keys, 0, i), subkey(keys, 0, i + step));
                alone::two_rounds(sbox, first, second, a, b);
            } else {
                round::<G>(sbox, keys, i, a, b);
                round::<G>(sbox, keys, i + step, b, a);
            }
        }
        i += 2 * step;
    }
}

/// # Safety
/// There are `G` groups of blocks and of keys.
#[inline(never)]
#[target_feature(enable = "avx2")]
unsafe fn crypt<const G: usize>(
    sbox: &Tables,
    rounds: Rounds,
    blocks: &mut [Block],
    keys: &[Keys],
) {
    // Two or three groups do not fit the registers. What the compiler puts on the stack instead
    // stands across cache lines, unless something else makes it align the stack to registers:
    // the rounds would take from a tenth to twice as long, by the depth of the call.
    let aligned = MaybeUninit::<__m256i>::uninit();
    // SAFETY: as for this function. The empty statement does nothing, but the compiler has to
    // assume that it uses the address.
    unsafe {
        asm!("/* {0} */", in(reg) aligned.as_ptr(), options(nostack, preserves_flags));
        let mut halves = load::<G>(blocks);
        for &forward in rounds.passes() {
            pass::<G>(sbox, forward, keys, &mut halves);
        }
        let (a, b) = halves;
        store::<G>(if rounds.exchanged() { (b, a) } else { (a, b) }, blocks);
    }
}

/// # Safety
/// There are `G` groups of each, also of what counters have, and of their streams as many lanes
/// or more.
#[inline(never)]
#[target_feature(enable = "avx2")]
unsafe fn mac<const G: usize>(
    sbox: &Tables,
    states: &mut [Block],
    data: &[&[u8; CHUNK]],
    blocks: &[u8],
    keys: &[Keys],
    mut counters: Option<Counters<'_, Keys>>,
) {
    let whole = blocks
        .iter()
        .all(|&blocks| usize::from(blocks) == CHUNK / 8);
    // SAFETY: as for this function; a step reads eight of 64 bytes, two steps at once.
    unsafe {
        let mut halves = load::<G>(states);
        for steps in (0..CHUNK / 8).step_by(2) {
            let mut staged = [[[_mm256_setzero_si256(); 8]; G]; 2];
            for g in 0..G {
                let lane = |i: usize| {
                    memory::load(
                        data.get_unchecked(g * LANES + i)
                            .as_ptr()
                            .add(8 * steps)
                            .cast(),
                    )
                };
                let mut rows = [[_mm256_setzero_si256(); 8]; 2];
                for i in 0..8 {
                    let even = _mm256_set_m128i(lane(4 * i + 2), lane(4 * i));
                    let odd = _mm256_set_m128i(lane(4 * i + 3), lane(4 * i + 1));
                    rows[0][i] = _mm256_unpacklo_epi64(even, odd);
                    rows[1][i] = _mm256_unpackhi_epi64(even, odd);
                }
                staged[0][g] = planes(rows[0]);
                staged[1][g] = planes(rows[1]);
            }
            for (step, staged) in (steps..).zip(&staged) {
                let before = halves;
                let is_odd = !step.is_multiple_of(2);
                if let (Some(counters), false) = (&counters, is_odd) {
                    clear(&mut halves, counters.lanes);
                }
                for g in 0..G {
                    for j in 0..4 {
                        halves.0[g][j] = _mm256_xor_si256(halves.0[g][j], staged[g][j]);
                        halves.1[g][j] = _mm256_xor_si256(halves.1[g][j], staged[g][4 + j]);
                    }
                }
                pass::<G>(sbox, true, keys, &mut halves);
                let last = counters.as_ref().filter(|_| is_odd);
                let last = last.map_or(keys, |counters| counters.last);
                pass::<G>(sbox, true, last, &mut halves);
                if let (Some(counters), true) = (&mut counters, is_odd) {
                    let (a, b) = halves;
                    store::<G>((b, a), &mut counters.streams[step / 2]);
                }
                if !whole {
                    for g in 0..G {
                        let on = active(&blocks[g * LANES..], step);
                        for j in 0..4 {
                            let select = |old, new| _mm256_blendv_epi8(old, new, on);
                            halves.0[g][j] = select(before.0[g][j], halves.0[g][j]);
                            halves.1[g][j] = select(before.1[g][j], halves.1[g][j]);
                        }
                    }
                }
            }
        }
        store::<G>(halves, states);
    }
}

/// Makes the state of these lanes zero.
///
/// # Safety
/// `lanes` has `G` groups.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn clear<const G: usize>(halves: &mut Halves<G>, lanes: &[u8]) {
    let flip = _mm256_set1_epi8(-128);
    for g in 0..G {
        // SAFETY: as for this function.
        let on = unsafe { active(&lanes[g * LANES..], 0) };
        for j in 0..4 {
            halves.0[g][j] = _mm256_blendv_epi8(halves.0[g][j], flip, on);
            halves.1[g][j] = _mm256_blendv_epi8(halves.1[g][j], flip, on);
        }
    }
}

/// Ones in the lanes of a group that have more blocks than `step`.
///
/// # Safety
/// `blocks` has 32 items or more.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn active(blocks: &[u8], step: usize) -> __m256i {
    let evens_first = _mm256_broadcastsi128_si256(_mm_setr_epi8(
        0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15,
    ));
    // SAFETY: as for this function.
    let counts = unsafe { memory::load(blocks.as_ptr()) };
    let counts = _mm256_shuffle_epi8(counts, evens_first);
    let counts = _mm256_permute4x64_epi64::<0b11_01_10_00>(counts);
    _mm256_cmpgt_epi8(counts, _mm256_set1_epi8(step as i8))
}

/// # Safety
/// The processor has AVX2.
#[target_feature(enable = "avx2")]
unsafe fn gather(lanes: &[&Words; LANES], keys: &mut Keys) {
    // SAFETY: a key has 32 bytes, of which 16 are read at a time; rows of 32 bytes are
    // written, aligned.
    unsafe {
        for i in [0, 4] {
            let lane = |lane: usize| memory::load(lanes[lane].as_ptr().add(i).cast());
            let mut rows = [[_mm256_setzero_si256(); 8]; 2];
            for r in 0..8 {
                let even = _mm256_set_m128i(lane(4 * r + 2), lane(4 * r));
                let odd = _mm256_set_m128i(lane(4 * r + 3), lane(4 * r + 1));
                rows[0][r] = _mm256_unpacklo_epi64(even, odd);
                rows[1][r] = _mm256_unpackhi_epi64(even, odd);
            }
            for (pair, rows) in rows.into_iter().enumerate() {
                let keys = &mut keys.0[i + 2 * pair..][..2];
                for (plane, key) in planes(rows).into_iter().zip(keys.as_flattened_mut()) {
                    _mm256_store_si256(key.as_mut_ptr().cast(), plane);
                }
            }
        }
    }
}
