//! What the messages of a front-end do: memory, rings, sessions. No sockets.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use cipherlane_core::Framework;
use rustc_hash::FxHashSet;

use super::batch::Batch;
use super::connection::Message;
use super::counters::{Counters, add};
use super::creation::{self, Creation};
use super::memory::Memory;
use super::message::{self, request, u64_at};
use super::ring::{Places, Ring};
use super::sessions::{KeepKeys, Sessions};

/// Queues of a guest at most.
pub(crate) const MAX_RINGS: usize = 64;

/// VIRTIO_F_VERSION_1, VHOST_USER_F_PROTOCOL_FEATURES, VIRTIO_F_EVENT_IDX and
/// VIRTIO_F_INDIRECT_DESC.
const FEATURES: u64 = 1 << 32 | 1 << 30 | 1 << 29 | 1 << 28;

/// VHOST_USER_PROTOCOL_F_MQ, _REPLY_ACK and _CRYPTO_SESSION.
const PROTOCOL_FEATURES: u64 = 1 << 0 | 1 << 3 | 1 << 7;

/// A device as one guest has it.
pub(crate) struct Device {
    counters: Arc<Counters>,
    memory: Memory,
    rings: Vec<Ring>,
    sessions: Sessions,
    batch: Batch,
    /// Reasons that were said already: a guest must not fill the log.
    said: FxHashSet<String>,
}

impl Device {
    /// Without memory, rings and sessions; with at most `limit` of these.
    pub(crate) fn new(
        framework: &Framework,
        keep_keys: KeepKeys,
        limit: usize,
        counters: Arc<Counters>,
    ) -> Device {
        Device {
            counters,
            memory: Memory::default(),
            rings: Vec::new(),
            sessions: Sessions::new(framework, keep_keys, limit),
            batch: Batch::default(),
            said: FxHashSet::default(),
        }
    }

    /// What takes time and has to be done once, before there is a guest that would wait for it.
    pub(crate) fn prepare(&self) {
        self.sessions.test_drivers();
    }

    /// Does what a message says; the body of the reply, if it has one of its own.
    pub(crate) fn handle(&mut self, message: Message) -> Result<Option<Vec<u8>>, String> {
        add(&self.counters.messages, 1);
        let done = self.obey(message);
        if done.is_err() {
            add(&self.counters.messages_refused, 1);
        }
        let running = self.rings.iter().filter(|ring| ring.is_running()).count();
        self.counters.rings_running.store(running as u64, Relaxed);
        done
    }

    fn obey(&mut self, message: Message) -> Result<Option<Vec<u8>>, String> {
        let Message {
            header,
            body,
            mut files,
        } = message;
        let number = |value: u64| Ok(Some(value.to_ne_bytes().to_vec()));
        match header.request {
            request::GET_FEATURES => return number(FEATURES),
            request::GET_PROTOCOL_FEATURES => return number(PROTOCOL_FEATURES),
            request::GET_QUEUE_NUM => return number(MAX_RINGS as u64),
            request::SET_FEATURES => only(FEATURES, u64_at(&body, 0)?)?,
            request::SET_PROTOCOL_FEATURES => only(PROTOCOL_FEATURES, u64_at(&body, 0)?)?,
            request::SET_OWNER => {}
            request::RESET_OWNER => self.reset(),
            request::SET_MEM_TABLE => {
                let regions = message::regions(&body, files.len())?;
                self.memory = Memory::map(regions, files)?;
                self.stop_rings_outside();
            }
            request::SET_VRING_NUM => {
                let (ring, len) = message::ring_and_value(&body)?;
                self.ring(ring)?.set_len(len)?;
            }
            request::SET_VRING_ADDR => {
                let told = message::addresses(&body)?;
                let place = |user| self.memory.translate(user);
                let places = Places {
                    descriptors: place(told.descriptors)?,
                    available: place(told.available)?,
                    used: place(told.used)?,
                };
                self.ring(told.ring)?.set_places(places)?;
            }
            request::SET_VRING_BASE => {
                let (ring, base) = message::ring_and_value(&body)?;
                self.ring(ring)?.set_base(base)?;
            }
            request::GET_VRING_BASE => {
                let (ring, _) = message::ring_and_value(&body)?;
                let base = u32::from(self.ring(ring)?.stop());
                let body = [ring.to_ne_bytes(), base.to_ne_bytes()].concat();
                return Ok(Some(body));
            }
            request::SET_VRING_KICK => {
                let (ring, kick) = file(&body, &mut files)?;
                let kick = kick.ok_or("a ring without a kick; it would have to be polled")?;
                self.ring(ring)?;
                self.rings[ring as usize].start(kick, &self.memory)?;
            }
            request::SET_VRING_CALL => {
                let (ring, call) = file(&body, &mut files)?;
                self.ring(ring)?.set_call(call)?;
            }
            request::SET_VRING_ERR => {
                let (ring, error) = file(&body, &mut files)?;
                self.ring(ring)?.set_error(error)?;
            }
            request::SET_VRING_ENABLE => {
                let (ring, is_enabled) = message::ring_and_value(&body)?;
                self.ring(ring)?.enable(is_enabled == 1);
            }
            request::CREATE_CRYPTO_SESSION => return self.create_session(&body).map(Some),
            request::CLOSE_CRYPTO_SESSION => {
                // Whoever closes a session that a back-end before this one had is not wrong.
                if self.sessions.close(u64_at(&body, 0)?) {
                    add(&self.counters.sessions_closed, 1);
                }
            }
            other => return Err(format!("message {other} is not known")),
        }
        Ok(None)
    }

    /// Opens a session; the reply tells its number, or that there is none.
    fn create_session(&mut self, body: &[u8]) -> Result<Vec<u8>, String> {
        if !creation::is_known(body) {
            return Err(format!(
                "a session in {} bytes, which no QEMU known here sends",
                body.len()
            ));
        }
        let opened = Creation::read(body).and_then(|creation| self.sessions.open(&creation));
        let number = match opened {
            Ok(number) => {
                add(&self.counters.sessions_opened, 1);
                Some(number)
            }
            Err(reason) => {
                add(&self.counters.sessions_refused, 1);
                self.say(format!("a session is refused: {reason}"));
                None
            }
        };
        Ok(creation::reply(body, number))
    }

    /// A ring, which is there when somebody speaks of it.
    fn ring(&mut self, number: u32) -> Result<&mut Ring, String> {
        let index = number as usize;
        if index >= MAX_RINGS {
            return Err(format!("ring {number}; there are {MAX_RINGS}"));
        }
        if self.rings.len() <= index {
            self.rings.resize_with(index + 1, Ring::default);
        }
        Ok(&mut self.rings[index])
    }

    fn stop_rings_outside(&mut self) {
        for index in 0..self.rings.len() {
            if !self.rings[index].is_within(&self.memory) {
                self.give_up(index, "it is not in the memory that was told anew");
            }
        }
    }

    /// Rings, by number, with what to wait for.
    pub(crate) fn kicks(&self) -> impl Iterator<Item = (usize, BorrowedFd<'_>)> {
        let rings = self.rings.iter().enumerate();
        rings.filter_map(|(index, ring)| Some((index, ring.kick()?)))
    }

    /// Whether there is work that nobody will tell of.
    pub(crate) fn is_pending(&self) -> bool {
        self.rings.iter().any(Ring::is_pending)
    }

    /// The guest has told of new requests.
    pub(crate) fn kicked(&mut self, index: usize) {
        if let Err(reason) = self.rings[index].kicked(&self.counters) {
            self.give_up(index, &reason);
        }
    }

    /// Serves a batch of each ring that has one.
    pub(crate) fn serve(&mut self) {
        for index in 0..self.rings.len() {
            let ring = &mut self.rings[index];
            if !ring.is_pending() {
                continue;
            }
            let (memory, batch) = (&self.memory, &mut self.batch);
            if let Err(reason) = ring.serve(memory, batch, &mut self.sessions, &self.counters) {
                self.give_up(index, &reason);
            }
        }
    }

    /// A ring cannot be served any more: it stands until the guest sets it up again.
    fn give_up(&mut self, index: usize, reason: &str) {
        let ring = &mut self.rings[index];
        ring.stop();
        ring.report();
        add(&self.counters.rings_stopped, 1);
        self.say(format!(
            "ring {index} is stopped, until the guest sets the device up again: {reason}"
        ));
    }

    /// The front-end is gone, and with it all that it has told.
    pub(crate) fn reset(&mut self) {
        self.rings.clear();
        self.memory = Memory::default();
        let closed = self.sessions.close_all();
        add(&self.counters.sessions_closed, closed as u64);
        self.counters.rings_running.store(0, Relaxed);
        self.said.clear();
    }

    /// Says it in the log, each reason once per front-end, and at most a few.
    pub(crate) fn say(&mut self, reason: String) {
        const REASONS: usize = 20;
        if self.said.len() < REASONS && !self.said.contains(&reason) {
            tracing::warn!("{reason}");
            self.said.insert(reason);
        }
    }
}

/// A ring's number with the file that comes with it, which is one or none.
fn file(body: &[u8], files: &mut Vec<OwnedFd>) -> Result<(u32, Option<OwnedFd>), String> {
    let (ring, has_file) = message::ring_and_file(body)?;
    match (has_file, files.len()) {
        (true, 1) | (false, 0) => Ok((ring, files.pop())),
        (_, count) => Err(format!("{count} files with a message of one")),
    }
}

/// Features that were not offered cannot be had.
fn only(offered: u64, wanted: u64) -> Result<(), String> {
    match wanted & !offered {
        0 => Ok(()),
        others => Err(format!("features {others:#x} were not offered")),
    }
}
