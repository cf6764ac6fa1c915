//! The threads of a device that runs, and their end.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::JoinHandle;

use cipherlane_files::local;
use rustix::event::{EventfdFlags, eventfd};
use rustix::net::{Shutdown, SocketFlags, SocketType, shutdown};
use serde::Serialize;

use crate::{Error, status};

/// Programs that may wait for an answer.
const BACKLOG: i32 = 8;

/// What tells threads to end.
pub(crate) struct Stop {
    /// Becomes readable, for those that wait.
    pub(crate) event: OwnedFd,
    is_stopping: AtomicBool,
}

impl Stop {
    /// Whether they shall end.
    pub(crate) fn is_stopping(&self) -> bool {
        self.is_stopping.load(Relaxed)
    }
}

/// Threads that end together, of which one tells what the device has done.
pub(crate) struct Threads {
    stop: Arc<Stop>,
    /// Where that is asked.
    status: PathBuf,
    /// The socket there.
    asked: Option<UnixListener>,
    handles: Vec<JoinHandle<()>>,
}

impl Threads {
    /// None yet.
    pub(crate) fn new(status: &Path) -> Result<Threads, Error> {
        let event = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC);
        let event = event.map_err(|error| Error::System {
            doing: "make a thread wakeable",
            source: error.into(),
        })?;
        Ok(Threads {
            stop: Arc::new(Stop {
                event,
                is_stopping: AtomicBool::new(false),
            }),
            status: status.to_owned(),
            asked: None,
            handles: Vec::new(),
        })
    }

    /// What a thread looks at.
    pub(crate) fn stop(&self) -> &Arc<Stop> {
        &self.stop
    }

    /// Starts one.
    pub(crate) fn spawn(
        &mut self,
        name: &str,
        work: impl FnOnce() + Send + 'static,
    ) -> Result<(), Error> {
        let builder = std::thread::Builder::new().name(name.to_owned());
        let thread = builder.spawn(work).map_err(|source| Error::System {
            doing: "start a thread",
            source,
        })?;
        self.handles.push(thread);
        Ok(())
    }

    /// Starts the one that answers at the status' socket.
    pub(crate) fn tell<S: Serialize>(
        &mut self,
        name: &str,
        asked: OwnedFd,
        status: impl Fn() -> S + Send + 'static,
    ) -> Result<(), Error> {
        let (asked, stop) = (UnixListener::from(asked), self.stop.clone());
        self.asked = Some(asked.try_clone().map_err(|source| Error::System {
            doing: "make a thread wakeable",
            source,
        })?);
        self.spawn(name, move || {
            status::serve(&asked, || stop.is_stopping(), status);
        })
    }

    /// Whether one has ended, which none should.
    pub(crate) fn is_broken(&self) -> bool {
        self.handles.iter().any(JoinHandle::is_finished)
    }

    /// Whether none is there: not yet, or not any more.
    pub(crate) fn is_empty(&self) -> bool {
        self.handles.is_empty()
    }

    /// Ends all; whether none of them had panicked.
    pub(crate) fn end(&mut self) -> bool {
        self.stop.is_stopping.store(true, Relaxed);
        let _ = rustix::io::write(&self.stop.event, &1u64.to_ne_bytes());
        // Wakes the thread that waits there. A connection would not where the socket's name is gone,
        // or is that of another process by now.
        if let Some(asked) = &self.asked {
            let _ = shutdown(asked, Shutdown::Both);
        }
        let mut is_sound = true;
        for thread in self.handles.drain(..) {
            is_sound &= thread.join().is_ok();
        }
        let _ = std::fs::remove_file(&self.status);
        is_sound
    }
}

/// A socket at which somebody connects.
pub(crate) fn listen(path: &Path) -> Result<OwnedFd, Error> {
    let made = local::listener(path, SocketType::STREAM, SocketFlags::empty(), BACKLOG);
    made.map_err(|source| Error::Listen {
        path: path.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_end_when_the_name_of_the_socket_is_gone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("status");
        let mut threads = Threads::new(&path).unwrap();
        let asked = listen(&path).unwrap();
        threads.tell("told", asked, || 7).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(threads.end());
        assert!(threads.is_empty());
    }
}
