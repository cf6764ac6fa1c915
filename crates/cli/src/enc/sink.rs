//! Where results go: a regular file, written at many places at once and named at the end, or a
//! stream, written in order.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

use cipherlane_files::{Destination, Target};

use super::turn::Turn;
use crate::failure::Failure;
use crate::interrupt;

/// The output.
#[derive(Debug)]
pub(super) struct Sink {
    name: String,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Regular(Target),
    Stream(Turn<File>),
}

impl Sink {
    /// Opens `path`, or standard output without one. A regular file keeps its old content until
    /// [`commit`](Self::commit).
    pub(super) fn open(path: Option<&Path>) -> Result<Sink, Failure> {
        let Some(path) = path else {
            let name = "to standard output".to_owned();
            let file = io::stdout().as_fd().try_clone_to_owned();
            let file = file.map_err(|error| Failure::io("write", &name, &error))?;
            return Ok(Sink::stream(name, file.into()));
        };
        let name = format!("'{}'", path.display());
        let failed = |error: io::Error| Failure::io("write", &name, &error);
        match Destination::open(path).map_err(failed)? {
            Destination::Stream(file) => Ok(Sink::stream(name, file)),
            Destination::Regular(target) => {
                interrupt::watch();
                let kind = Kind::Regular(target);
                Ok(Sink { name, kind })
            }
        }
    }

    fn stream(name: String, file: File) -> Sink {
        // Fewer, larger writes where it is a pipe; else it has no effect.
        let _ = rustix::pipe::fcntl_setpipe_size(&file, 1 << 20);
        Sink {
            name,
            kind: Kind::Stream(Turn::new(file)),
        }
    }

    /// Whether chunks may be written in any order.
    pub(super) fn any_order(&self) -> bool {
        matches!(self.kind, Kind::Regular(_))
    }

    /// Writes chunk `index`, which begins at `offset` of the output.
    pub(super) fn write(&self, index: u64, offset: u64, data: &[u8]) -> Result<(), Failure> {
        let failed = |error: io::Error| Failure::io("write", &self.name, &error);
        match &self.kind {
            Kind::Regular(target) => target.file().write_all_at(data, offset).map_err(failed),
            Kind::Stream(turn) => {
                let mut file = turn.enter(index);
                file.write_all(data).map_err(failed)?;
                file.leave();
                Ok(())
            }
        }
    }

    /// Takes room for `len` bytes, where that is possible.
    pub(super) fn reserve(&self, len: u64) -> Result<(), Failure> {
        match &self.kind {
            Kind::Regular(target) => target
                .reserve(len)
                .map_err(|error| Failure::io("make room for", &self.name, &error)),
            Kind::Stream(_) => Ok(()),
        }
    }

    /// All `len` bytes are written: a regular file gets its name.
    pub(super) fn commit(&self, len: u64) -> Result<(), Failure> {
        match &self.kind {
            Kind::Regular(target) => target
                .commit(len)
                .map_err(|error| Failure::io("write", &self.name, &error)),
            Kind::Stream(_) => Ok(()),
        }
    }
}
