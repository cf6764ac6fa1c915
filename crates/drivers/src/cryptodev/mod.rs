//! The `cryptodev` driver: `/dev/crypto`, which cryptodev-linux brings to Linux and which a
//! program can serve by CUSE, such as `cipherlane device cuse`.
//!
//! Each request costs a call of the kernel, or two, and copies. The call ends when the device has
//! ended, and nothing ends it before. So `auto` does not choose the driver unless the setting
//! `auto = ["cryptodev"]` allows it, and nothing opens the device before somebody asks for it.
//!
//! | module | what it holds |
//! |---|---|
//! | [`header`] | the interface as its C header lays it out |
//! | [`Settings`] | what the user says |
//! | `device` | the device and its sessions, safe to call |
//! | `way` | from an algorithm to what the device takes |
//! | `transform` | requests through sessions |

#[allow(unsafe_code)]
mod device;
pub mod header;
mod settings;
mod transform;
mod way;

use std::io;
use std::sync::Arc;

use cipherlane_core::{Algorithm, Config, Driver, Error, Transform, Unavailable};

use self::device::Source;
pub use self::settings::{Settings, VARIABLE};
use self::transform::Keyed;
use self::way::Way;
use crate::kernel::{self, Answers};

/// The device.
pub struct Cryptodev {
    source: Arc<Source>,
    /// What the device has answered, by algorithm: the implementation that serves.
    found: Answers<String>,
}

impl Cryptodev {
    /// The driver under the given settings. Asks the device for nothing yet.
    pub fn new(config: &Config) -> Result<Cryptodev, Error> {
        let settings = Settings::new(config)?;
        Ok(Cryptodev {
            source: Arc::new(Source::new(settings.device)),
            found: Answers::default(),
        })
    }

    /// Asks for a session with a key that means nothing.
    fn ask(&self, algorithm: &Algorithm) -> Result<String, Unavailable> {
        let way = Way::of(algorithm).map_err(Unavailable::NotOffered)?;
        let len = algorithm.key_lengths().first().copied().unwrap_or(32);
        // No two halves of it are the same: XTS takes no such keys.
        let key: Vec<u8> = (0..len).map(|at| at as u8).collect();
        let keyed = self.keyed(way, &key)?;
        let path = self.source.path();
        keyed.implementations().map_err(|error| {
            Unavailable::Failed(format!(
                "{path} does not tell which implementation serves: {error}"
            ))
        })
    }

    fn keyed(&self, way: Way, key: &[u8]) -> Result<Keyed, Unavailable> {
        let opened = Keyed::new(way, self.source.clone(), key);
        opened.map_err(|error| self.refused(&error, key.len()))
    }

    fn refused(&self, error: &io::Error, len: usize) -> Unavailable {
        let path = self.source.path();
        match error.raw_os_error() {
            Some(libc::EINVAL | libc::ENOENT) => Unavailable::KeyRefused(format!(
                "{path} opens no session of this algorithm for a key of {len} bytes"
            )),
            Some(libc::ENOTTY) => {
                Unavailable::Absent(format!("{path} is not the device of cryptodev-linux"))
            }
            Some(libc::EMFILE | libc::ENOSPC) => {
                Unavailable::NoRoom(format!("{path} has no room for another session: {error}"))
            }
            _ => Unavailable::Failed(format!("no session of {path} can be opened: {error}")),
        }
    }
}

impl Driver for Cryptodev {
    fn name(&self) -> &str {
        "cryptodev"
    }

    fn version(&self) -> String {
        kernel::version()
    }

    fn priority(&self) -> i32 {
        0
    }

    fn probe(&self) -> Result<(), Unavailable> {
        device::probe(self.source.path()).map_err(Unavailable::Absent)
    }

    fn offers(&self, algorithm: &Algorithm) -> Result<(), Unavailable> {
        let answer = self.found.find(algorithm, || self.ask(algorithm));
        answer.map(drop)
    }

    fn transform(
        &self,
        algorithm: &'static Algorithm,
        key: &[u8],
    ) -> Result<Box<dyn Transform>, Unavailable> {
        let keyed = self.keyed(Way::of(algorithm).map_err(Unavailable::NotOffered)?, key)?;
        Ok(Box::new(keyed))
    }

    /// Who serves.
    fn notes(&self) -> Vec<String> {
        let offered = self.found.offered().into_iter();
        let served = |(algorithm, implementation)| format!("{algorithm} by {implementation}");
        offered.map(served).collect()
    }

    fn automatic(&self) -> bool {
        false
    }
}
