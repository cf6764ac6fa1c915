//! Memory of one worker: a chunk, with room before it for the block that precedes and after
//! it for padding.

use zeroize::Zeroize;

use super::cipher::BLOCK;

/// Payload starts on a cache line: vector loads that cross one cost twice.
const LINE: usize = 64;

/// Room for one chunk. Wiped when dropped: it holds plaintext.
pub(super) struct Buffer {
    memory: Vec<u8>,
    /// Where the payload begins.
    start: usize,
}

impl Buffer {
    /// For chunks of `chunk` bytes.
    pub(super) fn new(chunk: usize) -> Self {
        let memory = vec![0; 2 * LINE + chunk + BLOCK];
        let start = LINE + memory[LINE..].as_ptr().align_offset(LINE).min(LINE);
        Buffer { memory, start }
    }

    /// `lead` bytes before the payload, and `len` from its start.
    pub(super) fn from_before(&mut self, lead: usize, len: usize) -> &mut [u8] {
        &mut self.memory[self.start - lead..self.start + len]
    }

    /// The first `len` bytes of the payload.
    pub(super) fn payload(&mut self, len: usize) -> &mut [u8] {
        self.from_before(0, len)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.memory.zeroize();
    }
}
