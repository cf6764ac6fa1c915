//! The anti-replay window (RFC 4303, section 3.4.3 and appendix A), without a lock.
//!
//! | file | idea |
//! |---|---|
//! | `number` | the upper half of an extended sequence number, inferred |
//! | `ring` | blocks of 32 numbers, each a word with its own tag |
//! | `models` | loom models of both |
//!
//! # How it works
//! [`Window::check`] is a filter before decryption, and [`Window::commit`] decides after
//! authentication. Two copies of a packet may both pass the check; one commit wins.
//!
//! A word of the ring holds the number of a block in its upper half and in its lower half
//! a bit for each of the block's 32 numbers. A commit is one compare-and-swap of that
//! word: in a word of the same block it sets its bits; a word of an older block it
//! replaces, which clears and marks in one step, however far the jump; before a word of a
//! newer block it gives up, for then its number has left the window. So a number is
//! accepted only by a swap that sets its bit under its own block, and from then on its bit
//! or a newer block is there: nothing is accepted twice, whatever the threads do between
//! their steps. A thread that slept between check and commit is refused.
//!
//! The highest number accepted only says how old is too old, and from which number the
//! upper half of the next is inferred. All threads read a line for it for each packet, so it
//! is written once per block: it holds a number of the newest block, and the block's word
//! tells the highest, to those few numbers that are so old that it matters. A thread that
//! sees an old value is merely more lenient. Hence relaxed orderings suffice: all that has
//! to be agreed upon is the order of the changes of one word.
//!
//! A block's word is compared with what is to be written by the wrapping difference of 32
//! bits, so a place in the ring that no number touched for 2³⁶ numbers refuses the next.
//! The width must exceed the threads times the packets that each holds between check and
//! commit, plus the reordering of the network.

#[cfg(all(test, loom))]
mod models;
mod number;
mod ring;
#[cfg(all(test, not(loom)))]
mod tests;

use crate::sync::{AtomicU64, Line, Ordering};
use crate::{Error, Refusal};
use ring::{Ring, bit_of, block_of, last_of};

/// Which sequence numbers were accepted, for one inbound security association and any
/// number of threads.
pub struct Window {
    /// A number of the newest block, accepted; where replays are not looked for the highest
    /// number.
    newest: Line<AtomicU64>,
    /// Numbers that can be told apart; 2³¹ where replays are not looked for.
    width: u32,
    /// Absent where replays are not looked for.
    ring: Option<Ring>,
}

impl Window {
    /// The narrowest window (RFC 4303, section 3.4.3).
    pub const MIN_WIDTH: u32 = 32;
    /// The widest.
    pub const MAX_WIDTH: u32 = 65_536;

    /// A window of `width` numbers, of which none was seen. It takes 64 bytes, and 8 bytes
    /// for each 32 numbers of the next power of two above the width.
    pub fn new(width: u32) -> Result<Self, Error> {
        Self::after(0, width)
    }

    /// A window of `width` numbers for an association that goes on after `top`: all numbers
    /// up to it count as received.
    pub fn after(top: u64, width: u32) -> Result<Self, Error> {
        if !(Self::MIN_WIDTH..=Self::MAX_WIDTH).contains(&width) {
            return Err(Error::ReplayWindow { given: width });
        }
        Ok(Window {
            newest: Line(AtomicU64::new(top)),
            width,
            ring: Some(Ring::after(top, width)),
        })
    }

    /// No window: every number is accepted any number of times, and only the highest is
    /// kept, as extended sequence numbers need it. Associations with manual keys whose
    /// sender starts again at 1 work only so. `top` is the highest number received already.
    pub fn off(top: u64) -> Self {
        Window {
            newest: Line(AtomicU64::new(top)),
            width: 1 << 31,
            ring: None,
        }
    }

    /// Numbers that the window spans; `None` where it is off.
    pub fn width(&self) -> Option<u32> {
        self.ring.as_ref().map(|_| self.width)
    }

    /// The highest number accepted; 0 before the first.
    #[cold]
    pub fn top(&self) -> u64 {
        let newest = self.newest();
        match &self.ring {
            Some(ring) => ring.highest(block_of(newest)).unwrap_or(newest),
            None => newest,
        }
    }

    #[inline]
    fn newest(&self) -> u64 {
        self.newest.0.load(Ordering::Relaxed)
    }

    /// Whether it matters for `number` which one of the newest block is the highest.
    #[inline]
    fn is_near_the_end(&self, newest: u64, number: u64) -> bool {
        self.is_too_old(last_of(newest), number)
    }

    /// The whole number whose lower half came with a packet, by the rule of RFC 4303,
    /// appendix A, from one load of the top, checked against the same. The number goes into
    /// the integrity check and then to [`Window::commit`], and is not inferred again:
    /// meanwhile the top may have moved on.
    #[inline]
    pub fn infer(&self, low: u32) -> Result<u64, Refusal> {
        let newest = self.newest();
        match number::infer(newest, low, self.width) {
            Some(number) if !self.is_near_the_end(newest, number) => {
                self.check_ring(number)?;
                Ok(number)
            }
            _ => self.infer_near_the_end(low),
        }
    }

    #[cold]
    #[inline(never)]
    fn infer_near_the_end(&self, low: u32) -> Result<u64, Refusal> {
        let top = self.top();
        let number = number::infer(top, low, self.width).ok_or(Refusal::TooOld)?;
        self.check_against(top, number)?;
        Ok(number)
    }

    /// Whether `number` can still be accepted. A filter: only [`Window::commit`] decides.
    #[inline]
    pub fn check(&self, number: u64) -> Result<(), Refusal> {
        match self.is_near_the_end(self.newest(), number) {
            true => self.check_against(self.top(), number),
            false => self.check_ring(number),
        }
    }

    #[cold]
    #[inline(never)]
    fn check_against(&self, top: u64, number: u64) -> Result<(), Refusal> {
        match self.ring.is_some() && self.is_too_old(top, number) {
            true => Err(Refusal::TooOld),
            false => self.check_ring(number),
        }
    }

    #[inline]
    fn check_ring(&self, number: u64) -> Result<(), Refusal> {
        match &self.ring {
            Some(ring) => ring.check(number),
            None => Ok(()),
        }
    }

    #[inline]
    fn is_too_old(&self, top: u64, number: u64) -> bool {
        top.saturating_sub(number) >= u64::from(self.width)
    }

    /// Accepts `number`, whose packet is authentic, unless it was accepted before.
    #[inline]
    pub fn commit(&self, number: u64) -> Result<(), Refusal> {
        let mut result = [Ok(())];
        self.commit_batch(&[number], &mut result);
        result[0]
    }

    /// Does the same for several numbers at once, and leaves an answer a number in
    /// `results`; numbers or answers that have no partner are left alone. Neighbours cost
    /// one swap for each block of 32 that they touch: two or three for a multipacket of 64.
    pub fn commit_batch(&self, numbers: &[u64], results: &mut [Result<(), Refusal>]) {
        let count = numbers.len().min(results.len());
        let (mut numbers, mut results) = (&numbers[..count], &mut results[..count]);
        let newest = self.newest();
        let top = match numbers.iter().any(|&n| self.is_near_the_end(newest, n)) {
            true => self.top(),
            false => newest,
        };
        let mut highest = top;
        while let Some(&first) = numbers.first() {
            let block = block_of(first);
            let run = numbers.iter().take_while(|&&n| block_of(n) == block);
            let run = run.count();
            let (these, rest) = numbers.split_at(run);
            let (answers, rest_of_results) = std::mem::take(&mut results).split_at_mut(run);
            if let Some(accepted) = self.commit_block(top, block, these, answers) {
                highest = highest.max(accepted);
            }
            (numbers, results) = (rest, rest_of_results);
        }
        let is_newer = match self.ring {
            Some(_) => block_of(highest) > block_of(newest),
            None => highest > newest,
        };
        if is_newer {
            self.newest.0.fetch_max(highest, Ordering::Relaxed);
        }
    }

    /// Commits numbers of one block; the highest of those accepted.
    #[inline]
    fn commit_block(
        &self,
        top: u64,
        block: u64,
        numbers: &[u64],
        results: &mut [Result<(), Refusal>],
    ) -> Option<u64> {
        let Some(ring) = &self.ring else {
            results.fill(Ok(()));
            return numbers.iter().copied().max();
        };
        let mut bits = 0;
        for (&number, result) in numbers.iter().zip(&mut *results) {
            let bit = bit_of(number);
            *result = if self.is_too_old(top, number) {
                Err(Refusal::TooOld)
            } else if bits & bit != 0 {
                Err(Refusal::Replayed)
            } else {
                bits |= bit;
                Ok(())
            };
        }
        if bits == 0 {
            return None;
        }
        let answer = ring.commit(block, bits);
        let mut highest = None;
        for (&number, result) in numbers.iter().zip(results).filter(|(_, r)| r.is_ok()) {
            match answer {
                Err(refusal) => *result = Err(refusal),
                Ok(fresh) if fresh & bit_of(number) == 0 => *result = Err(Refusal::Replayed),
                Ok(_) => highest = highest.max(Some(number)),
            }
        }
        highest
    }

    /// Numbers that fell out of the window without having been accepted: packets that the
    /// network lost, delivered too late, or damaged. 0 where the window is off. Exact while
    /// nobody commits, near otherwise.
    pub fn lost(&self) -> u64 {
        let settled = self.top().checked_sub(u64::from(self.width));
        match (&self.ring, settled) {
            (Some(ring), Some(settled)) => ring.lost(settled),
            _ => 0,
        }
    }
}

impl std::fmt::Debug for Window {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Window")
            .field("top", &self.top())
            .field("width", &self.width())
            .finish()
    }
}
