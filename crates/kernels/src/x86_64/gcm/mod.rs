//! AES-GCM (NIST SP 800-38D), counter mode and GHASH in one pass.
//!
//! All is written once over [`Lane`], a vector of one, two or four blocks, and
//! compiled three times at the end of this file. [`short`] is for messages of eight
//! vectors at most, [`long`] for all others.

mod alike;
mod chunk;
mod end;
mod halves;
mod hash;
mod lane;
mod last;
mod long;
mod rounds;
mod row;
mod short;
mod some;
mod sums;
mod wide;
mod windows;

use core::arch::x86_64::*;

use inout::InOutBuf;

use self::end::{Counting, End};
use self::hash::Hash;
pub(super) use self::lane::Lane;
use self::long::first_group;
use self::rounds::{Counters, FIRST, WIDTH, chunk_blocks, encrypt_vector, words};
use self::row::Row;
use self::short::{is_short, vectors};
pub(super) use self::some::{load_short, store_short};
use self::wide::Wide;
use super::ghash::{self, product};
use super::states::States;
use super::wipe;
use crate::aes::key::{Block, EncryptionKey};
use crate::cpu::{HaveClmul, HaveVaes, HaveVaes512};
use crate::gcm::key::GcmKey;
use crate::gcm::powers::Table;
use crate::gcm::rest::Begun;
use crate::job::{AeadJob, Direction};

/// The large functions, compiled once for each vector with its instructions enabled.
/// What [`Lane`] does is inlined into them.
trait Kernels: Lane {
    /// [`run`](short::run).
    unsafe fn run<const SEAL: bool, const M: usize>(jobs: &mut [AeadJob<'_, GcmKey>]) -> usize;
    /// [`long`](long::long).
    unsafe fn long<const SEAL: bool>(job: &mut AeadJob<'_, GcmKey>);
    /// [`alike`](alike::alike).
    unsafe fn alike<const SEAL: bool>(jobs: &mut [AeadJob<'_, GcmKey>], longest: usize);
    /// [`across`](alike::across).
    unsafe fn across<const SEAL: bool>(
        job: &mut AeadJob<'_, GcmKey>,
        states: *const Self,
        first: &Block,
    );
    /// [`windows`](windows::windows), in a frame of its own, which is wiped: other messages need no such
    /// place, and whoever wipes what they left needs not go that deep.
    unsafe fn windows<const SEAL: bool, const BY_HALVES: bool>(
        row: &mut Row<'_, Self>,
        counters: &mut Counters<Self>,
    );
    /// [`rest`](end::rest).
    unsafe fn rest<const SEAL: bool, const PENDING: usize, const BEFORE: usize, const M: usize>(
        key: &GcmKey,
        from: &Counting<Self>,
        data: (*const u8, *mut u8, usize),
        hash: &Hash<Self>,
        end: &mut End<'_, Self>,
    ) -> __m128i;
}

#[inline(always)]
unsafe fn crypt_batch<V: Kernels, const SEAL: bool>(mut jobs: &mut [AeadJob<'_, GcmKey>]) {
    while let Some(job) = jobs.first() {
        // SAFETY: the caller enables the instructions of `V`.
        let done = unsafe {
            if !is_short::<V>(job) {
                match alike::find::<V>(jobs) {
                    Some((count, longest)) => {
                        V::alike::<SEAL>(&mut jobs[..count], longest);
                        count
                    }
                    None => {
                        V::long::<SEAL>(&mut jobs[0]);
                        1
                    }
                }
            } else {
                match vectors::<V>(job) {
                    0 => V::run::<SEAL, 1>(jobs),
                    1 => V::run::<SEAL, 2>(jobs),
                    2 => V::run::<SEAL, 3>(jobs),
                    3 => V::run::<SEAL, 4>(jobs),
                    4 => V::run::<SEAL, 5>(jobs),
                    5 => V::run::<SEAL, 6>(jobs),
                    6 => V::run::<SEAL, 7>(jobs),
                    7 => V::run::<SEAL, 8>(jobs),
                    _ => V::run::<SEAL, 9>(jobs),
                }
            }
        };
        jobs = &mut jobs[done..];
    }
}

/// Stores a tag, as much of it as is asked for.
#[inline(always)]
unsafe fn store_tag(to: &mut [u8], tag: __m128i) {
    #[inline(never)]
    fn shorter(to: &mut [u8], tag: &mut [u8; 16]) {
        to.copy_from_slice(&tag[..to.len()]);
        crate::wipe::wipe(tag, [0; 16]);
    }
    match <&mut [u8; 16]>::try_from(&mut *to) {
        // SAFETY: a store of 16 bytes to as many; the caller has the instructions.
        Ok(to) => unsafe { tag.store(to.as_mut_ptr()) },
        Err(_) => {
            let mut whole = [0; 16];
            // SAFETY: as above.
            unsafe { tag.store(whole.as_mut_ptr()) };
            shorter(to, &mut whole);
        }
    }
}

#[inline(always)]
unsafe fn crypt_piece<V: Kernels, const SEAL: bool>(
    key: &GcmKey,
    counter: &mut Block,
    y: &mut Block,
    mut begun: Option<&mut Begun>,
    data: InOutBuf<'_, '_, u8>,
) {
    let len = data.len();
    let (from, to) = data.into_raw();
    // SAFETY: the caller enables the instructions of `V`; the buffer is good for
    // `len` bytes, its input and output being the same or apart.
    unsafe {
        let first = words(counter).swap_counter();
        // In one store, which the next piece may be waiting to load.
        let by = _mm_set_epi32((len.div_ceil(16) as u32).cast_signed(), 0, 0, 0);
        first.add32(by).swap_counter().store(counter.as_mut_ptr());
        let number = _mm_extract_epi32::<3>(first).cast_unsigned() as usize;
        let ahead = number.wrapping_sub(FIRST) % chunk_blocks::<V>();
        let mut hash = Hash::from(__m128i::load(y.as_ptr()).reverse());
        if let Some(begun) = &mut begun
            && core::mem::take(&mut begun.is_aad)
        {
            let block = words(&begun.block).reverse();
            if ahead == 0 || len < WIDTH * V::BYTES {
                hash.add_before(block, &key.table, first_group::<V, SEAL>(len & !15, 0));
            } else {
                hash.add(V::first(block), 0, &key.table, 1);
                hash = hash.reduce();
            }
        }
        let data = (from, to, len);
        let end = End::Piece(begun);
        let hash = long::piece::<V, SEAL>(key, first, ahead, data, hash, end).reverse();
        hash.store(y.as_mut_ptr());
    }
}

#[inline(always)]
unsafe fn hash_bytes<V: Lane>(key: &GcmKey, y: &mut Block, bytes: &[u8]) {
    // SAFETY: the caller enables the instructions of `V`.
    unsafe {
        let before = __m128i::load(y.as_ptr()).reverse();
        let after = hash::hash::<V>(&key.table, before, bytes.as_ptr(), bytes.len());
        after.reverse().store(y.as_mut_ptr());
    }
}

/// The kernels for one vector, under the token of its instructions.
macro_rules! kernels {
    (
        $(#[$doc:meta])*
        $name:ident, $token:ty, $vector:ty, $features:literal, wipe $wipe:expr
    ) => {
        $(#[$doc])*
        pub(crate) mod $name {
            use super::*;
            pub(crate) use super::last::$name::{encrypt, hash_block, tag};

            impl Kernels for $vector {
                #[inline(always)]
                unsafe fn run<const SEAL: bool, const M: usize>(
                    jobs: &mut [AeadJob<'_, GcmKey>],
                ) -> usize {
                    #[target_feature(enable = $features)]
                    #[inline(never)]
                    fn inner<const SEAL: bool, const M: usize>(
                        jobs: &mut [AeadJob<'_, GcmKey>],
                    ) -> usize {
                        // SAFETY: the instructions are enabled here.
                        unsafe { super::short::run::<$vector, SEAL, M>(jobs) }
                    }
                    // SAFETY: the caller enables the instructions.
                    unsafe { inner::<SEAL, M>(jobs) }
                }

                #[inline(always)]
                unsafe fn long<const SEAL: bool>(job: &mut AeadJob<'_, GcmKey>) {
                    #[target_feature(enable = $features)]
                    #[inline(never)]
                    fn inner<const SEAL: bool>(job: &mut AeadJob<'_, GcmKey>) {
                        // SAFETY: the instructions are enabled here.
                        unsafe { super::long::long::<$vector, SEAL>(job) }
                    }
                    // SAFETY: the caller enables the instructions.
                    unsafe { inner::<SEAL>(job) }
                }

                #[inline(always)]
                unsafe fn alike<const SEAL: bool>(jobs: &mut [AeadJob<'_, GcmKey>], longest: usize) {
                    #[target_feature(enable = $features)]
                    #[inline(never)]
                    unsafe fn inner<const SEAL: bool>(jobs: &mut [AeadJob<'_, GcmKey>], longest: usize) {
                        // SAFETY: the instructions are enabled here; else as for the caller.
                        unsafe { super::alike::alike::<$vector, SEAL>(jobs, longest) }
                    }
                    // SAFETY: the caller enables the instructions.
                    unsafe { inner::<SEAL>(jobs, longest) }
                }

                #[inline(always)]
                unsafe fn across<const SEAL: bool>(
                    job: &mut AeadJob<'_, GcmKey>,
                    states: *const Self,
                    first: &Block,
                ) {
                    #[target_feature(enable = $features)]
                    #[inline(never)]
                    unsafe fn inner<const SEAL: bool>(
                        job: &mut AeadJob<'_, GcmKey>,
                        states: *const $vector,
                        first: &Block,
                    ) {
                        // SAFETY: the instructions are enabled here; else as for the caller.
                        unsafe { super::alike::across::<$vector, SEAL>(job, states, first) }
                    }
                    // SAFETY: the caller enables the instructions.
                    unsafe { inner::<SEAL>(job, states, first) }
                }

                #[inline(always)]
                unsafe fn windows<const SEAL: bool, const BY_HALVES: bool>(
                    row: &mut Row<'_, Self>,
                    counters: &mut Counters<Self>,
                ) {
                    #[target_feature(enable = $features)]
                    #[inline(never)]
                    unsafe fn inner<const SEAL: bool, const BY_HALVES: bool>(
                        row: &mut Row<'_, $vector>,
                        counters: &mut Counters<$vector>,
                        states: *mut $vector,
                        wide: &mut Wide<$vector>,
                    ) {
                        // SAFETY: the instructions are enabled here; there is room for the states;
                        // else as for the caller.
                        unsafe {
                            super::windows::windows::<$vector, SEAL, BY_HALVES>(row, counters, states, wide)
                        }
                    }
                    #[inline(never)]
                    unsafe fn with_room<const SEAL: bool, const BY_HALVES: bool>(
                        row: &mut Row<'_, $vector>,
                        counters: &mut Counters<$vector>,
                    ) {
                        let mut states = States::new();
                        let mut wide = Wide::new();
                        // SAFETY: the caller enables the instructions.
                        unsafe { inner::<SEAL, BY_HALVES>(row, counters, states.start(), &mut wide) };
                        wipe::long_frame();
                    }
                    // SAFETY: the caller enables the instructions.
                    unsafe { with_room::<SEAL, BY_HALVES>(row, counters) }
                }

                #[inline(always)]
                unsafe fn rest<const SEAL: bool, const PENDING: usize, const BEFORE: usize, const M: usize>(
                    key: &GcmKey,
                    from: &Counting<Self>,
                    data: (*const u8, *mut u8, usize),
                    hash: &Hash<Self>,
                    end: &mut End<'_, Self>,
                ) -> __m128i {
                    #[target_feature(enable = $features)]
                    #[inline(never)]
                    unsafe fn inner<const SEAL: bool, const PENDING: usize, const BEFORE: usize, const M: usize>(
                        key: &GcmKey,
                        from: &Counting<$vector>,
                        data: (*const u8, *mut u8, usize),
                        hash: &Hash<$vector>,
                        end: &mut End<'_, $vector>,
                    ) -> __m128i {
                        // SAFETY: the instructions are enabled here; else as for the caller.
                        unsafe {
                            super::end::rest::<$vector, SEAL, PENDING, BEFORE, M>(key, from, data, hash, end)
                        }
                    }
                    // SAFETY: the caller enables the instructions.
                    unsafe { inner::<SEAL, PENDING, BEFORE, M>(key, from, data, hash, end) }
                }
            }

            /// E(0), and its first powers.
            #[inline]
            pub(crate) fn first_powers(_: $token, aes: &EncryptionKey, table: &mut Table) -> Block {
                #[target_feature(enable = $features)]
                fn inner(aes: &EncryptionKey, table: &mut Table) -> Block {
                    // SAFETY: the instructions are enabled here.
                    unsafe {
                        let h = encrypt_vector(aes, _mm_setzero_si128());
                        let mut hash_key = [0; 16];
                        h.store(hash_key.as_mut_ptr());
                        ghash::first_powers::<$vector>(table, h);
                        $wipe;
                        hash_key
                    }
                }
                // SAFETY: the token proves the instructions.
                unsafe { inner(aes, table) }
            }

            /// All other powers that the kernels here need.
            #[inline]
            pub(crate) fn further_powers(_: $token, table: &mut Table) {
                #[target_feature(enable = $features)]
                fn inner(table: &mut Table) {
                    // SAFETY: the instructions are enabled here.
                    unsafe {
                        ghash::further_powers::<$vector>(table);
                        $wipe;
                    }
                }
                // SAFETY: the token proves the instructions.
                unsafe { inner(table) }
            }

            /// Encrypts every job and gives it its tag.
            #[inline]
            pub(crate) fn seal(_: $token, jobs: &mut [AeadJob<'_, GcmKey>]) {
                #[target_feature(enable = $features)]
                fn inner(jobs: &mut [AeadJob<'_, GcmKey>]) {
                    // SAFETY: the instructions are enabled here.
                    unsafe {
                        crypt_batch::<$vector, true>(jobs);
                        $wipe;
                    }
                }
                // SAFETY: the token proves the instructions.
                unsafe { inner(jobs) }
            }

            /// Decrypts every job and gives it the tag of its input.
            #[inline]
            pub(crate) fn open(_: $token, jobs: &mut [AeadJob<'_, GcmKey>]) {
                #[target_feature(enable = $features)]
                fn inner(jobs: &mut [AeadJob<'_, GcmKey>]) {
                    // SAFETY: the instructions are enabled here.
                    unsafe {
                        crypt_batch::<$vector, false>(jobs);
                        $wipe;
                    }
                }
                // SAFETY: the token proves the instructions.
                unsafe { inner(jobs) }
            }

            /// A piece of a message from `counter`, with GHASH on from `y` and a block that
            /// is begun.
            #[inline]
            pub(crate) fn crypt(
                _: $token,
                dir: Direction,
                key: &GcmKey,
                counter: &mut Block,
                y: &mut Block,
                begun: Option<&mut Begun>,
                data: InOutBuf<'_, '_, u8>,
            ) {
                #[target_feature(enable = $features)]
                fn inner(
                    dir: Direction,
                    key: &GcmKey,
                    counter: &mut Block,
                    y: &mut Block,
                    begun: Option<&mut Begun>,
                    data: InOutBuf<'_, '_, u8>,
                ) {
                    // SAFETY: the instructions are enabled here.
                    unsafe {
                        match dir {
                            Direction::Encrypt => {
                                crypt_piece::<$vector, true>(key, counter, y, begun, data);
                            }
                            Direction::Decrypt => {
                                crypt_piece::<$vector, false>(key, counter, y, begun, data);
                            }
                        }
                        $wipe;
                    }
                }
                // SAFETY: the token proves the instructions.
                unsafe { inner(dir, key, counter, y, begun, data) }
            }

            /// GHASH on from `y` over bytes and zeros up to a whole block.
            #[inline]
            pub(crate) fn hash(_: $token, key: &GcmKey, y: &mut Block, bytes: &[u8]) {
                #[target_feature(enable = $features)]
                fn inner(key: &GcmKey, y: &mut Block, bytes: &[u8]) {
                    // SAFETY: the instructions are enabled here.
                    unsafe {
                        hash_bytes::<$vector>(key, y, bytes);
                        $wipe;
                    }
                }
                // SAFETY: the token proves the instructions.
                unsafe { inner(key, y, bytes) }
            }

            /// The product of two blocks in the field of GHASH.
            #[inline]
            pub(crate) fn multiply(_: $token, a: &Block, b: &Block) -> Block {
                #[target_feature(enable = $features)]
                fn inner(a: &Block, b: &Block) -> Block {
                    // SAFETY: the instructions are enabled here.
                    unsafe {
                        let out = product(a, b);
                        $wipe;
                        out
                    }
                }
                // SAFETY: the token proves the instructions.
                unsafe { inner(a, b) }
            }
        }
    };
}

kernels!(
    /// One block a vector.
    x128, HaveClmul, __m128i, "aes,pclmulqdq,ssse3,sse4.1",
    wipe wipe::registers_128()
);
kernels!(
    /// Two blocks a vector.
    x256, HaveVaes, __m256i, "aes,pclmulqdq,avx2,vaes,vpclmulqdq",
    wipe wipe::registers_256()
);
kernels!(
    /// Four blocks a vector.
    x512, HaveVaes512, __m512i,
    "aes,pclmulqdq,avx2,vaes,vpclmulqdq,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi",
    wipe { wipe::registers_256(); wipe::registers_512_upper() }
);
