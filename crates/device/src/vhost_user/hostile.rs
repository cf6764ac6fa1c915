//! Everything but the sockets, for the fuzz target and for tests: the messages of a front-end and
//! the memory of a guest, sound or not.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use cipherlane_core::{Direction, Framework};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use zeroize::Zeroizing;

use super::connection::Message;
use super::counters::Counters;
use super::creation;
use super::device::Device;
use super::message::{Header, request};
use super::operation::Operation;
use super::private;
pub use super::private::{describe, write as header};
use super::status::Status;

/// Bytes of the guest's memory.
pub const MEMORY: u64 = 64 << 10;
/// Where the guest sees it, and where QEMU does.
const GUEST: u64 = 0x1_0000;
const USER: u64 = 0x7f00_0000_0000;
/// Requests of the ring, and where its parts are in memory.
const RING: u16 = 64;
const DESCRIPTORS: u64 = 0;
const AVAILABLE: u64 = 0x400;
const USED: u64 = 0x800;
/// Where the parts of requests are: one behind the other, and again from the beginning.
const REQUESTS: u64 = 0x1000;
const STRIDE: u64 = 0x1000;
const PLACES: u16 = 12;
/// Descriptors of a request: header, IV, input, output, status.
const PARTS: u16 = 5;
/// Bytes of a payload here at most.
pub const LONGEST: usize = 0x700;

/// Batches that are served for one kick at most: a guest can keep its ring full for ever.
const BATCHES: usize = 8;

/// A guest, its front-end, and the device that they have.
pub struct Guest {
    device: Device,
    counters: Arc<Counters>,
    framework: Framework,
    memory: File,
    kick: OwnedFd,
    call: OwnedFd,
    next: u16,
}

/// A request as the guest's driver lays it out.
#[derive(Clone, Debug)]
pub struct Sound<'d> {
    /// The session's number.
    pub session: u64,
    /// What to do.
    pub is_encryption: bool,
    /// The IV.
    pub iv: &'d [u8],
    /// The payload.
    pub data: &'d [u8],
}

impl Guest {
    /// A guest that has told nothing yet.
    pub fn new(framework: &Framework) -> Guest {
        let memory = memfd_create("guest", MemfdFlags::CLOEXEC).expect("a file in memory");
        ftruncate(&memory, MEMORY).expect("memory");
        let event = || eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC).expect("eventfd");
        let counters = Arc::<Counters>::default();
        Guest {
            device: Device::new(framework, |work| work(), 8, counters.clone()),
            counters,
            framework: framework.clone(),
            memory: memory.into(),
            kick: event(),
            call: event(),
            next: 0,
        }
    }

    /// Sends any message with some files, which are its memory or eventfds as the message needs
    /// them; the body of the reply, or why it is refused.
    pub fn send(
        &mut self,
        number: u32,
        body: &[u8],
        files: usize,
    ) -> Result<Option<Vec<u8>>, String> {
        let copy = || match number {
            request::SET_MEM_TABLE => self.memory.as_fd().try_clone_to_owned(),
            request::SET_VRING_KICK => self.kick.try_clone(),
            _ => self.call.try_clone(),
        };
        let files: Result<Vec<_>, _> = (0..files).map(|_| copy()).collect();
        self.device.handle(Message {
            header: Header::new(number, true, body.len()),
            body: Zeroizing::new(body.to_vec()),
            files: files.expect("descriptors"),
        })
    }

    /// Says all that a sound front-end says before the first request. Everything of before is
    /// gone then.
    pub fn set_up(&mut self) -> Result<(), String> {
        self.device.reset();
        self.next = 0;
        let _ = self.memory.write_all_at(&[0; 0x1000], 0);
        let words = |words: &[u32]| {
            words
                .iter()
                .flat_map(|w| w.to_ne_bytes())
                .collect::<Vec<_>>()
        };
        let longs = |longs: &[u64]| {
            longs
                .iter()
                .flat_map(|l| l.to_ne_bytes())
                .collect::<Vec<_>>()
        };
        let ring = [DESCRIPTORS, USED, AVAILABLE].map(|part| USER + part);
        for (number, body, files) in [
            (request::SET_OWNER, vec![], 0),
            (
                request::SET_MEM_TABLE,
                longs(&[1, GUEST, MEMORY, USER, 0]),
                1,
            ),
            (request::SET_VRING_NUM, words(&[0, RING.into()]), 0),
            (request::SET_VRING_BASE, words(&[0, 0]), 0),
            (
                request::SET_VRING_ADDR,
                longs(&[0, ring[0], ring[1], ring[2], 0]),
                0,
            ),
            (request::SET_VRING_CALL, longs(&[0]), 1),
            (request::SET_VRING_KICK, longs(&[0]), 1),
        ] {
            self.send(number, &body, files)?;
        }
        Ok(())
    }

    /// Opens a session by a message of QEMU 7.2, or of a newer one; its number, if there is one.
    pub fn open(
        &mut self,
        is_new: bool,
        cipher: u32,
        is_encryption: bool,
        key: &[u8],
    ) -> Option<u64> {
        let body = creation::write(is_new, cipher, is_encryption, key);
        let reply = self.send(request::CREATE_CRYPTO_SESSION, &body, 0).ok()??;
        let number = match is_new {
            true => reply.last_chunk(),
            false => reply.first_chunk(),
        };
        let number = u64::from_ne_bytes(*number?);
        (number != u64::MAX).then_some(number)
    }

    /// Closes a session.
    pub fn close(&mut self, session: u64) {
        let body = session.to_ne_bytes();
        let _ = self.send(request::CLOSE_CRYPTO_SESSION, &body, 0);
    }

    /// Lays a request into memory and makes it available; its place. Those of more than
    /// [`LONGEST`] bytes are cut.
    pub fn put(&mut self, sound: &Sound<'_>) -> u16 {
        let place = self.next % PLACES;
        let at = REQUESTS + u64::from(place) * STRIDE;
        let data = &sound.data[..sound.data.len().min(LONGEST)];
        let operation = Operation {
            session: sound.session,
            direction: match sound.is_encryption {
                true => Direction::Encrypt,
                false => Direction::Decrypt,
            },
            iv_len: sound.iv.len(),
            len: data.len(),
        };
        let output = at + 0x80 + LONGEST as u64;
        self.write(at, &operation.write());
        self.write(at + 72, &sound.iv[..sound.iv.len().min(16)]);
        self.write(at + 0x80, data);
        let status = output + LONGEST as u64;
        self.write(status, &[0xff]);
        self.lay(
            place,
            &[
                (at, 72, false),
                (at + 72, sound.iv.len(), false),
                (at + 0x80, data.len(), false),
                (output, data.len(), true),
                (status, 1, true),
            ],
        )
    }

    /// Writes a chain of parts (where, bytes, whether the device writes it) and makes it available.
    fn lay(&mut self, place: u16, parts: &[(u64, usize, bool)]) -> u16 {
        let head = place * PARTS;
        for (index, &(at, len, is_written)) in (0..).zip(parts) {
            let is_last = usize::from(index) == parts.len() - 1;
            let flags = u16::from(!is_last) | u16::from(is_written) << 1;
            let mut descriptor = [0; 16];
            descriptor[..8].copy_from_slice(&(GUEST + at).to_le_bytes());
            descriptor[8..12].copy_from_slice(&(len as u32).to_le_bytes());
            descriptor[12..14].copy_from_slice(&flags.to_le_bytes());
            descriptor[14..].copy_from_slice(&(head + index + 1).to_le_bytes());
            self.write(self.descriptor(place) + u64::from(index) * 16, &descriptor);
        }
        let entry = AVAILABLE + 4 + 2 * u64::from(self.next % RING);
        self.write(entry, &head.to_le_bytes());
        self.next = self.next.wrapping_add(1);
        self.set_available(self.next);
        place
    }

    /// Lays a chain of the project's own driver into memory and makes it available; its place.
    /// `readable` bytes are in one descriptor and `writable` bytes, without the chain's status, in
    /// another; both are cut to [`LONGEST`].
    pub fn put_private(&mut self, readable: &[u8], writable: usize) -> u16 {
        let place = self.next % PLACES;
        let at = REQUESTS + u64::from(place) * STRIDE;
        let readable = &readable[..readable.len().min(LONGEST)];
        let output = at + 0x80 + LONGEST as u64;
        self.write(at, readable);
        let status = output + LONGEST as u64;
        self.write(output, &[0xee; LONGEST]);
        self.write(status, &[0xff]);
        self.lay(
            place,
            &[
                (at, readable.len(), false),
                (output, writable.min(LONGEST), true),
                (status, 1, true),
            ],
        )
    }

    /// Opens a session of the project's own driver, by a number that the guest chooses; the
    /// status.
    pub fn open_private(&mut self, number: u32, algorithm: u32, key: &[u8], tag_len: u32) -> u8 {
        let words = [number, algorithm, key.len() as u32, tag_len];
        let place = self.put_private(&private::write(2, &words, key), 0);
        self.kick();
        self.result(place, 0).0
    }

    /// Where the descriptors of a request are in memory, 16 bytes each.
    pub fn descriptor(&self, place: u16) -> u64 {
        DESCRIPTORS + u64::from(place * PARTS) * 16
    }

    /// Sets the index up to which requests are available.
    pub fn set_available(&self, index: u16) {
        self.write(AVAILABLE + 2, &index.to_le_bytes());
    }

    /// Says when it wants to be told: once this many requests and one more were given back.
    pub fn set_used_event(&self, index: u16) {
        self.write(AVAILABLE + 4 + 2 * u64::from(RING), &index.to_le_bytes());
    }

    /// Whether it was told of requests since it was asked last.
    pub fn was_told(&self) -> bool {
        rustix::io::read(&self.call, &mut [0; 8]).is_ok()
    }

    /// Writes anything anywhere in memory; what is outside is left out.
    pub fn write(&self, at: u64, bytes: &[u8]) {
        let room = MEMORY.saturating_sub(at).min(bytes.len() as u64);
        let _ = self.memory.write_all_at(&bytes[..room as usize], at);
    }

    /// Tells the device of requests, and has it serve. Each request that was taken was given back
    /// once.
    pub fn kick(&mut self) {
        let _ = rustix::io::write(&self.kick, &1u64.to_ne_bytes());
        let kicked: Vec<usize> = self.device.kicks().map(|(index, _)| index).collect();
        kicked.iter().for_each(|&index| self.device.kicked(index));
        for _ in 0..BATCHES {
            if !self.device.is_pending() {
                return;
            }
            self.device.serve();
        }
    }

    /// The status of a request, 255 before it has one, and its output.
    pub fn result(&self, place: u16, len: usize) -> (u8, Vec<u8>) {
        let output = REQUESTS + u64::from(place) * STRIDE + 0x80 + LONGEST as u64;
        let (mut status, mut bytes) = ([0], vec![0; len.min(LONGEST)]);
        let _ = self.memory.read_exact_at(&mut bytes, output);
        let _ = self
            .memory
            .read_exact_at(&mut status, output + LONGEST as u64);
        (status[0], bytes)
    }

    /// The index of the used ring.
    pub fn used(&self) -> u16 {
        let mut index = [0; 2];
        let _ = self.memory.read_exact_at(&mut index, USED + 2);
        u16::from_le_bytes(index)
    }

    /// What was counted.
    pub fn status(&self) -> Status {
        Status::of(&self.counters, true, &self.framework)
    }
}

#[cfg(test)]
mod private_tests;
#[cfg(test)]
mod tests;
