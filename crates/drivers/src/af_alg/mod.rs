//! The `af_alg` drivers: what the kernel has for encrypting, by sockets of `AF_ALG`.
//!
//! `af_alg` asks for an algorithm by its name, as most programs do, and gets the implementation
//! that the kernel prefers. `af_alg:NAME` is one implementation, by its name in `/proc/crypto`:
//! `af_alg:virtio_crypto_aes_cbc`, `af_alg:cbc-aes-aesni`, or a template over another
//! implementation, which is listed only after somebody has asked for it: `af_alg:cbc(aes-generic)`.
//! There is a driver for each that is named; which there are, the notes of `af_alg` tell. So
//! `cipherlane speed` compares them with each other and with software, and `why` says why one is
//! not used.
//!
//! Two calls of the kernel and two copies are the price of each request. `AF_ALG` is deprecated:
//! newer kernels mask devices and algorithms out of it. So `auto` does not choose it unless the
//! setting `auto = ["af_alg:NAME"]` allows it.
//!
//! | module | what it holds |
//! |---|---|
//! | [`Settings`] | what the user says |
//! | `rows` | `/proc/crypto` |
//! | `way` | from an algorithm and a request to what the kernel takes and gives |
//! | `socket` | the kernel's sockets, safe to call |
//! | `crew` | threads that wait for implementations which finish later, so that callers need not |
//! | `transform` | requests through these sockets |

mod crew;
mod rows;
mod settings;
#[allow(unsafe_code)]
mod socket;
mod transform;
mod way;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use cipherlane_core::{Algorithm, Config, Driver, Error, Transform, Unavailable};

use self::rows::Implementation;
pub use self::settings::{PREFIX, Settings, VARIABLE};
use self::socket::Transformation;
use self::transform::{Crews, Keyed, Later};
use self::way::Way;
use crate::kernel::{self, Answers};

/// The kernel's implementations of one name, or those that it prefers.
pub struct AfAlg {
    name: String,
    /// The implementation; `None`: any, by the name of the algorithm.
    wanted: Option<String>,
    timeout: Duration,
    crews: Arc<Crews>,
    /// What the kernel has answered, by algorithm.
    found: Answers<Implementation>,
}

impl AfAlg {
    /// The driver `af_alg`, and one for each implementation that the configuration names. Asks the
    /// kernel for nothing yet.
    pub fn configured(config: &Config) -> Result<Vec<AfAlg>, Error> {
        let settings = Settings::new(config)?;
        let timeout = Duration::from_millis(settings.timeout_ms);
        let driver = |name, wanted| AfAlg {
            name,
            wanted,
            timeout,
            crews: Arc::default(),
            found: Answers::default(),
        };
        let mut drivers = vec![driver("af_alg".to_owned(), None)];
        let named = settings.implementations.into_iter();
        drivers.extend(named.map(|wanted| driver(format!("{PREFIX}{wanted}"), Some(wanted))));
        Ok(drivers)
    }

    /// The implementation that serves an algorithm here.
    fn find(&self, algorithm: &Algorithm) -> Result<Implementation, Unavailable> {
        self.found.find(algorithm, || self.ask(algorithm))
    }

    /// Asks the kernel, which may make the implementation or load its module then.
    fn ask(&self, algorithm: &Algorithm) -> Result<Implementation, Unavailable> {
        let way = Way::of(algorithm).ok_or_else(unknown_to_linux)?;
        let name = self.wanted.as_deref().unwrap_or(algorithm.name);
        // A name that is listed already belongs to one algorithm.
        if self.wanted.is_some()
            && let Some(row) = rows::read().iter().find(|row| row.driver == name)
            && row.algorithm != algorithm.name
        {
            return Err(of_another(row));
        }
        Transformation::bind(way.socket_type, name).map_err(|error| self.refused(name, &error))?;
        let rows = rows::read();
        let row = match self.wanted {
            None => rows::preferred(&rows, name),
            Some(_) => rows.iter().find(|row| row.driver == name),
        };
        match row {
            Some(row) if row.algorithm == algorithm.name => Ok(row.clone()),
            Some(row) => Err(of_another(row)),
            None => Err(Unavailable::Failed(format!(
                "the kernel took '{name}' and does not list it in /proc/crypto: its self-test \
                 has not passed"
            ))),
        }
    }

    fn refused(&self, name: &str, error: &io::Error) -> Unavailable {
        match error.raw_os_error() {
            Some(libc::ENOENT) => Unavailable::NotOffered(format!(
                "the kernel has no '{name}' for programs; look at /proc/crypto, and load its \
                 module if it is one"
            )),
            _ => no_sockets(error),
        }
    }
}

fn unknown_to_linux() -> Unavailable {
    Unavailable::NotOffered("Linux has no algorithm of this name".to_owned())
}

fn of_another(row: &Implementation) -> Unavailable {
    Unavailable::NotOffered(format!("it is an implementation of {}", row.algorithm))
}

fn no_sockets(error: &io::Error) -> Unavailable {
    Unavailable::Absent(match error.raw_os_error() {
        Some(libc::EAFNOSUPPORT) => "this kernel has no sockets of AF_ALG; load the modules \
             af_alg, algif_skcipher, algif_aead and algif_hash, or use a kernel that has them"
            .to_owned(),
        Some(libc::EPERM | libc::EACCES) => format!(
            "sockets of AF_ALG are forbidden here ({error}), as by a container's seccomp \
             profile; allow them there"
        ),
        _ => format!("a socket of AF_ALG cannot be made: {error}"),
    })
}

impl Driver for AfAlg {
    fn name(&self) -> &str {
        &self.name
    }

    fn version(&self) -> String {
        kernel::version()
    }

    /// Of one implementation its own.
    fn priority(&self) -> i32 {
        let Some(wanted) = &self.wanted else {
            return 0;
        };
        let rows = rows::read();
        let row = rows.iter().find(|row| row.driver == *wanted);
        row.map_or(0, |row| row.priority)
    }

    fn probe(&self) -> Result<(), Unavailable> {
        Transformation::unbound()
            .map(drop)
            .map_err(|error| no_sockets(&error))
    }

    fn offers(&self, algorithm: &Algorithm) -> Result<(), Unavailable> {
        self.find(algorithm).map(drop)
    }

    fn transform(
        &self,
        algorithm: &'static Algorithm,
        key: &[u8],
    ) -> Result<Box<dyn Transform>, Unavailable> {
        let found = self.find(algorithm)?;
        let way = Way::of(algorithm).ok_or_else(unknown_to_linux)?;
        let tag_len = algorithm.tags.last().copied().unwrap_or_default();
        let later = found.is_asynchronous.then(|| Later {
            patience: self.timeout,
            crews: self.crews.clone(),
        });
        let keyed = Keyed::new(way, &found.driver, key, tag_len, later);
        let keyed = keyed.map_err(|error| {
            let (len, driver) = (key.len(), &found.driver);
            Unavailable::KeyRefused(format!(
                "the kernel's {driver} refuses a key of {len} bytes: {error}"
            ))
        })?;
        Ok(Box::new(keyed))
    }

    /// Where any of its implementations may be a device.
    fn patience(&self) -> Duration {
        let mut offered = self.found.offered().into_iter();
        match offered.any(|(_, row)| row.is_asynchronous) {
            true => self.timeout,
            false => Duration::ZERO,
        }
    }

    /// Who serves, and who else could: `af_alg:NAME` is one of these.
    fn notes(&self) -> Vec<String> {
        if self.wanted.is_some() {
            return Vec::new();
        }
        let rows = rows::read();
        let serves = |(algorithm, row): (&str, Implementation)| {
            let others: Vec<&str> = rows
                .iter()
                .filter(|other| other.algorithm == algorithm && other.driver != row.driver)
                .map(|other| other.driver.as_str())
                .collect();
            let others = match others.is_empty() {
                true => String::new(),
                false => format!(", before {}", others.join(", ")),
            };
            format!("{algorithm} by {} ({}){others}", row.driver, row.module)
        };
        self.found.offered().into_iter().map(serves).collect()
    }

    fn automatic(&self) -> bool {
        false
    }
}
