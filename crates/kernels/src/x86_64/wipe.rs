//! Leaving nothing secret behind: vector registers and stack buffers.

use core::arch::asm;

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

/// Clears xmm0 to xmm15.
#[inline(always)]
pub(crate) fn registers_128() {
    // SAFETY: SSE2 is part of x86-64, and every register written is declared.
    unsafe {
        asm!(
            "pxor xmm0, xmm0", "pxor xmm1, xmm1", "pxor xmm2, xmm2", "pxor xmm3, xmm3",
            "pxor xmm4, xmm4", "pxor xmm5, xmm5", "pxor xmm6, xmm6", "pxor xmm7, xmm7",
            "pxor xmm8, xmm8", "pxor xmm9, xmm9", "pxor xmm10, xmm10", "pxor xmm11, xmm11",
            "pxor xmm12, xmm12", "pxor xmm13, xmm13", "pxor xmm14, xmm14", "pxor xmm15, xmm15",
            out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _,
            out("xmm4") _, out("xmm5") _, out("xmm6") _, out("xmm7") _,
            out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
            out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _,
            options(nomem, nostack, preserves_flags),
        )
    }
}

/// Clears the first registers, which are all that a function with `N` blocks has values in: xmm0 to
/// xmm3 for one, xmm0 to xmm11 for four.
#[inline(always)]
pub(crate) fn first_128<const N: usize>() {
    // SAFETY: SSE2 is part of x86-64, and every register written is declared.
    unsafe {
        asm!(
            "pxor xmm0, xmm0", "pxor xmm1, xmm1", "pxor xmm2, xmm2", "pxor xmm3, xmm3",
            out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _,
            options(nomem, nostack, preserves_flags),
        );
        if N > 1 {
            asm!(
                "pxor xmm4, xmm4", "pxor xmm5, xmm5", "pxor xmm6, xmm6", "pxor xmm7, xmm7",
                "pxor xmm8, xmm8", "pxor xmm9, xmm9", "pxor xmm10, xmm10", "pxor xmm11, xmm11",
                out("xmm4") _, out("xmm5") _, out("xmm6") _, out("xmm7") _,
                out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
                options(nomem, nostack, preserves_flags),
            );
        }
    }
}

/// The same by instructions that clear the rest of the whole registers too.
///
/// # Safety
/// The processor has AVX.
#[inline(always)]
pub(crate) unsafe fn first_256<const N: usize>() {
    // SAFETY: AVX is there, and every register written is declared.
    unsafe {
        asm!(
            "vpxor xmm0, xmm0, xmm0", "vpxor xmm1, xmm1, xmm1",
            "vpxor xmm2, xmm2, xmm2", "vpxor xmm3, xmm3, xmm3",
            out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _,
            options(nomem, nostack, preserves_flags),
        );
        if N > 1 {
            asm!(
                "vpxor xmm4, xmm4, xmm4", "vpxor xmm5, xmm5, xmm5",
                "vpxor xmm6, xmm6, xmm6", "vpxor xmm7, xmm7, xmm7",
                "vpxor xmm8, xmm8, xmm8", "vpxor xmm9, xmm9, xmm9",
                "vpxor xmm10, xmm10, xmm10", "vpxor xmm11, xmm11, xmm11",
                out("xmm4") _, out("xmm5") _, out("xmm6") _, out("xmm7") _,
                out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
                options(nomem, nostack, preserves_flags),
            );
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
    // SAFETY: AVX is there; writing an xmm register in this encoding clears the
    // rest of the whole register, and every register written is declared.
    unsafe {
        asm!(
            "vpxor xmm0, xmm0, xmm0", "vpxor xmm1, xmm1, xmm1",
            "vpxor xmm2, xmm2, xmm2", "vpxor xmm3, xmm3, xmm3",
            "vpxor xmm4, xmm4, xmm4", "vpxor xmm5, xmm5, xmm5",
            "vpxor xmm6, xmm6, xmm6", "vpxor xmm7, xmm7, xmm7",
            "vpxor xmm8, xmm8, xmm8", "vpxor xmm9, xmm9, xmm9",
            "vpxor xmm10, xmm10, xmm10", "vpxor xmm11, xmm11, xmm11",
            "vpxor xmm12, xmm12, xmm12", "vpxor xmm13, xmm13, xmm13",
            "vpxor xmm14, xmm14, xmm14", "vpxor xmm15, xmm15, xmm15",
            out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _,
            out("xmm4") _, out("xmm5") _, out("xmm6") _, out("xmm7") _,
            out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
            out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _,
            options(nomem, nostack, preserves_flags),
        )
    }
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
        asm!(
            "vpxord xmm16, xmm16, xmm16", "vpxord xmm17, xmm17, xmm17",
            "vpxord xmm18, xmm18, xmm18", "vpxord xmm19, xmm19, xmm19",
            "vpxord xmm20, xmm20, xmm20", "vpxord xmm21, xmm21, xmm21",
            "vpxord xmm22, xmm22, xmm22", "vpxord xmm23, xmm23, xmm23",
            "vpxord xmm24, xmm24, xmm24", "vpxord xmm25, xmm25, xmm25",
            "vpxord xmm26, xmm26, xmm26", "vpxord xmm27, xmm27, xmm27",
            "vpxord xmm28, xmm28, xmm28", "vpxord xmm29, xmm29, xmm29",
            "vpxord xmm30, xmm30, xmm30", "vpxord xmm31, xmm31, xmm31",
            out("xmm16") _, out("xmm17") _, out("xmm18") _, out("xmm19") _,
            out("xmm20") _, out("xmm21") _, out("xmm22") _, out("xmm23") _,
            out("xmm24") _, out("xmm25") _, out("xmm26") _, out("xmm27") _,
            out("xmm28") _, out("xmm29") _, out("xmm30") _, out("xmm31") _,
            options(nomem, nostack, preserves_flags),
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
