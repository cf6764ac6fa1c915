//! Blocks each under a key of its own, for the modes of Magma, which is this cipher with
//! the S-box `param_z` and all bytes the other way round.

use super::engine::{Block, Rounds};
use super::key::Words;
use super::sbox::Tables;
use super::scalar::{Scalar, apart, one};
use super::schedulers::lanes::{run, turn};
use super::schedulers::packed::RegisterKeys;
use crate::choose::choose;
#[cfg(target_arch = "x86_64")]
use crate::x86_64::gost28147::{Planes, WideWords, byte_planes, wide_words};

/// The keys of an engine's registers, kept from one call to the next, as long as the keys
/// that they are of live where they do. When dropped they are wiped, and so is the stack
/// below.
// A field for each engine: one value of several would be copied to its place when made. Only
// those keys are initialised that were set.
pub(crate) struct RegisterKeyCache {
    scalar: RegisterKeys<Scalar>,
    #[cfg(target_arch = "x86_64")]
    planes: RegisterKeys<Planes>,
    #[cfg(target_arch = "x86_64")]
    words: RegisterKeys<WideWords>,
    used: bool,
}

impl Default for RegisterKeyCache {
    #[inline(always)]
    fn default() -> Self {
        RegisterKeyCache {
            scalar: RegisterKeys::new(),
            #[cfg(target_arch = "x86_64")]
            planes: RegisterKeys::new(),
            #[cfg(target_arch = "x86_64")]
            words: RegisterKeys::new(),
            used: false,
        }
    }
}

impl Drop for RegisterKeyCache {
    fn drop(&mut self) {
        if !self.used {
            return;
        }
        self.scalar.wipe();
        #[cfg(target_arch = "x86_64")]
        {
            self.planes.wipe();
            self.words.wipe();
            crate::wipe::dead_stack::<{ 12 << 10 }>();
        }
    }
}

/// Runs every block of Magma in place through the rounds, under the key of the same place.
pub(crate) fn crypt(
    cache: &mut RegisterKeyCache,
    sbox: &Tables,
    rounds: Rounds,
    keys: &[&Words],
    blocks: &mut [Block],
) {
    cache.used = true;
    if let ([key], [block]) = (keys, &mut *blocks) {
        turn(block);
        *block = one(sbox, rounds, key, *block);
        turn(block);
        return;
    }
    choose! {
        token: HaveAvx512Vbmi =>
            wide_words::lanes(token, sbox, &mut cache.words, rounds, keys, blocks),
        token: HaveAvx2 => byte_planes::lanes(token, sbox, &mut cache.planes, rounds, keys, blocks),
        _ => apart(|| run(Scalar, sbox, &mut cache.scalar, rounds, keys, blocks)),
    }
}
