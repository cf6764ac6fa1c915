//! Messages of a batch whose nonces are alike: two rounds of AES less for each of their blocks.
//!
//! Round one of AES puts bytes 0, 5, 10 and 15 of a block into one column, and round two is a sum of
//! what each column gives (see [`windows`](super::windows)). Of nonces that have the same bytes 0, 5 and
//! 10 the state of a block after two rounds is a sum of what the last byte of its counter gives, which is
//! computed once for all of them, and of what the rest of its nonce gives, once for each. That is so for
//! the packets of an ESP SA (RFC 4106, a salt and a number of eight bytes that counts packets), and for
//! the records of a connection by TLS, except where the last byte of that number begins again.

use super::Kernels;
use super::end::Counting;
use super::lane::Lane;
use super::long::{Blocks, message};
use super::rounds::{Counters, FIRST, RoundKeys, WIDTH, chunk_blocks, count, round};
use super::short::is_short;
use super::sums::{Across, Differences, Sums};
use super::windows::{self, two_rounds};
use crate::aes::key::Block;
use crate::gcm::key::GcmKey;
use crate::job::AeadJob;
use crate::x86_64::states::{States, WINDOW, keep};

/// Messages from which on this pays.
const ENOUGH: usize = 4;

/// Bytes of the longest message all of whose blocks have counters below 256.
const BELOW: usize = 16 * (WINDOW - FIRST);

/// Bytes of the shortest message of more blocks: one that ends inside the last chunk of the window has
/// counters that differ by two values there, and [`Sums`] have one.
const ACROSS: usize = 16 * WINDOW;

impl<V: Kernels> Blocks<V> for Sums<V> {
    #[inline(always)]
    fn rest(self) -> Counting<V> {
        Counting::Kept(self)
    }
}

impl<V: Kernels> Blocks<V> for Across<V> {
    #[inline(always)]
    fn rest(self) -> Counting<V> {
        Counting::Kept(self.sums())
    }
}

/// How many of the first jobs are alike, and how many blocks the longest of them has; `None` if they
/// are too few.
#[inline(always)]
pub(super) fn find<V: Lane>(jobs: &[AeadJob<'_, GcmKey>]) -> Option<(usize, usize)> {
    let first = jobs.first().filter(|_| jobs.len() >= ENOUGH)?;
    let (mut count, mut longest) = (0, 0);
    for job in jobs {
        let differ = [0, 5, 10].map(|i| job.iv[i] ^ first.iv[i]);
        if differ[0] | differ[1] | differ[2] != 0 || !core::ptr::eq(job.key, first.key) {
            break;
        }
        let len = job.data.len();
        // Behind the first chunk, which does not count, longer ones keep states of their own.
        let own = windows::ENOUGH + WIDTH * V::BYTES;
        if is_short::<V>(job) || len > BELOW && !(ACROSS..own).contains(&len) {
            break;
        }
        count += 1;
        longest = longest.max(len);
    }
    (count >= ENOUGH).then_some((count, longest.div_ceil(16)))
}

/// Jobs that [`find`] has found alike.
#[inline(always)]
pub(super) unsafe fn alike<V: Kernels, const SEAL: bool>(
    jobs: &mut [AeadJob<'_, GcmKey>],
    longest: usize,
) {
    let Some(first) = jobs.first() else {
        return;
    };
    let (key, first) = (first.key, first.iv);
    // With a lane for J0.
    let chunks = (longest + 1).min(WINDOW).div_ceil(chunk_blocks::<V>());
    let mut room = States::new();
    let states = room.start::<V>();
    // SAFETY: the caller enables the instructions of `V`. There is room for a window, which has all
    // blocks of a message and a lane more, or is whole.
    unsafe {
        let nonce = V::nonce(&first);
        let mut counters = Counters::of(nonce, &key.aes);
        for i in 0..chunks {
            let mut keys = RoundKeys::of(&key.aes);
            let mut state = counters.first_round(&mut keys);
            round(&mut state, &mut keys, 1);
            round(&mut state, &mut keys, 2);
            keep(&state, states.add(i * WIDTH));
        }
        let before = two_rounds(key, nonce);
        let j0 = two_rounds(key, nonce.add32(count(1)));
        // Computed one message ahead, so that no message waits for it. That of the first is zero.
        let mut following = V::zero();
        let mut jobs = jobs.iter_mut().peekable();
        while let Some(job) = jobs.next() {
            let nonce = following;
            if let Some(next) = jobs.peek() {
                following = two_rounds(key, V::nonce(&next.iv)).xor(before);
            }
            if job.data.len() <= BELOW {
                message::<V, _, SEAL>(job, Sums::new(states, nonce), j0.xor(nonce));
            } else {
                V::across::<SEAL>(job, states, &first);
            }
        }
    }
}

/// A message of a window or more by the states of another, whose nonce is `first`.
#[inline(always)]
pub(super) unsafe fn across<V: Kernels, const SEAL: bool>(
    job: &mut AeadJob<'_, GcmKey>,
    states: *const V,
    first: &Block,
) {
    let key = job.key;
    // SAFETY: the caller enables the instructions of `V`, and gives the states of a window.
    unsafe {
        let (first, nonce) = (V::nonce(first), V::nonce(&job.iv));
        let window = count(WINDOW as u32);
        let (states_below, below) = (two_rounds(key, first), two_rounds(key, nonce));
        let states_above = two_rounds(key, first.add32(window));
        let above = two_rounds(key, nonce.add32(window));
        let differences = Differences {
            below: below.xor(states_below),
            above: above.xor(states_above),
            behind: above.xor(states_below),
        };
        let j0 = two_rounds(key, nonce.add32(count(1)));
        message::<V, _, SEAL>(job, Across::new(states, differences), j0);
    }
}
