//! The `openssl` driver: libcrypto 3, loaded at run time when present.
//!
//! It stands for what a program would use otherwise, so that tables show it beside the
//! others. Each thread of a session has a context of its own, of which an operation sets only
//! the IV. `auto` does not choose it unless the setting `auto = ["openssl"]` allows it.
//!
//! ```toml
//! [drivers.openssl]
//! library = "/opt/openssl/lib/libcrypto.so.3"   # default: the system's libcrypto.so.3
//! ```
//!
//! The environment variable `CIPHERLANE_OPENSSL_LIBRARY` goes before the file.
//!
//! | module | what it holds |
//! |---|---|
//! | `ffi` | types and functions of libcrypto, as its headers have them |
//! | `evp` | the same, safe to call |
//! | [`rivals`] | the same cipher from two providers, for whoever measures them |
//! | `xts192` | the one transform that is not like those of other libraries |

mod evp;
mod ffi;
pub mod rivals;
mod xts192;

use std::collections::HashMap;
use std::ffi::CStr;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use cipherlane_core::{Algorithm, Config, Driver, Error, Transform, Unavailable};
use zeroize::Zeroizing;

use crate::foreign::{
    Authenc, Authenticating, Combination, Half, Hash, Hashing, Keyed, Plain, Sealing, Wanted,
};
use evp::{Cipher, CipherContext, Hmac, HmacContext, HmacOf, LibCrypto};
use xts192::Xts192;

const WANTED: Wanted = Wanted {
    driver: "openssl",
    names: &["libcrypto.so.3"],
    variable: "CIPHERLANE_OPENSSL_LIBRARY",
    package: "libssl3",
    settings: &["library"],
};

/// The ciphers of OpenSSL that each algorithm is made of, for all key lengths.
const CIPHERS: [(&str, &[&str]); 8] = [
    ("ecb(aes)", &["AES-128-ECB", "AES-192-ECB", "AES-256-ECB"]),
    ("cbc(aes)", &["AES-128-CBC", "AES-192-CBC", "AES-256-CBC"]),
    ("ctr(aes)", &["AES-128-CTR", "AES-192-CTR", "AES-256-CTR"]),
    ("xts(aes)", &["AES-128-XTS", "AES-192-ECB", "AES-256-XTS"]),
    ("gcm(aes)", &["AES-128-GCM", "AES-192-GCM", "AES-256-GCM"]),
    (
        "rfc4106(gcm(aes))",
        &["AES-128-GCM", "AES-192-GCM", "AES-256-GCM"],
    ),
    (
        "rfc4543(gcm(aes))",
        &["AES-128-GCM", "AES-192-GCM", "AES-256-GCM"],
    ),
    ("rfc7539(chacha20,poly1305)", &["ChaCha20-Poly1305"]),
];

/// OpenSSL's libcrypto on the caller's core.
pub struct OpenSsl {
    file: Option<PathBuf>,
    loaded: OnceLock<Result<Loaded, String>>,
}

/// The library and what was fetched of it.
struct Loaded {
    version: String,
    ciphers: HashMap<&'static str, Result<Arc<Cipher>, Unavailable>>,
    hmac: Result<Arc<Hmac>, Unavailable>,
}

impl OpenSsl {
    /// Takes `library` from `[drivers.openssl]`. The library is loaded
    /// when it is first needed. `Err`: a setting that does not exist.
    pub fn new(config: &Config) -> Result<Self, Error> {
        Ok(OpenSsl {
            file: WANTED.setting(config)?,
            loaded: OnceLock::new(),
        })
    }

    /// Writes `CIPHERLANE_OPENSSL_LIBRARY`, where it is set, over what configuration files say.
    pub fn environment(config: &mut Config) {
        WANTED.environment(config);
    }

    fn loaded(&self) -> Result<&Loaded, Unavailable> {
        let loaded = self.loaded.get_or_init(|| Loaded::open(self.file.as_ref()));
        loaded
            .as_ref()
            .map_err(|reason| Unavailable::Absent(reason.clone()))
    }
}

impl Loaded {
    fn open(file: Option<&PathBuf>) -> Result<Self, String> {
        let library = Arc::new(LibCrypto::open(file)?);
        let names = CIPHERS.iter().flat_map(|(_, names)| *names);
        let cipher = |name| library.cipher(name).map(Arc::new);
        let hmac = library.hmac().map(Arc::new);
        Ok(Loaded {
            version: library.version.clone(),
            ciphers: names
                .map(|&name| (name, cipher(name).map_err(Unavailable::NotOffered)))
                .collect(),
            hmac: hmac.map_err(Unavailable::NotOffered),
        })
    }

    fn cipher(&self, name: &str) -> Result<Arc<Cipher>, Unavailable> {
        match self.ciphers.get(name) {
            Some(cipher) => cipher.clone(),
            None => Err(self.lacks(name)),
        }
    }

    fn lacks(&self, name: &str) -> Unavailable {
        Unavailable::NotOffered(format!("{} has no {name}", self.version))
    }

    /// A key in one of the ciphers of `algorithm`: the `choice`th.
    fn keyed(
        &self,
        algorithm: &str,
        choice: usize,
        key: &[u8],
    ) -> Result<Keyed<CipherContext>, Unavailable> {
        let names = CIPHERS.iter().find(|(name, _)| *name == algorithm);
        let name = names.map_or(algorithm, |(_, names)| names[choice]);
        Keyed::new(self.cipher(name)?, key).map_err(|_| self.refused(name, key))
    }

    fn keyed_hmac(
        &self,
        digest: &'static CStr,
        key: &[u8],
    ) -> Result<Keyed<HmacContext>, Unavailable> {
        let hmac = self.hmac.clone()?;
        Keyed::new(HmacOf { hmac, digest }, key).map_err(|_| self.refused("HMAC", key))
    }

    fn refused(&self, name: &str, key: &[u8]) -> Unavailable {
        let len = key.len();
        Unavailable::KeyRefused(format!(
            "{} refuses a key of {len} bytes for {name}",
            self.version
        ))
    }
}

/// The algorithm that a cipher beside an HMAC is alone.
fn cipher_of(half: Half) -> &'static str {
    match half {
        Half::Cbc => "cbc(aes)",
        Half::Rfc3686 => "ctr(aes)",
    }
}

/// Which of three ciphers an AES key chooses by its length.
fn aes(key: &[u8]) -> usize {
    match key.len() {
        16 => 0,
        24 => 1,
        _ => 2,
    }
}

impl Driver for OpenSsl {
    fn name(&self) -> &str {
        WANTED.driver
    }

    fn version(&self) -> String {
        let loaded = self.loaded();
        loaded.map_or_else(|_| "absent".to_owned(), |l| l.version.clone())
    }

    fn priority(&self) -> i32 {
        90
    }

    fn probe(&self) -> Result<(), Unavailable> {
        self.loaded().map(|_| ())
    }

    fn offers(&self, algorithm: &Algorithm) -> Result<(), Unavailable> {
        let loaded = self.loaded()?;
        let combination = Combination::of(algorithm.name);
        let is_mac = ["hmac(sha256)", "hmac(sha512)"].contains(&algorithm.name);
        if is_mac || combination.is_some() {
            loaded.hmac.clone()?;
        }
        let cipher = combination.map_or(algorithm.name, |c| cipher_of(c.cipher));
        match CIPHERS.iter().find(|(name, _)| *name == cipher) {
            Some((_, names)) => names
                .iter()
                .try_for_each(|name| loaded.cipher(name).map(|_| ())),
            None if is_mac => Ok(()),
            None => Err(loaded.lacks(algorithm.name)),
        }
    }

    fn transform(
        &self,
        algorithm: &'static Algorithm,
        key: &[u8],
    ) -> Result<Box<dyn Transform>, Unavailable> {
        let loaded = self.loaded()?;
        let name = algorithm.name;
        Ok(match name {
            "ecb(aes)" | "cbc(aes)" | "ctr(aes)" => {
                Box::new(Plain(loaded.keyed(name, aes(key), key)?))
            }
            "xts(aes)" => {
                let (data, tweak) = key.split_at(key.len() / 2);
                match aes(data) {
                    1 => Box::new(Xts192 {
                        data: loaded.keyed(name, 1, data)?,
                        tweak: loaded.keyed(name, 1, tweak)?,
                    }),
                    choice => Box::new(Plain(loaded.keyed(name, choice, key)?)),
                }
            }
            "gcm(aes)" => Box::new(Sealing {
                cipher: loaded.keyed(name, aes(key), key)?,
                salt: Zeroizing::default(),
            }),
            "rfc4106(gcm(aes))" => {
                let (key, salt) = key.split_at(key.len().saturating_sub(4));
                Box::new(Sealing {
                    cipher: loaded.keyed(name, aes(key), key)?,
                    salt: Zeroizing::new(salt.to_vec()),
                })
            }
            "rfc4543(gcm(aes))" => {
                let (key, salt) = key
                    .split_last_chunk()
                    .ok_or_else(|| loaded.refused(name, key))?;
                Box::new(Authenticating {
                    cipher: loaded.keyed(name, aes(key), key)?,
                    salt: Zeroizing::new(*salt),
                })
            }
            "rfc7539(chacha20,poly1305)" => Box::new(Sealing {
                cipher: loaded.keyed(name, 0, key)?,
                salt: Zeroizing::default(),
            }),
            "hmac(sha256)" => Box::new(Hashing(loaded.keyed_hmac(c"SHA256", key)?)),
            "hmac(sha512)" => Box::new(Hashing(loaded.keyed_hmac(c"SHA512", key)?)),
            _ => {
                let combination = Combination::of(name).ok_or_else(|| loaded.lacks(name))?;
                let digest = match combination.hash {
                    Hash::Sha256 => c"SHA256",
                    Hash::Sha512 => c"SHA512",
                };
                let (mac, key, framing) = combination.split_key(key);
                Box::new(Authenc {
                    cipher: loaded.keyed(cipher_of(combination.cipher), aes(key), key)?,
                    mac: loaded.keyed_hmac(digest, mac)?,
                    framing,
                })
            }
        })
    }

    /// What a program uses otherwise is a yardstick, not a choice, unless the user says so.
    fn automatic(&self) -> bool {
        false
    }
}
