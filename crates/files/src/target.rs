//! A file that appears under its name only when it is whole.
//!
//! It is written without any name where the file system can do that (`O_TMPFILE`): then not even
//! `kill -9` leaves something behind, and nobody can take the name beforehand. Elsewhere it has a
//! temporary name beside the target.

use std::ffi::OsString;
use std::fs::{File, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{Access, AtFlags, CWD, FallocateFlags, Gid, Mode, OFlags, Stat, Uid};
use rustix::io::Errno;

use crate::place::{Found, Place};
use crate::temporary::{Names, free, names};

/// A file to be.
#[derive(Debug)]
pub struct Target {
    place: Place,
    file: File,
    /// `None` for a file without any name.
    temporary: Option<OsString>,
    committed: AtomicBool,
}

impl Target {
    /// Begins a file for this place, with owner and permissions of the file that is there now, if
    /// any.
    pub(crate) fn create(place: Place) -> io::Result<Target> {
        let old = match &place.found {
            Found::Regular(old) => Some(*old),
            _ => None,
        };
        if old.is_some() {
            rustix::fs::accessat(&place.dir, &place.name, Access::WRITE_OK, AtFlags::empty())?;
        }
        // Until it has the permissions of the old file, it has none for others.
        let mode = Mode::from_raw_mode(if old.is_some() { 0o600 } else { 0o666 });
        let (file, temporary) = match unnamed(&place, mode) {
            Ok(file) => (file, None),
            Err(_) => {
                let (file, name) = names().create(&place.dir, mode)?;
                (file, Some(name))
            }
        };
        let target = Target {
            place,
            file,
            temporary,
            committed: AtomicBool::new(false),
        };
        if let Some(old) = old {
            target.resemble(&old)?;
        }
        Ok(target)
    }

    /// Takes owner and permissions of another file, as far as that is allowed.
    fn resemble(&self, old: &Stat) -> io::Result<()> {
        let (uid, gid) = (Uid::from_raw(old.st_uid), Gid::from_raw(old.st_gid));
        let mut mode = old.st_mode & 0o777;
        let owned = rustix::fs::fchown(&self.file, Some(uid), Some(gid))
            .or_else(|_| rustix::fs::fchown(&self.file, None, Some(gid)));
        if owned.is_err() {
            // What the old group may do, another group may not.
            mode &= !0o070;
        }
        self.file.set_permissions(Permissions::from_mode(mode))
    }

    /// For writing.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Takes room for `len` bytes, so that a full disk is noticed now, and writing is faster.
    pub fn reserve(&self, len: u64) -> io::Result<()> {
        if len == 0 {
            return Ok(());
        }
        let error = match rustix::fs::fallocate(&self.file, FallocateFlags::empty(), 0, len) {
            Ok(()) => return Ok(()),
            Err(error) => io::Error::from(error),
        };
        match error.kind() {
            io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::FileTooLarge => Err(error),
            // Not every file system can; the writes tell then.
            _ => Ok(()),
        }
    }

    /// Gives the file, of `len` bytes, its name, in place of the regular file that had it.
    pub fn commit(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)?;
        self.publish()
    }

    /// [`commit`](Self::commit) of what must survive a crash of the machine: the content is on the
    /// disk before the name leads to it, and the name when this returns.
    pub fn commit_synced(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)?;
        self.file.sync_all()?;
        self.publish()?;
        self.place.sync()
    }

    fn publish(&self) -> io::Result<()> {
        // A signal that comes now waits until the file has one name or the other.
        let mut names = names();
        if self.temporary.is_none() && matches!(self.place.found, Found::Absent) {
            match self.link(&self.place.name) {
                Ok(()) => {
                    self.committed.store(true, Ordering::Relaxed);
                    return Ok(());
                }
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let temporary = match &self.temporary {
            Some(name) => name.clone(),
            None => free(|name| self.link(name))?.1,
        };
        match self.replace(&temporary) {
            Ok(()) => names.forget(&temporary),
            Err(error) => {
                names.remove(&self.place.dir, &temporary);
                return Err(error);
            }
        }
        self.committed.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Renames, unless what has the name by now is no regular file.
    fn replace(&self, temporary: &OsString) -> io::Result<()> {
        let Place { dir, name, .. } = &self.place;
        match self.place.look_again()? {
            Found::Absent | Found::Regular(_) => {
                Ok(rustix::fs::renameat(dir, temporary, dir, name)?)
            }
            Found::Special(_) | Found::Magic => Err(self
                .place
                .refuse("is no regular file any more; try again or choose another place")),
        }
    }

    /// Gives the unnamed file a name that is free.
    fn link(&self, name: &OsString) -> Result<(), Errno> {
        let descriptor = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        let flags = AtFlags::SYMLINK_FOLLOW;
        rustix::fs::linkat(CWD, descriptor, &self.place.dir, name, flags)
    }

    fn forget(&self, names: &mut Names) {
        if let Some(name) = &self.temporary {
            names.remove(&self.place.dir, name);
        }
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        if !self.committed.load(Ordering::Relaxed) {
            self.forget(&mut names());
        }
    }
}

/// A file without a name. `Err` where the file system, or a system without /proc, cannot do it.
fn unnamed(place: &Place, mode: Mode) -> io::Result<File> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::openat(&place.dir, ".", flags, mode)?);
    std::fs::symlink_metadata(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
    Ok(file)
}

#[cfg(test)]
impl Target {
    /// As on a file system without unnamed files.
    pub(crate) fn create_named(place: Place) -> io::Result<Target> {
        let (file, name) = names().create(&place.dir, Mode::from_raw_mode(0o666))?;
        Ok(Target {
            place,
            file,
            temporary: Some(name),
            committed: AtomicBool::new(false),
        })
    }
}
