//! Expanded AES keys (FIPS 197), shared by every mode built on AES.

use std::sync::OnceLock;

use zeroize::Zeroize;

use crate::portable;

/// One round key, or any other block.
pub(crate) type Block = [u8; 16];

/// Both schedules of a key; AES-128 and AES-192 leave the last entries zero.
pub(crate) type RoundKeys = [Block; 15];

/// An expanded AES key of 128, 192 or 256 bits: the round keys of encryption, and
/// those of the equivalent inverse cipher for decryption. Wiped on drop.
// Vector lanes load round keys from here: `enc` and `dec` each start a cache line.
#[repr(C, align(64))]
pub struct AesKey {
    enc: RoundKeys,
    /// Only the portable path needs its own form; made when first asked for.
    portable: OnceLock<Box<portable::aes::Schedule>>,
    dec: RoundKeys,
    rounds: usize,
}

impl AesKey {
    /// Expands a key of 16, 24 or 32 bytes; `None` for any other length.
    pub fn new(key: &[u8]) -> Option<AesKey> {
        let rounds = match key.len() {
            16 => 10,
            24 => 12,
            32 => 14,
            _ => return None,
        };
        let mut new = AesKey {
            enc: [[0; 16]; 15],
            rounds,
            dec: [[0; 16]; 15],
            portable: OnceLock::new(),
        };
        expand(key, &mut new.enc, &mut new.dec);
        Some(new)
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

impl Drop for AesKey {
    fn drop(&mut self) {
        self.enc.zeroize();
        self.dec.zeroize();
    }
}

fn expand(key: &[u8], enc: &mut RoundKeys, dec: &mut RoundKeys) {
    #[cfg(target_arch = "x86_64")]
    if let Some(token) = crate::cpu::HaveAesNi::new() {
        return crate::x86_64::key::expand(token, key, enc, dec);
    }
    portable::key::expand(key, enc, dec);
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
            portable::key::expand(&bytes, &mut enc, &mut dec);
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
