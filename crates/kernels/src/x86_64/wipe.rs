//! Leaving nothing secret behind: vector registers and stack buffers.

use core::arch::asm;
use core::arch::x86_64::{__m128i, _mm_setzero_si128};
use core::mem::MaybeUninit;

use super::wide::Wide;
use crate::aes::key::Block;
use crate::cpu::{HaveAvx2, HaveAvx512};

/// Overwrites `count` blocks, rounded up to whole registers, with zeros.
///
/// # Safety
/// The instructions of `V` are there and the blocks are valid for writes.
#[inline(always)]
pub(crate) unsafe fn blocks<V: Wide>(start: *mut Block, count: usize) {
    // SAFETY: as for this function. The empty statement reads nothing, but the
    // compiler has to assume that it does, and so keeps the stores.
    unsafe {
        for i in (0..count).step_by(V::BLOCKS) {
            V::zero().store(start.add(i).cast());
        }
        asm!("/* {0} */", in(reg) start, options(nostack, preserves_flags));
    }
}

/// Blocks of the frame of a function that works with states of a long request.
const FRAME: usize = match cfg!(debug_assertions) {
    true => (4 << 10) / 16,
    false => (1 << 10) / 16,
};

/// [`long_frame`], in a frame that begins where the other did.
// In the alignment that every frame has, or the registers that the other function saved would stand above.
#[inline(never)]
fn overwrite_frame() {
    let mut dead = MaybeUninit::<[__m128i; FRAME]>::uninit();
    let dead = dead.as_mut_ptr().cast::<__m128i>();
    for i in 0..FRAME {
        // SAFETY: SSE2 is part of x86-64, and this is in the array. Volatile, or the compiler would call a
        // function for all of it.
        unsafe { dead.add(i).write_volatile(_mm_setzero_si128()) }
    }
}

/// Overwrites the frame of a function that works with states of a long request, which has just returned to
/// the one that this is inlined into.
#[inline(always)]
pub(crate) fn long_frame() {
    // The compiler cannot know which function that is, and so does not inline it.
    core::hint::black_box(overwrite_frame as fn())();
}

/// Clears registers by an instruction with two operands, or with three.
macro_rules! clear {
    (pxor $($register:tt)+) => {
        asm!(
            $(concat!("pxor ", $register, ", ", $register),)+
            $(out($register) _,)+
            options(nomem, nostack, preserves_flags),
        )
    };
    ($instruction:ident $($register:tt)+) => {
        asm!(
            $(concat!(stringify!($instruction), " ", $register, ", ", $register, ", ", $register),)+
            $(out($register) _,)+
            options(nomem, nostack, preserves_flags),
        )
    };
}

/// Clears what a function with `N` blocks has values in: xmm0 to xmm3 for one, all registers for more.
#[inline(always)]
pub(crate) fn of_blocks_128<const N: usize>() {
    // SAFETY: SSE2 is part of x86-64, and every register written is declared.
    unsafe {
        clear!(pxor "xmm0" "xmm1" "xmm2" "xmm3");
        if N > 1 {
            clear!(pxor "xmm4" "xmm5" "xmm6" "xmm7" "xmm8" "xmm9" "xmm10" "xmm11"
                "xmm12" "xmm13" "xmm14" "xmm15");
        }
    }
}

/// Clears xmm0 to xmm15.
#[inline(always)]
pub(crate) fn registers_128() {
    of_blocks_128::<4>();
}

/// As [`of_blocks_128`], and the rest of the whole registers too.
///
/// # Safety
/// The processor has AVX.
#[inline(always)]
pub(crate) unsafe fn of_blocks_256<const N: usize>() {
    // SAFETY: AVX is there; writing an xmm register in this encoding clears the
    // rest of the whole register, and every register written is declared.
    unsafe {
        clear!(vpxor "xmm0" "xmm1" "xmm2" "xmm3");
        if N > 1 {
            clear!(vpxor "xmm4" "xmm5" "xmm6" "xmm7" "xmm8" "xmm9" "xmm10" "xmm11"
                "xmm12" "xmm13" "xmm14" "xmm15");
        }
    }
}

/// Clears ymm0 to ymm15, and with AVX-512 zmm0 to zmm15. Single instructions that
/// the renamer eliminates: quicker than `vzeroall`.
///
/// # Safety
/// The processor has AVX.
#[inline(always)]
pub(crate) unsafe fn registers_256() {
    // SAFETY: as for this function.
    unsafe { of_blocks_256::<4>() }
}

/// Clears zmm16 to zmm31.
///
/// # Safety
/// The processor has AVX-512 VL.
#[target_feature(enable = "avx512f,avx512vl")]
#[inline]
pub(crate) unsafe fn registers_512_upper() {
    // SAFETY: AVX-512 VL is there; writing an xmm register in this encoding clears
    // the rest of the whole register, and every register written is declared.
    unsafe {
        clear!(
            vpxord "xmm16" "xmm17" "xmm18" "xmm19" "xmm20" "xmm21" "xmm22" "xmm23"
                "xmm24" "xmm25" "xmm26" "xmm27" "xmm28" "xmm29" "xmm30" "xmm31"
        )
    }
}

/// Clears all vector registers of a machine with AVX2, or with AVX-512 too.
#[inline(always)]
pub(crate) fn vectors(_: HaveAvx2, avx512: Option<HaveAvx512>) {
    // SAFETY: the tokens are made only where the registers are present.
    unsafe {
        registers_256();
        if avx512.is_some() {
            registers_512_upper();
        }
    }
}
