//! Where a path leads: it is walked part by part, each part opened before it is judged.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

/// Symbolic links on one way, before it must be a circle; the kernel's own number.
const LINKS: usize = 40;
/// Bits of a directory where everyone may write, but not remove what belongs to others.
const SHARED: u32 = 0o1002;

/// A name in a directory that is open. The name is no symbolic link to follow.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) dir: OwnedFd,
    pub(crate) name: OsString,
    pub(crate) found: Found,
}

/// What has the name.
#[derive(Debug)]
pub(crate) enum Found {
    Absent,
    Regular(Stat),
    /// A device, a pipe or a socket.
    Special(Stat),
    /// A link of /proc, which leads where its text does not say, such as /proc/self/fd/1.
    Magic,
}

impl Place {
    /// Follows `path`, with the symbolic links on its way, and the one at its end if `last`.
    pub(crate) fn find(path: &Path, last: bool) -> io::Result<Place> {
        let mut dir = open(CWD, OsStr::new("."), OFlags::DIRECTORY)?;
        let mut rest = Vec::new();
        push(&mut dir, &mut rest, path.as_os_str().as_bytes())?;
        let mut links = 0;
        while let Some(name) = rest.pop() {
            let name = OsString::from_vec(name);
            let ends = rest.is_empty();
            let thing = match open(&dir, &name, OFlags::NOFOLLOW) {
                Ok(thing) => thing,
                Err(Errno::NOENT) if ends => return Ok(Place::new(dir, name, Found::Absent)),
                Err(error) => return Err(error.into()),
            };
            let stat = rustix::fs::fstat(&thing)?;
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::Directory => dir = thing,
                FileType::Symlink if ends && !last => {
                    let place = Place::new(dir, name, Found::Special(stat));
                    return Err(place.refuse("is a symbolic link, which is not followed here"));
                }
                FileType::Symlink if is_proc(&dir)? => {
                    if ends {
                        return Ok(Place::new(dir, name, Found::Magic));
                    }
                    dir = open(&dir, &name, OFlags::DIRECTORY)?;
                }
                FileType::Symlink => {
                    let text = rustix::fs::readlinkat(&thing, "", Vec::new())?.into_bytes();
                    let place = Place::new(dir, name, Found::Special(stat));
                    place.allow(&stat)?;
                    dir = place.dir;
                    links += 1;
                    if links > LINKS {
                        return Err(Errno::LOOP.into());
                    }
                    push(&mut dir, &mut rest, &text)?;
                }
                _ if !ends => return Err(Errno::NOTDIR.into()),
                FileType::RegularFile => {
                    let place = Place::new(dir, name, Found::Regular(stat));
                    place.allow(&stat)?;
                    return Ok(place);
                }
                kind => {
                    let place = Place::new(dir, name, Found::Special(stat));
                    if kind == FileType::Fifo {
                        place.allow(&stat)?;
                    }
                    return Ok(place);
                }
            }
        }
        Err(io::ErrorKind::IsADirectory.into())
    }

    fn new(dir: OwnedFd, name: OsString, found: Found) -> Place {
        Place { dir, name, found }
    }

    /// What has the name now.
    pub(crate) fn look_again(&self) -> io::Result<Found> {
        let flags = rustix::fs::AtFlags::SYMLINK_NOFOLLOW;
        let stat = match rustix::fs::statat(&self.dir, &self.name, flags) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return Ok(Found::Absent),
            Err(error) => return Err(error.into()),
        };
        Ok(match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {
                self.allow(&stat)?;
                Found::Regular(stat)
            }
            _ => Found::Special(stat),
        })
    }

    /// Opens what is no regular file. What is open for another part of the program, or in
    /// another program, is only added to.
    pub(crate) fn open_stream(&self) -> io::Result<File> {
        let (extra, expected) = match &self.found {
            Found::Special(stat) => (OFlags::NOFOLLOW, Some(stat)),
            _ => (OFlags::APPEND, None),
        };
        let flags = OFlags::WRONLY | OFlags::NOCTTY | OFlags::CLOEXEC | extra;
        let file = rustix::fs::openat(&self.dir, &self.name, flags, Mode::empty())?;
        if let Some(expected) = expected {
            let stat = rustix::fs::fstat(&file)?;
            if (stat.st_dev, stat.st_ino) != (expected.st_dev, expected.st_ino) {
                return Err(self.refuse("became another file meanwhile; try again"));
            }
        }
        Ok(file.into())
    }

    /// Brings the names of the directory to the disk.
    pub(crate) fn sync(&self) -> io::Result<()> {
        // What was opened without any right to its content cannot be synced.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = rustix::fs::openat(&self.dir, ".", flags, Mode::empty())?;
        Ok(rustix::fs::fsync(dir)?)
    }

    /// Whether an open file is a regular one that may be written.
    pub(crate) fn judge(&self, file: impl AsFd) -> io::Result<()> {
        let stat = rustix::fs::fstat(file)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => self.allow(&stat),
            _ => Err(self.refuse("is no regular file; name one")),
        }
    }

    /// The rule of directories that everyone shares, for what has this `stat` in this one.
    fn allow(&self, stat: &Stat) -> io::Result<()> {
        let dir = rustix::fs::fstat(&self.dir)?;
        let own = rustix::process::geteuid().as_raw();
        if dir.st_mode & SHARED != SHARED || [own, dir.st_uid].contains(&stat.st_uid) {
            return Ok(());
        }
        let what = match FileType::from_raw_mode(stat.st_mode) {
            FileType::Symlink => "is a symbolic link",
            FileType::Fifo => "is a pipe",
            _ => "is a file",
        };
        Err(self.refuse(&format!(
            "{what} of user {} in a directory where everyone may write, and is not used; remove \
             it or choose another place",
            stat.st_uid
        )))
    }

    /// An error about this name.
    pub(crate) fn refuse(&self, why: &str) -> io::Error {
        let name = self.name.to_string_lossy();
        let refused = Refused(format!("'{name}' {why}"));
        io::Error::new(io::ErrorKind::PermissionDenied, refused)
    }
}

/// Why a path is not used.
#[derive(Debug)]
struct Refused(String);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refused {}

/// Puts the parts of `path` before the rest, and begins at the root where it does.
fn push(dir: &mut OwnedFd, rest: &mut Vec<Vec<u8>>, path: &[u8]) -> io::Result<()> {
    if path.is_empty() {
        return Err(Errno::NOENT.into());
    }
    if path.starts_with(b"/") {
        *dir = open(CWD, OsStr::new("/"), OFlags::DIRECTORY)?;
    }
    // What ends with a slash must be a directory.
    let end = path.ends_with(b"/").then_some(b".".as_slice());
    let parts = path.split(|&byte| byte == b'/').chain(end);
    let parts = parts.filter(|part| !part.is_empty());
    let parts: Vec<_> = parts.map(<[u8]>::to_vec).collect();
    rest.extend(parts.into_iter().rev());
    Ok(())
}

/// Opens a name without any right to its content.
fn open(dir: impl AsFd, name: &OsStr, flags: OFlags) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::CLOEXEC | flags;
    rustix::fs::openat(dir, name, flags, Mode::empty())
}

fn is_proc(dir: &OwnedFd) -> io::Result<bool> {
    Ok(rustix::fs::fstatfs(dir)?.f_type == rustix::fs::PROC_SUPER_MAGIC)
}
