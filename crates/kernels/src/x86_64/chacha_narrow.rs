//! The rounds of ChaCha20 over eight blocks in the sixteen registers of AVX2, which hold the
//! state and nothing else: so two of its words are in memory, and which ones they are is not
//! left to the compiler. One that chooses by itself keeps words there that the next step waits
//! for, and takes two shuffles for a rotation that is one.

use core::arch::asm;
use core::arch::x86_64::*;

/// Ten times two rounds over `$words` (`[__m256i; 16]`), of the columns and of the diagonals. In
/// the first `$beside` of the ten, what is to be done beside stands twice at a quarter of them.
macro_rules! rounds {
    ($words:expr, $beside:expr, [$($first:tt)*] [$($second:tt)*]) => {{
        let [a0, a1, a2, a3, b0, b1, b2, b3, c0, c1, c2, c3, d0, d1, d2, d3] = $words;
        let mut a = [a0, a1, a2, a3];
        let mut b = [b0, b1, b2, b3];
        let mut c = [c0, c1];
        let mut d = [d0, d1, d2, d3];
        let mut memory = [c0, c1, c2, c3];
        let beside: usize = $beside;
        for _ in 0..beside {
            chacha_narrow::quarter_rounds::<0, 1, 0, 1, 0, 1>(&mut a, &mut b, &mut c, &mut d);
            chacha_narrow::exchange::<0, 64>(&mut c, &mut memory);
            $($first)*
            chacha_narrow::quarter_rounds::<2, 3, 2, 3, 2, 3>(&mut a, &mut b, &mut c, &mut d);
            $($second)*
            chacha_narrow::quarter_rounds::<0, 1, 1, 2, 3, 0>(&mut a, &mut b, &mut c, &mut d);
            chacha_narrow::exchange::<64, 0>(&mut c, &mut memory);
            $($first)*
            chacha_narrow::quarter_rounds::<2, 3, 3, 0, 1, 2>(&mut a, &mut b, &mut c, &mut d);
            $($second)*
        }
        for _ in beside..10 {
            chacha_narrow::quarter_rounds::<0, 1, 0, 1, 0, 1>(&mut a, &mut b, &mut c, &mut d);
            chacha_narrow::exchange::<0, 64>(&mut c, &mut memory);
            chacha_narrow::quarter_rounds::<2, 3, 2, 3, 2, 3>(&mut a, &mut b, &mut c, &mut d);
            chacha_narrow::quarter_rounds::<0, 1, 1, 2, 3, 0>(&mut a, &mut b, &mut c, &mut d);
            chacha_narrow::exchange::<64, 0>(&mut c, &mut memory);
            chacha_narrow::quarter_rounds::<2, 3, 3, 0, 1, 2>(&mut a, &mut b, &mut c, &mut d);
        }
        let [_, _, c2, c3] = memory;
        [
            a[0], a[1], a[2], a[3], b[0], b[1], b[2], b[3],
            c[0], c[1], c2, c3, d[0], d[1], d[2], d[3],
        ]
    }};
}
pub(super) use rounds;

/// Which bytes a rotation puts where.
#[repr(align(32))]
#[allow(dead_code)] // Only the assembly reads it.
pub(super) struct Order([u8; 32]);

pub(super) static BY_16: Order = Order([
    2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13, //
    2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13,
]);
pub(super) static BY_8: Order = Order([
    3, 0, 1, 2, 7, 4, 5, 6, 11, 8, 9, 10, 15, 12, 13, 14, //
    3, 0, 1, 2, 7, 4, 5, 6, 11, 8, 9, 10, 15, 12, 13, 14,
]);

/// Two quarter rounds (RFC 8439, section 2.1) side by side.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn quarter_rounds<
    const A0: usize,
    const A1: usize,
    const B0: usize,
    const B1: usize,
    const D0: usize,
    const D1: usize,
>(
    a: &mut [__m256i; 4],
    b: &mut [__m256i; 4],
    c: &mut [__m256i; 2],
    d: &mut [__m256i; 4],
) {
    // SAFETY: AVX2 is there; what is in memory has 32 bytes and is aligned.
    unsafe {
        asm!(
            "vpaddd {a0}, {a0}, {b0}",
            "vpaddd {a1}, {a1}, {b1}",
            "vpxor {d0}, {d0}, {a0}",
            "vpxor {d1}, {d1}, {a1}",
            "vpshufb {d0}, {d0}, ymmword ptr [rip + {by_16}]",
            "vpshufb {d1}, {d1}, ymmword ptr [rip + {by_16}]",
            "vpaddd {c0}, {c0}, {d0}",
            "vpaddd {c1}, {c1}, {d1}",
            "vpxor {b0}, {b0}, {c0}",
            "vpxor {b1}, {b1}, {c1}",
            "vpsrld {t0}, {b0}, 20",
            "vpslld {b0}, {b0}, 12",
            "vpsrld {t1}, {b1}, 20",
            "vpslld {b1}, {b1}, 12",
            "vpor {b0}, {b0}, {t0}",
            "vpor {b1}, {b1}, {t1}",
            "vpaddd {a0}, {a0}, {b0}",
            "vpaddd {a1}, {a1}, {b1}",
            "vpxor {d0}, {d0}, {a0}",
            "vpxor {d1}, {d1}, {a1}",
            "vpshufb {d0}, {d0}, ymmword ptr [rip + {by_8}]",
            "vpshufb {d1}, {d1}, ymmword ptr [rip + {by_8}]",
            "vpaddd {c0}, {c0}, {d0}",
            "vpaddd {c1}, {c1}, {d1}",
            "vpxor {b0}, {b0}, {c0}",
            "vpxor {b1}, {b1}, {c1}",
            "vpsrld {t0}, {b0}, 25",
            "vpslld {b0}, {b0}, 7",
            "vpsrld {t1}, {b1}, 25",
            "vpslld {b1}, {b1}, 7",
            "vpor {b0}, {b0}, {t0}",
            "vpor {b1}, {b1}, {t1}",
            a0 = inout(ymm_reg) a[A0],
            a1 = inout(ymm_reg) a[A1],
            b0 = inout(ymm_reg) b[B0],
            b1 = inout(ymm_reg) b[B1],
            c0 = inout(ymm_reg) c[0],
            c1 = inout(ymm_reg) c[1],
            d0 = inout(ymm_reg) d[D0],
            d1 = inout(ymm_reg) d[D1],
            t0 = out(ymm_reg) _,
            t1 = out(ymm_reg) _,
            by_16 = sym BY_16,
            by_8 = sym BY_8,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
}

/// Puts two words into memory, `STORE` bytes from its start, and takes those at `LOAD`.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn exchange<const STORE: usize, const LOAD: usize>(
    [c0, c1]: &mut [__m256i; 2],
    memory: &mut [__m256i; 4],
) {
    // SAFETY: AVX2 is there; both places are within the memory, which is aligned.
    unsafe {
        asm!(
            "vmovdqa ymmword ptr [{memory} + {store}], {c0}",
            "vmovdqa ymmword ptr [{memory} + {store} + 32], {c1}",
            "vmovdqa {c0}, ymmword ptr [{memory} + {load}]",
            "vmovdqa {c1}, ymmword ptr [{memory} + {load} + 32]",
            memory = in(reg) memory.as_mut_ptr(),
            c0 = inout(ymm_reg) *c0,
            c1 = inout(ymm_reg) *c1,
            store = const STORE,
            load = const LOAD,
            options(nostack, preserves_flags),
        );
    }
}
