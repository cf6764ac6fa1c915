//! The loop of a thread.

use std::io;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::inbound::{self, Inbound};
use super::io::Io;
use super::outbound::{self, Outbound};
use crate::confine;
use crate::counters::add;
use crate::shared::Shared;
use crate::table::Table;

/// How often each side is served before the other one is looked at.
const INBOUND_TURNS: usize = 4;
const OUTBOUND_TURNS: usize = 8;

/// How long a thread waits before it tries again to have a device.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// How long a thread that has panicked keeps still: whoever can make it panic again can do no more
/// harm than that.
const AFTER_PANIC: Duration = Duration::from_millis(100);

/// Carries packets until the gateway stops. `wake` ends its waiting.
pub(crate) fn run(shared: &Arc<Shared>, mut io: Io, wake: &OwnedFd) {
    match confine::confine() {
        Ok(true) => {}
        Ok(false) => tracing::warn!("there is no filter of system calls for this processor"),
        Err(error) => tracing::warn!(
            "the system calls of a thread cannot be limited: {error}; the kernel needs \
             CONFIG_SECCOMP_FILTER"
        ),
    }
    while !shared.is_stopping() {
        // Buffers are made anew, and all that is shared is counters: nothing is left half done.
        let carried = catch_unwind(AssertUnwindSafe(|| carry(shared, &mut io, wake)));
        if carried.is_err() {
            add(&io.counters.panics, 1);
            tracing::error!(
                "a thread that carries packets has panicked, which is a mistake of the program; \
                 please report it with the line above. The packets that it held are lost, and it \
                 goes on"
            );
            std::thread::sleep(AFTER_PANIC);
        }
    }
}

fn carry(shared: &Arc<Shared>, io: &mut Io, wake: &OwnedFd) {
    let mut outbound = Outbound::new();
    let mut inbound = Inbound::new(!io.raw.is_empty());
    let mut table = shared.table();
    let mut generation = shared.generation.load(Relaxed);
    let wake_keeper = || shared.wake_keeper();
    while !shared.is_stopping() {
        let now = shared.generation.load(Relaxed);
        if now != generation {
            // Nothing is gathered here: each turn ends with a flush.
            outbound.forget();
            inbound.forget();
            (table, generation) = (shared.table(), now);
        }
        let out = outbound::Context {
            io,
            table: &table,
            wake: &wake_keeper,
            clamps_mss: shared.clamps_mss,
            inbox: shared.inbox.as_deref(),
        };
        let into = inbound::Context {
            io,
            table: &table,
            clamps_mss: shared.clamps_mss,
            inbox: shared.inbox.as_deref(),
            port: shared.port,
        };
        let mut is_busy = false;
        let mut failure = None;
        for socket in &io.sockets {
            for _ in 0..INBOUND_TURNS {
                match inbound.step(&into, socket) {
                    Ok(true) => is_busy = true,
                    Ok(false) => break,
                    // An ICMP message about something that was sent; the poll below tells more.
                    Err(_) => {
                        is_busy = true;
                        break;
                    }
                }
            }
        }
        for socket in &io.raw {
            for _ in 0..INBOUND_TURNS {
                match inbound.step_plain(&into, socket) {
                    Ok(true) => is_busy = true,
                    Ok(false) => break,
                    // As above.
                    Err(_) => {
                        is_busy = true;
                        break;
                    }
                }
            }
        }
        for _ in 0..OUTBOUND_TURNS {
            match outbound.step(&out) {
                Ok(true) => is_busy = true,
                Ok(false) => break,
                Err(error) => {
                    failure = Some(error);
                    break;
                }
            }
        }
        outbound.flush(&out);
        if let Some(error) = failure {
            match device_is_gone(&error) {
                true => replace_device(shared, io, &error),
                // The link is down. The poll would say at once that the device is ready.
                false => wait(io, &table, wake, Some(RETRY_INTERVAL), false),
            }
        } else if !is_busy {
            wait(io, &table, wake, None, true);
        }
    }
}

/// Waits until there is something to do.
fn wait(io: &Io, table: &Table, wake: &OwnedFd, limit: Option<Duration>, with_device: bool) {
    add(&io.counters.waits, 1);
    let limit = limit.and_then(|limit| Timespec::try_from(limit).ok());
    let mut files: arrayvec::ArrayVec<PollFd<'_>, 6> = arrayvec::ArrayVec::new();
    files.push(PollFd::new(wake, PollFlags::IN));
    for socket in &io.sockets {
        files.push(PollFd::new(socket, PollFlags::IN));
    }
    for socket in &io.raw {
        files.push(PollFd::new(socket, PollFlags::IN));
    }
    if with_device {
        files.push(PollFd::new(&io.tun, PollFlags::IN));
    }
    let _ = poll(&mut files, limit.as_ref());
    let is_woken = !files[0].revents().is_empty();
    let has_errors = files[1..=io.sockets.len() + io.raw.len()]
        .iter()
        .any(|file| file.revents().contains(PollFlags::ERR));
    drop(files);
    if is_woken {
        let _ = rustix::io::read(wake, &mut [0; 8]);
    }
    if has_errors {
        let about = io.take_errors();
        let tunnels = table.tunnels().iter();
        for tunnel in tunnels.filter(|tunnel| about.binary_search(&tunnel.peer().ip()).is_ok()) {
            io.look_at_path(tunnel);
        }
    }
}

fn device_is_gone(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EBADFD | libc::ENODEV | libc::EBADF)
    )
}

/// Somebody has deleted the device: waits for another one.
#[cold]
fn replace_device(shared: &Arc<Shared>, io: &mut Io, error: &io::Error) {
    let name = &shared.interface.name;
    tracing::error!("the TUN device '{name}' is gone ({error}); making it again");
    let new = shared.ask_for_device();
    while !shared.is_stopping() {
        match new.recv_timeout(RETRY_INTERVAL) {
            Ok((tun, offloads)) => {
                (io.tun, io.offloads) = (tun, offloads);
                return;
            }
            Err(RecvTimeoutError::Timeout) => {}
            // Without a keeper the gateway is about to end.
            Err(RecvTimeoutError::Disconnected) => std::thread::sleep(RETRY_INTERVAL),
        }
    }
}
