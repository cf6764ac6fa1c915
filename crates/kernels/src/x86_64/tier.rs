//! The instruction sets that the kernels are compiled for.

use core::arch::x86_64::{__m128i, __m256i, __m512i};

use super::bare::Bare;
use super::cbc_lanes::{Lanes, segment};
use super::ctr::Counters;
use super::ctr_windows;
use super::cursor::Cursor;
use super::rounds::Schedule;
use super::slots::{self, Pending, Store};
use super::states::States;
use super::tweaks::ShiftTweaks;
use super::wipe;

/// An instruction set, with what of it a kernel needs to know. The functions are
/// the large bodies that kernels share; they are compiled once, not inlined.
pub(crate) trait Tier {
    /// The widest register.
    type V: ShiftTweaks;
    /// Blocks packed into a run of the cipher: eight registers.
    const SLOTS: usize;
    /// Requests side by side in CBC encryption.
    const LANES: usize;

    /// [`slots::run`].
    ///
    /// # Safety
    /// As there, and the instructions of the tier are there.
    unsafe fn flush<const DECRYPT: bool>(store: *mut Store, pending: Pending);

    /// [`ctr_windows::windows`], in frames of its own, in which nothing is left: other requests need no such
    /// place, and whoever wipes what they left needs not go that deep.
    ///
    /// # Safety
    /// As there, and the instructions of the tier are there.
    unsafe fn ctr_windows(at: &mut Cursor, key: Schedule, counters: &mut Counters<Self::V>);

    /// [`segment`], over as few registers as hold the active lanes.
    ///
    /// # Safety
    /// As there, and the instructions of the tier are there.
    unsafe fn cbc_segment<const MIXED: bool>(lanes: &mut Lanes, start: usize, end: usize);
}

macro_rules! tier {
    (
        $(#[$doc:meta])*
        $module:ident, $name:ident: $token:ident, $features:literal,
        $vector:ty, $slots:literal slots, $lanes:literal lanes, wipe $wipe:expr,
        segments $($pattern:pat => $segment:ty, $width:literal;)+
    ) => {
        $(#[$doc])*
        pub(crate) struct $name;

        impl Tier for $name {
            type V = $vector;
            const SLOTS: usize = $slots;
            const LANES: usize = $lanes;

            #[inline(always)]
            unsafe fn flush<const DECRYPT: bool>(store: *mut Store, pending: Pending) {
                #[target_feature(enable = $features)]
                unsafe fn inner<const DECRYPT: bool>(store: *mut Store, pending: Pending) {
                    // SAFETY: as for the function around.
                    unsafe { slots::run::<$name, DECRYPT>(store, pending) }
                }
                // SAFETY: as for this function.
                unsafe { inner::<DECRYPT>(store, pending) }
            }

            #[inline(always)]
            unsafe fn ctr_windows(at: &mut Cursor, key: Schedule, counters: &mut Counters<$vector>) {
                #[target_feature(enable = $features)]
                #[inline(never)]
                unsafe fn inner(
                    at: &mut Cursor,
                    key: Schedule,
                    counters: &mut Counters<$vector>,
                    states: *mut $vector,
                ) {
                    // SAFETY: as for the function around, which has room for the states.
                    unsafe { ctr_windows::windows(at, key, counters, states) }
                }
                #[inline(never)]
                unsafe fn with_room(at: &mut Cursor, key: Schedule, counters: &mut Counters<$vector>) {
                    let mut states = States::new();
                    // SAFETY: as for the function around.
                    unsafe { inner(at, key, counters, states.start()) };
                    wipe::long_frame();
                }
                // SAFETY: as for this function.
                unsafe { with_room(at, key, counters) }
            }

            #[inline(always)]
            unsafe fn cbc_segment<const MIXED: bool>(lanes: &mut Lanes, start: usize, end: usize) {
                #[target_feature(enable = $features)]
                unsafe fn inner<const MIXED: bool>(lanes: &mut Lanes, start: usize, end: usize) {
                    // SAFETY: as for the function around; the width holds the lanes.
                    unsafe {
                        match lanes.active() {
                            $($pattern => segment::<$segment, $width, MIXED>(lanes, start, end),)+
                        }
                    }
                }
                // SAFETY: as for this function.
                unsafe { inner::<MIXED>(lanes, start, end) }
            }
        }

        $(#[$doc])*
        pub(crate) mod $module {
            use super::super::{cbc, cbc_lanes, ctr, ecb, wipe, xts};
            use super::{$name, Tier};
            use crate::aes::key::{AesKey, Block};
            use crate::cpu::$token;
            use crate::job::{CipherJob, Direction};
            use crate::xts::key::XtsKey;
            use inout::InOutBuf;

            tier!(@entry $token, $features, $wipe;
                fn ecb(dir: Direction, jobs: &mut [CipherJob<'_, AesKey>]) {
                    match dir {
                        Direction::Encrypt => ecb::crypt::<$name, false>(jobs),
                        Direction::Decrypt => ecb::crypt::<$name, true>(jobs),
                    }
                }
            );
            tier!(@entry $token, $features, $wipe;
                fn ecb_one(dir: Direction, job: &mut CipherJob<'_, AesKey>) {
                    match dir {
                        Direction::Encrypt => ecb::one::<$name, false>(job),
                        Direction::Decrypt => ecb::one::<$name, true>(job),
                    }
                }
            );
            tier!(@entry $token, $features, $wipe;
                fn cbc_encrypt(jobs: &mut [CipherJob<'_, AesKey>]) {
                    cbc_lanes::encrypt::<$name>(jobs)
                }
            );
            tier!(@entry $token, $features, $wipe;
                fn cbc_decrypt(jobs: &mut [CipherJob<'_, AesKey>]) {
                    cbc::decrypt::<$name>(jobs)
                }
            );
            tier!(@entry $token, $features, $wipe;
                fn cbc_decrypt_one(job: &mut CipherJob<'_, AesKey>) {
                    cbc::one::<$name>(job)
                }
            );
            tier!(@entry $token, $features, $wipe;
                fn ctr(jobs: &mut [CipherJob<'_, AesKey>]) {
                    ctr::apply::<$name>(jobs)
                }
            );
            tier!(@entry $token, $features, $wipe;
                fn ctr_one(job: &mut CipherJob<'_, AesKey>) {
                    ctr::one::<$name>(job)
                }
            );
            tier!(@entry $token, $features, $wipe;
                fn xts(dir: Direction, jobs: &mut [CipherJob<'_, XtsKey>]) {
                    match dir {
                        Direction::Encrypt => xts::crypt::<$name, false>(jobs),
                        Direction::Decrypt => xts::crypt::<$name, true>(jobs),
                    }
                }
            );
            tier!(@entry $token, $features, $wipe;
                fn xts_one(dir: Direction, job: &mut CipherJob<'_, XtsKey>) {
                    match dir {
                        Direction::Encrypt => xts::one::<$name, false>(job),
                        Direction::Decrypt => xts::one::<$name, true>(job),
                    }
                }
            );
            tier!(@entry $token, $features, $wipe;
                fn xts_from(dir: Direction, key: &AesKey, tweak: &Block, data: InOutBuf<'_, '_, u8>) {
                    match dir {
                        Direction::Encrypt => xts::crypt_from::<<$name as Tier>::V, false>(key, tweak, data),
                        Direction::Decrypt => xts::crypt_from::<<$name as Tier>::V, true>(key, tweak, data),
                    }
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
                // SAFETY: this function runs only where its features are; the mode's
                // own length rules were checked by its safe interface.
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

tier! {
    /// AES-NI without carry-less multiplication: one block to a register.
    aes_bare, AesBare: HaveAesNi, "aes,ssse3,sse4.1",
    Bare, 8 slots, 8 lanes, wipe wipe::registers_128(),
    segments
        1 => __m128i, 1;
        2 => __m128i, 2;
        3 | 4 => __m128i, 4;
        5 | 6 => __m128i, 6;
        _ => __m128i, 8;
}

tier! {
    /// AES-NI: one block to a register.
    aes_ni, AesNi: HaveClmul, "aes,pclmulqdq,ssse3,sse4.1",
    __m128i, 8 slots, 8 lanes, wipe wipe::registers_128(),
    segments
        1 => __m128i, 1;
        2 => __m128i, 2;
        3 | 4 => __m128i, 4;
        5 | 6 => __m128i, 6;
        _ => __m128i, 8;
}

tier! {
    /// VAES with AVX2: two blocks to a register.
    vaes, Vaes: HaveVaes, "aes,pclmulqdq,avx2,vaes,vpclmulqdq",
    __m256i, 16 slots, 20 lanes, wipe wipe::registers_256(),
    segments
        1 => __m128i, 1;
        2 => __m256i, 1;
        3 | 4 => __m256i, 2;
        5..=8 => __m256i, 4;
        9..=12 => __m256i, 6;
        13..=16 => __m256i, 8;
        _ => __m256i, 10;
}

tier! {
    /// VAES with AVX-512: four blocks to a register.
    vaes512, Vaes512: HaveVaes512, "aes,pclmulqdq,avx2,vaes,vpclmulqdq,avx512f,avx512bw,avx512dq,avx512vl",
    __m512i, 32 slots, 32 lanes, wipe { wipe::registers_256(); wipe::registers_512_upper() },
    segments
        1 => __m128i, 1;
        2 => __m256i, 1;
        3 | 4 => __m256i, 2;
        5..=8 => __m512i, 2;
        9..=12 => __m512i, 3;
        13..=16 => __m512i, 4;
        17..=24 => __m512i, 6;
        _ => __m512i, 8;
}
