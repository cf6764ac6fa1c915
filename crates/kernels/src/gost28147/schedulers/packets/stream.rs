//! The key stream of a chunk of every packet of a window.
//!
//! The blocks of a packet that go through the rounds together stand together, so that neither
//! counters nor key stream are moved between packets and lanes.

use core::array;

use inout::InOutBuf;

use crate::gost28147::engine::{Beside, Block, CHUNK, STREAMED};
use crate::gost28147::packet_job::PacketJob;
use crate::gost28147::schedulers::cnt::fill;

/// Packets of a window.
pub(super) const MOST: usize = 16;

/// Blocks of a chunk.
pub(super) const EACH: usize = CHUNK / 8;

/// Bytes of key stream that a lane beside those of MACs gives for a chunk.
const PART: usize = 8 * STREAMED;

/// Parts of the key stream of a chunk.
pub(super) const PARTS: usize = EACH / STREAMED;

/// The key stream of a chunk of each packet; before that, its counters.
pub(super) struct Stream {
    /// The parts of a chunk: the first one of each slot, then the second one.
    pub(super) parts: [[u8; PART]; PARTS * MOST],
    slots: usize,
}

impl Stream {
    pub(super) const fn new() -> Self {
        Stream {
            parts: [[0; PART]; PARTS * MOST],
            slots: 0,
        }
    }

    /// Makes the counters of a chunk.
    #[inline(always)]
    pub(super) fn count(&mut self, slots: usize, counters: &mut [Block]) {
        self.slots = slots;
        for (p, counter) in counters.iter_mut().enumerate() {
            let mut blocks = [[0; 8]; EACH];
            fill(&mut blocks, counter);
            for (part, blocks) in blocks.as_chunks::<STREAMED>().0.iter().enumerate() {
                self.parts[part * slots + p].copy_from_slice(blocks.as_flattened());
            }
        }
    }

    /// Adds the key stream to a chunk of every packet.
    #[inline(always)]
    pub(super) fn xor<E: Beside>(
        &self,
        engine: E,
        window: &mut [&mut PacketJob<'_>],
        chunk: usize,
    ) {
        for (p, job) in window.iter_mut().enumerate() {
            let Some(data) = job.content.get_mut(job.head + CHUNK * chunk..) else {
                continue;
            };
            let [front, back] = [0, 1].map(|part| &self.parts[part * self.slots + p]);
            if let Some(data) = data.first_chunk_mut::<CHUNK>() {
                let (parts, _) = data.as_chunks_mut::<PART>();
                for (data, stream) in parts.iter_mut().zip([front, back]) {
                    *data = array::from_fn(|i| data[i] ^ stream[i]);
                }
                continue;
            }
            for (data, stream) in data.chunks_mut(PART).zip([front, back]) {
                let len = data.len();
                engine.xor(InOutBuf::from(data), &stream[..len]);
            }
        }
    }
}
