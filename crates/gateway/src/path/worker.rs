//! The loop of a thread.

use std::io;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use super::inbound::{self, Inbound};
use super::io::Io;
use super::outbound::{self, Outbound};
use super::sleepers;
use super::wait::{Waiter, wait_without_device};
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
pub(crate) fn run(shared: &Arc<Shared>, mut io: Io, waiter: &Waiter, wake: &OwnedFd) {
    match confine::confine() {
        Ok(true) => {}
        Ok(false) => tracing::warn!("there is no filter of system calls for this processor"),
        Err(error) => tracing::warn!(
            "the system calls of a thread cannot be limited: {error}; the kernel needs \
             CONFIG_SECCOMP_FILTER"
        ),
    }
    while !shared.is_stopping() {
        // Buffers are made anew, and all that is shared is counters and whose turn it is: nothing is
        // left half done.
        let carried = catch_unwind(AssertUnwindSafe(|| carry(shared, &mut io, waiter, wake)));
        if carried.is_err() {
            let_others_go_on(shared, io.thread);
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

fn carry(shared: &Arc<Shared>, io: &mut Io, waiter: &Waiter, wake: &OwnedFd) {
    let mut outbound = Outbound::new();
    let mut inbound = Inbound::new(!io.raw.is_empty(), shared.is_shared());
    let mut table = shared.table();
    let mut generation = shared.generation.load(Relaxed);
    // Since something was done last.
    let mut looks = 0;
    let wake_keeper = || shared.wake_keeper();
    while !shared.is_stopping() {
        let now = shared.generation.load(Relaxed);
        if now != generation {
            // Nothing is gathered here: each turn ends with a flush.
            outbound.forget();
            inbound.forget(&inbound_context(shared, io, &table, wake));
            (table, generation) = (shared.table(), now);
        }
        let out = outbound::Context {
            io,
            table: &table,
            wake: &wake_keeper,
            clamps_mss: shared.clamps_mss,
            inbox: shared.inbox.as_deref(),
        };
        let into = inbound_context(shared, io, &table, wake);
        let mut is_busy = false;
        let mut failure = None;
        for socket in &io.inlets.sockets {
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
        for socket in &io.inlets.raw {
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
            inbound.write_due(&into);
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
        inbound.write_due(&into);
        if inbound.is_waiting() && !is_busy {
            inbound.wait_for_turn(&into, &mut looks, |_| {
                if waiter.wait(io, wake, Some(sleepers::LONGEST)) {
                    look_at_errors(io, &table);
                }
            });
            is_busy = true;
        } else {
            looks = 0;
        }
        if let Some(error) = failure {
            match device_is_gone(&error) {
                true => replace_device(shared, io, waiter, &error),
                // The link is down. The poll would say at once that the device is ready.
                false => wait_without_device(io, wake, RETRY_INTERVAL),
            }
        } else if !is_busy {
            wait(io, &table, waiter, wake);
        }
    }
}

/// What is the same for all packets that come in.
fn inbound_context<'a>(
    shared: &'a Shared,
    io: &'a Io,
    table: &'a Table,
    wake: &'a OwnedFd,
) -> inbound::Context<'a> {
    inbound::Context {
        io,
        table,
        clamps_mss: shared.clamps_mss,
        inbox: shared.inbox.as_deref(),
        port: shared.port,
        order: shared.order.as_ref().map(|order| (order, wake)),
    }
}

/// Waits until there is something to do.
fn wait(io: &Io, table: &Table, waiter: &Waiter, wake: &OwnedFd) {
    if waiter.wait(io, wake, None) {
        look_at_errors(io, table);
    }
}

/// Packets that were sent have come back as errors: the path may have become narrower.
#[cold]
fn look_at_errors(io: &Io, table: &Table) {
    let about = io.take_errors();
    let tunnels = table.tunnels().iter();
    for tunnel in tunnels.filter(|tunnel| about.binary_search(&tunnel.peer().ip()).is_ok()) {
        io.look_at_path(tunnel);
    }
}

/// A thread has lost what it held: nobody must wait for it.
#[cold]
fn let_others_go_on(shared: &Shared, thread: usize) {
    if let Some(order) = &shared.order {
        order.readers.end(thread);
    }
    let table = shared.table();
    let turns = table
        .tunnels()
        .iter()
        .filter_map(|tunnel| tunnel.turns.as_ref());
    turns.for_each(|turns| turns.end_all(thread));
}

fn device_is_gone(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EBADFD | libc::ENODEV | libc::EBADF)
    )
}

/// Somebody has deleted the device: waits for another one.
#[cold]
fn replace_device(shared: &Arc<Shared>, io: &mut Io, waiter: &Waiter, error: &io::Error) {
    let name = &shared.interface.name;
    tracing::error!("the TUN device '{name}' is gone ({error}); making it again");
    let new = shared.ask_for_device();
    while !shared.is_stopping() {
        match new.recv_timeout(RETRY_INTERVAL) {
            Ok((tun, offloads)) => {
                if let Err(error) = waiter.add_device(&tun) {
                    tracing::error!("a new TUN device cannot be waited for: {error}");
                    continue;
                }
                (io.tun, io.offloads) = (tun, offloads);
                return;
            }
            Err(RecvTimeoutError::Timeout) => {}
            // Without a keeper the gateway is about to end.
            Err(RecvTimeoutError::Disconnected) => std::thread::sleep(RETRY_INTERVAL),
        }
    }
}
