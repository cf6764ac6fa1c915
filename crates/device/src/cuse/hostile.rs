//! Everything but the kernel, for the fuzz target and for tests: a program with memory of its own,
//! and the way in which the kernel carries its ioctls.

use std::sync::Arc;

use cipherlane_core::Framework;

use super::counters::Counters;
use super::device::Device;
use super::files::Limits;
use super::status::Status;
use super::wire::{MAX_DATA, Region, kernel};

/// Bytes of the program's memory, which begins at [`BASE`].
pub const MEMORY: usize = 64 << 10;

/// Where the program's memory is for the program.
pub const BASE: usize = 0x10_0000;

/// Questions of the kernel for an ioctl at most; a sound device needs three.
const QUESTIONS: usize = 8;

/// A program that has the device open, and the kernel between them.
pub struct Program {
    device: Device,
    counters: Arc<Counters>,
    framework: Framework,
    memory: Vec<u8>,
    file: u64,
}

impl Program {
    /// A program that has opened the device once.
    pub fn new(framework: &Framework) -> Program {
        let counters = Arc::<Counters>::default();
        let limits = Limits {
            files: 4,
            sessions: 8,
        };
        let device = Device::new(framework, |work| work(), limits, false, counters.clone());
        let mut program = Program {
            device,
            counters,
            framework: framework.clone(),
            memory: vec![0; MEMORY],
            file: 0,
        };
        program.reopen();
        program
    }

    /// Gives the device any message; the reply, if there is one.
    pub fn message(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let mut bytes = bytes.to_vec();
        let mut reply = self.device.answer(&mut bytes)?;
        Some(reply.parts(&bytes).concat())
    }

    /// Closes the file and opens the device again.
    pub fn reopen(&mut self) {
        let _ = self.message(&kernel::release(self.file));
        let reply = self.message(&kernel::open());
        self.file = reply
            .and_then(|reply| kernel::opened(&reply))
            .unwrap_or_default();
    }

    /// Closes all files, those that messages have opened too, and opens the device again.
    pub fn close_others(&mut self) {
        self.device.close_all();
        self.reopen();
    }

    /// Writes to the program's memory; what is outside is left out.
    pub fn write(&mut self, at: usize, bytes: &[u8]) {
        let at = at.min(MEMORY);
        let len = bytes.len().min(MEMORY - at);
        self.memory[at..at + len].copy_from_slice(&bytes[..len]);
    }

    /// Reads the program's memory.
    pub fn read(&self, at: usize, len: usize) -> Vec<u8> {
        let memory = self.memory.get(at..).unwrap_or_default();
        memory[..len.min(memory.len())].to_vec()
    }

    /// Carries an ioctl as `fuse_do_ioctl` of Linux does; the error's number if it has one.
    /// `between` is what the program does with its own memory after each question.
    ///
    /// # Panics
    /// If the device breaks the protocol: a reply that the kernel would not take, or questions
    /// without end.
    pub fn ioctl(
        &mut self,
        command: u32,
        argument: usize,
        mut between: impl FnMut(&mut Program),
    ) -> Result<(), i32> {
        let (mut input, mut output) = (Vec::new(), Vec::new());
        for _ in 0..QUESTIONS {
            let data = self.gather(&input)?;
            let room = output.iter().map(|region: &Region| region.len).sum::<u64>() as u32;
            let question = kernel::ioctl(self.file, command, argument as u64, &data, room);
            let reply = self.message(&question).expect("an ioctl is answered");
            match kernel::answer(&reply).expect("a reply that the kernel takes") {
                kernel::Answer::Error(error) => return Err(error),
                kernel::Answer::Done(bytes) => return self.scatter(&output, &bytes),
                kernel::Answer::Again(next_input, next_output) => {
                    let total = |regions: &[Region]| -> u64 {
                        regions.iter().map(|region| region.len).sum()
                    };
                    assert!(
                        total(&next_input) <= MAX_DATA as u64
                            && total(&next_output) <= MAX_DATA as u64
                    );
                    (input, output) = (next_input, next_output);
                }
            }
            between(self);
        }
        panic!("the device asks without end");
    }

    /// Where a region is in the memory; that of nobody is an error (EFAULT).
    fn place(region: &Region) -> Result<std::ops::Range<usize>, i32> {
        if region.len == 0 {
            return Ok(0..0);
        }
        let start = (region.base as usize).checked_sub(BASE).ok_or(14)?;
        let end = start.checked_add(region.len as usize).ok_or(14)?;
        match end <= MEMORY {
            true => Ok(start..end),
            false => Err(14),
        }
    }

    fn gather(&self, regions: &[Region]) -> Result<Vec<u8>, i32> {
        let mut bytes = Vec::new();
        for region in regions {
            bytes.extend_from_slice(&self.memory[Program::place(region)?]);
        }
        Ok(bytes)
    }

    fn scatter(&mut self, regions: &[Region], mut bytes: &[u8]) -> Result<(), i32> {
        for region in regions {
            let place = Program::place(region)?;
            let (front, rest) = bytes.split_at(place.len().min(bytes.len()));
            self.memory[place][..front.len()].copy_from_slice(front);
            bytes = rest;
        }
        assert!(bytes.is_empty(), "more bytes than there is room for");
        Ok(())
    }

    /// What was counted.
    pub fn status(&self) -> Status {
        Status::of(&self.counters, "/dev/crypto", &self.framework)
    }
}

#[cfg(test)]
mod tests;
