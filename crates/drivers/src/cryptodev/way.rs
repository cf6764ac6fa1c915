//! From an algorithm to what the device takes for it.

use cipherlane_core::Algorithm;

use super::device::Keys;
use super::header::{CIPHERS, CRYPTO_AES_GCM, MACS, number};
use crate::foreign::{Combination, Framing, Half, Hash};

/// How the device serves an algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// A cipher, by `CIOCCRYPT`.
    Cipher(u32),
    /// A MAC, by `CIOCCRYPT`.
    Mac(u32),
    /// An AEAD, by `CIOCAUTHCRYPT`. The last bytes of the key are the salt, which stands before
    /// the IV in the nonce.
    Aead {
        /// Bytes of the salt.
        salt: usize,
    },
    /// A cipher and a MAC over the ciphertext, by two `CIOCCRYPT` with a session each. One
    /// `CIOCAUTHCRYPT` in SRTP's way would do for stream ciphers, but not for requests that are
    /// shorter than their tag.
    Both(Combination),
}

impl Way {
    /// `Err`: why there is none.
    pub(super) fn of(algorithm: &Algorithm) -> Result<Way, String> {
        let name = algorithm.name;
        match name {
            "gcm(aes)" => return Ok(Way::Aead { salt: 0 }),
            "rfc4106(gcm(aes))" => return Ok(Way::Aead { salt: 4 }),
            "rfc4543(gcm(aes))" => {
                return Err(
                    "/dev/crypto authenticates a page of additional data at most".to_owned(),
                );
            }
            _ => {}
        }
        if let Some(cipher) = number(&CIPHERS, name) {
            return Ok(Way::Cipher(cipher));
        }
        if let Some(mac) = number(&MACS, name) {
            return Ok(Way::Mac(mac));
        }
        match Combination::of(name) {
            Some(combination) => Ok(Way::Both(combination)),
            None => Err("/dev/crypto has no algorithm of this name".to_owned()),
        }
    }

    /// The sessions that a key needs, and what else of the key belongs to each request.
    pub(super) fn keys(self, key: &[u8]) -> (Keys<'_>, Option<Keys<'_>>, Beside) {
        let cipher = |cipher, key| Keys {
            cipher,
            key,
            ..Keys::default()
        };
        let mac = |mac, mac_key| Keys {
            mac,
            mac_key,
            ..Keys::default()
        };
        match self {
            Way::Cipher(number) => (cipher(number, key), None, Beside::Nothing),
            Way::Mac(number) => (mac(number, key), None, Beside::Nothing),
            Way::Aead { salt } => {
                let (key, salt) = key.split_at(key.len().saturating_sub(salt));
                let salt = Beside::Salt(zeroize::Zeroizing::new(salt.to_vec()));
                (cipher(CRYPTO_AES_GCM, key), None, salt)
            }
            Way::Both(combination) => {
                let (mac_key, key, framing) = combination.split_key(key);
                let name = match combination.cipher {
                    Half::Cbc => "cbc(aes)",
                    Half::Rfc3686 => "ctr(aes)",
                };
                let number = number(&CIPHERS, name).unwrap_or_default();
                let second = mac(hash(combination), mac_key);
                (cipher(number, key), Some(second), Beside::Framing(framing))
            }
        }
    }
}

fn hash(combination: Combination) -> u32 {
    let name = match combination.hash {
        Hash::Sha256 => "hmac(sha256)",
        Hash::Sha512 => "hmac(sha512)",
    };
    number(&MACS, name).unwrap_or_default()
}

/// What of a key no session of the device takes.
pub(super) enum Beside {
    Nothing,
    /// Stands before the IV in the nonce of an AEAD.
    Salt(zeroize::Zeroizing<Vec<u8>>),
    /// How messages are framed.
    Framing(Framing),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn algorithms_have_the_ways_that_they_need() {
        let of = |name| Way::of(Algorithm::find(name).unwrap());
        assert_eq!(of("cbc(aes)"), Ok(Way::Cipher(11)));
        assert_eq!(of("hmac(sha512)"), Ok(Way::Mac(20)));
        assert_eq!(of("rfc4106(gcm(aes))"), Ok(Way::Aead { salt: 4 }));
        assert!(matches!(
            of("authenc(hmac(sha256),rfc3686(ctr(aes)))"),
            Ok(Way::Both(_))
        ));
        assert!(matches!(
            of("authencesn(hmac(sha512),cbc(aes))"),
            Ok(Way::Both(_))
        ));
        for name in [
            "ctr(magma)",
            "rfc7539(chacha20,poly1305)",
            "rfc4543(gcm(aes))",
        ] {
            assert!(of(name).is_err(), "{name}");
        }
    }

    #[test]
    fn keys_are_divided_between_sessions() {
        let key: Vec<u8> = (0..52).collect();
        let way = |name| Way::of(Algorithm::find(name).unwrap()).unwrap();
        let (first, _, _) = way("authenc(hmac(sha256),rfc3686(ctr(aes)))").keys(&key);
        assert_eq!((first.key, first.cipher), (&key[32..48], 21));
        let (first, second, _) = way("authenc(hmac(sha256),cbc(aes))").keys(&key[..48]);
        assert_eq!((first.key, first.mac), (&key[32..48], 0));
        assert_eq!(second.unwrap().mac_key, &key[..32]);
    }
}
