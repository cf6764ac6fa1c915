//! Keeping loads where and as they stand: the compiler may not load a key before its turn, nor two words
//! at once that were written one after the other.

use core::arch::asm;
use core::arch::x86_64::{__m128i, __m512i};

/// `address`, of which the compiler cannot know that before `value` has been computed.
///
/// Else it loads the keys of many rounds ahead, and for want of registers keeps them on the
/// stack, where they outlive the call. The processor has nothing to wait for.
#[inline(always)]
#[allow(clippy::pointers_in_nomem_asm_block)] // Nothing is read through the pointer.
pub(super) fn after<T>(mut address: *const T, value: __m128i) -> *const T {
    // SAFETY: SSE2 is part of x86-64; an empty statement, which leaves both as they are.
    unsafe {
        asm!(
            "/* {0} {1} */", inlateout(reg) address, in(xmm_reg) value,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    address
}

/// [`after`] for a vector that may be in any of 32 registers.
#[target_feature(enable = "avx512f")]
#[inline]
#[allow(clippy::pointers_in_nomem_asm_block)] // Nothing is read through the pointer.
pub(super) fn after_512<T>(mut address: *const T, value: __m512i) -> *const T {
    // SAFETY: AVX-512 is enabled here; an empty statement, which leaves both as they are.
    unsafe {
        asm!(
            "/* {0} {1} */", inlateout(reg) address, in(zmm_reg) value,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    address
}

/// `address`, of which the compiler cannot know that: it does not make one load of two, through this and
/// through the other, which would wait for two stores.
#[inline(always)]
#[allow(clippy::pointers_in_nomem_asm_block)] // Nothing is read through the pointer.
pub(super) fn apart<T>(mut address: *const T) -> *const T {
    // SAFETY: an empty statement, which leaves the address as it is.
    unsafe {
        asm!(
            "/* {0} */", inlateout(reg) address,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    address
}
