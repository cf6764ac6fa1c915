//! Expanded AES keys (FIPS 197), shared by every mode built on AES.

pub(crate) mod key;
pub(crate) mod schedule;

use core::slice::from_mut;

pub use self::key::AesKey;
use self::key::{Block, EncryptionKey, rounds};
use crate::choose::choose;
use crate::job::Direction;
use crate::portable;
use crate::wipe::on_portable;

impl EncryptionKey {
    /// Makes the round keys, of a key of the length that has these rounds.
    #[inline]
    pub(crate) fn expand(&mut self, key: &[u8]) {
        debug_assert_eq!(4 * (self.rounds() - 6), key.len());
        choose! {
            token: HaveAesNi => crate::x86_64::key::expand(token, key, &mut self.round_keys),
            _ => portable::key::expand(key, &mut self.round_keys),
        }
    }

    /// One block through the cipher, where it is.
    #[inline]
    pub(crate) fn encrypt(&self, block: &mut Block) {
        choose! {
            token: HaveVaes => crate::x86_64::block::vaes::encrypt(token, self, block),
            token: HaveClmul => crate::x86_64::block::aes_ni::encrypt(token, self, block),
            token: HaveAesNi => crate::x86_64::block::aes_bare::encrypt(token, self, block),
            _ => on_portable(|| self.portable().crypt(Direction::Encrypt, from_mut(block))),
        }
    }
}

impl AesKey {
    /// Expands a key of 16, 24 or 32 bytes; `None` for any other length.
    #[inline]
    pub fn new(key: &[u8]) -> Option<AesKey> {
        let mut new = AesKey::none();
        new.rekey(key)?;
        Some(new)
    }

    /// Takes another key in place of this one, of 16, 24 or 32 bytes; `None` for any other
    /// length, and then the old one stays.
    pub fn rekey(&mut self, key: &[u8]) -> Option<()> {
        self.fill(rounds(key.len())?, key);
        Some(())
    }

    /// Makes both schedules, of a key of the length that has these rounds.
    #[inline]
    pub(crate) fn fill(&mut self, rounds: usize, key: &[u8]) {
        self.reset(rounds);
        self.encryption.expand(key);
        let (enc, dec) = (&self.encryption.round_keys, &mut self.dec);
        choose! {
            token: HaveAesNi => crate::x86_64::key::inverse(token, rounds, enc, dec),
            _ => portable::key::inverse(rounds, enc, dec),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::naive;

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
        let mut key = AesKey::new(&[7; 24]).unwrap();
        let before = (*key.enc(), *key.dec());
        for len in (0..100).filter(|len| ![16, 24, 32].contains(len)) {
            assert!(AesKey::new(&vec![0; len]).is_none());
            assert!(key.rekey(&vec![0; len]).is_none());
        }
        assert_eq!((*key.enc(), *key.dec()), before);
    }

    #[test]
    fn a_replaced_key_is_as_good_as_new() {
        let mut key = AesKey::none();
        for (len, seed) in [(32, 1), (24, 2), (16, 3), (16, 4), (32, 5), (16, 6)] {
            let bytes: Vec<u8> = (0..len).map(|i| i * 3 + seed).collect();
            key.rekey(&bytes).unwrap();
            let new = AesKey::new(&bytes).unwrap();
            // Nothing of a longer one is left behind a shorter one.
            assert_eq!((key.enc(), key.dec()), (new.enc(), new.dec()));
            // The form of the portable implementation is that of this key, too.
            let mut blocks = [[[0x33; 16]; 2]; 2];
            key.portable().crypt(Direction::Decrypt, &mut blocks[0]);
            new.portable().crypt(Direction::Decrypt, &mut blocks[1]);
            assert_eq!(blocks[0], blocks[1]);
        }
    }

    #[test]
    fn a_block_is_that_of_ecb() {
        for len in [16, 24, 32] {
            let bytes = vec![0x42; len];
            let key = AesKey::new(&bytes).unwrap();
            let mut block = [0x17; 16];
            key.encryption.encrypt(&mut block);
            assert_eq!(block[..], naive::ecb_encrypt(&bytes, &[0x17; 16]));
        }
    }
}
