//! Expanded AES keys (FIPS 197), shared by every mode built on AES.

use once_cell::race::OnceBox;

use crate::choose::choose;
use crate::portable;
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
    enc: RoundKeys,
    /// Only the portable path needs its own form; made when first asked for.
    // Nobody waits for the thread that makes the form: a child that is forked meanwhile does
    // not have that thread.
    portable: OnceBox<portable::aes::Schedule>,
    rounds: usize,
    dec: RoundKeys,
}

impl AesKey {
    /// Expands a key of 16, 24 or 32 bytes; `None` for any other length.
    #[inline]
    pub fn new(key: &[u8]) -> Option<AesKey> {
        let mut new = AesKey::unset(key.len())?;
        new.expand(key);
        new.invert();
        Some(new)
    }

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

    /// Makes the round keys of encryption, of a key as long as it was said to be. A mode
    /// that only encrypts, whichever way its data goes, needs no others.
    #[inline]
    pub(crate) fn expand(&mut self, key: &[u8]) {
        debug_assert_eq!(4 * (self.rounds - 6), key.len());
        choose! {
            token: HaveAesNi => crate::x86_64::key::expand(token, key, &mut self.enc),
            _ => portable::key::expand(key, &mut self.enc),
        }
    }

    /// Makes the round keys of decryption of those of encryption.
    #[inline]
    fn invert(&mut self) {
        let (rounds, enc, dec) = (self.rounds, &self.enc, &mut self.dec);
        choose! {
            token: HaveAesNi => crate::x86_64::key::inverse(token, rounds, enc, dec),
            _ => portable::key::inverse(rounds, enc, dec),
        }
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
    pub(crate) fn portable(&self) -> &portable::aes::Schedule {
        self.portable.get_or_init(|| {
            // The first round keys of a schedule are the key itself.
            let bytes = self.enc.as_flattened();
            Box::new(portable::aes::Schedule::new(
                &bytes[..4 * (self.rounds - 6)],
            ))
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

    /// FIPS 197 appendix A: the key, and the last round key.
    const FIPS_197: [(&str, &str); 3] = [
        (
            "2b7e151628aed2a6abf7158809cf4f3c",
            "d014f9a8c9ee2589e13f0cc8b6630ca6",
        ),
        (
            "8e73b0f7da0e6452c810f32b809079e562f8ead2522c6b7b",
            "e98ba06f448c773c8ecc720401002202",
        ),
        (
            "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4",
            "fe4890d1e6188d0b046df344706c631e",
        ),
    ];

    #[test]
    fn schedules_end_as_in_fips_197() {
        for (key, last) in FIPS_197 {
            let key = AesKey::new(&hex::decode(key).unwrap()).unwrap();
            assert_eq!(hex::encode(key.enc()[key.rounds()]), last);
            assert_eq!(key.dec()[0], key.enc()[key.rounds()]);
            assert_eq!(key.dec()[key.rounds()], key.enc()[0]);
        }
    }

    #[test]
    fn portable_and_vector_schedules_agree() {
        for (key, _) in FIPS_197 {
            let bytes = hex::decode(key).unwrap();
            let key = AesKey::new(&bytes).unwrap();
            let (mut enc, mut dec) = ([[0; 16]; 15], [[0; 16]; 15]);
            portable::key::expand(&bytes, &mut enc);
            portable::key::inverse(key.rounds(), &enc, &mut dec);
            assert_eq!((&enc, &dec), (key.enc(), key.dec()));
        }
    }

    #[test]
    fn other_lengths_are_refused() {
        for len in (0..100).filter(|len| ![16, 24, 32].contains(len)) {
            assert!(AesKey::new(&vec![0; len]).is_none());
        }
    }

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
