//! GOST 28147-89 over vectors: the schedulers of [`gost28147`](crate::gost28147),
//! compiled for each engine's instructions.

mod planes;
mod words;

/// A module with the schedulers over one engine. Each clears the registers that
/// secrets went through.
macro_rules! engine {
    (
        $(#[$doc:meta])*
        $module:ident: $token:ident, $features:literal, $engine:expr, wipe $wipe:expr
    ) => {
        $(#[$doc])*
        pub(crate) mod $module {
            use super::super::wipe;
            use crate::cpu::$token;
            use crate::gost28147::divers::{self, Diversify};
            use crate::gost28147::engine::Rounds;
            use crate::gost28147::{Block, Key, Tables, Words, cfb, cnt, ecb, imit, lanes};
            use crate::job::{CipherJob, Direction, MacJob};

            engine!(@entries $token, $features, $engine, $wipe;
                fn ecb(jobs: &mut [CipherJob<'_, Key>], dir: Direction) = ecb::run;
                fn cnt(jobs: &mut [CipherJob<'_, Key>], meshed: bool) = cnt::run;
                fn cfb_encrypt(jobs: &mut [CipherJob<'_, Key>], meshed: bool) = cfb::run_encrypt;
                fn cfb_decrypt(jobs: &mut [CipherJob<'_, Key>], meshed: bool) = cfb::run_decrypt;
                fn imit(jobs: &mut [MacJob<'_, Key>], meshed: bool) = imit::run;
                fn lanes(rounds: Rounds, keys: &[&Words], blocks: &mut [Block]) = lanes::run;
                fn divers(jobs: &mut [Diversify<'_>]) = divers::run;
            );
        }
    };
    (@entries $token:ident, $features:literal, $engine:expr, $wipe:expr;
        $(fn $name:ident($($arg:ident: $type:ty),*) = $run:path;)*
    ) => {$(
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
            // Words of keys were found there.
            crate::wipe::dead_stack();
        }
    )*};
}

engine! {
    /// AVX2.
    byte_planes: HaveAvx2, "avx2", super::planes::Planes,
    wipe wipe::registers_256()
}

engine! {
    /// AVX-512 VBMI.
    wide_words: HaveAvx512Vbmi, "avx2,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi",
    super::words::WideWords,
    wipe { wipe::registers_256(); wipe::registers_512_upper() }
}
