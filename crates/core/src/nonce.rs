//! Nonces that never come twice.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::{Error, Process};

/// Counts the nonces of one key: 4 bytes that stay and a 64-bit number, the deterministic
/// construction of NIST SP 800-38D section 8.2.1, for AEADs with nonces of 12 bytes (`gcm(aes)`,
/// `rfc7539(chacha20,poly1305)`). Threads share a counter by reference.
///
/// It gives each number once, and refuses when all have been given. A forked child has a copy
/// of its parent's counter, and is refused too.
///
/// What it cannot know is what another counter gives: make one counter per key, with different
/// first bytes where several senders share a key, and never two for a key that outlives the
/// process, unless the second [begins](Self::beginning_at) behind what the first has
/// [given](Self::given).
///
/// ```
/// let nonces = cipherlane::NonceCounter::new([0; 4]);
/// assert_eq!(nonces.next()?, [0; 12]);
/// assert_eq!(nonces.next()?, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
/// # Ok::<(), cipherlane::Error>(())
/// ```
#[derive(Debug)]
pub struct NonceCounter {
    fixed: [u8; 4],
    next: AtomicU64,
    owner: Process,
}

impl NonceCounter {
    /// Begins with number 0 behind these bytes.
    pub fn new(fixed: [u8; 4]) -> Self {
        Self::beginning_at(fixed, 0)
    }

    /// Begins with another number: the first that was not given before.
    pub fn beginning_at(fixed: [u8; 4], number: u64) -> Self {
        NonceCounter {
            fixed,
            next: AtomicU64::new(number),
            owner: Process::current(),
        }
    }

    /// The next nonce.
    pub fn next(&self) -> Result<[u8; 12], Error> {
        if !self.owner.is_current() {
            return Err(Error::NonceForked);
        }
        // Relaxed: the numbers differ, and nothing else follows from their order. The largest
        // number is never given, so that the counter cannot begin again at 0.
        let taken = (self.next).fetch_update(Ordering::Relaxed, Ordering::Relaxed, |number| {
            number.checked_add(1)
        });
        let number = taken.map_err(|_| Error::NoncesUsedUp)?;
        let mut nonce = [0; 12];
        nonce[..4].copy_from_slice(&self.fixed);
        nonce[4..].copy_from_slice(&number.to_be_bytes());
        Ok(nonce)
    }

    /// The number that is next: all before it have been given.
    pub fn given(&self) -> u64 {
        self.next.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_nonce_comes_twice_from_several_threads() {
        let nonces = NonceCounter::new(*b"here");
        let mut all: Vec<[u8; 12]> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| scope.spawn(|| (0..500).map(|_| nonces.next().unwrap()).collect()))
                .collect();
            let given = threads.into_iter().map(|t| t.join().unwrap());
            given.flat_map(|nonces: Vec<_>| nonces).collect()
        });
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 2000);
        assert_eq!(nonces.given(), 2000);
        assert!(all.iter().all(|nonce| nonce.starts_with(b"here")));
    }

    #[test]
    fn a_counter_ends_and_stays_at_its_end() {
        let nonces = NonceCounter::beginning_at([0; 4], u64::MAX - 1);
        assert_eq!(nonces.next().unwrap()[4..], (u64::MAX - 1).to_be_bytes());
        for _ in 0..3 {
            assert!(matches!(nonces.next(), Err(Error::NoncesUsedUp)));
        }
    }
}
