//! How a thread waits until there is something to do. Of the threads that share a socket the system
//! wakes one for each datagram (EPOLLEXCLUSIVE), and not all.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::io::Io;
use crate::counters::add;
use crate::sys::tun::TunQueue;

/// What an event is about.
const WAKE: u64 = 0;
const DEVICE: u64 = 1;
const SOCKET: u64 = 2;

/// The most events of one wait: wake, device, and for both families and both kinds of ESP a socket
/// that sends and one that receives.
const MOST: usize = 10;

/// What a thread waits for.
pub(crate) struct Waiter {
    epoll: OwnedFd,
}

impl Waiter {
    /// Waits for the descriptors of `io`, and for `wake`.
    pub(crate) fn new(io: &Io, wake: &OwnedFd) -> io::Result<Waiter> {
        let waiter = Waiter {
            epoll: epoll::create(CreateFlags::CLOEXEC)?,
        };
        waiter.add(wake, WAKE, EventFlags::IN)?;
        waiter.add_device(&io.tun)?;
        // Errors come by these too. Those of the first thread are the ones that all receive by.
        if io.thread > 0 {
            for socket in &io.sockets {
                waiter.add(socket, SOCKET, EventFlags::empty())?;
            }
            for socket in &io.raw {
                waiter.add(socket, SOCKET, EventFlags::empty())?;
            }
        }
        let one_thread = EventFlags::IN | EventFlags::EXCLUSIVE;
        for socket in &io.inlets.sockets {
            waiter.add(socket, SOCKET, one_thread)?;
        }
        for socket in &io.inlets.raw {
            waiter.add(socket, SOCKET, one_thread)?;
        }
        Ok(waiter)
    }

    /// Waits for a device that was made again, too; the one before it is closed.
    pub(crate) fn add_device(&self, tun: &TunQueue) -> io::Result<()> {
        self.add(tun, DEVICE, EventFlags::IN)
    }

    fn add(&self, file: impl AsFd, what: u64, flags: EventFlags) -> io::Result<()> {
        epoll::add(&self.epoll, file, EventData::new_u64(what), flags)?;
        Ok(())
    }

    /// Waits, for no longer than `limit`; whether a socket has errors.
    pub(crate) fn wait(&self, io: &Io, wake: &OwnedFd, limit: Option<Duration>) -> bool {
        add(&io.counters.waits, 1);
        let limit = limit.and_then(|limit| Timespec::try_from(limit).ok());
        let none = Event {
            flags: EventFlags::empty(),
            data: EventData::new_u64(0),
        };
        let mut events = [none; MOST];
        let count = epoll::wait(&self.epoll, &mut events[..], limit.as_ref()).unwrap_or(0);
        let mut has_errors = false;
        for Event { flags, data } in events[..count].iter().copied() {
            match data.u64() {
                WAKE => take_wake(wake),
                SOCKET => has_errors |= flags.contains(EventFlags::ERR),
                _ => {}
            }
        }
        has_errors
    }
}

/// Waits for all but the device, which is down and always ready, and no longer than `limit`.
pub(crate) fn wait_without_device(io: &Io, wake: &OwnedFd, limit: Duration) {
    add(&io.counters.waits, 1);
    let limit = Timespec::try_from(limit).ok();
    let mut files: arrayvec::ArrayVec<PollFd<'_>, 5> = arrayvec::ArrayVec::new();
    files.push(PollFd::new(wake, PollFlags::IN));
    for socket in &io.inlets.sockets {
        files.push(PollFd::new(socket, PollFlags::IN));
    }
    for socket in &io.inlets.raw {
        files.push(PollFd::new(socket, PollFlags::IN));
    }
    let _ = poll(&mut files, limit.as_ref());
    let is_woken = !files[0].revents().is_empty();
    drop(files);
    if is_woken {
        take_wake(wake);
    }
}

pub(super) fn take_wake(wake: &OwnedFd) {
    let _ = rustix::io::read(wake, &mut [0; 8]);
}
