//! What threads that carry packets tell the control thread: datagrams of IKE, and events.
//!
//! All of it is seldom. A thread that tells something does not wait, but for the short lock.
//! Strangers may send datagrams at any rate: they have a bounded part of the memory, beyond which
//! they are dropped, as a network would, and they take no room from events.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock};
use std::time::Instant;

use rustix::event::{EventfdFlags, eventfd};

use super::database::{Child, Trap};
use super::message::Event;
use crate::packet::inner::Inner;
use crate::shared::lock;

/// The most events that wait.
const EVENTS: usize = 4096;

/// The most bytes of datagrams that wait: hundreds of exchanges of IKE.
const DATAGRAM_BYTES: usize = 1 << 20;

/// What a datagram counts beside its bytes, so that empty ones have an end too.
const OVERHEAD: usize = 128;

/// What is told.
#[derive(Debug)]
pub(super) enum Notice {
    /// A datagram of IKE that came to the port of ESP.
    Datagram {
        from: SocketAddr,
        to: SocketAddr,
        payload: Vec<u8>,
    },
    Event(Event),
    /// A lifetime of the SA of a serial number has passed.
    Expired {
        serial: u64,
        is_hard: bool,
    },
}

/// A queue, and how its reader is woken.
pub(crate) struct Inbox {
    waiting: Mutex<Waiting>,
    wake: OwnedFd,
}

#[derive(Default)]
struct Waiting {
    notices: VecDeque<Notice>,
    events: usize,
    datagram_bytes: usize,
}

impl Waiting {
    /// Takes room for a datagram of this length, or for an event, if there is any.
    fn admit(&mut self, datagram: Option<usize>) -> bool {
        let (used, more, most) = match datagram {
            Some(len) => (&mut self.datagram_bytes, len + OVERHEAD, DATAGRAM_BYTES),
            None => (&mut self.events, 1, EVENTS),
        };
        let fits = *used + more <= most;
        if fits {
            *used += more;
        }
        fits
    }
}

impl Inbox {
    pub(crate) fn new() -> std::io::Result<Self> {
        Ok(Inbox {
            waiting: Mutex::default(),
            wake: eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?,
        })
    }

    #[cold]
    fn tell(&self, notice: Notice) {
        self.queue(None, || notice);
    }

    /// Makes the notice only where there is room for it.
    fn queue(&self, datagram: Option<usize>, notice: impl FnOnce() -> Notice) {
        let mut waiting = lock(&self.waiting);
        if !waiting.admit(datagram) {
            return;
        }
        let is_first = waiting.notices.is_empty();
        waiting.notices.push_back(notice());
        drop(waiting);
        // The reader takes all that waits at once: one call wakes it for all.
        if is_first {
            self.wake();
        }
    }

    /// Wakes the control thread.
    pub(crate) fn wake(&self) {
        // It can only fail where the thread is woken already.
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }

    /// What is readable while something waits.
    pub(super) fn waker(&self) -> &OwnedFd {
        &self.wake
    }

    /// All that waits.
    pub(super) fn take(&self) -> VecDeque<Notice> {
        let _ = rustix::io::read(&self.wake, &mut [0; 8]);
        std::mem::take(&mut *lock(&self.waiting)).notices
    }

    /// A datagram of IKE came to the port of ESP.
    #[cold]
    pub(crate) fn pass_datagram(&self, from: SocketAddr, to: SocketAddr, payload: &[u8]) {
        self.queue(Some(payload.len()), || Notice::Datagram {
            from,
            to,
            payload: payload.to_vec(),
        });
    }

    /// A packet was dropped, because its policy has no SA.
    #[cold]
    pub(crate) fn ask_for_sa(&self, trap: &Trap, inner: &Inner) {
        if trap.acquires && trap.told.is_due() {
            self.tell(Notice::Event(Event::Acquire {
                reqid: trap.reqid,
                source: inner.source,
                destination: inner.destination,
                protocol: inner.protocol,
            }));
        }
    }

    /// Authentic packets of an SA came from elsewhere than they should.
    #[cold]
    pub(crate) fn tell_mapping(&self, child: &Child, from: SocketAddr) {
        if child.told.is_due() {
            let id = child.inbound;
            self.tell(Notice::Event(Event::Mapping { id, from }));
        }
    }

    /// A lifetime of an SA has passed.
    pub(super) fn tell_expired(&self, serial: u64, is_hard: bool) {
        self.tell(Notice::Expired { serial, is_hard });
    }
}

/// Something that happens once per second at most.
#[derive(Debug, Default)]
pub(crate) struct Seldom(AtomicU64);

impl Seldom {
    /// Whether the last time is a second or more ago; then it is now.
    pub(super) fn is_due(&self) -> bool {
        static START: OnceLock<Instant> = OnceLock::new();
        let second = START.get_or_init(Instant::now).elapsed().as_secs() + 1;
        let last = self.0.load(Relaxed);
        last < second
            && self
                .0
                .compare_exchange(last, second, Relaxed, Relaxed)
                .is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_taken_once_and_the_queue_has_an_end() {
        let inbox = Inbox::new().unwrap();
        let from: SocketAddr = "192.0.2.1:4500".parse().unwrap();
        for len in [0, 4, 1400, 65_000] {
            let fit = DATAGRAM_BYTES / (len + OVERHEAD);
            for _ in 0..fit + 10 {
                inbox.pass_datagram(from, from, &vec![0; len]);
            }
            // A flood of datagrams leaves room for what the gateway itself has to say.
            for _ in 0..EVENTS + 10 {
                inbox.tell_expired(1, true);
            }
            assert_eq!(inbox.take().len(), fit + EVENTS);
            assert!(inbox.take().is_empty());
        }
    }

    #[test]
    fn one_packet_per_second_asks_for_an_sa() {
        let seldom = Seldom::default();
        assert!(seldom.is_due());
        // A second may begin between two calls.
        assert!((0..1000).filter(|_| seldom.is_due()).count() <= 2);
    }
}
