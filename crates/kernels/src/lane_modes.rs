//! ECB and CTR of GOST R 34.13-2015 over ciphers that encrypt many blocks at once, each
//! under a key of its own: the blocks of all jobs are put into lanes one after the
//! other, so a short job does not pay for a whole set.

use core::iter::repeat_n;

use arrayvec::ArrayVec;
use inout::InOutBuf;

use crate::job::{CipherJob, Direction};
use crate::key_stream::xor;
use crate::stretch::stretch;
use crate::wipe::wipe_slice;

/// Blocks put side by side at a time: whole sets of every kernel.
pub(crate) const LANES: usize = 192;

/// The expanded key of a cipher with blocks of `N` bytes.
pub(crate) trait LaneCipher<const N: usize>: Sized {
    /// What an implementation keeps from one call to the next, as long as the keys it
    /// was given live.
    type KeyCache: Default;

    /// Encrypts or decrypts each block under the key of the same place.
    fn crypt(cache: &mut Self::KeyCache, dir: Direction, keys: &[&Self], blocks: &mut [[u8; N]]);
}

/// Blocks on their way through the lanes. Only as many are touched as the jobs have.
pub(crate) struct Lanes<'a, K: LaneCipher<N>, const N: usize> {
    /// Of the blocks that were pushed.
    keys: ArrayVec<&'a K, LANES>,
    /// Those blocks, and behind them others that were there before.
    blocks: ArrayVec<[u8; N], LANES>,
    cache: K::KeyCache,
}

impl<'a, K: LaneCipher<N>, const N: usize> Lanes<'a, K, N> {
    #[inline(always)]
    pub(crate) fn new() -> Self {
        Lanes {
            keys: ArrayVec::new(),
            blocks: ArrayVec::new(),
            cache: K::KeyCache::default(),
        }
    }

    pub(crate) fn room(&self) -> usize {
        LANES - self.keys.len()
    }

    /// The next `count` blocks, to be filled.
    pub(crate) fn push(&mut self, key: &'a K, count: usize) -> &mut [[u8; N]] {
        let start = self.keys.len();
        self.keys.extend(repeat_n(key, count));
        let fresh = self.keys.len().saturating_sub(self.blocks.len());
        self.blocks.extend(repeat_n([0; N], fresh));
        &mut self.blocks[start..][..count]
    }

    /// Encrypts or decrypts what was pushed, gives it and is empty again.
    pub(crate) fn run(&mut self, dir: Direction) -> &[[u8; N]] {
        let blocks = &mut self.blocks[..self.keys.len()];
        K::crypt(&mut self.cache, dir, &self.keys, blocks);
        self.keys.clear();
        blocks
    }
}

impl<K: LaneCipher<N>, const N: usize> Drop for Lanes<'_, K, N> {
    fn drop(&mut self) {
        wipe_slice(self.blocks.as_flattened_mut());
    }
}

/// A place in the row of all blocks of all jobs.
#[derive(Clone, Copy, Default)]
pub(crate) struct Place {
    pub(crate) job: usize,
    pub(crate) block: usize,
}

impl Place {
    /// Moves over at most `most` of the blocks of the present job, which has `blocks`,
    /// and says how many.
    #[inline(always)]
    pub(crate) fn step(&mut self, most: usize, blocks: usize) -> usize {
        let count = most.min(blocks - self.block);
        self.block += count;
        if self.block == blocks {
            *self = Place {
                job: self.job + 1,
                block: 0,
            };
        }
        count
    }
}

/// Fills lanes from all jobs, and gives the results back to them.
#[inline(always)]
fn stream<K: LaneCipher<N>, const N: usize>(
    dir: Direction,
    jobs: &mut [CipherJob<'_, K>],
    mut fill: impl FnMut(&mut [u8; 16], InOutBuf<'_, '_, u8>, &mut [[u8; N]]),
    mut drain: impl FnMut(InOutBuf<'_, '_, u8>, &[[u8; N]]),
) {
    let mut lanes = Lanes::new();
    let (mut filled, mut drained) = (Place::default(), Place::default());
    while filled.job < jobs.len() {
        while lanes.room() > 0 && filled.job < jobs.len() {
            let CipherJob { key, iv, data } = &mut jobs[filled.job];
            let start = filled.block * N;
            let count = filled.step(lanes.room(), data.len().div_ceil(N));
            fill(iv, stretch(data, start, count * N), lanes.push(*key, count));
        }
        let mut blocks = lanes.run(dir);
        while !blocks.is_empty() {
            let data = &mut jobs[drained.job].data;
            let start = drained.block * N;
            let count = drained.step(blocks.len(), data.len().div_ceil(N));
            let (own, others) = blocks.split_at(count);
            blocks = others;
            drain(stretch(data, start, count * N), own);
        }
    }
}

/// Every job's blocks by themselves. Panics if one is not a whole number of blocks.
pub(crate) fn ecb<K: LaneCipher<N>, const N: usize>(dir: Direction, jobs: &mut [CipherJob<'_, K>]) {
    for job in jobs.iter() {
        let len = job.data.len();
        assert!(len.is_multiple_of(N), "{len} bytes are not whole blocks");
    }
    stream(
        dir,
        jobs,
        |_, data, blocks| blocks.as_flattened_mut().copy_from_slice(data.get_in()),
        |mut data, blocks| data.get_out().copy_from_slice(blocks.as_flattened()),
    );
}

/// A key stream from a counter block of `N` bytes, all of it a number that wraps.
pub(crate) fn ctr<K: LaneCipher<N>, const N: usize>(jobs: &mut [CipherJob<'_, K>]) {
    stream(
        Direction::Encrypt,
        jobs,
        |iv, _, blocks| {
            let (counter, _) = iv.split_first_chunk_mut().expect("N is 16 at most");
            count(counter, blocks);
        },
        |data, blocks| xor(data, blocks.as_flattened()),
    );
}

/// Counter blocks from one on, which is left at the next.
#[inline(always)]
fn count<const N: usize>(counter: &mut [u8; N], blocks: &mut [[u8; N]]) {
    // The last eight bytes count in a register, and carry rarely.
    let (head, tail) = counter.split_at_mut(N - 8);
    let mut low = u64::from_be_bytes(tail.as_ref().try_into().expect("8 bytes"));
    for block in blocks {
        block[..N - 8].copy_from_slice(head);
        block[N - 8..].copy_from_slice(&low.to_be_bytes());
        low = low.wrapping_add(1);
        if low == 0 {
            carry(head);
        }
    }
    tail.copy_from_slice(&low.to_be_bytes());
}

#[cold]
fn carry(head: &mut [u8]) {
    for byte in head.iter_mut().rev() {
        *byte = byte.wrapping_add(1);
        if *byte != 0 {
            break;
        }
    }
}

#[cfg(test)]
mod tests;
