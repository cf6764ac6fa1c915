//! A virtqueue of the guest: what was told of it, and while it runs, its batches.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use virtio_queue::{Queue, QueueT};
use vm_memory::GuestAddress;

use super::batch::Batch;
use super::counters::Counters;
use super::memory::Memory;
use super::sessions::Sessions;

/// Requests of a ring at most, as virtio has it.
const LONGEST: u32 = 32768;

/// A ring.
pub(crate) struct Ring {
    len: u16,
    /// The index of the request that is taken next, while it does not run.
    base: u16,
    places: Option<Places>,
    kick: Option<OwnedFd>,
    call: Option<OwnedFd>,
    error: Option<OwnedFd>,
    is_enabled: bool,
    /// While it runs.
    queue: Option<Queue>,
    /// Whether there may be requests that nobody will tell of.
    is_pending: bool,
    /// Whether the guest says in the ring when it wants to hear that requests are done.
    says_when: bool,
}

/// Where its parts are.
#[derive(Clone, Copy)]
pub(crate) struct Places {
    pub(crate) descriptors: GuestAddress,
    pub(crate) available: GuestAddress,
    pub(crate) used: GuestAddress,
}

impl Default for Ring {
    fn default() -> Self {
        Ring {
            len: 0,
            base: 0,
            places: None,
            kick: None,
            call: None,
            error: None,
            // QEMU negotiates VHOST_USER_F_PROTOCOL_FEATURES, with which rings begin disabled, and
            // then enables none of a crypto device.
            is_enabled: true,
            queue: None,
            is_pending: false,
            says_when: false,
        }
    }
}

impl Ring {
    /// Its length.
    pub(crate) fn set_len(&mut self, len: u32) -> Result<(), String> {
        self.must_stand()?;
        if !len.is_power_of_two() || len > LONGEST {
            return Err(format!(
                "a ring of {len} requests; a power of two it must be"
            ));
        }
        self.len = len as u16;
        Ok(())
    }

    /// Where it is.
    pub(crate) fn set_places(&mut self, places: Places) -> Result<(), String> {
        self.must_stand()?;
        self.places = Some(places);
        Ok(())
    }

    /// The index of the request that is taken first.
    pub(crate) fn set_base(&mut self, base: u32) -> Result<(), String> {
        self.must_stand()?;
        self.base = u16::try_from(base).map_err(|_| format!("{base} is no index of a ring"))?;
        Ok(())
    }

    fn must_stand(&self) -> Result<(), String> {
        match self.queue {
            None => Ok(()),
            Some(_) => Err("a ring that runs cannot be changed".to_owned()),
        }
    }

    /// What the guest tells of new requests by; with it the ring starts.
    pub(crate) fn start(&mut self, kick: OwnedFd, memory: &Memory) -> Result<(), String> {
        do_not_wait(&kick)?;
        self.kick = Some(kick);
        self.is_pending = true;
        if self.queue.is_some() {
            return Ok(());
        }
        let (Some(places), 1..) = (self.places, self.len) else {
            return Err("a ring whose place or length was not told".to_owned());
        };
        let wrong = |error| format!("a ring cannot be started: {error}");
        let mut queue = Queue::new(self.len).map_err(wrong)?;
        queue
            .try_set_desc_table_address(places.descriptors)
            .and_then(|()| queue.try_set_avail_ring_address(places.available))
            .and_then(|()| queue.try_set_used_ring_address(places.used))
            .map_err(wrong)?;
        queue.set_ready(true);
        // SET_FEATURES does not say whether the guest has negotiated it: what it has not
        // negotiated it does not look at.
        queue.set_event_idx(true);
        if !queue.is_valid(memory.guest()) {
            return Err("a ring that is not in memory".to_owned());
        }
        let used = queue.used_idx(memory.guest(), std::sync::atomic::Ordering::Acquire);
        queue.set_next_avail(self.base);
        queue.set_next_used(used.map_err(wrong)?.0);
        self.says_when = false;
        self.queue = Some(queue);
        Ok(())
    }

    /// Ends it; the index of the request that would have been next.
    pub(crate) fn stop(&mut self) -> u16 {
        if let Some(queue) = self.queue.take() {
            self.base = queue.next_avail();
        }
        self.kick = None;
        self.is_pending = false;
        self.base
    }

    /// What tells the guest that requests are done.
    pub(crate) fn set_call(&mut self, call: Option<OwnedFd>) -> Result<(), String> {
        call.iter().try_for_each(do_not_wait)?;
        self.call = call;
        // The guest may have been told by the one before, and not by this one.
        self.signal();
        Ok(())
    }

    /// What tells the front-end that the ring is of no use any more.
    pub(crate) fn set_error(&mut self, error: Option<OwnedFd>) -> Result<(), String> {
        error.iter().try_for_each(do_not_wait)?;
        self.error = error;
        Ok(())
    }

    /// Lets it rest, or go on.
    pub(crate) fn enable(&mut self, is_enabled: bool) {
        self.is_enabled = is_enabled;
        self.is_pending |= is_enabled;
    }

    /// Whether it runs.
    pub(crate) fn is_running(&self) -> bool {
        self.queue.is_some() && self.is_enabled
    }

    /// What to wait for, where it runs.
    pub(crate) fn kick(&self) -> Option<BorrowedFd<'_>> {
        let kick = self.kick.as_ref().filter(|_| self.is_running());
        kick.map(AsFd::as_fd)
    }

    /// Whether it runs and has work without a kick.
    pub(crate) fn is_pending(&self) -> bool {
        self.is_pending && self.is_running()
    }

    /// Takes note of a kick.
    pub(crate) fn kicked(&mut self, counters: &Counters) -> Result<(), String> {
        let Some(kick) = &self.kick else {
            return Ok(());
        };
        match rustix::io::read(kick, &mut [0; 8]) {
            Ok(8) => {
                counters.kick();
                self.is_pending = true;
                Ok(())
            }
            Err(Errno::AGAIN | Errno::INTR) => Ok(()),
            _ => Err("its kick is no eventfd".to_owned()),
        }
    }

    /// Serves a batch. An error says why the ring cannot be served any more.
    pub(crate) fn serve(
        &mut self,
        memory: &Memory,
        batch: &mut Batch,
        sessions: &mut Sessions,
        counters: &Counters,
    ) -> Result<(), String> {
        let Some(queue) = &mut self.queue else {
            return Ok(());
        };
        let memory = memory.guest();
        let wrong = |error: virtio_queue::Error| match error {
            virtio_queue::Error::InvalidAvailRingIndex => {
                "its index has run backwards, or more than its length ahead".to_owned()
            }
            error => error.to_string(),
        };
        let taken = batch
            .take(queue, memory, sessions, counters)
            .map_err(wrong)?;
        if taken > 0 {
            batch.run(sessions, counters);
            batch
                .complete(queue, memory, sessions, counters)
                .map_err(wrong)?;
        }
        self.is_pending = queue.enable_notification(memory).map_err(wrong)?;
        if let Some(says_when) = batch.says_when() {
            self.says_when = says_when;
        }
        // A guest that has not said so is always told: whether it wants to hear depends on what it
        // has negotiated.
        if taken > 0 && (!self.says_when || queue.needs_notification(memory).map_err(wrong)?) {
            self.signal();
        }
        Ok(())
    }

    /// Tells the guest that requests are done.
    fn signal(&self) {
        if let Some(call) = &self.call {
            // It fails only where so much was told that nobody can have missed it.
            let _ = rustix::io::write(call, &1u64.to_ne_bytes());
        }
    }

    /// Tells the front-end that it has been stopped.
    pub(crate) fn report(&self) {
        if let Some(error) = &self.error {
            let _ = rustix::io::write(error, &1u64.to_ne_bytes());
        }
    }

    /// Whether memory that was told anew still holds it.
    pub(crate) fn is_within(&self, memory: &Memory) -> bool {
        let queue = self.queue.as_ref();
        queue.is_none_or(|queue| queue.is_valid(memory.guest()))
    }
}

/// A descriptor of a stranger must not make this process wait.
fn do_not_wait(file: &OwnedFd) -> Result<(), String> {
    rustix::io::ioctl_fionbio(file, true)
        .map_err(|error| format!("a kick, call or error that is no eventfd: {error}"))
}
