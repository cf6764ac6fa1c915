//! A few blocks of a stream, for programs that bring them piece by piece: what stands around the rounds
//! costs as much as they do. So the data comes by its addresses, no register is wider than a block,
//! and only as many registers are cleared as there are values.

use core::arch::x86_64::__m128i;

use inout::InOutBuf;

use super::bare::Bare;
use super::rounds::{Keys, Schedule, middle};
use super::tweaks::ShiftTweaks;
use super::wide::Wide;
use super::wipe;
use crate::aes::key::{AesKey, Block, EncryptionKey};
use crate::cpu::{HaveAesNi, HaveClmul, HaveVaes};
use crate::job::Direction;

/// Whether the entries here take a part of `len` bytes.
#[inline(always)]
pub(crate) fn takes(len: usize) -> bool {
    matches!(len, 16 | 32 | 48 | 64)
}

/// Puts the blocks at `from` through the cipher. `chain` is given them, and gives what each result is
/// combined with by exclusive or before it goes to `to`.
///
/// # Safety
/// AES-NI is there, and both are valid for `N` blocks.
#[inline(always)]
unsafe fn crypt<const N: usize, const DECRYPT: bool>(
    key: Schedule,
    (from, to): (*const u8, *mut u8),
    chain: impl FnOnce([__m128i; N]) -> [__m128i; N],
) {
    // SAFETY: as for this function; all is read before any is written.
    unsafe {
        let input: [__m128i; N] = core::array::from_fn(|i| __m128i::load(from.add(16 * i)));
        let mut state = input.map(|block| block.xor(key.at(0, 0)));
        let key = middle::<__m128i, _, N, DECRYPT>(&mut state, key);
        let last: __m128i = key.at(0, key.rounds());
        for (i, chain) in chain(input).into_iter().enumerate() {
            let output = state[i].last_round::<DECRYPT>(last.xor(chain));
            output.store(to.add(16 * i));
        }
    }
}

/// # Safety
/// As for [`crypt`].
#[inline(always)]
unsafe fn ecb<const N: usize, const DECRYPT: bool>(key: &AesKey, data: (*const u8, *mut u8)) {
    // SAFETY: as for this function.
    unsafe {
        let key = Schedule::new::<DECRYPT>(key);
        crypt::<N, DECRYPT>(key, data, |_| [__m128i::zero(); N]);
    }
}

/// # Safety
/// As for [`crypt`].
#[inline(always)]
unsafe fn cbc_decrypt<const N: usize>(key: &AesKey, iv: &mut Block, data: (*const u8, *mut u8)) {
    // SAFETY: as for this function.
    unsafe {
        crypt::<N, true>(Schedule::new::<true>(key), data, |input| {
            let mut before = __m128i::load(iv.as_ptr());
            let chain = input.map(|block| core::mem::replace(&mut before, block));
            before.store(iv.as_mut_ptr());
            chain
        });
    }
}

/// A data unit of whole blocks, from the tweak of the first.
///
/// # Safety
/// As for [`crypt`], and the instructions of `V` are there.
#[inline(always)]
unsafe fn xts<V: ShiftTweaks, const N: usize, const DECRYPT: bool>(
    key: &AesKey,
    tweak: &Block,
    (from, to): (*const u8, *mut u8),
) {
    let key = Schedule::new::<DECRYPT>(key);
    // SAFETY: as for this function; all is read before any is written.
    unsafe {
        let first = __m128i::load(tweak.as_ptr());
        let tweaks: [__m128i; N] = core::array::from_fn(|i| match i {
            0 => first,
            1 => V::double_tweak(first),
            _ => V::shift_tweak(first, i as i32),
        });
        let first: __m128i = key.at(0, 0);
        let mut state =
            core::array::from_fn(|i| __m128i::load(from.add(16 * i)).xor(tweaks[i].xor(first)));
        let key = middle::<__m128i, _, N, DECRYPT>(&mut state, key);
        let last: __m128i = key.at(0, key.rounds());
        for i in 0..N {
            let output = state[i].last_round::<DECRYPT>(last.xor(tweaks[i]));
            output.store(to.add(16 * i));
        }
    }
}

macro_rules! blocks {
    ($(#[$doc:meta])* $module:ident: $token:ident, $features:literal, $tweak:ty, $wipe:expr) => {
        $(#[$doc])*
        pub(crate) mod $module {
            use super::*;

            /// One block, where it is.
            #[inline(always)]
            pub(crate) fn encrypt(_: $token, key: &EncryptionKey, block: &mut Block) {
                #[target_feature(enable = $features)]
                fn inner(key: &EncryptionKey, block: &mut Block) {
                    const N: usize = 1;
                    let at = block.as_mut_ptr();
                    // SAFETY: the features are there, and the data is a block.
                    unsafe {
                        crypt::<N, false>(Schedule::of(key), (at, at), |_| [__m128i::zero()]);
                        $wipe;
                    }
                }
                // SAFETY: the token proves the features.
                unsafe { inner(key, block) }
            }

            #[inline(always)]
            pub(crate) fn ecb(
                _: $token,
                direction: Direction,
                key: &AesKey,
                data: InOutBuf<'_, '_, u8>,
            ) {
                #[target_feature(enable = $features)]
                unsafe fn inner<const N: usize, const DECRYPT: bool>(
                    key: &AesKey,
                    from: *const u8,
                    to: *mut u8,
                ) {
                    // SAFETY: as below.
                    unsafe {
                        super::ecb::<N, DECRYPT>(key, (from, to));
                        $wipe;
                    }
                }
                let blocks = data.len() / 16;
                let (from, to) = data.into_raw();
                // SAFETY: the token proves the features; the data has that number of blocks.
                unsafe {
                    match (direction, blocks) {
                        (Direction::Encrypt, 1) => inner::<1, false>(key, from, to),
                        (Direction::Encrypt, 2) => inner::<2, false>(key, from, to),
                        (Direction::Encrypt, 3) => inner::<3, false>(key, from, to),
                        (Direction::Encrypt, _) => inner::<4, false>(key, from, to),
                        (Direction::Decrypt, 1) => inner::<1, true>(key, from, to),
                        (Direction::Decrypt, 2) => inner::<2, true>(key, from, to),
                        (Direction::Decrypt, 3) => inner::<3, true>(key, from, to),
                        (Direction::Decrypt, _) => inner::<4, true>(key, from, to),
                    }
                }
            }

            #[inline(always)]
            pub(crate) fn xts(
                _: $token,
                direction: Direction,
                key: &AesKey,
                tweak: &Block,
                data: InOutBuf<'_, '_, u8>,
            ) {
                #[target_feature(enable = $features)]
                unsafe fn inner<const N: usize, const DECRYPT: bool>(
                    key: &AesKey,
                    tweak: &Block,
                    from: *const u8,
                    to: *mut u8,
                ) {
                    // SAFETY: as below.
                    unsafe {
                        super::xts::<$tweak, N, DECRYPT>(key, tweak, (from, to));
                        $wipe;
                    }
                }
                let blocks = data.len() / 16;
                let (from, to) = data.into_raw();
                // SAFETY: the token proves the features; the data has that number of blocks.
                unsafe {
                    match (direction, blocks) {
                        (Direction::Encrypt, 1) => inner::<1, false>(key, tweak, from, to),
                        (Direction::Encrypt, 2) => inner::<2, false>(key, tweak, from, to),
                        (Direction::Encrypt, 3) => inner::<3, false>(key, tweak, from, to),
                        (Direction::Encrypt, _) => inner::<4, false>(key, tweak, from, to),
                        (Direction::Decrypt, 1) => inner::<1, true>(key, tweak, from, to),
                        (Direction::Decrypt, 2) => inner::<2, true>(key, tweak, from, to),
                        (Direction::Decrypt, 3) => inner::<3, true>(key, tweak, from, to),
                        (Direction::Decrypt, _) => inner::<4, true>(key, tweak, from, to),
                    }
                }
            }

            #[inline(always)]
            pub(crate) fn cbc_decrypt(
                _: $token,
                key: &AesKey,
                iv: &mut Block,
                data: InOutBuf<'_, '_, u8>,
            ) {
                #[target_feature(enable = $features)]
                unsafe fn inner<const N: usize>(
                    key: &AesKey,
                    iv: &mut Block,
                    from: *const u8,
                    to: *mut u8,
                ) {
                    // SAFETY: as below.
                    unsafe {
                        super::cbc_decrypt::<N>(key, iv, (from, to));
                        $wipe;
                    }
                }
                let blocks = data.len() / 16;
                let (from, to) = data.into_raw();
                // SAFETY: the token proves the features; the data has that number of blocks.
                unsafe {
                    match blocks {
                        1 => inner::<1>(key, iv, from, to),
                        2 => inner::<2>(key, iv, from, to),
                        3 => inner::<3>(key, iv, from, to),
                        _ => inner::<4>(key, iv, from, to),
                    }
                }
            }
        }
    };
}

blocks! {
    /// The instructions as they are without AVX.
    aes_ni: HaveClmul, "aes,pclmulqdq,ssse3,sse4.1", __m128i, wipe::of_blocks_128::<N>()
}

blocks! {
    /// The same without carry-less multiplication.
    aes_bare: HaveAesNi, "aes,ssse3,sse4.1", Bare, wipe::of_blocks_128::<N>()
}

blocks! {
    /// With three operands.
    vaes: HaveVaes, "aes,pclmulqdq,avx", __m128i, wipe::of_blocks_256::<N>()
}
