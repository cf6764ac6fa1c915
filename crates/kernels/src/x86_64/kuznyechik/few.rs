//! A few blocks, which would leave a register of byte planes mostly empty.
//!
//! With AVX-512, byte `i` of eight blocks is a quarter of a quarter of two registers: 64 bits,
//! so that the linear transformation is a product with a matrix of 16 by 16 matrices of bits
//! (GF2P8AFFINEQB), a column of it for each byte. With AVX2 a block is a register.
//!
//! With AVX2 alone a lone short message is slower than with RustCrypto's crate: 64 bytes under
//! MGM take about twice as long. They are twelve blocks in three calls that wait for each other,
//! of two, nine and one. That crate looks up 16 bytes for each byte of a block in tables of 64
//! KiB, by indices that are secret, which this project does not do; sums of bits and byte planes
//! take the same time whatever the key, but more instructions a block, and planes take as long
//! for nine blocks as for 32. With 32 such messages a batch, planes are ahead.

use core::arch::x86_64::*;
use core::array::from_fn;

use super::avx2::{load, mixed_one, store};
use super::avx512::{matrix, substitute, table};
use super::bases::{TOWER, mapped};
use super::logarithms::substitute as substitute_256;
use crate::cpu::{HaveAvx2, HaveGfni512};
use crate::kuznyechik::field::{PI, mix};
use crate::kuznyechik::key::{Block, KuznyechikKey, RoundKeys};
use crate::wipe::wipe;
use crate::x86_64::memory;
use crate::x86_64::wipe::vectors;

/// Up to this number of blocks [`encrypt_512`] is faster than byte planes.
pub(super) const MOST_512: usize = 24;

/// Up to this number of blocks [`encrypt_256`] is.
pub(super) const MOST_256: usize = 3;

/// Blocks side by side.
const LANES: usize = 8;

/// Bytes 0 to 7 of eight blocks, then bytes 8 to 15.
type Halves = [__m512i; 2];

/// Encrypts each block under the key of the same place, one after the other.
pub(super) fn encrypt_256(token: HaveAvx2, keys: &[&KuznyechikKey], blocks: &mut [Block]) {
    #[target_feature(enable = "avx2")]
    fn inner(keys: &[&KuznyechikKey], blocks: &mut [Block]) {
        for (key, block) in keys.iter().zip(blocks) {
            let [first @ .., last] = key.rounds();
            let mut x = load(block);
            for key in first {
                let sum = _mm256_xor_si256(x, load(key));
                x = mixed_one(substitute_256(mapped(sum, &TOWER.enter)));
            }
            store(block, _mm256_xor_si256(x, load(last)));
        }
    }
    // SAFETY: the token proves the features.
    unsafe { inner(keys, blocks) }
    vectors(token, None);
}

/// Encrypts each block under the key of the same place, eight at once.
pub(super) fn encrypt_512(token: HaveGfni512, keys: &[&KuznyechikKey], blocks: &mut [Block]) {
    for (keys, blocks) in keys.chunks(LANES).zip(blocks.chunks_mut(LANES)) {
        let mut lanes = [[0; 16]; LANES];
        lanes[..blocks.len()].copy_from_slice(blocks);
        let keys = from_fn(|i| keys[i.min(keys.len() - 1)].rounds());
        // SAFETY: the token proves the features.
        unsafe { eight(&keys, &mut lanes) };
        blocks.copy_from_slice(&lanes[..blocks.len()]);
        wipe(&mut lanes, [[0; 16]; LANES]);
    }
    let (avx2, avx512) = token.smaller();
    vectors(avx2, Some(avx512));
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,gfni")]
fn eight(keys: &[&RoundKeys; LANES], blocks: &mut [Block; LANES]) {
    let table = table(&PI);
    let key = |round: usize| together(from_fn(|i| &keys[i][round]));
    let mut x = together(blocks.each_ref());
    for round in 0..9 {
        x = mixed(sum(x, key(round)).map(|half| substitute(&table, half)));
    }
    apart(sum(x, key(9)), blocks);
}

#[inline]
#[target_feature(enable = "avx512f")]
fn sum([x0, x1]: Halves, [y0, y1]: Halves) -> Halves {
    [_mm512_xor_si512(x0, y0), _mm512_xor_si512(x1, y1)]
}

/// L (RFC 7801 section 4.3): the sum of the products of each byte with a column.
#[inline]
#[target_feature(enable = "avx512f,gfni")]
fn mixed(x: Halves) -> Halves {
    /// By the byte, then by that of the result.
    static COLUMNS: [[i64; 16]; 16] = {
        let (mut columns, mut i) = ([[0; 16]; 16], 0);
        while i < 256 {
            let mut unit = [0; 16];
            unit[i / 16] = 1;
            columns[i / 16][i % 16] = matrix(mix(&unit)[i % 16]);
            i += 1;
        }
        columns
    };
    let product = |i: usize| {
        let byte = _mm512_permutexvar_epi64(_mm512_set1_epi64(i as i64 % 8), x[i / 8]);
        let (halves, _) = COLUMNS[i].as_chunks::<8>();
        from_fn(|half| {
            // SAFETY: 64 bytes are read of 64.
            let matrices = unsafe { memory::load(halves[half].as_ptr().cast()) };
            _mm512_gf2p8affine_epi64_epi8::<0>(byte, matrices)
        })
    };
    // Written out, or halves would be looked for in memory; four sums, so that none waits
    // for many others.
    macro_rules! every_fourth {
        ($first:literal) => {
            sum(
                sum(product($first), product($first + 4)),
                sum(product($first + 8), product($first + 12)),
            )
        };
    }
    sum(
        sum(every_fourth!(0), every_fourth!(1)),
        sum(every_fourth!(2), every_fourth!(3)),
    )
}

/// Where byte `8 i + j` of the halves of eight blocks is in the blocks: byte `i` of block `j`.
const fn places(together: bool) -> [[u8; 64]; 2] {
    let (mut places, mut i) = ([[0; 64]; 2], 0);
    while i < 128 {
        let (in_halves, in_blocks) = (i, 16 * (i % 8) + i / 8);
        let (to, from) = match together {
            true => (in_halves, in_blocks),
            false => (in_blocks, in_halves),
        };
        places[to / 64][to % 64] = from as u8;
        i += 1;
    }
    places
}

#[inline]
#[target_feature(enable = "avx512f,avx512vbmi")]
fn together(blocks: [&Block; LANES]) -> Halves {
    static PLACES: [[u8; 64]; 2] = places(true);
    // One by one: larger loads would wait for the stores that blocks were written by.
    let four = |first: usize| {
        // SAFETY: 16 bytes are read of 16.
        let [a, b, c, d] = from_fn(|i| unsafe { memory::load(blocks[first + i].as_ptr()) });
        let two = _mm512_inserti32x4::<1>(_mm512_castsi128_si512(a), b);
        _mm512_inserti32x4::<3>(_mm512_inserti32x4::<2>(two, c), d)
    };
    let (front, back) = (four(0), four(LANES / 2));
    PLACES.each_ref().map(|places| {
        // SAFETY: 64 bytes are read of 64.
        let places = unsafe { memory::load(places.as_ptr()) };
        _mm512_permutex2var_epi8(front, places, back)
    })
}

/// The inverse of [`together`].
#[inline]
#[target_feature(enable = "avx512f,avx512vbmi")]
fn apart([first, second]: Halves, blocks: &mut [Block; LANES]) {
    static PLACES: [[u8; 64]; 2] = places(false);
    for (places, blocks) in PLACES.iter().zip(blocks.as_chunks_mut::<4>().0) {
        // SAFETY: 64 bytes are read of 64, and written to four blocks.
        unsafe {
            let places = memory::load(places.as_ptr());
            let four = _mm512_permutex2var_epi8(first, places, second);
            _mm512_storeu_si512(blocks.as_mut_ptr().cast(), four);
        }
    }
}
