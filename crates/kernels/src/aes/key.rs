//! The round keys, in the forms that implementations want.

use once_cell::race::OnceBox;

use super::schedule::Schedule;
use crate::wipe::wipe;

/// One round key, or any other block.
pub(crate) type Block = [u8; 16];

/// Both schedules of a key; AES-128 and AES-192 leave the last entries zero.
pub(crate) type RoundKeys = [Block; 15];

const NO_KEYS: RoundKeys = [[0; 16]; 15];

/// An expanded AES key of 128, 192 or 256 bits: the round keys of encryption, and
/// those of the equivalent inverse cipher for decryption. Wiped on drop.
// Vector lanes load round keys from here: `enc` and `dec` each start a cache line.
#[repr(C, align(64))]
pub struct AesKey {
    pub(super) enc: RoundKeys,
    /// Only the portable path needs its own form; made when first asked for.
    // Nobody waits for the thread that makes the form: a child that is forked meanwhile does
    // not have that thread.
    portable: OnceBox<Schedule>,
    rounds: usize,
    pub(super) dec: RoundKeys,
}

impl AesKey {
    /// Room for a key of `len` bytes, to be expanded where it stays.
    #[inline]
    pub(crate) fn unset(len: usize) -> Option<AesKey> {
        Some(AesKey {
            enc: NO_KEYS,
            portable: OnceBox::new(),
            rounds: rounds(len)?,
            dec: NO_KEYS,
        })
    }

    /// Makes room for another key of `len` bytes to be expanded. Nothing is left of
    /// the old one but what that overwrites.
    pub(crate) fn reset(&mut self, len: usize) -> Option<()> {
        let rounds = rounds(len)?;
        if rounds < self.rounds {
            wipe(&mut self.enc, NO_KEYS);
        }
        self.rounds = rounds;
        self.portable = OnceBox::new();
        Some(())
    }

    /// 10, 12 or 14.
    #[inline(always)]
    pub(crate) fn rounds(&self) -> usize {
        self.rounds
    }

    /// Round keys of encryption, `rounds() + 1` of them.
    #[inline(always)]
    pub(crate) fn enc(&self) -> &RoundKeys {
        &self.enc
    }

    /// Round keys of the equivalent inverse cipher in the order of use.
    #[inline(always)]
    pub(crate) fn dec(&self) -> &RoundKeys {
        &self.dec
    }

    /// The key as the portable implementation wants it.
    pub(crate) fn portable(&self) -> &Schedule {
        self.portable.get_or_init(|| {
            // The first round keys of a schedule are the key itself.
            let bytes = self.enc.as_flattened();
            Box::new(Schedule::new(&bytes[..4 * (self.rounds - 6)]))
        })
    }
}

fn rounds(key_len: usize) -> Option<usize> {
    match key_len {
        16 => Some(10),
        24 => Some(12),
        32 => Some(14),
        _ => None,
    }
}

impl Clone for AesKey {
    fn clone(&self) -> AesKey {
        AesKey {
            enc: self.enc,
            portable: OnceBox::new(),
            rounds: self.rounds,
            dec: self.dec,
        }
    }
}

impl Drop for AesKey {
    fn drop(&mut self) {
        wipe(&mut self.enc, NO_KEYS);
        wipe(&mut self.dec, NO_KEYS);
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
        assert_eq!(core::mem::offset_of!(AesKey, enc) % 64, 0);
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
                core::ptr::read_volatile(&raw const (*key).enc),
                core::ptr::read_volatile(&raw const (*key).dec),
            )
        };
        assert_eq!(enc, [[0; 16]; 15]);
        assert_eq!(dec, [[0; 16]; 15]);
    }
}
