//! The round keys, in the forms that implementations want.

use once_cell::race::OnceBox;

use super::schedule::Schedule;
use crate::wipe::wipe;

/// One round key, or any other block.
pub(crate) type Block = [u8; 16];

/// Both schedules of a key; AES-128 and AES-192 leave the last entries zero.
pub(crate) type RoundKeys = [Block; MOST_ROUND_KEYS];
/// Those of a key of 256 bits.
pub(crate) const MOST_ROUND_KEYS: usize = 15;

const NO_KEYS: RoundKeys = [[0; 16]; MOST_ROUND_KEYS];

/// The round keys of encryption of an AES key of 128, 192 or 256 bits, for modes that only encrypt,
/// whichever way their data goes. Wiped on drop.
// Vector lanes load round keys from here: they start a cache line.
#[repr(C, align(64))]
pub(crate) struct EncryptionKey {
    pub(super) round_keys: RoundKeys,
    /// Only the portable path needs its own form; made when first asked for.
    // Nobody waits for the thread that makes the form: a child that is forked meanwhile does
    // not have that thread.
    portable: OnceBox<Schedule>,
    rounds: usize,
}

impl EncryptionKey {
    /// No key yet: round keys of zeros.
    #[inline(always)]
    pub(crate) const fn none() -> EncryptionKey {
        EncryptionKey {
            round_keys: NO_KEYS,
            portable: OnceBox::new(),
            rounds: FEWEST_ROUNDS,
        }
    }

    /// Makes room for another key of that number of [`rounds`] to be expanded. Nothing is left of
    /// the old one but what that overwrites.
    #[inline]
    pub(crate) fn reset(&mut self, rounds: usize) {
        if rounds < self.rounds {
            wipe(&mut self.round_keys, NO_KEYS);
        }
        self.rounds = rounds;
        self.portable = OnceBox::new();
    }

    /// 10, 12 or 14.
    #[inline(always)]
    pub(crate) fn rounds(&self) -> usize {
        self.rounds
    }

    /// The round keys, `rounds() + 1` of them.
    #[inline(always)]
    pub(crate) fn enc(&self) -> &RoundKeys {
        &self.round_keys
    }

    /// The key as the portable implementation wants it, which decrypts by it, too.
    pub(crate) fn portable(&self) -> &Schedule {
        self.portable.get_or_init(|| {
            // The first round keys of a schedule are the key itself.
            let bytes = self.round_keys.as_flattened();
            Box::new(Schedule::new(&bytes[..4 * (self.rounds - 6)]))
        })
    }
}

impl Clone for EncryptionKey {
    fn clone(&self) -> EncryptionKey {
        EncryptionKey {
            round_keys: self.round_keys,
            portable: OnceBox::new(),
            rounds: self.rounds,
        }
    }
}

impl Drop for EncryptionKey {
    fn drop(&mut self) {
        wipe(&mut self.round_keys, NO_KEYS);
    }
}

/// An expanded AES key of 128, 192 or 256 bits: the round keys of encryption, and
/// those of the equivalent inverse cipher for decryption. Wiped on drop.
#[derive(Clone)]
#[repr(C)]
pub struct AesKey {
    pub(super) encryption: EncryptionKey,
    pub(super) dec: RoundKeys,
}

impl AesKey {
    /// No key yet: round keys of zeros. For those who have a place for a key before there is one:
    /// to expand a key elsewhere and move it takes longer.
    #[inline(always)]
    pub const fn none() -> AesKey {
        AesKey {
            encryption: EncryptionKey::none(),
            dec: NO_KEYS,
        }
    }

    /// As [`EncryptionKey::reset`].
    #[inline]
    pub(crate) fn reset(&mut self, rounds: usize) {
        if rounds < self.rounds() {
            wipe(&mut self.dec, NO_KEYS);
        }
        self.encryption.reset(rounds);
    }

    /// 10, 12 or 14.
    #[inline(always)]
    pub(crate) fn rounds(&self) -> usize {
        self.encryption.rounds
    }

    /// Round keys of encryption, `rounds() + 1` of them.
    #[inline(always)]
    pub(crate) fn enc(&self) -> &RoundKeys {
        &self.encryption.round_keys
    }

    /// Round keys of the equivalent inverse cipher in the order of use.
    #[inline(always)]
    pub(crate) fn dec(&self) -> &RoundKeys {
        &self.dec
    }

    /// As [`EncryptionKey::portable`].
    pub(crate) fn portable(&self) -> &Schedule {
        self.encryption.portable()
    }
}

impl Drop for AesKey {
    fn drop(&mut self) {
        // The other half wipes itself.
        wipe(&mut self.dec, NO_KEYS);
    }
}

const FEWEST_ROUNDS: usize = 10;

/// The rounds of a key of that number of bytes, if there are such keys.
#[inline]
pub(crate) fn rounds(key_len: usize) -> Option<usize> {
    match key_len {
        16 => Some(FEWEST_ROUNDS),
        24 => Some(12),
        32 => Some(14),
        _ => None,
    }
}

#[cfg(test)]
#[allow(unsafe_code)]
mod tests {
    use super::*;
    use core::mem::MaybeUninit;

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn layout_is_two_schedules_on_cache_lines() {
        assert_eq!(core::mem::offset_of!(AesKey, encryption) % 64, 0);
        assert_eq!(core::mem::offset_of!(AesKey, dec) % 64, 0);
    }

    #[test]
    fn drop_wipes_both_schedules() {
        let mut place = MaybeUninit::new(AesKey::new(&[0x5a; 32]).unwrap());
        let key = place.as_mut_ptr();
        // SAFETY: the key was initialised above and is dropped once. Its memory
        // outlives it, and both fields are plain bytes, valid in any state.
        let (enc, dec) = unsafe {
            core::ptr::drop_in_place(key);
            (
                core::ptr::read_volatile(&raw const (*key).encryption.round_keys),
                core::ptr::read_volatile(&raw const (*key).dec),
            )
        };
        assert_eq!(enc, [[0; 16]; 15]);
        assert_eq!(dec, [[0; 16]; 15]);
    }
}
