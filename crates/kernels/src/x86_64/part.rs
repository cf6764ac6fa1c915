//! The next part of one message, as the calls of a stream bring it: some blocks, from an IV
//! that stays where it is from part to part. A short part costs little but the rounds:
//! nothing is packed, and the code uses sixteen registers only, of which fewer are to be
//! cleared than with AVX-512.

use core::arch::x86_64::{__m128i, __m256i, _mm_cvtsi64_si128};

use super::bare::Bare;
use super::cbc::Chain;
use super::cbc_lanes;
use super::ctr::{Counters, places};
use super::cursor::Cursor;
use super::ecb::Plain;
use super::rounds::Schedule;
use super::short;
use super::wide::Wide;
use super::wipe;
use super::xts;
use crate::aes::key::{AesKey, Block};
use crate::job::Direction;
use inout::InOutBuf;

/// Whether [`ecb`](vaes::ecb), `ctr` and `cbc_decrypt` take a part of `len` bytes.
#[inline(always)]
pub(crate) fn takes(len: usize) -> bool {
    short::takes(len)
}

macro_rules! parts {
    ($(#[$doc:meta])* $module:ident: $token:ident, $features:literal, $vector:ty, $wipe:expr) => {
        $(#[$doc])*
        pub(crate) mod $module {
            use super::*;
            use crate::cpu::$token;

            parts!(@entry $token, $features, $wipe;
                fn ecb(dir: Direction, key: &AesKey, data: InOutBuf<'_, '_, u8>) {
                    match dir {
                        Direction::Encrypt => super::ecb::<$vector, false>(key, data),
                        Direction::Decrypt => super::ecb::<$vector, true>(key, data),
                    }
                }
            );
            parts!(@entry $token, $features, $wipe;
                fn ctr(key: &AesKey, counter: &mut Block, data: InOutBuf<'_, '_, u8>) {
                    super::ctr::<$vector>(key, counter, data)
                }
            );
            parts!(@entry $token, $features, $wipe;
                fn xts(dir: Direction, key: &AesKey, tweak: &Block, data: InOutBuf<'_, '_, u8>) {
                    match dir {
                        Direction::Encrypt => xts::crypt_from::<$vector, false>(key, tweak, data),
                        Direction::Decrypt => xts::crypt_from::<$vector, true>(key, tweak, data),
                    }
                }
            );
            parts!(@entry $token, $features, $wipe;
                fn cbc_encrypt(key: &AesKey, iv: &mut Block, data: InOutBuf<'_, '_, u8>) {
                    super::cbc_encrypt(key, iv, data)
                }
            );
            parts!(@entry $token, $features, $wipe;
                fn cbc_decrypt(key: &AesKey, iv: &mut Block, data: InOutBuf<'_, '_, u8>) {
                    super::cbc_decrypt::<$vector>(key, iv, data)
                }
            );
        }
    };
    (@entry $token:ident, $features:literal, $wipe:expr;
        fn $name:ident($($arg:ident: $type:ty),*) $body:block
    ) => {
        #[inline]
        pub(crate) fn $name(_: $token, $($arg: $type),*) {
            #[target_feature(enable = $features)]
            fn inner($($arg: $type),*) {
                // SAFETY: this function runs only where its features are; the length of the
                // data was checked by the mode's safe interface.
                unsafe {
                    $body
                    $wipe
                }
            }
            // SAFETY: the token proves the features.
            unsafe { inner($($arg),*) }
        }
    };
}

parts! {
    /// AES-NI: one block to a register.
    aes_ni: HaveClmul, "aes,pclmulqdq,ssse3,sse4.1", __m128i, wipe::registers_128()
}

parts! {
    /// AES-NI without carry-less multiplication.
    aes_bare: HaveAesNi, "aes,ssse3,sse4.1", Bare, wipe::registers_128()
}

parts! {
    /// VAES with AVX2: two blocks to a register.
    vaes: HaveVaes, "aes,pclmulqdq,avx2,vaes,vpclmulqdq", __m256i, wipe::registers_256()
}

/// # Safety
/// The instructions of `V` are there, and [`takes`] agrees to the data.
#[inline(always)]
unsafe fn ecb<V: Wide, const DECRYPT: bool>(key: &AesKey, mut data: InOutBuf<'_, '_, u8>) {
    let key = Schedule::new::<DECRYPT>(key);
    // SAFETY: as for this function.
    unsafe { short::crypt::<V, _, DECRYPT>(&mut Cursor::new(&mut data), key, &mut Plain) }
}

/// # Safety
/// As for [`ecb`], and the lower half of the counter does not wrap within the data.
#[inline(always)]
unsafe fn ctr<V: Wide>(key: &AesKey, counter: &mut Block, mut data: InOutBuf<'_, '_, u8>) {
    let key = Schedule::new::<false>(key);
    let mut at = Cursor::new(&mut data);
    // SAFETY: as for this function.
    unsafe {
        // Kept with its bytes reversed, as the processor counts, and written back in one store,
        // which the next part is waiting to load.
        let first = __m128i::load(counter.as_ptr()).reverse();
        let by = _mm_cvtsi64_si128(at.blocks() as i64);
        first.add_halves(by).reverse().store(counter.as_mut_ptr());
        let mut counters = Counters(V::broadcast(first).add_halves(places()));
        short::crypt::<V, _, false>(&mut at, key, &mut counters);
    }
}

/// # Safety
/// As for [`ecb`].
#[inline(always)]
unsafe fn cbc_decrypt<V: Wide>(key: &AesKey, iv: &mut Block, mut data: InOutBuf<'_, '_, u8>) {
    let key = Schedule::new::<true>(key);
    // SAFETY: as for this function.
    unsafe {
        let mut chain = Chain(V::broadcast(__m128i::load(iv.as_ptr())));
        short::crypt::<V, _, true>(&mut Cursor::new(&mut data), key, &mut chain);
        chain.0.last().store(iv.as_mut_ptr());
    }
}

/// # Safety
/// AES-NI is there.
#[inline(always)]
unsafe fn cbc_encrypt(key: &AesKey, iv: &mut Block, mut data: InOutBuf<'_, '_, u8>) {
    // SAFETY: as for this function.
    unsafe { cbc_lanes::alone(key, iv, &mut data) }
}
