//! What begins and ends a message that comes in pieces: single blocks of AES and of GHASH, and the tag.

use core::arch::x86_64::*;

use super::hash::Hash;
use super::lane::Lane;
use super::rounds::{encrypt_block, words};
use crate::aes::key::{Block, EncryptionKey};
use crate::cpu::{HaveClmul, HaveVaes, HaveVaes512};
use crate::gcm::key::GcmKey;
use crate::gcm::rest::Rest;
use crate::x86_64::wipe;

/// The functions, which use registers of one block, by the encoding of instructions that the
/// processor has.
macro_rules! last {
    ($name:ident, $token:ty, $features:literal, $wipe:expr) => {
        pub(crate) mod $name {
            use super::*;

            /// The block cipher alone.
            #[inline]
            pub(crate) fn encrypt(_: $token, key: &EncryptionKey, block: &Block) -> Block {
                #[target_feature(enable = $features)]
                fn inner(key: &EncryptionKey, block: &Block) -> Block {
                    // SAFETY: the instructions are enabled here.
                    unsafe {
                        let out = encrypt_block(key, block);
                        $wipe;
                        out
                    }
                }
                // SAFETY: the token proves the instructions.
                unsafe { inner(key, block) }
            }

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

            /// The tag of a message, from GHASH so far and E(J0).
            #[inline]
            pub(crate) fn tag(
                _: $token,
                key: &GcmKey,
                y: &Block,
                rest: &Rest<'_>,
                pad: &Block,
            ) -> Block {
                #[target_feature(enable = $features)]
                fn inner(key: &GcmKey, y: &Block, rest: &Rest<'_>, pad: &Block) -> Block {
                    // SAFETY: the instructions are enabled here.
                    unsafe {
                        let tag = super::tag(key, y, rest, pad);
                        $wipe;
                        tag
                    }
                }
                // SAFETY: the token proves the instructions.
                unsafe { inner(key, y, rest, pad) }
            }
        }
    };
}

last!(
    x128,
    HaveClmul,
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

    /// The block cipher alone.
    #[inline]
    pub(crate) fn encrypt(token: HaveVaes512, key: &EncryptionKey, block: &Block) -> Block {
        x256::encrypt(token.vaes(), key, block)
    }

    /// GHASH on from `y` over one block.
    #[inline]
    pub(crate) fn hash_block(token: HaveVaes512, key: &GcmKey, y: &mut Block, block: &Block) {
        x256::hash_block(token.vaes(), key, y, block);
    }

    /// The tag of a message, from GHASH so far and E(J0).
    #[inline]
    pub(crate) fn tag(
        token: HaveVaes512,
        key: &GcmKey,
        y: &Block,
        rest: &Rest<'_>,
        pad: &Block,
    ) -> Block {
        x256::tag(token.vaes(), key, y, rest, pad)
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

/// The tag: the end of GHASH, combined with E(J0).
#[inline(always)]
unsafe fn tag(key: &GcmKey, y: &Block, rest: &Rest<'_>, pad: &Block) -> Block {
    // SAFETY: the caller enables the instructions of `__m128i`.
    unsafe {
        let mut hash = Hash::from(__m128i::load(y.as_ptr()).reverse());
        // In bits, and with their bytes reversed as a block. Volatile, as in `words`.
        let bits = |bytes: &u64| (core::ptr::from_ref(bytes).read_volatile() << 3).cast_signed();
        let lengths = _mm_set_epi64x(bits(&rest.aad_len), bits(&rest.data_len));
        match rest.block {
            Some(block) => {
                hash.add(words(block).reverse(), 0, &key.table, 2);
                hash.add(lengths, 1, &key.table, 2);
            }
            None => hash.add(lengths, 0, &key.table, 1),
        }
        let hash = hash.reduce().y.reverse();
        let mut tag = [0; 16];
        __m128i::load(pad.as_ptr())
            .xor(hash)
            .store(tag.as_mut_ptr());
        tag
    }
}
