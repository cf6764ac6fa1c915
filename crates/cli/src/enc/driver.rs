//! Who encrypts: software, or the driver that the user forces. That one may fail, or be wrong.

use std::sync::atomic::{AtomicBool, Ordering};

use cipherlane_core::{Framework, Health, Session};

use crate::failure::Failure;
use crate::secret;

/// A driver, and software for when the driver fails.
#[derive(Debug)]
pub(super) struct Driver {
    framework: Framework,
    name: String,
    session: Session,
    /// Absent where the driver is software itself.
    software: Option<Session>,
    /// It failed, and software goes on.
    failed: AtomicBool,
}

impl Driver {
    pub(super) fn new(
        framework: Framework,
        name: String,
        algorithm: &str,
        key: &[u8],
    ) -> Result<Driver, Failure> {
        let software = framework.driver_names()[0].to_owned();
        // A key schedule is as secret as the key.
        let open = |driver: &str| {
            secret::scope(|| framework.session(algorithm, key)?.driver(driver).open())
        };
        Ok(Driver {
            session: open(&name)?,
            software: match name == software {
                true => None,
                false => Some(open(&software)?),
            },
            framework,
            name,
            failed: AtomicBool::new(false),
        })
    }

    /// The session for the next chunk.
    pub(super) fn session(&self) -> Result<&Session, Failure> {
        let Some(software) = &self.software else {
            return Ok(&self.session);
        };
        if self.failed.load(Ordering::Relaxed) {
            return Ok(software);
        }
        match self.framework.health(&self.name)? {
            Health::Working => Ok(&self.session),
            Health::Quarantined { .. } => self.verify().map(|()| software),
            Health::Suspended { .. } => {
                if !self.failed.swap(true, Ordering::Relaxed) {
                    eprintln!(
                        "cipherlane: warning: driver '{}' failed again and again; software did \
                         that part, and does the rest",
                        self.name
                    );
                }
                Ok(software)
            }
        }
    }

    /// Waits until what is to be verified is. An error if the driver was wrong.
    pub(super) fn verify(&self) -> Result<(), Failure> {
        if self.software.is_none() {
            return Ok(());
        }
        self.framework.finish_verification();
        match self.framework.health(&self.name)? {
            Health::Quarantined { mismatch } => Err(Failure::Runtime(format!(
                "driver '{}' gave a wrong result ({mismatch}): a file was not written, and what \
                 went to a pipe is not to be used; leave out --driver",
                self.name
            ))),
            Health::Working | Health::Suspended { .. } => Ok(()),
        }
    }
}
