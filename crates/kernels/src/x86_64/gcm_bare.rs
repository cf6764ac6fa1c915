//! AES-GCM for machines that have AES-NI but no carry-less multiplication, such as many virtual ones.
//!
//! GHASH multiplies by H with byte shuffles (SSSE3), in constant time. A block is a row of bytes, a
//! byte has the coefficients of eight powers of x from its highest bit on, and the product is the sum
//! of x^(8 i) times H times byte `i`. Of each byte the four higher and the four lower bits are taken
//! apart, so that H times these bits is one of sixteen blocks. Byte `j` of these sixteen stands in one
//! register; a shuffle gives byte `j` of all sixteen partial products, and what it gives is to be moved
//! by `j` bytes.

use core::arch::x86_64::*;

use inout::InOutBuf;

use super::gcm::{load_short, store_short};
use super::rounds::{Keys, Schedule, middle};
use super::wide::Wide;
use super::wipe;
use crate::aes::key::{Block, EncryptionKey};
use crate::cpu::HaveAesNi;
use crate::gcm::key::GcmKey;
use crate::gcm::powers::{FIRST_POWERS, POWERS, SLACK, Table};
use crate::gcm::rest::{Begun, Rest};
use crate::gcm::two_passes::{self, TwoPasses};
use crate::job::{AeadJob, Direction};
use crate::x86_64::memory;

/// Blocks through AES side by side.
const WIDTH: usize = 8;

/// Bytes of a block, of which the table has a row each, first for the higher four bits.
const BYTES: usize = 16;

impl TwoPasses for HaveAesNi {
    #[inline]
    fn encrypt(self, key: &EncryptionKey, block: &Block) -> Block {
        let mut block = *block;
        super::block::aes_bare::encrypt(self, key, &mut block);
        block
    }

    #[inline]
    fn apply(self, key: &EncryptionKey, counter: &Block, data: InOutBuf<'_, '_, u8>) {
        let len = data.len();
        let (from, to) = data.into_raw();
        // SAFETY: the token proves the instructions; both buffers have `len` bytes.
        unsafe { apply(Schedule::of(key), counter, from, to, len) }
    }

    #[inline]
    fn hash(self, key: &GcmKey, y: &mut Block, bytes: &[u8]) {
        // SAFETY: the token proves SSSE3.
        unsafe { hash_with(&key.table, y, bytes) }
    }
}

/// Encrypts every job and gives it its tag.
#[inline]
pub(crate) fn seal(token: HaveAesNi, jobs: &mut [AeadJob<'_, GcmKey>]) {
    two_passes::crypt_batch(token, Direction::Encrypt, jobs);
}

/// Decrypts every job and gives it the tag of its input.
#[inline]
pub(crate) fn open(token: HaveAesNi, jobs: &mut [AeadJob<'_, GcmKey>]) {
    two_passes::crypt_batch(token, Direction::Decrypt, jobs);
}

/// [`two_passes::crypt_piece`].
#[inline]
pub(crate) fn crypt(
    token: HaveAesNi,
    dir: Direction,
    key: &GcmKey,
    counter: &mut Block,
    y: &mut Block,
    begun: Option<&mut Begun>,
    data: InOutBuf<'_, '_, u8>,
) {
    two_passes::crypt_piece(token, dir, key, counter, y, begun, data);
}

/// GHASH on from `y` over bytes and zeros up to a whole block.
#[inline]
pub(crate) fn hash(token: HaveAesNi, key: &GcmKey, y: &mut Block, bytes: &[u8]) {
    token.hash(key, y, bytes);
}

/// GHASH on from `y` over one block.
#[inline]
pub(crate) fn hash_block(token: HaveAesNi, key: &GcmKey, y: &mut Block, block: &Block) {
    token.hash(key, y, block);
}

/// [`two_passes::tag`].
#[inline]
pub(crate) fn tag(
    token: HaveAesNi,
    key: &GcmKey,
    y: &Block,
    rest: &Rest<'_>,
    pad: &Block,
) -> Block {
    two_passes::tag(token, key, y, rest, pad)
}

/// The block cipher alone.
#[inline]
pub(crate) fn encrypt(token: HaveAesNi, key: &EncryptionKey, block: &Block) -> Block {
    TwoPasses::encrypt(token, key, block)
}

/// The product of two blocks in the field of GHASH, bit by bit: few are needed, for messages in parts.
pub(crate) fn multiply(_: HaveAesNi, a: &Block, b: &Block) -> Block {
    let (mut power, b) = (u128::from_be_bytes(*a), u128::from_be_bytes(*b));
    let mut product = 0;
    for i in (0..128).rev() {
        product ^= power & (b >> i & 1).wrapping_neg();
        power = times_x(power);
    }
    product.to_be_bytes()
}

/// A block times x, its first bit being the highest.
#[inline]
fn times_x(block: u128) -> u128 {
    block >> 1 ^ (block & 1).wrapping_neg() & 0xe1 << 120
}

/// E(0), and the rows for it.
#[inline]
pub(crate) fn first_powers(token: HaveAesNi, aes: &EncryptionKey, table: &mut Table) -> Block {
    let hash_key = TwoPasses::encrypt(token, aes, &[0; 16]);
    // SAFETY: the token proves SSSE3.
    unsafe { fill(&mut table.powers, &hash_key) };
    hash_key
}

/// The rows for H^2.
#[inline]
pub(crate) fn further_powers(_: HaveAesNi, table: &mut Table) {
    // Of the numbers of four bits 8 stands for x^0.
    let mut h = core::array::from_fn(|j| table.powers[j][8]);
    let mut square = [0; 16];
    // SAFETY: the token proves SSSE3.
    unsafe {
        hash_with(table, &mut square, &h);
        fill(&mut table.sums, &square);
    }
    crate::wipe::wipe(&mut h, [0; 16]);
    crate::wipe::wipe(&mut square, [0; 16]);
}

/// Rows for a power of H.
type Rows = [Block; POWERS + SLACK];

/// Fills rows: row `j` has byte `j` of H times each number of four bits, and row 16 + `j` the
/// same times x^4.
#[target_feature(enable = "ssse3")]
fn fill(rows: &mut Rows, h: &Block) {
    let mut power = u128::from_be_bytes(*h);
    let mut powers = [_mm_setzero_si128(); 8];
    for place in &mut powers {
        // SAFETY: 16 bytes are loaded from as many.
        *place = unsafe { memory::load(power.to_be_bytes().as_ptr()) };
        power = times_x(power);
    }
    let numbers = _mm_set_epi64x(0x0f0e_0d0c_0b0a_0908, 0x0706_0504_0302_0100);
    let has = [8, 4, 2, 1].map(|bit| {
        let bit = _mm_set1_epi8(bit);
        _mm_cmpeq_epi8(_mm_and_si128(numbers, bit), bit)
    });
    for (first, powers) in [(0, &powers[..4]), (BYTES, &powers[4..])] {
        for j in 0..BYTES {
            let place = _mm_set1_epi8(j as i8);
            let mut row = _mm_setzero_si128();
            for (power, has) in powers.iter().zip(has) {
                row = _mm_xor_si128(row, _mm_and_si128(_mm_shuffle_epi8(*power, place), has));
            }
            // SAFETY: a row has 16 bytes.
            unsafe { _mm_storeu_si128(rows[first + j].as_mut_ptr().cast(), row) };
        }
    }
    wipe::registers_128();
}

/// Blocks up to which one power of H does: those of pieces for which a
/// [`LazyGcmKey`](crate::gcm::LazyGcmKey) has no other.
const ONE_POWER: usize = FIRST_POWERS;

/// GHASH on from `y` over bytes and zeros up to a whole block.
#[target_feature(enable = "ssse3,sse4.1")]
fn hash_with(table: &Table, y: &mut Block, bytes: &[u8]) {
    let (mut blocks, rest) = bytes.as_chunks::<16>();
    let (h, square) = (&table.powers, &table.sums);
    // SAFETY: every load and store is of bytes of its slice.
    unsafe {
        let load = |block: &Block| memory::load(block.as_ptr());
        let mut sum: __m128i = load(y);
        if blocks.len() > ONE_POWER {
            let (pairs, last) = blocks.as_chunks::<2>();
            for [one, two] in pairs {
                sum = product([square, h], [sum.xor(load(one)), load(two)]);
            }
            blocks = last;
        }
        for block in blocks {
            sum = product([h], [sum.xor(load(block))]);
        }
        if !rest.is_empty() {
            let block = load_short(rest.as_ptr(), rest.len());
            sum = product([h], [sum.xor(block)]);
        }
        _mm_storeu_si128(y.as_mut_ptr().cast(), sum);
    }
    wipe::registers_128();
}

/// The sum of the products of each block and the power of H that the rows are for.
#[target_feature(enable = "ssse3")]
#[inline]
fn product<const N: usize>(rows: [&Rows; N], blocks: [__m128i; N]) -> __m128i {
    let bits = blocks.map(|block| halves(block));
    // Eight rows each, so that half as many steps wait for one another: the first 16 bytes of
    // their sum, and those behind.
    let eight = |from: usize| {
        let (mut first, mut behind) = (_mm_setzero_si128(), _mm_setzero_si128());
        for j in (from..from + 8).rev() {
            behind = _mm_alignr_epi8::<15>(behind, first);
            first = _mm_slli_si128::<1>(first);
            for (rows, (high, low)) in rows.iter().zip(bits) {
                // SAFETY: there are 2 * BYTES rows and more, of 16 bytes.
                let [by_high, by_low] =
                    [j, BYTES + j].map(|j| unsafe { _mm_load_si128(rows[j].as_ptr().cast()) });
                let byte_j = _mm_xor_si128(
                    _mm_shuffle_epi8(by_high, high),
                    _mm_shuffle_epi8(by_low, low),
                );
                first = _mm_xor_si128(first, byte_j);
            }
        }
        (first, behind)
    };
    let (low_first, low_behind) = eight(0);
    let (high_first, high_behind) = eight(8);
    let first = _mm_xor_si128(low_first, _mm_slli_si128::<8>(high_first));
    let behind = _mm_xor_si128(low_behind, _mm_alignr_epi8::<8>(high_behind, high_first));
    reduce(first, behind)
}

/// The higher and the lower four bits of each byte.
#[target_feature(enable = "ssse3")]
#[inline]
fn halves(bytes: __m128i) -> (__m128i, __m128i) {
    let four = _mm_set1_epi8(0x0f);
    let high = _mm_and_si128(_mm_srli_epi16::<4>(bytes), four);
    (high, _mm_and_si128(bytes, four))
}

/// Four bits of a byte times 1 + x + x^2 + x^7, which is x^128: the byte in the same place, and the
/// one behind it.
const fn folded(shift: u32) -> [Block; 2] {
    let mut bytes = [[0; 16]; 2];
    let mut i = 0;
    while i < 16 {
        let byte = (i as u16) << shift << 8;
        let product = byte ^ byte >> 1 ^ byte >> 2 ^ byte >> 7;
        bytes[0][i] = (product >> 8) as u8;
        bytes[1][i] = product as u8;
        i += 1;
    }
    bytes
}

static FOLDED_HIGH: [Block; 2] = folded(4);
static FOLDED_LOW: [Block; 2] = folded(0);

/// `first` and x^128 times `behind`, of which the last byte is zero.
#[target_feature(enable = "ssse3")]
#[inline]
fn reduce(first: __m128i, behind: __m128i) -> __m128i {
    let (high, low) = halves(behind);
    let [same, next] = [0, 1].map(|i| {
        // SAFETY: 16 bytes are loaded from as many.
        let [by_high, by_low] =
            [&FOLDED_HIGH[i], &FOLDED_LOW[i]].map(|table| unsafe { memory::load(table.as_ptr()) });
        _mm_xor_si128(
            _mm_shuffle_epi8(by_high, high),
            _mm_shuffle_epi8(by_low, low),
        )
    });
    _mm_xor_si128(_mm_xor_si128(first, same), _mm_slli_si128::<1>(next))
}

/// Counter mode.
///
/// # Safety
/// `len` bytes are there to be read and to be written, the same or apart.
#[target_feature(enable = "aes,ssse3,sse4.1")]
unsafe fn apply(
    key: Schedule,
    counter: &Block,
    mut from: *const u8,
    mut to: *mut u8,
    mut len: usize,
) {
    // The four bytes of the counter alone.
    let swap = _mm_set_epi64x(0x0c0d_0e0f_0b0a_0908, 0x0706_0504_0302_0100);
    // SAFETY: as for this function; each turn takes what is left.
    unsafe {
        let mut next = _mm_shuffle_epi8(memory::load(counter.as_ptr()), swap);
        while len > 0 {
            let first: __m128i = key.at(0, 0);
            let mut state = [next; WIDTH];
            for (i, block) in state.iter_mut().enumerate() {
                let number = _mm_add_epi32(next, _mm_set_epi32(i as i32, 0, 0, 0));
                *block = _mm_shuffle_epi8(number, swap).xor(first);
            }
            next = _mm_add_epi32(next, _mm_set_epi32(WIDTH as i32, 0, 0, 0));
            let after = middle::<__m128i, _, WIDTH, false>(&mut state, key);
            let last: __m128i = after.at(0, after.rounds());
            let (done, whole) = (len.min(16 * WIDTH), len >= 16 * WIDTH);
            for (i, block) in state.into_iter().enumerate() {
                let stream = block.last_round::<false>(last);
                let at = 16 * i;
                if whole || at + 16 <= len {
                    __m128i::load(from.add(at)).xor(stream).store(to.add(at));
                } else if at < len {
                    let data = load_short(from.add(at), len - at);
                    store_short(data.xor(stream), to.add(at), len - at);
                }
            }
            (from, to, len) = (from.add(done), to.add(done), len - done);
        }
    }
    wipe::registers_128();
}
