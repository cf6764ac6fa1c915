//! A device without the file behind it: from a message to its reply.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use cipherlane_core::Framework;
use cipherlane_drivers::cryptodev::header::CIOCGSESSION;
use rustix::event::PollFlags;
use rustix::io::Errno;
use zeroize::Zeroize;

use super::KeepKeys;
use super::counters::{Counters, Refusal};
use super::files::{Files, Limits};
use super::ioctl::{Outcome, Service};
use super::wire::{Body, Ioctl, Message, Reply};

/// Answers messages, by any number of threads at once.
pub(crate) struct Device {
    files: Files,
    counters: Arc<Counters>,
    is_accelerator: bool,
}

impl Device {
    pub(crate) fn new(
        framework: &Framework,
        keep_keys: KeepKeys,
        limits: Limits,
        is_accelerator: bool,
        counters: Arc<Counters>,
    ) -> Device {
        Device {
            files: Files::new(framework, keep_keys, limits),
            counters,
            is_accelerator,
        }
    }

    /// The reply to a message, in whose memory the payload is encrypted in place; `None`: there is
    /// none to be written.
    pub(crate) fn answer(&self, bytes: &mut [u8]) -> Option<Reply> {
        self.counters.messages.fetch_add(1, Relaxed);
        let Message { unique, body } = Message::read(bytes)?;
        Some(match body {
            Body::Open => match self.files.open(&self.counters) {
                Ok(file) => Reply::opened(unique, file),
                Err(refusal) => self.refuse(unique, refusal),
            },
            Body::Release { file } => {
                self.files.close(file, &self.counters);
                Reply::done(unique)
            }
            Body::Ioctl(ioctl) => self.ioctl(unique, &ioctl, bytes),
            // A request is done when its call returns: there is nothing to wait for.
            Body::Poll { events } => {
                let ready = PollFlags::OUT | PollFlags::WRNORM;
                Reply::polled(unique, events & u32::from(ready.bits()))
            }
            Body::Interrupt => return None,
            Body::Malformed => self.refuse(unique, Refusal::Malformed),
            Body::Init { .. } | Body::Other => Reply::error(unique, Errno::NOSYS),
        })
    }

    fn refuse(&self, unique: u64, refusal: Refusal) -> Reply {
        self.counters.refused(refusal);
        Reply::error(unique, refusal.errno())
    }

    fn ioctl(&self, unique: u64, ioctl: &Ioctl, bytes: &mut [u8]) -> Reply {
        let Some(file) = self.files.find(ioctl.file) else {
            return Reply::error(unique, Errno::BADF);
        };
        let service = Service {
            files: &self.files,
            counters: &self.counters,
            is_accelerator: self.is_accelerator,
        };
        let ran = service.run(&file, ioctl, bytes);
        // Keys, and what is not authentic, are not left for the next message to overwrite.
        if ran.is_err() || ioctl.command == CIOCGSESSION {
            bytes.zeroize();
        }
        match ran {
            Ok(Outcome::Again(input, output)) => Reply::again(unique, &input, &output),
            Ok(Outcome::Done(payload, tail)) => Reply::ioctl(unique, payload, tail),
            Err(refusal) => self.refuse(unique, refusal),
        }
    }

    /// Closes all files, and wipes their keys.
    pub(crate) fn close_all(&self) {
        self.files.close_all(&self.counters);
    }
}
