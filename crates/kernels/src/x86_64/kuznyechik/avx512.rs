//! Kuznyechik on 64 blocks in 512-bit registers.
//!
//! A round is 368 instructions: the S-box is a table of 256 bytes in four registers, two
//! look-ups and a choice by the top bit; multiplications by constants are matrices of
//! 8x8 bits (GF2P8AFFINEQB). A new byte of the linear transformation takes six of them
//! instead of seven because 148 = 133 + 16 + 1, and 18 instructions in all.

use core::arch::x86_64::*;
use core::array::from_fn;

use arrayvec::ArrayVec;

use super::few;
use super::keys::{KeyPlanes, Vector};
use crate::cpu::HaveGfni512;
use crate::job::Direction;
use crate::kuznyechik::field::{PI, PI_INVERSE, multiply};
use crate::kuznyechik::key::{Block, KuznyechikKey};
use crate::wipe::wipe;
use crate::x86_64::memory;
use crate::x86_64::wipe::vectors;

/// Blocks at once.
const LANES: usize = 64;

/// A register for each byte of a block.
type Planes = [__m512i; 16];

// Sixteen of the same are written out, or planes would be looked for in memory.

macro_rules! planes {
    ($plane:expr) => {{
        let plane = $plane;
        [
            plane(0),
            plane(1),
            plane(2),
            plane(3),
            plane(4),
            plane(5),
            plane(6),
            plane(7),
            plane(8),
            plane(9),
            plane(10),
            plane(11),
            plane(12),
            plane(13),
            plane(14),
            plane(15),
        ]
    }};
}

macro_rules! mix {
    ($planes:ident, $fresh:literal: $($i:literal),+) => {
        $($planes[$i] = mixed::<$fresh>(&$planes, $i);)+
    };
}

/// Encrypts or decrypts each block under the key of the same place.
pub(crate) fn crypt(
    token: HaveGfni512,
    key_planes: &mut KeyPlanes,
    dir: Direction,
    keys: &[&KuznyechikKey],
    blocks: &mut [Block],
) {
    for (keys, blocks) in keys.chunks(LANES).zip(blocks.chunks_mut(LANES)) {
        if dir == Direction::Encrypt && blocks.len() <= few::MOST_512 {
            few::encrypt_512(token, keys, blocks);
            continue;
        }
        let mut rounds: ArrayVec<_, LANES> = ArrayVec::new();
        rounds.extend(keys.iter().map(|key| key.rounds()));
        match <&mut [Block; LANES]>::try_from(&mut *blocks) {
            // SAFETY: the token proves the features.
            Ok(whole) => unsafe { group(key_planes, dir, &rounds, whole) },
            Err(_) => {
                let mut whole = [[0; 16]; LANES];
                whole[..blocks.len()].copy_from_slice(blocks);
                // SAFETY: the token proves the features.
                unsafe { group(key_planes, dir, &rounds, &mut whole) };
                blocks.copy_from_slice(&whole[..blocks.len()]);
                wipe(&mut whole, [[0; 16]; LANES]);
            }
        }
    }
    let (avx2, avx512) = token.smaller();
    vectors(avx2, Some(avx512));
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,gfni")]
fn group(
    key_planes: &mut KeyPlanes,
    dir: Direction,
    rounds: &[&[Block; 10]],
    blocks: &mut [Block; LANES],
) {
    // SAFETY: the features of this function are those of the type, and the token leads
    // every call on one machine here. Keys are borrowed for longer than the planes.
    let keys = unsafe {
        key_planes.set::<__m512i>(0, rounds);
        key_planes.get::<__m512i>(0)
    };
    // SAFETY: there are 64 blocks.
    let mut planes = unsafe { __m512i::planes(blocks.as_ptr()) };
    match dir {
        Direction::Encrypt => {
            let table = table(&PI);
            for key in &keys[..9] {
                for (plane, key) in planes.iter_mut().zip(key) {
                    *plane = substitute(&table, _mm512_xor_si512(*plane, *key));
                }
                mix!(planes, 1: 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
            }
            add(&mut planes, &keys[9]);
        }
        Direction::Decrypt => {
            let table = table(&PI_INVERSE);
            add(&mut planes, &keys[9]);
            for key in keys[..9].iter().rev() {
                mix!(planes, 15: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
                for (plane, key) in planes.iter_mut().zip(key) {
                    *plane = _mm512_xor_si512(substitute(&table, *plane), *key);
                }
            }
        }
    }
    let rows = transpose(planes);
    for (row, blocks) in rows.into_iter().zip(blocks.as_chunks_mut::<4>().0) {
        let row = _mm512_permutexvar_epi8(order(true), row);
        // SAFETY: 64 bytes are written to four blocks.
        unsafe { _mm512_storeu_si512(blocks.as_mut_ptr().cast(), row) };
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn add(planes: &mut Planes, key: &Planes) {
    for (plane, key) in planes.iter_mut().zip(key) {
        *plane = _mm512_xor_si512(*plane, *key);
    }
}

/// A table of 256 bytes in registers.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn table(bytes: &[u8; 256]) -> [__m512i; 4] {
    let (quarters, _) = bytes.as_chunks::<64>();
    // SAFETY: 64 bytes are read of 64.
    from_fn(|i| unsafe { memory::load(quarters[i].as_ptr()) })
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
pub(super) fn substitute(table: &[__m512i; 4], x: __m512i) -> __m512i {
    let low = _mm512_permutex2var_epi8(table[0], x, table[1]);
    let high = _mm512_permutex2var_epi8(table[2], x, table[3]);
    _mm512_mask_blend_epi8(_mm512_movepi8_mask(x), low, high)
}

/// What plane `i` becomes: itself and the products of all others by the coefficient of
/// their distance. From the last plane to the first that is L of RFC 7801 section 4.3,
/// from the first to the last its inverse; `FRESH` is the distance of the plane of the
/// step before, which comes in as late as can be: the chain of steps is what takes time.
#[inline]
#[target_feature(enable = "avx512f,gfni")]
fn mixed<const FRESH: usize>(planes: &Planes, i: usize) -> __m512i {
    const SUM: i32 = 0x96;
    let at = |distance: usize| planes[(i + distance) % 16];
    let sum = |x, y, z| _mm512_ternarylogic_epi64::<SUM>(x, y, z);
    let sum_of_two = |x, y| _mm512_xor_si512(x, y);
    let pair = |distance: usize| sum_of_two(at(distance), at(16 - distance));
    let (fresh, stale) = (at(FRESH), at(16 - FRESH));
    let most = sum(at(0), stale, at(7));
    let most = sum(most, at(9), times::<251>(at(8)));
    let most = sum(most, times::<194>(pair(5)), times::<192>(pair(6)));
    let most = sum(most, times::<32>(pair(2)), fresh);
    // 148 x_1 + 133 x_3 + 16 x_4 = 133 (x_1 + x_3) + 16 (x_1 + x_4) + x_1
    let x3 = sum_of_two(fresh, sum(stale, at(3), at(13)));
    let x4 = sum_of_two(fresh, sum(stale, at(4), at(12)));
    sum(most, times::<133>(x3), times::<16>(x4))
}

#[inline]
#[target_feature(enable = "avx512f,gfni")]
fn times<const CONSTANT: u8>(x: __m512i) -> __m512i {
    let matrix = _mm512_set1_epi64(const { matrix(CONSTANT) });
    _mm512_gf2p8affine_epi64_epi8::<0>(x, matrix)
}

/// Multiplication by a constant as GF2P8AFFINEQB takes it: the row of bit 0 in the
/// uppermost byte.
pub(super) const fn matrix(constant: u8) -> i64 {
    let (mut rows, mut bit) = (0u64, 0);
    while bit < 8 {
        let column = multiply(constant, 1 << bit);
        let mut row = 0;
        while row < 8 {
            rows |= ((column >> row & 1) as u64) << (8 * (7 - row) + bit);
            row += 1;
        }
        bit += 1;
    }
    rows as i64
}

/// The order of bytes that brings byte `i` of four blocks together, or (`back`) apart.
#[inline]
#[target_feature(enable = "avx512f")]
fn order(back: bool) -> __m512i {
    const fn bytes(back: bool) -> [u8; 64] {
        let (mut order, mut i) = ([0; 64], 0);
        while i < 64 {
            let (apart, together) = (16 * (i % 4) + i / 4, i);
            if back {
                order[apart] = together as u8;
            } else {
                order[together] = apart as u8;
            }
            i += 1;
        }
        order
    }
    const ORDERS: [[u8; 64]; 2] = [bytes(false), bytes(true)];
    // SAFETY: 64 bytes are read of 64.
    unsafe { memory::load(ORDERS[usize::from(back)].as_ptr()) }
}

/// The transpose of 16 rows of 16 numbers of 32 bits.
#[inline]
#[target_feature(enable = "avx512f")]
fn transpose(rows: Planes) -> Planes {
    // Pairs of rows, then fours: afterwards `fours[4 g + c]` has in each quarter `q`
    // column `4 q + c` of rows `4 g` to `4 g + 3`.
    let pairs: Planes = planes!(|i: usize| {
        let (x, y) = (rows[i & !1], rows[i | 1]);
        match i % 2 {
            0 => _mm512_unpacklo_epi32(x, y),
            _ => _mm512_unpackhi_epi32(x, y),
        }
    });
    let fours: Planes = planes!(|i: usize| {
        let (x, y) = (pairs[i & !3 | i >> 1 & 1], pairs[i & !3 | 2 | i >> 1 & 1]);
        match i % 2 {
            0 => _mm512_unpacklo_epi64(x, y),
            _ => _mm512_unpackhi_epi64(x, y),
        }
    });
    // The quarters of even, and of odd number, of two groups of rows.
    let quarters = |odd: bool, x, y| match odd {
        false => _mm512_shuffle_i32x4::<0x88>(x, y),
        true => _mm512_shuffle_i32x4::<0xdd>(x, y),
    };
    planes!(|i: usize| {
        let (column, quarter) = (i % 4, i / 4);
        let odd = quarter % 2 == 1;
        let first = quarters(odd, fours[column], fours[4 + column]);
        let second = quarters(odd, fours[8 + column], fours[12 + column]);
        quarters(quarter / 2 == 1, first, second)
    })
}

impl Vector for __m512i {
    const LANES: usize = LANES;
    type Tail = __mmask64;

    #[inline(always)]
    unsafe fn splat(byte: u8) -> Self {
        // SAFETY: as for the trait.
        unsafe { _mm512_set1_epi8(byte as i8) }
    }

    #[inline(always)]
    unsafe fn tail(first: usize) -> __mmask64 {
        !0 << first
    }

    #[inline(always)]
    unsafe fn replace(self, tail: __mmask64, byte: u8) -> Self {
        // SAFETY: as for the trait.
        unsafe { _mm512_mask_set1_epi8(self, tail, byte as i8) }
    }

    #[inline(always)]
    unsafe fn planes(blocks: *const Block) -> Planes {
        #[inline]
        #[target_feature(enable = "avx512f,avx512vbmi")]
        unsafe fn inner(blocks: *const Block) -> Planes {
            transpose(planes!(|i: usize| {
                // SAFETY: as for the trait.
                let row = unsafe { memory::load(blocks.add(4 * i).cast()) };
                _mm512_permutexvar_epi8(order(false), row)
            }))
        }
        // SAFETY: as for the trait.
        unsafe { inner(blocks) }
    }
}
