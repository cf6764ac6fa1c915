//! The loop of a thread.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::inbound::{self, Inbound};
use super::io::Io;
use super::outbound::{self, Outbound};
use crate::counters::add;
use crate::shared::Shared;
use crate::table::Table;

/// How often each side is served before the other one is looked at.
const INBOUND_TURNS: usize = 4;
const OUTBOUND_TURNS: usize = 8;

/// How long a thread waits before it tries again to have a device.
const AGAIN: Duration = Duration::from_secs(1);

/// Carries packets until the gateway stops. `wake` ends its waiting.
pub(crate) fn run(shared: &Arc<Shared>, mut io: Io, wake: &OwnedFd) {
    let mut outbound = Outbound::new();
    let mut inbound = Inbound::new();
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
            io: &io,
            table: &table,
            wake: &wake_keeper,
            clamps_mss: shared.clamps_mss,
            inbox: shared.inbox.as_deref(),
        };
        let into = inbound::Context {
            io: &io,
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
                true => io = reopen(shared, io, &error),
                // The link is down. The poll would say at once that the device is ready.
                false => wait(&io, &table, wake, Some(AGAIN), false),
            }
        } else if !is_busy {
            wait(&io, &table, wake, None, true);
        }
    }
}

/// Waits until there is something to do.
fn wait(io: &Io, table: &Table, wake: &OwnedFd, limit: Option<Duration>, with_device: bool) {
    add(&io.counters.waits, 1);
    let limit = limit.and_then(|limit| Timespec::try_from(limit).ok());
    let mut files: arrayvec::ArrayVec<PollFd<'_>, 4> = arrayvec::ArrayVec::new();
    files.push(PollFd::new(wake, PollFlags::IN));
    for socket in &io.sockets {
        files.push(PollFd::new(socket, PollFlags::IN));
    }
    if with_device {
        files.push(PollFd::new(&io.tun, PollFlags::IN));
    }
    let _ = poll(&mut files, limit.as_ref());
    let is_woken = !files[0].revents().is_empty();
    let has_errors = files[1..=io.sockets.len()]
        .iter()
        .any(|file| file.revents().contains(PollFlags::ERR));
    drop(files);
    if is_woken {
        let _ = rustix::io::read(wake, &mut [0; 8]);
    }
    if has_errors {
        let about = io.take_errors();
        let tunnels = table.tunnels().iter();
        for tunnel in tunnels.filter(|tunnel| about.contains(&tunnel.peer().ip())) {
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

/// Somebody has deleted the device: makes it again.
#[cold]
fn reopen(shared: &Arc<Shared>, io: Io, error: &io::Error) -> Io {
    let name = &shared.interface.name;
    tracing::error!("the TUN device '{name}' is gone ({error}); making it again");
    let mut io = io;
    while !shared.is_stopping() {
        let tun = crate::sys::tun::TunQueue::open(name, shared.is_shared());
        let done = tun.and_then(|tun| {
            io.offloads = tun.negotiate();
            io.tun = tun;
            shared.set_up_interface()
        });
        match done {
            Ok(()) => {
                tracing::info!("the TUN device '{name}' is back");
                break;
            }
            Err(error) => tracing::error!("{error}; trying again in {} s", AGAIN.as_secs()),
        }
        std::thread::sleep(AGAIN);
    }
    io
}
