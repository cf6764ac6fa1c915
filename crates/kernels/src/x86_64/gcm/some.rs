//! Some bytes of a vector: masks, and loads and stores of less than a block.

use core::arch::x86_64::*;

/// The widest vector, in bytes.
pub(super) const WIDEST: usize = 64;

/// Byte `WIDEST - n` starts a mask that keeps the first `n` bytes of a vector.
#[repr(align(64))]
pub(super) struct KeepTable(pub(super) [u8; 2 * WIDEST]);
pub(super) static KEEP_MASKS: KeepTable = KeepTable({
    let mut table = [0; 2 * WIDEST];
    let mut i = 0;
    while i < WIDEST {
        table[i] = 0xff;
        i += 1;
    }
    table
});

/// Byte `48 - 16 * lane` starts a mask that keeps that one lane.
#[repr(align(64))]
pub(super) struct LaneTable(pub(super) [u8; 2 * WIDEST]);
pub(super) static ONE_LANE: LaneTable = LaneTable({
    let mut table = [0; 2 * WIDEST];
    let mut i = 48;
    while i < 64 {
        table[i] = 0xff;
        i += 1;
    }
    table
});

/// For each of the first three words of a block: ones there.
#[repr(align(64))]
pub(super) struct WordTable(pub(super) [u32; 12]);
pub(super) static ONE_WORD: WordTable = WordTable([!0, 0, 0, 0, 0, !0, 0, 0, 0, 0, !0, 0]);

/// A word that may stand anywhere.
#[derive(Clone, Copy)]
#[repr(C, packed)]
pub(super) struct Word(pub(super) i32);

/// `n < 16` bytes, zero extended, by loads that overlap.
#[inline(always)]
pub(in crate::x86_64) unsafe fn load_short(from: *const u8, n: usize) -> __m128i {
    debug_assert!(n < 16);
    // SAFETY: each branch reads inside the first n bytes.
    unsafe {
        let (low, high) = if n >= 8 {
            let low = from.cast::<u64>().read_unaligned();
            let high = from.add(n - 8).cast::<u64>().read_unaligned();
            // The upper n - 8 bytes of `high`; shifting in two steps allows n = 8.
            (low, (high >> 1) >> (8 * (16 - n) - 1))
        } else if n >= 4 {
            let low = u64::from(from.cast::<u32>().read_unaligned());
            let high = u64::from(from.add(n - 4).cast::<u32>().read_unaligned());
            (low | high << (8 * (n - 4)), 0)
        } else if n > 0 {
            let a = u64::from(from.read());
            let b = u64::from(from.add(n / 2).read());
            let c = u64::from(from.add(n - 1).read());
            (a | b << (8 * (n / 2)) | c << (8 * (n - 1)), 0)
        } else {
            (0, 0)
        };
        _mm_set_epi64x(high.cast_signed(), low.cast_signed())
    }
}

/// The first `n < 16` bytes of a block, by stores that overlap.
#[inline(always)]
pub(in crate::x86_64) unsafe fn store_short(block: __m128i, to: *mut u8, n: usize) {
    debug_assert!(n < 16);
    // SAFETY: each branch writes inside the first n bytes.
    unsafe {
        let low = _mm_cvtsi128_si64(block).cast_unsigned();
        if n >= 8 {
            let high = _mm_extract_epi64::<1>(block).cast_unsigned();
            let both = u128::from(high) << 64 | u128::from(low);
            to.cast::<u64>().write_unaligned(low);
            let end = (both >> (8 * (n - 8))) as u64;
            to.add(n - 8).cast::<u64>().write_unaligned(end);
        } else if n >= 4 {
            to.cast::<u32>().write_unaligned(low as u32);
            let end = (low >> (8 * (n - 4))) as u32;
            to.add(n - 4).cast::<u32>().write_unaligned(end);
        } else if n > 0 {
            to.write(low as u8);
            to.add(n / 2).write((low >> (8 * (n / 2))) as u8);
            to.add(n - 1).write((low >> (8 * (n - 1))) as u8);
        }
    }
}
