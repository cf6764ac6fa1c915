//! Expanded AES keys (FIPS 197), shared by every mode built on AES.

pub(crate) mod key;
pub(crate) mod schedule;

pub use self::key::AesKey;
use crate::choose::choose;
use crate::portable;

impl AesKey {
    /// Expands a key of 16, 24 or 32 bytes; `None` for any other length.
    #[inline]
    pub fn new(key: &[u8]) -> Option<AesKey> {
        let mut new = AesKey::unset(key.len())?;
        new.expand(key);
        new.invert();
        Some(new)
    }

    /// Makes the round keys of encryption, of a key as long as it was said to be. A mode
    /// that only encrypts, whichever way its data goes, needs no others.
    #[inline]
    pub(crate) fn expand(&mut self, key: &[u8]) {
        debug_assert_eq!(4 * (self.rounds() - 6), key.len());
        choose! {
            token: HaveAesNi => crate::x86_64::key::expand(token, key, &mut self.enc),
            _ => portable::key::expand(key, &mut self.enc),
        }
    }

    /// Makes the round keys of decryption of those of encryption.
    #[inline]
    fn invert(&mut self) {
        let (rounds, enc, dec) = (self.rounds(), &self.enc, &mut self.dec);
        choose! {
            token: HaveAesNi => crate::x86_64::key::inverse(token, rounds, enc, dec),
            _ => portable::key::inverse(rounds, enc, dec),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
