//! Lanes over any way to compress blocks.
//!
//! A message is cut into runs of whole blocks: those of its head, the block
//! where the head meets the data, those of the data, its tail (with the suffix and
//! the padding), and for HMAC the outer block. All lanes are compressed together by as
//! many blocks as the shortest run has; then the lane that is through takes its next
//! run, or the next message. So messages of different lengths keep all lanes busy until
//! the last of them.

use core::array::from_fn;

use super::copy::copy_short;
use super::message::Message;
use crate::job::SUFFIX;
use crate::sha2::hash::Hash;
use crate::wipe::wipe;

/// A compression function over several messages at once.
pub(crate) trait Compress<H: Hash>: Copy {
    /// Compresses `blocks[i]`, whole blocks, into `states[i]`. All have the same length.
    fn compress(self, states: &mut [H::State], blocks: &[&[u8]]);

    /// Clears the registers that the compressions have used.
    fn wipe_registers(self) {}
}

/// Runs all messages through `N` lanes.
pub(crate) fn run<'j, H: Hash, C: Compress<H>, const N: usize>(
    compress: C,
    mut messages: impl Iterator<Item = Message<'j, H>>,
) {
    let mut states = [H::INITIAL; N];
    let mut lanes: [Lane<'j, H>; N] = from_fn(|_| Lane::idle());
    let mut active = 0;
    for message in messages.by_ref().take(N) {
        states[active] = lanes[active].start(message);
        active += 1;
    }
    while active > 0 {
        let lens = lanes[..active].iter().map(|lane| lane.blocks().len());
        let len = lens.min().unwrap_or(0);
        let blocks: [&[u8]; N] = from_fn(|i| lanes[i].blocks().get(..len).unwrap_or_default());
        compress.compress(&mut states[..active], &blocks[..active]);
        for i in (0..active).rev() {
            if lanes[i].advance(len) || lanes[i].next_run(&mut states[i]) {
                continue;
            }
            if let Some(message) = messages.next() {
                states[i] = lanes[i].start(message);
            } else {
                active -= 1;
                if i < active {
                    lanes.swap(i, active);
                    states.swap(i, active);
                }
            }
        }
    }
    wipe(&mut states, [H::ZERO; N]);
    for lane in &mut lanes {
        wipe(&mut lane.made.0, H::NO_BLOCKS);
    }
    compress.wipe_registers();
}

/// What the present run of a lane is part of.
#[derive(Clone, Copy)]
enum Stage {
    Message,
    Tail,
    Outer,
}

/// A message on its way. The present run lies in the message (`run`) or, if
/// `run` is empty, in `made[from..to]`.
struct Lane<'j, H: Hash> {
    stage: Stage,
    outer: Option<&'j H::State>,
    /// What has not yet become a run.
    head: &'j [u8],
    data: &'j [u8],
    suffix: &'j [u8],
    /// Bytes of the whole message, for HMAC with the padded key before it.
    len: u64,
    digest: &'j mut [u8],
    run: &'j [u8],
    from: usize,
    to: usize,
    /// Room for two blocks that do not stand in the message as they are.
    made: Aligned<H::TwoBlocks>,
}

#[repr(align(64))]
struct Aligned<T>(T);

impl<'j, H: Hash> Lane<'j, H> {
    fn idle() -> Self {
        Lane {
            stage: Stage::Outer,
            outer: None,
            head: &[],
            data: &[],
            suffix: &[],
            len: 0,
            digest: &mut [],
            run: &[],
            from: 0,
            to: 0,
            made: Aligned(H::NO_BLOCKS),
        }
    }

    /// Takes a message and gives the state that it starts from.
    #[inline(always)]
    fn start(&mut self, message: Message<'j, H>) -> H::State {
        self.stage = Stage::Message;
        assert!(message.suffix.len() <= SUFFIX, "a suffix of {SUFFIX} bytes");
        self.len = (message.before + message.len()) as u64;
        (self.head, self.data, self.suffix) = (message.head, message.data, message.suffix);
        self.digest = message.digest;
        let (mut state, outer) = match message.states {
            Some((inner, outer)) => (*inner, Some(outer)),
            None => (H::INITIAL, None),
        };
        self.outer = outer;
        self.next_run(&mut state);
        state
    }

    /// What is left of the present run.
    #[inline(always)]
    fn blocks(&self) -> &[u8] {
        if self.run.is_empty() {
            &self.made.0.as_ref()[self.from..self.to]
        } else {
            self.run
        }
    }

    /// Drops the first `len` bytes of the run; false if nothing is left.
    #[inline(always)]
    fn advance(&mut self, len: usize) -> bool {
        if self.run.is_empty() {
            self.from += len;
            self.from < self.to
        } else {
            self.run = &self.run[len..];
            self.from = self.to;
            !self.run.is_empty()
        }
    }

    /// Goes on to the next run; false if the digest is out.
    #[inline(always)]
    fn next_run(&mut self, state: &mut H::State) -> bool {
        match self.stage {
            Stage::Message => self.next_of_message(),
            Stage::Tail => {
                let Some(outer) = self.outer else {
                    return self.finish(state);
                };
                self.make_outer(state);
                *state = *outer;
            }
            Stage::Outer => return self.finish(state),
        }
        true
    }

    #[inline(always)]
    fn next_of_message(&mut self) {
        let pending = self.head.len();
        if pending + self.data.len() < H::BLOCK {
            return self.make_tail();
        }
        if pending == 0 {
            let whole = self.data.len() - self.data.len() % H::BLOCK;
            (self.run, self.data) = self.data.split_at(whole);
        } else if pending >= H::BLOCK {
            let whole = pending - pending % H::BLOCK;
            (self.run, self.head) = self.head.split_at(whole);
        } else {
            let (first, rest) = self.data.split_at(H::BLOCK - pending);
            let made = self.made.0.as_mut();
            made[..pending].copy_from_slice(self.head);
            made[pending..H::BLOCK].copy_from_slice(first);
            (self.head, self.data) = (&[], rest);
            (self.from, self.to) = (0, H::BLOCK);
        }
    }

    /// Padding, FIPS 180-4 section 5.1.
    #[inline(always)]
    fn make_tail(&mut self) {
        let pending = self.head.len();
        let whole = pending + self.data.len();
        let used = whole + self.suffix.len();
        // Two blocks are enough: `whole` is less than one, and the suffix is short.
        let to = if used + 1 + H::LENGTH > H::BLOCK {
            2 * H::BLOCK
        } else {
            H::BLOCK
        };
        self.stage = Stage::Tail;
        (self.from, self.to) = (0, to);
        self.made.0 = H::NO_BLOCKS;
        let made = self.made.0.as_mut();
        copy_short(&mut made[..pending], self.head);
        copy_short(&mut made[pending..whole], self.data);
        copy_short(&mut made[whole..used], self.suffix);
        made[used] = 0x80;
        made[to - 8..to].copy_from_slice(&(8 * self.len).to_be_bytes());
    }

    /// The outer message of HMAC behind its padded key: the inner digest.
    #[inline(always)]
    fn make_outer(&mut self, inner: &H::State) {
        self.stage = Stage::Outer;
        (self.from, self.to) = (0, H::BLOCK);
        let made = &mut self.made.0.as_mut()[..H::BLOCK];
        H::digest(inner, made);
        made[H::DIGEST..].fill(0);
        made[H::DIGEST] = 0x80;
        let bits = 8 * (H::BLOCK + H::DIGEST) as u64;
        made[H::BLOCK - 8..].copy_from_slice(&bits.to_be_bytes());
    }

    #[inline(always)]
    fn finish(&mut self, state: &H::State) -> bool {
        if self.digest.len() == H::DIGEST {
            H::digest(state, self.digest);
        } else {
            let made = &mut self.made.0.as_mut()[..H::DIGEST];
            H::digest(state, made);
            copy_short(self.digest, &made[..self.digest.len()]);
        }
        false
    }
}
