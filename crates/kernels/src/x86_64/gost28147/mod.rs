//! GOST 28147-89 over vectors: [its schedulers](crate::gost28147::schedulers),
//! compiled for each engine's instructions.

mod planes;
mod words;

pub(crate) use planes::Planes;
pub(crate) use words::WideWords;

use crate::gost28147::engine::{Block, MAX_BLOCKS, STREAMED};

/// Lanes of counter mode beside those of MACs, under the keys `K` of registers.
struct Counters<'a, K> {
    /// Ones for them.
    lanes: &'a [u8],
    last: &'a [K],
    streams: &'a mut [[Block; MAX_BLOCKS]; STREAMED],
}

/// A module with the schedulers over one engine. Each clears the registers that secrets
/// went through, and so much of the stack below.
macro_rules! engine {
    (
        $(#[$doc:meta])*
        $module:ident: $token:ident, $features:literal, $engine:ident, wipe $wipe:expr
    ) => {
        $(#[$doc])*
        pub(crate) mod $module {
            use super::super::wipe;
            use super::$engine;
            use crate::cpu::$token;
            use crate::gost28147::engine::{Block, Rounds};
            use crate::gost28147::key::{Key, Words};
            use crate::gost28147::sbox::Tables;
            use crate::gost28147::schedulers::diversify::{self, Diversify};
            use crate::gost28147::schedulers::packed::RegisterKeys;
            use crate::gost28147::packet_job::PacketJob;
            use crate::gost28147::schedulers::{cfb, cnt, ecb, imit, lanes, packets};
            use crate::job::{CipherJob, Direction, MacJob};

            engine!(@entries $token, $features, $engine, $wipe;
                fn ecb(jobs: &mut [CipherJob<'_, Key>], dir: Direction) = ecb::run, 14;
                fn cnt(jobs: &mut [CipherJob<'_, Key>]) = cnt::run, 20;
                fn cnt_meshed(jobs: &mut [CipherJob<'_, Key>]) = cnt::run_meshed, 24;
                fn cfb_encrypt(jobs: &mut [CipherJob<'_, Key>], meshed: bool) =
                    cfb::run_encrypt, 20;
                fn cfb_decrypt(jobs: &mut [CipherJob<'_, Key>]) = cfb::run_decrypt, 14;
                fn cfb_decrypt_meshed(jobs: &mut [CipherJob<'_, Key>]) =
                    cfb::run_decrypt_meshed, 24;
                fn imit(jobs: &mut [MacJob<'_, Key>], meshed: bool) = imit::run, 36;
                fn packets(jobs: &mut [PacketJob<'_>], opening: bool, meshed: bool) =
                    packets::run, 48;
                fn diversify(jobs: &mut [Diversify<'_>]) = diversify::run, 14;
                // Whoever has the keys of registers wipes the stack.
                fn lanes(
                    bank: &mut RegisterKeys<$engine>,
                    rounds: Rounds,
                    keys: &[&Words],
                    blocks: &mut [Block]
                ) = lanes::run, 0;
            );
        }
    };
    (@entries $token:ident, $features:literal, $engine:ident, $wipe:expr;
        $(
            $(#[$doc:meta])*
            fn $name:ident($($arg:ident: $type:ty),*) = $run:path, $kib:literal;
        )*
    ) => {$(
        $(#[$doc])*
        #[inline]
        pub(crate) fn $name(token: $token, sbox: &Tables, $($arg: $type),*) {
            #[target_feature(enable = $features)]
            fn inner(token: $token, sbox: &Tables, $($arg: $type),*) {
                $run($engine(token), sbox, $($arg),*);
                // SAFETY: the token proves the features.
                unsafe { $wipe }
            }
            // SAFETY: the token proves the features.
            unsafe { inner(token, sbox, $($arg),*) }
            // Words of keys were found there. A test finds out whether this is far enough.
            crate::wipe::dead_stack::<{ $kib << 10 }>();
        }
    )*};
}

engine! {
    /// AVX2.
    byte_planes: HaveAvx2, "avx2", Planes, wipe wipe::registers_256()
}

engine! {
    /// AVX-512 VBMI.
    wide_words: HaveAvx512Vbmi, "avx2,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi", WideWords,
    wipe { wipe::registers_256(); wipe::registers_512_upper() }
}

/// Calls the function for as many registers as there are of `keys`, up to the last number.
macro_rules! by_registers {
    ($keys:ident, $function:ident $arguments:tt, $($most:literal)+) => {
        match $keys.len() {
            $($most => $function::<$most> $arguments,)+
            _ => unreachable!("no more than REGISTERS"),
        }
    };
}
use by_registers;
