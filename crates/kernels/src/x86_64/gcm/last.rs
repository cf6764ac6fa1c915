//! What ends a message that came in pieces: single blocks of GHASH, and the tag.

use core::arch::x86_64::*;

use super::hash::Hash;
use super::lane::Lane;
use super::rounds::{RoundKeys, late_rounds, round};
use crate::aes::key::Block;
use crate::cpu::{HaveAesNi, HaveVaes, HaveVaes512};
use crate::gcm::key::GcmKey;
use crate::gcm::rest::Rest;
use crate::x86_64::wipe;

/// Both functions, which use registers of one block, by the encoding of instructions that the
/// processor has.
macro_rules! last {
    ($name:ident, $token:ty, $features:literal, $wipe:expr) => {
        pub(crate) mod $name {
            use super::*;

            /// GHASH on from `y` over one block.
            #[inline]
            pub(crate) fn hash_block(_: $token, key: &GcmKey, y: &mut Block, block: &Block) {
                #[target_feature(enable = $features)]
                fn inner(key: &GcmKey, y: &mut Block, block: &Block) {
                    // SAFETY: the instructions are enabled here.
                    unsafe {
                        super::hash_block(key, y, block);
                        $wipe;
                    }
                }
                // SAFETY: the token proves the instructions.
                unsafe { inner(key, y, block) }
            }

            /// The tag of a message, from GHASH so far.
            #[inline]
            pub(crate) fn tag(
                _: $token,
                key: &GcmKey,
                y: &Block,
                rest: &Rest<'_>,
                j0: &Block,
            ) -> Block {
                #[target_feature(enable = $features)]
                fn inner(key: &GcmKey, y: &Block, rest: &Rest<'_>, j0: &Block) -> Block {
                    // SAFETY: the instructions are enabled here.
                    unsafe {
                        let tag = super::tag(key, y, rest, j0);
                        $wipe;
                        tag
                    }
                }
                // SAFETY: the token proves the instructions.
                unsafe { inner(key, y, rest, j0) }
            }
        }
    };
}

last!(
    x128,
    HaveAesNi,
    "aes,pclmulqdq,ssse3,sse4.1",
    wipe::registers_128()
);
last!(
    x256,
    HaveVaes,
    "aes,pclmulqdq,avx2,vaes,vpclmulqdq",
    wipe::registers_256()
);

/// Four blocks a vector gain nothing here, and long vectors take longer to be cleared.
pub(crate) mod x512 {
    use super::*;

    /// GHASH on from `y` over one block.
    #[inline]
    pub(crate) fn hash_block(token: HaveVaes512, key: &GcmKey, y: &mut Block, block: &Block) {
        x256::hash_block(token.vaes(), key, y, block);
    }

    /// The tag of a message, from GHASH so far.
    #[inline]
    pub(crate) fn tag(
        token: HaveVaes512,
        key: &GcmKey,
        y: &Block,
        rest: &Rest<'_>,
        j0: &Block,
    ) -> Block {
        x256::tag(token.vaes(), key, y, rest, j0)
    }
}

/// A block that was written in words of 64 bits a moment ago: a load over both stores would wait
/// until they are done. Volatile, so that the loads stay two.
#[inline(always)]
unsafe fn words(block: &Block) -> __m128i {
    #[repr(C, packed)]
    struct Word(i64);
    let words = block.as_ptr().cast::<Word>();
    // SAFETY: both words are inside the block; SSE2 is part of x86-64.
    unsafe {
        let [low, high] = [0, 1].map(|i| words.add(i).read_volatile().0);
        _mm_set_epi64x(high, low)
    }
}

/// GHASH on from `y` over one block.
#[inline(always)]
unsafe fn hash_block(key: &GcmKey, y: &mut Block, block: &Block) {
    // SAFETY: the caller enables the instructions of `__m128i`.
    unsafe {
        let mut hash = Hash::from(__m128i::load(y.as_ptr()).reverse());
        hash.add(words(block).reverse(), 0, &key.table, 1);
        hash.reduce().y.reverse().store(y.as_mut_ptr());
    }
}

/// The tag: the end of GHASH, beside which the block is encrypted that hides it.
#[inline(always)]
unsafe fn tag(key: &GcmKey, y: &Block, rest: &Rest<'_>, j0: &Block) -> Block {
    // SAFETY: the caller enables the instructions of `__m128i`.
    unsafe {
        let mut hash = Hash::from(__m128i::load(y.as_ptr()).reverse());
        // In bits, and with their bytes reversed as a block.
        let bits = |bytes: u64| (bytes << 3).cast_signed();
        let lengths = _mm_set_epi64x(bits(rest.aad_len), bits(rest.data_len));
        match rest.block {
            Some(block) => {
                hash.add(words(block).reverse(), 0, &key.table, 2);
                hash.add(lengths, 1, &key.table, 2);
            }
            None => hash.add(lengths, 0, &key.table, 1),
        }
        let mut keys = RoundKeys::of(&key.aes);
        let mut pad = [__m128i::load(j0.as_ptr()).xor(keys.load(0))];
        for i in 1..10 {
            round(&mut pad, &mut keys, i);
        }
        let last = late_rounds(&mut pad, &mut keys);
        let hash = hash.reduce().y.reverse();
        let mut tag = [0; 16];
        pad[0].aesenclast(last.xor(hash)).store(tag.as_mut_ptr());
        tag
    }
}
