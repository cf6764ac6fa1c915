//! Writing files so that nothing is lost and nobody else chooses where it goes.
//!
//! | module | what it holds |
//! |---|---|
//! | `place` | where a path leads, and which links and files of other users are not followed |
//! | [`Target`] (`target`) | a regular file that appears under its name only when it is whole |
//! | `temporary` | temporary names, for file systems without unnamed files |
//! | [`local`] | sockets of AF_UNIX, which a dead process may have left |
//!
//! The rules are those of the kernel's `fs.protected_symlinks`, `fs.protected_regular` and
//! `fs.protected_fifos` (Documentation/admin-guide/sysctl/fs.rst), whatever these are set to, and
//! for each part of a path: in a sticky directory where everyone may write, such as `/tmp`, a
//! symbolic link is followed, and a file or pipe that is there already is written, only if it
//! belongs to this process's user or to the owner of the directory.
//!
//! What is no regular file (a device, a pipe) is written through. It is never replaced.

#![forbid(unsafe_code)]

pub mod local;
mod place;
mod target;
mod temporary;

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, Mode, OFlags, RenameFlags};

use crate::place::{Found, Place};
pub use crate::target::Target;
pub use crate::temporary::{abandon, abandon_and};

/// Where output goes.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "one is made per file")]
pub enum Destination {
    /// A file that gets its name when it is whole.
    Regular(Target),
    /// A device, a pipe or an open file, written as data comes.
    Stream(File),
}

impl Destination {
    /// Opens `path` for writing. A regular file keeps its old content until
    /// [`Target::commit`]. A symbolic link stays a link: what it names is replaced, or created.
    pub fn open(path: &Path) -> io::Result<Destination> {
        let place = Place::find(path, true)?;
        match &place.found {
            Found::Absent | Found::Regular(_) => Ok(Destination::Regular(Target::create(place)?)),
            Found::Special(_) | Found::Magic => Ok(Destination::Stream(place.open_stream()?)),
        }
    }
}

/// Writes `bytes` as the whole content of `path`, or through it where it is no regular file.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    match Destination::open(path)? {
        Destination::Stream(mut stream) => stream.write_all(bytes),
        Destination::Regular(target) => {
            target.file().write_all(bytes)?;
            target.commit(bytes.len() as u64)
        }
    }
}

/// As [`write()`], for a regular file that must survive a crash of the machine: when this returns,
/// content and name are on the disk.
pub fn write_synced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let place = Place::find(path, true)?;
    if let Found::Special(_) | Found::Magic = place.found {
        return Err(place.refuse("is no regular file; name one"));
    }
    let target = Target::create(place)?;
    target.file().write_all(bytes)?;
    target.commit_synced(bytes.len() as u64)
}

/// Writes a file that was not there before, for its owner alone. When this returns, content and
/// name are on the disk. What has the name already, a symbolic link too, is an error of the kind
/// [`io::ErrorKind::AlreadyExists`] and is left as it is.
pub fn create_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let place = match Place::find(path, false) {
        Ok(place) => place,
        // A symbolic link at the end.
        Err(_) if path.is_symlink() => return Err(io::ErrorKind::AlreadyExists.into()),
        Err(error) => return Err(error),
    };
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(0o600);
    let mut file = File::from(rustix::fs::openat(&place.dir, &place.name, flags, mode)?);
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    match written {
        Ok(()) => place.sync(),
        Err(error) => {
            // Half a file is worse than none, for whoever finds it.
            let _ = rustix::fs::unlinkat(&place.dir, &place.name, AtFlags::empty());
            Err(error)
        }
    }
}

/// Whether `path` can be written, as far as can be told without writing.
pub fn check(path: &Path) -> io::Result<()> {
    let place = Place::find(path, true)?;
    let name: &Path = match place.found {
        Found::Absent => Path::new("."),
        _ => place.name.as_ref(),
    };
    Ok(rustix::fs::accessat(
        &place.dir,
        name,
        Access::WRITE_OK,
        AtFlags::empty(),
    )?)
}

/// Opens a regular file for appending; it is created where it is absent. No symbolic link is
/// followed at the end of `path`, and nothing but a regular file is opened.
pub fn append(path: &Path) -> io::Result<File> {
    let place = Place::find(path, false)?;
    if let Found::Special(_) | Found::Magic = place.found {
        return Err(place.refuse("is no regular file; name one"));
    }
    let flags = OFlags::WRONLY
        | OFlags::APPEND
        | OFlags::CREATE
        | OFlags::NOFOLLOW
        | OFlags::NONBLOCK
        | OFlags::NOCTTY
        | OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(0o666);
    let file = File::from(rustix::fs::openat(&place.dir, &place.name, flags, mode)?);
    // What was opened is judged, since it may be another than was found.
    place.judge(&file)?;
    Ok(file)
}

/// Gives the regular file `path` another name, `NAME.why` in place of its extension, or
/// `NAME.why.2` and so on where that is taken: no file is overwritten. Returns the new name.
pub fn set_aside(path: &Path, why: &str) -> io::Result<PathBuf> {
    let place = Place::find(path, true)?;
    let Found::Regular(_) = place.found else {
        return Err(place.refuse("is no regular file"));
    };
    for number in 1..1000 {
        let extension = match number {
            1 => why.to_owned(),
            _ => format!("{why}.{number}"),
        };
        let fresh = Path::new(&place.name).with_extension(extension);
        match rename_to_free(&place, &fresh) {
            Ok(()) => return Ok(path.with_file_name(fresh)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(place.refuse("has been set aside a thousand times; remove what is not needed"))
}

/// Renames within the directory, unless the new name is taken.
fn rename_to_free(place: &Place, fresh: &Path) -> io::Result<()> {
    let (dir, name) = (&place.dir, &place.name);
    match rustix::fs::renameat_with(dir, name, dir, fresh, RenameFlags::NOREPLACE) {
        // The file system cannot. A link has the same rule.
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => {
            rustix::fs::linkat(dir, name, dir, fresh, AtFlags::empty())?;
            Ok(rustix::fs::unlinkat(dir, name, AtFlags::empty())?)
        }
        result => Ok(result?),
    }
}

#[cfg(test)]
mod tests;
