//! What threads that carry packets tell the control thread: datagrams of IKE, and events.
//!
//! All of it is seldom. A thread that tells something does not wait, but for the short lock; what
//! does not fit is dropped, as a network would, and comes again.

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

/// The most that wait. IKE sends some datagrams an exchange.
const MOST: usize = 4096;

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
    notices: Mutex<VecDeque<Notice>>,
    wake: OwnedFd,
}

impl Inbox {
    pub(crate) fn new() -> std::io::Result<Self> {
        Ok(Inbox {
            notices: Mutex::new(VecDeque::new()),
            wake: eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?,
        })
    }

    #[cold]
    fn tell(&self, notice: Notice) {
        let mut notices = lock(&self.notices);
        if notices.len() < MOST {
            notices.push_back(notice);
            drop(notices);
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
        std::mem::take(&mut *lock(&self.notices))
    }

    /// A datagram of IKE came to the port of ESP.
    #[cold]
    pub(crate) fn pass_datagram(&self, from: SocketAddr, to: SocketAddr, payload: &[u8]) {
        let payload = payload.to_vec();
        self.tell(Notice::Datagram { from, to, payload });
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
        for _ in 0..MOST + 10 {
            inbox.pass_datagram(from, from, &[0; 4]);
        }
        inbox.tell_expired(1, true);
        assert_eq!(inbox.take().len(), MOST);
        assert!(inbox.take().is_empty());
        inbox.tell_expired(1, true);
        assert_eq!(inbox.take().len(), 1);
    }

    #[test]
    fn a_packet_a_second_asks_for_an_sa() {
        let seldom = Seldom::default();
        assert!(seldom.is_due());
        // A second may begin between two calls.
        assert!((0..1000).filter(|_| seldom.is_due()).count() <= 2);
    }
}
