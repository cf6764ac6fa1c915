//! ChaCha20 blocks (RFC 8439, section 2.3) side by side, each with its own key,
//! counter and nonce: 16 with AVX-512, 8 with AVX2.
//!
//! A vector holds the same word of the state of every block.

use core::arch::asm;
use core::arch::x86_64::*;
use core::array::{from_mut, from_ref};
use core::mem::MaybeUninit;

use inout::InOutBuf;

use crate::cpu::{HaveAvx2, HaveAvx512};
use crate::x86_64::memory;
use crate::x86_64::rows::{load8, load16, transpose256, transpose512};

/// A block of key stream.
pub(crate) type Pad = [u8; 64];

/// What a block is made of, besides the constants.
#[derive(Clone, Copy)]
pub(crate) struct Input<'k> {
    pub(crate) key: &'k [u8; 32],
    /// The counter, little endian, and the nonce.
    pub(crate) tail: [u8; 16],
}

/// "expand 32-byte k"
pub(super) const CONSTANTS: [u32; 4] = [0x61707865, 0x3320646e, 0x79622d32, 0x6b206574];

/// The blocks of the first `count` inputs, rounded up to 16 or 32.
#[inline]
pub(crate) fn avx512(
    _: HaveAvx512,
    count: usize,
    inputs: &[[Input<'_>; 16]; 2],
    pads: &mut [[Pad; 16]; 2],
) {
    // SAFETY: the token is made only where the instructions are present.
    unsafe {
        if count <= 16 {
            wide::blocks::<1>(from_ref(&inputs[0]), from_mut(&mut pads[0]));
        } else {
            wide::blocks::<2>(inputs, pads);
        }
    }
}

/// The blocks of up to 8 inputs.
#[inline]
pub(crate) fn avx512_few(_: HaveAvx512, inputs: &[[Input<'_>; 8]; 1], pads: &mut [[Pad; 8]; 1]) {
    // SAFETY: the token is made only where the instructions are present.
    unsafe { half::blocks::<1>(inputs, pads) }
}

/// The blocks of up to 8 inputs.
#[inline]
pub(crate) fn avx2(_: HaveAvx2, inputs: &[[Input<'_>; 8]; 1], pads: &mut [[Pad; 8]; 1]) {
    // SAFETY: the token is made only where the instructions are present.
    unsafe { narrow::blocks::<1>(inputs, pads) }
}

/// Adds key stream to data, no longer than it.
#[inline]
pub(crate) fn xor(_: HaveAvx2, data: InOutBuf<'_, '_, u8>, pad: &[u8]) {
    assert!(data.len() <= pad.len());
    let len = data.len();
    let (from, to) = data.into_raw();
    // SAFETY: the token is made only where the instructions are present; both
    // pointers are valid for `len` bytes, and the pad has no fewer.
    unsafe { xor_bytes(from, to, pad.as_ptr(), len) }
}

/// The same by 64 bytes at a time where that can be: a MAC of vectors that follows loads as many, and would
/// wait for two stores.
#[inline]
pub(super) fn xor_for_mac(
    (avx2, avx512): (HaveAvx2, Option<HaveAvx512>),
    data: InOutBuf<'_, '_, u8>,
    pad: &[u8],
) {
    if avx512.is_none() {
        return xor(avx2, data, pad);
    }
    assert!(data.len() <= pad.len());
    let len = data.len();
    let (from, to) = data.into_raw();
    // SAFETY: as in `xor`.
    unsafe { xor_lines(from, to, pad.as_ptr(), len) }
}

/// # Safety
/// As [`xor_bytes`].
#[target_feature(enable = "avx512f")]
unsafe fn xor_lines(from: *const u8, to: *mut u8, pad: *const u8, len: usize) {
    let lines = len & !63;
    // SAFETY: each step ends at `len` at most.
    unsafe {
        for done in (0..lines).step_by(64) {
            let bytes = memory::load(from.add(done));
            let bytes = _mm512_xor_si512(bytes, memory::load(pad.add(done)));
            _mm512_storeu_si512(to.add(done).cast(), bytes);
        }
        xor_bytes(from.add(lines), to.add(lines), pad.add(lines), len - lines);
    }
}

/// # Safety
/// `from`, `to` and `pad` are valid for `len` bytes; `from` and `to` are the same
/// or do not overlap.
#[target_feature(enable = "avx2")]
unsafe fn xor_bytes(from: *const u8, to: *mut u8, pad: *const u8, len: usize) {
    let mut done = 0;
    // SAFETY: each step ends at `len` at most.
    unsafe {
        while done + 32 <= len {
            let bytes = memory::load(from.add(done));
            let bytes = _mm256_xor_si256(bytes, memory::load(pad.add(done)));
            _mm256_storeu_si256(to.add(done).cast(), bytes);
            done += 32;
        }
        while done + 8 <= len {
            let bytes = from.add(done).cast::<u64>().read_unaligned();
            let bytes = bytes ^ pad.add(done).cast::<u64>().read_unaligned();
            to.add(done).cast::<u64>().write_unaligned(bytes);
            done += 8;
        }
        while done < len {
            *to.add(done) = *from.add(done) ^ *pad.add(done);
            done += 1;
        }
    }
}

/// Makes the compiler align the frame of the function, and so what it keeps there for want of
/// registers: it does not for that alone, and a vector across two cache lines costs twice.
#[inline(always)]
pub(super) fn aligned_frame() {
    #[repr(align(64))]
    #[allow(dead_code)] // Only its place matters.
    struct Line([u8; 64]);
    let line = MaybeUninit::<Line>::uninit();
    // SAFETY: the statement is empty.
    unsafe {
        asm!("/* {0} */", in(reg) line.as_ptr(), options(readonly, nostack, preserves_flags));
    }
}

/// Four quarter rounds of each set side by side.
macro_rules! quarter_rounds {
    ($sets:tt, $v:ident, $([$a:literal $b:literal $c:literal $d:literal])*) => {
        for v in 0..$sets {
            let v = &mut $v[v];
            $(
                v[$a] = add(v[$a], v[$b]);
                v[$d] = rotate::<16, 16>(xor(v[$d], v[$a]));
            )*
        }
        for v in 0..$sets {
            let v = &mut $v[v];
            $(
                v[$c] = add(v[$c], v[$d]);
                v[$b] = rotate::<12, 20>(xor(v[$b], v[$c]));
            )*
        }
        for v in 0..$sets {
            let v = &mut $v[v];
            $(
                v[$a] = add(v[$a], v[$b]);
                v[$d] = rotate::<8, 24>(xor(v[$d], v[$a]));
            )*
        }
        for v in 0..$sets {
            let v = &mut $v[v];
            $(
                v[$c] = add(v[$c], v[$d]);
                v[$b] = rotate::<7, 25>(xor(v[$b], v[$c]));
            )*
        }
    };
}

pub(super) use quarter_rounds;

/// The block function over `SETS` times `$lanes` blocks. The operations are
/// functions of the module.
macro_rules! blocks {
    ($features:literal, $lanes:literal, $load:ident, $write:ident, $store:ident) => {
        #[target_feature(enable = $features)]
        pub(super) fn blocks<const SETS: usize>(
            inputs: &[[Input<'_>; $lanes]; SETS],
            pads: &mut [[Pad; $lanes]; SETS],
        ) {
            aligned_frame();
            let [c0, c1, c2, c3] = CONSTANTS;
            let mut start = [[splat(0); 16]; SETS];
            let mut v = start;
            for set in 0..SETS {
                let mut keys = [core::ptr::null::<u8>(); $lanes];
                let mut tails = [core::ptr::null::<u8>(); $lanes];
                for l in 0..$lanes {
                    keys[l] = inputs[set][l].key.as_ptr();
                    tails[l] = inputs[set][l].tail.as_ptr();
                }
                // SAFETY: a key has 32 bytes, a tail 16.
                let rows = unsafe { [$load(&keys, 0), $load(&keys, 16), $load(&tails, 0)] };
                let [[k0, k1, k2, k3], [k4, k5, k6, k7], [t0, t1, t2, t3]] = rows;
                start[set] = [
                    splat(c0), splat(c1), splat(c2), splat(c3),
                    k0, k1, k2, k3, k4, k5, k6, k7, t0, t1, t2, t3,
                ];
                v[set] = start[set];
            }
            for _ in 0..10 {
                quarter_rounds!(SETS, v, [0 4 8 12] [1 5 9 13] [2 6 10 14] [3 7 11 15]);
                quarter_rounds!(SETS, v, [0 5 10 15] [1 6 11 12] [2 7 8 13] [3 4 9 14]);
            }
            for set in 0..SETS {
                for i in 0..16 {
                    v[set][i] = add(v[set][i], start[set][i]);
                }
                let pads = pads[set].as_flattened_mut().as_mut_ptr();
                $write(&v[set], |offset, pad| {
                    // SAFETY: a part of a block of a set.
                    unsafe { $store(pads.add(offset).cast(), pad) };
                });
            }
        }
    };
}

/// 16 blocks a set.
pub(super) mod wide {
    use super::*;

    blocks!("avx512f", 16, load16, blocks16, _mm512_storeu_si512);

    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(in crate::x86_64) fn add(x: __m512i, y: __m512i) -> __m512i {
        _mm512_add_epi32(x, y)
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(in crate::x86_64) fn xor(x: __m512i, y: __m512i) -> __m512i {
        _mm512_xor_si512(x, y)
    }

    /// To the left by `N`, which is to the right by `M`.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(in crate::x86_64) fn rotate<const N: i32, const M: i32>(x: __m512i) -> __m512i {
        _mm512_rol_epi32::<N>(x)
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(in crate::x86_64) fn splat(x: u32) -> __m512i {
        _mm512_set1_epi32(x as i32)
    }
}

/// 8 blocks a set.
pub(super) mod narrow {
    use super::*;

    use crate::x86_64::chacha_narrow::{BY_8, BY_16};

    blocks!("avx2", 8, load8, blocks8, _mm256_storeu_si256);

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(in crate::x86_64) fn add(x: __m256i, y: __m256i) -> __m256i {
        _mm256_add_epi32(x, y)
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(in crate::x86_64) fn xor(x: __m256i, y: __m256i) -> __m256i {
        _mm256_xor_si256(x, y)
    }

    /// To the left by `N`, which is to the right by `M`.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(in crate::x86_64) fn rotate<const N: i32, const M: i32>(x: __m256i) -> __m256i {
        let shuffled;
        match N {
            // A compiler that knows what these two do puts more instructions in their place: it
            // takes two for the first, and moves the second to before the exclusive or.
            // SAFETY: AVX2 is there, and the operands are of 32 bytes and aligned.
            16 => unsafe {
                asm!(
                    "vpshufb {}, {}, ymmword ptr [rip + {}]",
                    lateout(ymm_reg) shuffled, in(ymm_reg) x, sym BY_16,
                    options(pure, readonly, nostack, preserves_flags),
                );
            },
            // SAFETY: as above.
            8 => unsafe {
                asm!(
                    "vpshufb {}, {}, ymmword ptr [rip + {}]",
                    lateout(ymm_reg) shuffled, in(ymm_reg) x, sym BY_8,
                    options(pure, readonly, nostack, preserves_flags),
                );
            },
            _ => {
                let left = _mm256_slli_epi32::<N>(x);
                shuffled = _mm256_or_si256(left, _mm256_srli_epi32::<M>(x));
            }
        }
        shuffled
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(in crate::x86_64) fn splat(x: u32) -> __m256i {
        _mm256_set1_epi32(x as i32)
    }
}

/// 8 blocks a set, with the rotations and the 32 registers of AVX-512.
pub(super) mod half {
    use super::*;

    blocks!("avx512f,avx512vl", 8, load8, blocks8, _mm256_storeu_si256);

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(in crate::x86_64) fn add(x: __m256i, y: __m256i) -> __m256i {
        _mm256_add_epi32(x, y)
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(in crate::x86_64) fn xor(x: __m256i, y: __m256i) -> __m256i {
        _mm256_xor_si256(x, y)
    }

    /// To the left by `N`, which is to the right by `M`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl")]
    pub(in crate::x86_64) fn rotate<const N: i32, const M: i32>(x: __m256i) -> __m256i {
        _mm256_rol_epi32::<N>(x)
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(in crate::x86_64) fn splat(x: u32) -> __m256i {
        _mm256_set1_epi32(x as i32)
    }
}

/// Gives the key stream of 16 blocks, a block at a time, by its offset.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn blocks16(words: &[__m512i; 16], mut put: impl FnMut(usize, __m512i)) {
    let mut rows = [[_mm512_setzero_si512(); 4]; 4];
    for (quarter, rows) in rows.iter_mut().enumerate() {
        let w = 4 * quarter;
        *rows = transpose512([words[w], words[w + 1], words[w + 2], words[w + 3]]);
    }
    let [w0, w4, w8, w12] = rows;
    for r in 0..4 {
        // Each has a quarter of the blocks r, r + 4, r + 8 and r + 12.
        let [q0, q1, q2, q3] = [w0[r], w4[r], w8[r], w12[r]];
        let first = _mm512_shuffle_i32x4::<0x44>(q0, q1);
        let second = _mm512_shuffle_i32x4::<0x44>(q2, q3);
        let third = _mm512_shuffle_i32x4::<0xee>(q0, q1);
        let fourth = _mm512_shuffle_i32x4::<0xee>(q2, q3);
        let blocks = [
            _mm512_shuffle_i32x4::<0x88>(first, second),
            _mm512_shuffle_i32x4::<0xdd>(first, second),
            _mm512_shuffle_i32x4::<0x88>(third, fourth),
            _mm512_shuffle_i32x4::<0xdd>(third, fourth),
        ];
        for (i, block) in blocks.into_iter().enumerate() {
            put(64 * (r + 4 * i), block);
        }
    }
}

/// Gives the key stream of 8 blocks, half a block at a time, by its offset.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn blocks8(words: &[__m256i; 16], mut put: impl FnMut(usize, __m256i)) {
    let mut rows = [[_mm256_setzero_si256(); 4]; 4];
    for (quarter, rows) in rows.iter_mut().enumerate() {
        let w = 4 * quarter;
        *rows = transpose256([words[w], words[w + 1], words[w + 2], words[w + 3]]);
    }
    let [first, second, third, fourth] = rows;
    for r in 0..4 {
        // Each has a quarter of the blocks r and r + 4.
        let [q0, q1, q2, q3] = [first[r], second[r], third[r], fourth[r]];
        put(64 * r, _mm256_permute2x128_si256::<0x20>(q0, q1));
        put(64 * r + 32, _mm256_permute2x128_si256::<0x20>(q2, q3));
        put(64 * (r + 4), _mm256_permute2x128_si256::<0x31>(q0, q1));
        put(64 * (r + 4) + 32, _mm256_permute2x128_si256::<0x31>(q2, q3));
    }
}
