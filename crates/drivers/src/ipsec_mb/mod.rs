//! The `ipsec_mb` driver: Intel's Multi-Buffer Crypto for IPsec, loaded at run time when present.
//!
//! It is there to be compared with: among the libraries of a Debian system it is the only one
//! that runs several requests side by side. Up to 32 jobs are in flight, in a manager for each
//! thread. It takes no ECB, CBC encryption or HMAC of more than 65,534 bytes: those requests
//! go back to the session, which does them in software. `auto` does not choose it unless the
//! setting `auto = ["ipsec_mb"]` allows it.
//!
//! ```toml
//! [drivers.ipsec_mb]
//! library = "/opt/lib/libIPSec_MB.so.1"   # default: the system's libIPSec_MB.so.1
//! architecture = "sse"                    # default: auto, its own choice; else a set of functions
//! ```
//!
//! The environment variable `CIPHERLANE_IPSEC_MB_LIBRARY` goes before the file.
//!
//! | module | what it holds |
//! |---|---|
//! | `ffi` | structures and functions of the library, as its header has them |
//! | `manager` | the same, safe to call: keys, bursts of jobs |
//! | `sessions` | transforms over bursts |

mod ffi;
mod jobs;
mod keys;
mod manager;
mod sessions;

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use cipherlane_core::{Algorithm, Config, Driver, Error, Transform, Unavailable};
use zeroize::Zeroizing;

use crate::foreign::{Combination, Half, Hash, Refused, Wanted};
use keys::{AesKey, GcmKey, HmacHash, HmacKey};
use manager::{Architecture, LibIpsecMb};
use sessions::{Authenc, ChaCha, Cipher, Gcm, Hmac, Mode};

const WANTED: Wanted = Wanted {
    driver: "ipsec_mb",
    names: &["libIPSec_MB.so.1", "libIPSec_MB.so.2"],
    variable: "CIPHERLANE_IPSEC_MB_LIBRARY",
    package: "libipsec-mb1",
    settings: &["library", "architecture"],
};

/// The algorithms of the table that the library has, beside [combinations](combination).
const OFFERED: [&str; 8] = [
    "ecb(aes)",
    "cbc(aes)",
    "ctr(aes)",
    "gcm(aes)",
    "rfc4106(gcm(aes))",
    "rfc7539(chacha20,poly1305)",
    "hmac(sha256)",
    "hmac(sha512)",
];

/// intel-ipsec-mb on the caller's core.
pub struct IpsecMb {
    file: Option<PathBuf>,
    architecture: Architecture,
    loaded: OnceLock<Result<Arc<LibIpsecMb>, String>>,
}

impl IpsecMb {
    /// Takes `library` and `architecture` from `[drivers.ipsec_mb]`. The library is
    /// loaded when it is first needed. `Err`: a setting that does not exist.
    pub fn new(config: &Config) -> Result<Self, Error> {
        let table = config.drivers.get(WANTED.driver);
        let architecture = match table.and_then(|table| table.get("architecture")) {
            None => Architecture::Auto,
            Some(value) => {
                let parsed = value.as_str().and_then(Architecture::parse);
                parsed.ok_or_else(|| Error::Config {
                    origin: format!("[drivers.{}]", WANTED.driver),
                    problem: format!("architecture = {value}: use {}", Architecture::NAMES),
                })?
            }
        };
        Ok(IpsecMb {
            file: WANTED.setting(config)?,
            architecture,
            loaded: OnceLock::new(),
        })
    }

    /// Writes `CIPHERLANE_IPSEC_MB_LIBRARY`, where it is set, over what configuration files say.
    pub fn environment(config: &mut Config) {
        WANTED.environment(config);
    }

    fn loaded(&self) -> Result<&Arc<LibIpsecMb>, Unavailable> {
        let open = || LibIpsecMb::open(self.file.as_ref(), self.architecture).map(Arc::new);
        let loaded = self.loaded.get_or_init(open);
        loaded
            .as_ref()
            .map_err(|reason| Unavailable::Absent(reason.clone()))
    }
}

impl Driver for IpsecMb {
    fn name(&self) -> &str {
        WANTED.driver
    }

    /// The set of functions belongs to it: it changes what things cost.
    fn version(&self) -> String {
        self.loaded().map_or_else(
            |_| "absent".to_owned(),
            |library| format!("{} {:?}", library.version, self.architecture),
        )
    }

    fn priority(&self) -> i32 {
        80
    }

    fn probe(&self) -> Result<(), Unavailable> {
        self.loaded().map(|_| ())
    }

    fn offers(&self, algorithm: &Algorithm) -> Result<(), Unavailable> {
        let library = self.loaded()?;
        match OFFERED.contains(&algorithm.name) || combination(algorithm.name).is_some() {
            true => Ok(()),
            false => Err(not_offered(&library.version, algorithm.name)),
        }
    }

    fn transform(
        &self,
        algorithm: &'static Algorithm,
        key: &[u8],
    ) -> Result<Box<dyn Transform>, Unavailable> {
        let library = self.loaded()?.clone();
        let version = library.version.clone();
        let refused = |Refused| {
            let (name, len) = (algorithm.name, key.len());
            Unavailable::KeyRefused(format!("{version} refuses a key of {len} bytes for {name}"))
        };
        let made: Result<Box<dyn Transform>, Refused> = match algorithm.name {
            "ecb(aes)" => cipher(library, Mode::Ecb, key),
            "cbc(aes)" => cipher(library, Mode::Cbc, key),
            "ctr(aes)" => cipher(library, Mode::Ctr, key),
            "gcm(aes)" => gcm(library, key, &[]),
            "rfc4106(gcm(aes))" => {
                let (key, salt) = key.split_at(key.len().saturating_sub(4));
                gcm(library, key, salt)
            }
            "rfc7539(chacha20,poly1305)" => chacha(library, key),
            "hmac(sha256)" => hmac(library, HmacHash::Sha256, key),
            "hmac(sha512)" => hmac(library, HmacHash::Sha512, key),
            name => match combination(name) {
                Some(combination) => authenc(library, combination, key),
                None => return Err(not_offered(&version, name)),
            },
        };
        made.map_err(refused)
    }

    /// A yardstick, not a choice, unless the user says so.
    fn automatic(&self) -> bool {
        false
    }
}

fn not_offered(version: &str, name: &str) -> Unavailable {
    Unavailable::NotOffered(format!("{version} has no {name}"))
}

type Made = Result<Box<dyn Transform>, Refused>;

fn cipher(library: Arc<LibIpsecMb>, mode: Mode, key: &[u8]) -> Made {
    let key = AesKey::new(&library, key)?;
    Ok(Box::new(Cipher { library, key, mode }))
}

fn gcm(library: Arc<LibIpsecMb>, key: &[u8], salt: &[u8]) -> Made {
    let key = GcmKey::new(&library, key)?;
    let salt = Zeroizing::new(salt.to_vec());
    Ok(Box::new(Gcm { library, key, salt }))
}

fn chacha(library: Arc<LibIpsecMb>, key: &[u8]) -> Made {
    let given: &[u8; 32] = key.try_into().map_err(|_| Refused)?;
    let mut key = Box::new(Zeroizing::new([0; 32]));
    key.copy_from_slice(given);
    Ok(Box::new(ChaCha { library, key }))
}

fn hmac(library: Arc<LibIpsecMb>, hash: HmacHash, key: &[u8]) -> Made {
    let key = HmacKey::new(&library, hash, key)?;
    Ok(Box::new(Hmac { library, key }))
}

/// The combinations with CBC.
fn combination(algorithm: &str) -> Option<Combination> {
    Combination::of(algorithm).filter(|combination| combination.cipher == Half::Cbc)
}

fn authenc(library: Arc<LibIpsecMb>, combination: Combination, key: &[u8]) -> Made {
    let (mac, key, framing) = combination.split_key(key);
    let hash = match combination.hash {
        Hash::Sha256 => HmacHash::Sha256,
        Hash::Sha512 => HmacHash::Sha512,
    };
    Ok(Box::new(Authenc {
        cipher: AesKey::new(&library, key)?,
        hmac: HmacKey::new(&library, hash, mac)?,
        library,
        framing,
    }))
}
