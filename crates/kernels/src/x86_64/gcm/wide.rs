//! The keys of a request on the stack, each as long as a vector.
//!
//! To load 16 bytes into every lane of a vector takes a unit for vectors on a processor of AMD, besides the
//! load; a chunk, which has ten of these, takes 6 % longer there. And with powers of H that are the same in
//! every lane, the lanes of the hash stay apart from chunk to chunk.

use core::mem::MaybeUninit;

use super::lane::Lane;
use super::rounds::{RoundKeys, WIDTH, chunk_blocks};
use crate::aes::key::{EncryptionKey, MOST_ROUND_KEYS};
use crate::gcm::key::GcmKey;
use crate::gcm::powers::Table;
use crate::x86_64::ghash::Powers;
use crate::x86_64::states::forget;

/// Round keys, once for every lane, and powers of H, of which the vectors of a chunk have the one for their
/// first block in every lane.
#[repr(C, align(64))]
pub(super) struct Wide<V> {
    keys: [MaybeUninit<V>; MOST_ROUND_KEYS],
    table: MaybeUninit<Table>,
}

impl<V: Lane> Wide<V> {
    #[inline(always)]
    pub(super) const fn new() -> Self {
        Wide {
            keys: [const { MaybeUninit::uninit() }; MOST_ROUND_KEYS],
            table: MaybeUninit::uninit(),
        }
    }

    /// Copies a key.
    #[inline(always)]
    pub(super) unsafe fn fill(&mut self, key: &GcmKey) {
        // SAFETY: the caller enables the instructions of `V`; there is a round key for each place, and
        // the table has the powers of a chunk.
        unsafe {
            let from = RoundKeys::of(&key.aes);
            for (round, wide) in self.keys[..=key.aes.rounds()].iter_mut().enumerate() {
                wide.write(from.load(round));
            }
            let table = self.table.as_mut_ptr();
            for i in 0..WIDTH {
                let n = chunk_blocks::<V>() - i * V::BLOCKS;
                Powers::copy_to_all_lanes::<V>(key.table.at_power(n), table, n);
            }
        }
    }

    /// Overwrites the keys of the first `rounds` rounds and the one before, which chunks that begin behind
    /// these rounds do not take.
    #[inline(always)]
    pub(super) unsafe fn forget_first(&mut self, rounds: usize) {
        for wide in &mut self.keys[..=rounds] {
            // SAFETY: the caller enables the instructions of `V`.
            unsafe { forget::<V, 1>(V::zero(), wide.as_mut_ptr()) }
        }
    }

    /// The round keys of `key`, which were copied, and the powers for a chunk. `TAKEN` leaves zeros in place
    /// of all that is loaded.
    #[inline(always)]
    pub(super) unsafe fn for_chunk<'k, const TAKEN: bool>(
        this: *mut Self,
        key: &'k EncryptionKey,
    ) -> (RoundKeys<'k>, Powers<'k>) {
        // SAFETY: the caller gives what was filled.
        unsafe {
            let keys = RoundKeys::wide::<V>(key, (&raw mut (*this).keys).cast(), TAKEN);
            let powers = Powers::at((&raw mut (*this).table).cast(), chunk_blocks::<V>());
            (keys, if TAKEN { powers.taken() } else { powers })
        }
    }
}
