//! Kuznyechik on 32 or 64 blocks in 256-bit registers, without GFNI.
//!
//! Blocks stand in the basis in which the S-box falls apart into functions of nibbles
//! ([`field`]): tower form to encrypt, split form to decrypt. Products in the subfield
//! are sums of exponents, so the S-box is 19 instructions, 8 of them look-ups in 16
//! bytes. A multiplication by a constant is a look-up for each nibble. A new byte of the
//! linear transformation takes six of them instead of seven because 148 = 133 + 16 + 1,
//! and 53 instructions in all.
//!
//! A round is 1,168 instructions for 32 blocks, of which 432 need one of two ports for
//! shuffles and shifts. At four per cycle the nine rounds take 5.1 cycles per byte, which is
//! the ceiling: 630 MB/s at 3.24 GHz.

use core::arch::x86_64::*;

use arrayvec::ArrayVec;

use super::bases::{Nibbles, SPLIT, TOWER, mapped};
use super::few;
use super::keys::{KeyPlanes, Vector};
use super::logarithms::{restore, substitute};
use crate::cpu::HaveAvx2;
use crate::job::Direction;
use crate::kuznyechik::field;
use crate::kuznyechik::key::{Block, KuznyechikKey, RoundKeys};
use crate::kuznyechik::schedule::schedule;
use crate::wipe::wipe;
use crate::x86_64::memory;
use crate::x86_64::wipe::vectors;

/// Blocks in a register.
const LANES: usize = 32;

type Planes = [__m256i; 16];

/// Encrypts or decrypts each block under the key of the same place.
pub(crate) fn crypt(
    token: HaveAvx2,
    key_planes: &mut KeyPlanes,
    dir: Direction,
    keys: &[&KuznyechikKey],
    blocks: &mut [Block],
) {
    for (keys, blocks) in keys.chunks(2 * LANES).zip(blocks.chunks_mut(2 * LANES)) {
        if dir == Direction::Encrypt && blocks.len() <= few::MOST_256 {
            few::encrypt_256(token, keys, blocks);
            continue;
        }
        let form = match dir {
            Direction::Encrypt => KuznyechikKey::tower,
            Direction::Decrypt => KuznyechikKey::split,
        };
        let mut rounds: ArrayVec<_, { 2 * LANES }> = ArrayVec::new();
        rounds.extend(keys.iter().map(|key| form(key)));
        let mut run = |blocks: &mut [Block; 2 * LANES]| {
            let (first, second) = blocks.split_at_mut(LANES);
            let first = first.try_into().expect("32 blocks");
            let second = second.try_into().expect("32 blocks");
            // SAFETY: the token proves the features.
            unsafe {
                if rounds.len() > LANES {
                    group(key_planes, dir, &rounds, [first, second]);
                } else {
                    group(key_planes, dir, &rounds, [first]);
                }
            }
        };
        match <&mut [Block; 2 * LANES]>::try_from(&mut *blocks) {
            Ok(whole) => run(whole),
            Err(_) => {
                let mut whole = [[0; 16]; 2 * LANES];
                whole[..blocks.len()].copy_from_slice(blocks);
                run(&mut whole);
                blocks.copy_from_slice(&whole[..blocks.len()]);
                wipe(&mut whole, [[0; 16]; 2 * LANES]);
            }
        }
    }
    vectors(token, None);
}

/// The iteration keys (RFC 7801 section 4.4), and those of both bases.
pub(crate) fn expand(avx2: HaveAvx2, key: &[u8; 32], [plain, tower, split]: [&mut RoundKeys; 3]) {
    #[target_feature(enable = "avx2")]
    fn inner(key: &[u8; 32], plain: &mut RoundKeys, tower: &mut RoundKeys, split: &mut RoundKeys) {
        schedule(key, plain, |block| {
            let x = substitute(mapped(load(block), &TOWER.enter));
            store(block, mixed_one(x));
        });
        for (round, key) in plain.iter().enumerate() {
            let key = load(key);
            store(&mut tower[round], mapped(key, &TOWER.enter));
            // What the S-box's inverse adds before all else goes with the key before
            // it, through the linear transformation between them.
            let constant = load(if round > 0 {
                &CONSTANT_BEFORE_MIX
            } else {
                &[0; 16]
            });
            store(
                &mut split[round],
                mapped(_mm256_xor_si256(key, constant), &SPLIT.enter),
            );
        }
    }
    // SAFETY: the token proves the features.
    unsafe { inner(key, plain, tower, split) }
    vectors(avx2, None);
}

const CONSTANT_BEFORE_MIX: Block = field::mix(&[field::SPLIT_CONSTANT; 16]);

/// L of a block in tower form, from the columns of the matrix of bits.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn mixed_one(x: __m256i) -> __m256i {
    /// The images of bits `2 i` and `2 i + 1` of each byte, of the first byte first.
    static COLUMNS: [[[Block; 2]; 4]; 16] = {
        let (mut columns, mut i) = ([[[[0; 16]; 2]; 4]; 16], 0);
        while i < 128 {
            let mut block = [0; 16];
            block[i / 8] = field::FROM_TOWER[1 << (i % 8)];
            columns[i / 8][i % 8 / 2][i % 2] = field::mix(&block);
            i += 1;
        }
        columns
    };
    let mut sums = [_mm256_setzero_si256(); 4];
    for (byte, columns) in COLUMNS.iter().enumerate() {
        let lanes = _mm256_shuffle_epi8(x, _mm256_set1_epi8(byte as i8));
        for (pair, columns) in columns.iter().enumerate() {
            let (one, two) = (1 << (2 * pair), 2 << (2 * pair));
            let bits = _mm256_set_m128i(_mm_set1_epi8(two), _mm_set1_epi8(one));
            let mask = _mm256_cmpeq_epi8(_mm256_and_si256(lanes, bits), bits);
            // SAFETY: 32 bytes are read of two blocks.
            let columns = unsafe { memory::load(columns.as_ptr().cast()) };
            sums[pair] = _mm256_xor_si256(sums[pair], _mm256_and_si256(mask, columns));
        }
    }
    let [a, b, c, d] = sums;
    let sum = _mm256_xor_si256(_mm256_xor_si256(a, b), _mm256_xor_si256(c, d));
    _mm256_xor_si256(sum, _mm256_permute4x64_epi64::<0b01_00_11_10>(sum))
}

/// A block, twice.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn load(block: &Block) -> __m256i {
    // SAFETY: 16 bytes are read of 16.
    _mm256_broadcastsi128_si256(unsafe { memory::load(block.as_ptr()) })
}

#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn store(block: &mut Block, x: __m256i) {
    // SAFETY: 16 bytes are written to 16.
    unsafe { _mm_storeu_si128(block.as_mut_ptr().cast(), _mm256_castsi256_si128(x)) };
}

// Sixteen of the same are written out, or planes would be looked for by index.

macro_rules! sixteen {
    ($do:expr) => {{
        let mut each = $do;
        each(0);
        each(1);
        each(2);
        each(3);
        each(4);
        each(5);
        each(6);
        each(7);
        each(8);
        each(9);
        each(10);
        each(11);
        each(12);
        each(13);
        each(14);
        each(15);
    }};
}

#[target_feature(enable = "avx2")]
fn group<const G: usize>(
    key_planes: &mut KeyPlanes,
    dir: Direction,
    lanes: &[&RoundKeys],
    blocks: [&mut [Block; LANES]; G],
) {
    for (register, lanes) in lanes.chunks(LANES).enumerate() {
        // SAFETY: the features of this function are those of the type, and the token
        // leads every call on one machine here. Keys are borrowed for longer.
        unsafe { key_planes.set::<__m256i>(register, lanes) };
    }
    let mut states = [[_mm256_setzero_si256(); 16]; G];
    for (state, blocks) in states.iter_mut().zip(&blocks) {
        // SAFETY: there are 32 blocks.
        *state = unsafe { __m256i::planes(blocks.as_ptr()) };
    }
    // SAFETY: as many registers were set as there are states.
    let keys = core::array::from_fn(|g| unsafe { key_planes.get::<__m256i>(g) });
    match dir {
        Direction::Encrypt => encrypt(&mut states, keys),
        Direction::Decrypt => decrypt(&mut states, keys),
    }
    for (state, blocks) in states.iter().zip(blocks) {
        let rows = transpose(state);
        let (upper, lower) = blocks.split_at_mut(LANES / 2);
        for (row, (upper, lower)) in rows.iter().zip(upper.iter_mut().zip(lower)) {
            // SAFETY: 16 bytes are written to each block.
            unsafe {
                _mm_storeu_si128(upper.as_mut_ptr().cast(), _mm256_castsi256_si128(*row));
                _mm_storeu_si128(
                    lower.as_mut_ptr().cast(),
                    _mm256_extracti128_si256::<1>(*row),
                );
            }
        }
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn encrypt<const G: usize>(states: &mut [Planes; G], keys: [&[Planes; 10]; G]) {
    map(states, &TOWER.enter);
    for round in 0..9 {
        for (state, keys) in states.iter_mut().zip(keys) {
            sixteen!(|i: usize| {
                state[i] = substitute(_mm256_xor_si256(state[i], keys[round][i]));
            });
        }
        sixteen!(|i: usize| mix(states, &TOWER.products, 15 - i));
    }
    add(states, keys, 9);
    map(states, &TOWER.leave);
}

#[inline]
#[target_feature(enable = "avx2")]
fn decrypt<const G: usize>(states: &mut [Planes; G], keys: [&[Planes; 10]; G]) {
    map(states, &SPLIT.enter);
    for round in (1..10).rev() {
        add(states, keys, round);
        sixteen!(|i: usize| mix(states, &SPLIT.products, i));
        for state in states.iter_mut() {
            sixteen!(|i: usize| state[i] = restore(state[i]));
        }
    }
    add(states, keys, 0);
    map(states, &SPLIT.leave);
}

#[inline]
#[target_feature(enable = "avx2")]
fn add<const G: usize>(states: &mut [Planes; G], keys: [&[Planes; 10]; G], round: usize) {
    for (state, keys) in states.iter_mut().zip(keys) {
        sixteen!(|i: usize| state[i] = _mm256_xor_si256(state[i], keys[round][i]));
    }
}

/// Into a basis or out of it.
#[inline]
#[target_feature(enable = "avx2")]
fn map<const G: usize>(states: &mut [Planes; G], tables: &Nibbles) {
    for state in states {
        sixteen!(|i: usize| state[i] = mapped(state[i], tables));
    }
}

/// Plane `i` becomes itself and the products of all others by the coefficient of their
/// distance. From the last plane to the first that is L of RFC 7801 section 4.3, from
/// the first to the last its inverse. Tables are loaded once for all registers.
#[inline]
#[target_feature(enable = "avx2")]
fn mix<const G: usize>(states: &mut [Planes; G], products: &[Nibbles; 6], i: usize) {
    let at = |distance: usize| (i + distance) % 16;
    let xor = |x, y| _mm256_xor_si256(x, y);
    let pair = |state: &Planes, distance| xor(state[at(distance)], state[at(16 - distance)]);
    let mut sums = [_mm256_setzero_si256(); G];
    let mut x1 = sums;
    for ((sum, x1), state) in sums.iter_mut().zip(&mut x1).zip(&*states) {
        *sum = xor(state[i], pair(state, 7));
        *x1 = pair(state, 1);
    }
    macro_rules! term {
        ($constant:literal, $x:expr) => {
            for ((sum, x1), state) in sums.iter_mut().zip(x1).zip(&*states) {
                *sum = xor(*sum, mapped($x(state, x1), &products[$constant]));
            }
        };
    }
    term!(5, |state: &Planes, _| state[at(8)]);
    term!(4, |state, _| pair(state, 6));
    term!(3, |state, _| pair(state, 5));
    term!(1, |state, _| pair(state, 2));
    // 148 x_1 + 133 x_3 + 16 x_4 = 133 (x_1 + x_3) + 16 (x_1 + x_4) + x_1, last of all
    // because x_1 has the plane of the step before.
    term!(2, |state, x1| xor(x1, pair(state, 4)));
    term!(0, |state, x1| xor(x1, pair(state, 3)));
    for (state, (sum, x1)) in states.iter_mut().zip(sums.iter().zip(x1)) {
        state[i] = xor(*sum, x1);
    }
}

/// The transpose of the 16x16 bytes in each half: four times, bytes of two rows eight
/// apart alternate.
#[inline]
#[target_feature(enable = "avx2")]
fn transpose(rows: &Planes) -> Planes {
    let mut rows = *rows;
    for _ in 0..4 {
        let last = rows;
        for i in 0..8 {
            rows[2 * i] = _mm256_unpacklo_epi8(last[i], last[i + 8]);
            rows[2 * i + 1] = _mm256_unpackhi_epi8(last[i], last[i + 8]);
        }
    }
    rows
}

impl Vector for __m256i {
    const LANES: usize = LANES;
    type Tail = __m256i;

    #[inline(always)]
    unsafe fn splat(byte: u8) -> Self {
        // SAFETY: as for the trait.
        unsafe { _mm256_set1_epi8(byte as i8) }
    }

    #[inline(always)]
    unsafe fn tail(first: usize) -> __m256i {
        #[inline]
        #[target_feature(enable = "avx2")]
        fn inner(first: usize) -> __m256i {
            const NUMBERS: [i8; LANES] = {
                let (mut numbers, mut i) = ([0; LANES], 0);
                while i < LANES {
                    numbers[i] = i as i8;
                    i += 1;
                }
                numbers
            };
            // SAFETY: 32 bytes are read of 32.
            let numbers = unsafe { memory::load(NUMBERS.as_ptr().cast()) };
            _mm256_cmpgt_epi8(numbers, _mm256_set1_epi8(first as i8 - 1))
        }
        // SAFETY: as for the trait.
        unsafe { inner(first) }
    }

    #[inline(always)]
    unsafe fn replace(self, tail: __m256i, byte: u8) -> Self {
        // SAFETY: as for the trait.
        unsafe { _mm256_blendv_epi8(self, _mm256_set1_epi8(byte as i8), tail) }
    }

    #[inline(always)]
    unsafe fn planes(blocks: *const Block) -> Planes {
        #[inline]
        #[target_feature(enable = "avx2")]
        unsafe fn inner(blocks: *const Block) -> Planes {
            let mut rows = [_mm256_setzero_si256(); 16];
            for (i, row) in rows.iter_mut().enumerate() {
                // SAFETY: as for the trait; `i + 16` is less than 32.
                *row = unsafe {
                    let (upper, lower) = (blocks.add(i).cast(), blocks.add(i + 16).cast());
                    _mm256_loadu2_m128i(lower, upper)
                };
            }
            transpose(&rows)
        }
        // SAFETY: as for the trait.
        unsafe { inner(blocks) }
    }
}
