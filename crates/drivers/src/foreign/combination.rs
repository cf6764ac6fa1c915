//! The algorithms of the templates `authenc` and `authencesn`, taken apart by their names.

use zeroize::Zeroizing;

/// A hash with HMAC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hash {
    /// Its key has 32 bytes here, as its digest.
    Sha256,
    /// Its key has 64 bytes here, as its digest.
    Sha512,
}

impl Hash {
    fn key_len(self) -> usize {
        match self {
            Hash::Sha256 => 32,
            Hash::Sha512 => 64,
        }
    }
}

/// A cipher beside an HMAC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Half {
    /// AES-CBC.
    Cbc,
    /// AES in counter mode as in RFC 3686.
    Rfc3686,
}

/// What an algorithm is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Combination {
    pub(crate) hash: Hash,
    pub(crate) cipher: Half,
    /// With extended sequence numbers: `authencesn`.
    pub(crate) esn: bool,
}

impl Combination {
    /// Of the algorithm with this name; `None` for others, and for those without encryption.
    pub(crate) fn of(algorithm: &str) -> Option<Combination> {
        let (template, parts) = algorithm.strip_suffix("))")?.split_once("(hmac(")?;
        let (hash, cipher) = parts.split_once("),")?;
        Some(Combination {
            esn: match template {
                "authenc" => false,
                "authencesn" => true,
                _ => return None,
            },
            hash: match hash {
                "sha256" => Hash::Sha256,
                "sha512" => Hash::Sha512,
                _ => return None,
            },
            cipher: match cipher {
                "cbc(aes" => Half::Cbc,
                "rfc3686(ctr(aes)" => Half::Rfc3686,
                _ => return None,
            },
        })
    }

    /// The key of the MAC, that of the cipher, and how messages are framed under them.
    pub(crate) fn split_key(self, key: &[u8]) -> (&[u8], &[u8], Framing) {
        let (mac, cipher) = key.split_at(key.len().min(self.hash.key_len()));
        let (cipher, nonce) = match self.cipher {
            Half::Cbc => (cipher, None),
            Half::Rfc3686 => {
                let (cipher, nonce) = cipher.split_at(cipher.len().saturating_sub(4));
                (cipher, Some(Zeroizing::new(nonce.to_vec())))
            }
        };
        let esn = self.esn;
        (mac, cipher, Framing { nonce, esn })
    }
}

/// From a request to what cipher and MAC take.
pub(crate) struct Framing {
    /// Stands before the IV in the first counter block (RFC 3686 section 4).
    nonce: Option<Zeroizing<Vec<u8>>>,
    esn: bool,
}

impl Framing {
    /// The IV of the cipher, for that of a request.
    pub(crate) fn iv(&self, iv: [u8; 16]) -> [u8; 16] {
        let Some(nonce) = &self.nonce else {
            return iv;
        };
        let mut counter = [0; 16];
        let (front, rest) = counter.split_at_mut(nonce.len());
        front.copy_from_slice(nonce);
        rest[..8].copy_from_slice(&iv[..8]);
        counter[15] = 1;
        counter
    }

    /// What the MAC covers: two pieces before the ciphertext, and one behind it. With
    /// extended sequence numbers the upper half of the number moves there.
    pub(crate) fn around<'a>(&self, aad: &'a [u8]) -> [&'a [u8]; 3] {
        if self.esn && aad.len() >= 8 {
            [&aad[..4], &aad[8..], &aad[4..8]]
        } else {
            [aad, &[], &[]]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_apart() {
        let of = |hash, cipher, esn| Some(Combination { hash, cipher, esn });
        for (name, expected) in [
            (
                "authenc(hmac(sha256),cbc(aes))",
                of(Hash::Sha256, Half::Cbc, false),
            ),
            (
                "authencesn(hmac(sha512),cbc(aes))",
                of(Hash::Sha512, Half::Cbc, true),
            ),
            (
                "authenc(hmac(sha512),rfc3686(ctr(aes)))",
                of(Hash::Sha512, Half::Rfc3686, false),
            ),
            ("authenc(hmac(sha256),ecb(cipher_null))", None),
            ("authenc(hmac(md5),cbc(aes))", None),
            ("rfc4106(gcm(aes))", None),
            ("hmac(sha256)", None),
        ] {
            assert_eq!(Combination::of(name), expected, "{name}");
        }
    }
}
