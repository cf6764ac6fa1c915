//! The `gcrypt` driver: libgcrypt, loaded at run time when present.
//!
//! It is there to be compared with: among the libraries of a Debian system it is the fastest
//! in CTR, XTS and CBC decryption. Each thread of a session has a handle of its own for each
//! direction. `auto` does not choose it unless the setting `auto = ["gcrypt"]` allows it.
//!
//! ```toml
//! [drivers.gcrypt]
//! library = "/opt/gcrypt/lib/libgcrypt.so.20"   # default: the system's libgcrypt.so.20
//! ```
//!
//! The environment variable `CIPHERLANE_GCRYPT_LIBRARY` goes before the file.
//!
//! | module | what it holds |
//! |---|---|
//! | `ffi` | functions of libgcrypt, as its header has them |
//! | `handle` | the same, safe to call |

mod ffi;
mod handle;

use std::ffi::c_int;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use cipherlane_core::{Algorithm, Config, Driver, Error, Transform, Unavailable};
use zeroize::Zeroizing;

use crate::foreign::{Authenc, Combination, Half, Hash, Hashing, Keyed, Plain, Sealing, Wanted};
use ffi::{HMAC_SHA256, HMAC_SHA512};
use handle::{Cipher, LibGcrypt, Mac, Mode};

const WANTED: Wanted = Wanted {
    driver: "gcrypt",
    names: &["libgcrypt.so.20"],
    variable: "CIPHERLANE_GCRYPT_LIBRARY",
    package: "libgcrypt20",
    settings: &["library"],
};

/// How libgcrypt does an algorithm.
#[derive(Clone, Copy)]
enum Way {
    Plain(Mode),
    Aead(Mode),
    /// GCM with the last 4 bytes of the key as salt (RFC 4106).
    Salted,
    Mac(c_int),
    Authenc(Combination),
}

impl Way {
    fn of(algorithm: &str) -> Option<Way> {
        Some(match algorithm {
            "ecb(aes)" => Way::Plain(Mode::Ecb),
            "cbc(aes)" => Way::Plain(Mode::Cbc),
            "ctr(aes)" => Way::Plain(Mode::Ctr),
            "xts(aes)" => Way::Plain(Mode::Xts),
            "gcm(aes)" => Way::Aead(Mode::Gcm),
            "rfc4106(gcm(aes))" => Way::Salted,
            "rfc7539(chacha20,poly1305)" => Way::Aead(Mode::ChaCha20Poly1305),
            "hmac(sha256)" => Way::Mac(HMAC_SHA256),
            "hmac(sha512)" => Way::Mac(HMAC_SHA512),
            name => Way::Authenc(Combination::of(name)?),
        })
    }
}

/// libgcrypt on the caller's core.
pub struct Gcrypt {
    file: Option<PathBuf>,
    loaded: OnceLock<Result<Arc<LibGcrypt>, String>>,
}

impl Gcrypt {
    /// Takes `library` from `[drivers.gcrypt]`. The library is loaded
    /// when it is first needed. `Err`: a setting that does not exist.
    pub fn new(config: &Config) -> Result<Self, Error> {
        Ok(Gcrypt {
            file: WANTED.setting(config)?,
            loaded: OnceLock::new(),
        })
    }

    /// Writes `CIPHERLANE_GCRYPT_LIBRARY`, where it is set, over what configuration files say.
    pub fn environment(config: &mut Config) {
        WANTED.environment(config);
    }

    fn loaded(&self) -> Result<&Arc<LibGcrypt>, Unavailable> {
        let open = || LibGcrypt::open(self.file.as_ref()).map(Arc::new);
        let loaded = self.loaded.get_or_init(open);
        loaded
            .as_ref()
            .map_err(|reason| Unavailable::Absent(reason.clone()))
    }
}

fn not_offered(library: &LibGcrypt, algorithm: &Algorithm) -> Unavailable {
    Unavailable::NotOffered(format!("{} has no {}", library.version, algorithm.name))
}

impl Driver for Gcrypt {
    fn name(&self) -> &str {
        WANTED.driver
    }

    fn version(&self) -> String {
        let loaded = self.loaded();
        loaded.map_or_else(|_| "absent".to_owned(), |l| l.version.clone())
    }

    fn priority(&self) -> i32 {
        85
    }

    fn probe(&self) -> Result<(), Unavailable> {
        self.loaded().map(|_| ())
    }

    fn offers(&self, algorithm: &Algorithm) -> Result<(), Unavailable> {
        let library = self.loaded()?;
        match Way::of(algorithm.name) {
            Some(_) => Ok(()),
            None => Err(not_offered(library, algorithm)),
        }
    }

    fn transform(
        &self,
        algorithm: &'static Algorithm,
        key: &[u8],
    ) -> Result<Box<dyn Transform>, Unavailable> {
        let library = self.loaded()?;
        let refused = |_| {
            let (version, name, len) = (&library.version, algorithm.name, key.len());
            Unavailable::KeyRefused(format!(
                "{version} refuses a key of {len} bytes for {name}; it may be in FIPS mode"
            ))
        };
        let cipher =
            |mode, key: &[u8]| Keyed::<Cipher>::new((library.clone(), mode), key).map_err(refused);
        let mac =
            |number, key: &[u8]| Keyed::<Mac>::new((library.clone(), number), key).map_err(refused);
        Ok(match Way::of(algorithm.name) {
            Some(Way::Plain(mode)) => Box::new(Plain(cipher(mode, key)?)),
            Some(Way::Aead(mode)) => Box::new(Sealing {
                cipher: cipher(mode, key)?,
                salt: Zeroizing::default(),
            }),
            Some(Way::Salted) => {
                let (key, salt) = key.split_at(key.len().saturating_sub(4));
                Box::new(Sealing {
                    cipher: cipher(Mode::Gcm, key)?,
                    salt: Zeroizing::new(salt.to_vec()),
                })
            }
            Some(Way::Mac(number)) => Box::new(Hashing(mac(number, key)?)),
            Some(Way::Authenc(combination)) => {
                let (mac_key, key, framing) = combination.split_key(key);
                let mode = match combination.cipher {
                    Half::Cbc => Mode::Cbc,
                    Half::Rfc3686 => Mode::Ctr,
                };
                let hash = match combination.hash {
                    Hash::Sha256 => HMAC_SHA256,
                    Hash::Sha512 => HMAC_SHA512,
                };
                Box::new(Authenc {
                    cipher: cipher(mode, key)?,
                    mac: mac(hash, mac_key)?,
                    framing,
                })
            }
            None => return Err(not_offered(library, algorithm)),
        })
    }

    /// A yardstick, not a choice, unless the user says so.
    fn automatic(&self) -> bool {
        false
    }
}
