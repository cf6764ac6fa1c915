//! Temporary names beside a target. They cannot be foretold, and are removed when the program
//! fails or is interrupted.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

/// Attempts to find a free name. Two are never taken by chance.
const ATTEMPTS: usize = 10;

/// The names to remove when the program ends early, and their directories.
static NAMES: Mutex<Vec<(OwnedFd, OsString)>> = Mutex::new(Vec::new());

/// The names; while they are held, no other thread gives or takes one, nor a file its name.
pub(crate) struct Names(MutexGuard<'static, Vec<(OwnedFd, OsString)>>);

pub(crate) fn names() -> Names {
    Names(NAMES.lock().unwrap_or_else(PoisonError::into_inner))
}

impl Names {
    /// A new file in `dir`, under a temporary name that is remembered.
    pub(crate) fn create(&mut self, dir: &OwnedFd, mode: Mode) -> io::Result<(File, OsString)> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let flags = flags | OFlags::CLOEXEC;
        let (file, name) = free(|name| rustix::fs::openat(dir, name, flags, mode))?;
        self.0.push((dir.try_clone()?, name.clone()));
        Ok((file.into(), name))
    }

    /// Forgets a name that is no temporary one any more, or that is removed.
    pub(crate) fn forget(&mut self, name: &OsString) {
        self.0.retain(|(_, known)| known != name);
    }

    /// Removes a temporary name.
    pub(crate) fn remove(&mut self, dir: impl AsFd, name: &OsString) {
        let _ = rustix::fs::unlinkat(dir, name, AtFlags::empty());
        self.forget(name);
    }
}

/// Does `attempt` with names until one was free.
pub(crate) fn free<T>(
    mut attempt: impl FnMut(&OsString) -> Result<T, Errno>,
) -> io::Result<(T, OsString)> {
    for _ in 0..ATTEMPTS {
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(io::Error::other)?;
        let name = format!(".cipherlane-{:032x}", u128::from_ne_bytes(random)).into();
        match attempt(&name) {
            Ok(made) => return Ok((made, name)),
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(Errno::EXIST.into())
}

/// Removes all temporary names, for a program that is about to fail while other threads still
/// write.
pub fn abandon() {
    abandon_and(|| ());
}

/// [`abandon`], then `end`: as long as that takes, no file is given its name.
pub fn abandon_and<T>(end: impl FnOnce() -> T) -> T {
    let mut names = names();
    for (dir, name) in names.0.drain(..) {
        let _ = rustix::fs::unlinkat(dir, name, AtFlags::empty());
    }
    end()
}
