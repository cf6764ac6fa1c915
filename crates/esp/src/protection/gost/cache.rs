//! Derived keys, shared by threads that do not wait for each other.
//!
//! A thread that lacks a key derives it. Of several that derive the same one, the first to
//! take the slot publishes it; the others go on with their own copy. A reader that meets a
//! writer takes the key for missing.

use zeroize::{Zeroizing, optimization_barrier};

use crate::sync::{AtomicU64, Line, Ordering, fence};

/// A key, as it is kept.
pub(super) type KeyBytes = Zeroizing<[u8; 32]>;

/// Keys by number; each number has one slot, which it shares with others.
pub(super) struct KeyCache {
    slots: Box<[Line<Slot>]>,
}

/// A sequence lock that nobody spins on.
struct Slot {
    /// 0: empty. Odd: being written.
    version: AtomicU64,
    number: AtomicU64,
    key: [AtomicU64; 4],
}

impl KeyCache {
    /// For keys with consecutive numbers, as many as `slots`.
    pub(super) fn new(slots: usize) -> Self {
        let slot = || Slot {
            version: AtomicU64::new(0),
            number: AtomicU64::new(0),
            key: std::array::from_fn(|_| AtomicU64::new(0)),
        };
        let slots = (0..slots.next_power_of_two()).map(|_| Line(slot()));
        KeyCache {
            slots: slots.collect(),
        }
    }

    fn slot(&self, number: u64) -> &Slot {
        let Line(slot) = &self.slots[number as usize & (self.slots.len() - 1)];
        slot
    }

    /// The key of that number, if it is there.
    #[inline]
    pub(super) fn find(&self, number: u64) -> Option<KeyBytes> {
        let slot = self.slot(number);
        let version = slot.version.load(Ordering::Acquire);
        if version == 0 || version % 2 == 1 || slot.number.load(Ordering::Relaxed) != number {
            return None;
        }
        let mut key = Zeroizing::new([0; 32]);
        for (bytes, word) in key.as_chunks_mut().0.iter_mut().zip(&slot.key) {
            *bytes = word.load(Ordering::Relaxed).to_ne_bytes();
        }
        // If any of these loads saw a later writer, so does the next one.
        fence(Ordering::Acquire);
        (slot.version.load(Ordering::Relaxed) == version).then_some(key)
    }

    /// Publishes a key in place of the one in its slot, unless another thread is at it.
    pub(super) fn publish(&self, number: u64, key: &[u8; 32]) {
        let slot = self.slot(number);
        let version = slot.version.load(Ordering::Relaxed);
        let there = version != 0 && slot.number.load(Ordering::Relaxed) == number;
        if there || version % 2 == 1 {
            return;
        }
        let taken = slot.version.compare_exchange(
            version,
            version + 1,
            Ordering::Acquire,
            Ordering::Relaxed,
        );
        if taken.is_err() {
            return;
        }
        // Whoever sees a store below sees the odd version.
        fence(Ordering::Release);
        slot.number.store(number, Ordering::Relaxed);
        for (word, bytes) in slot.key.iter().zip(key.as_chunks().0) {
            word.store(u64::from_ne_bytes(*bytes), Ordering::Relaxed);
        }
        slot.version.store(version + 2, Ordering::Release);
    }
}

impl Drop for KeyCache {
    fn drop(&mut self) {
        for Line(slot) in &self.slots {
            for word in &slot.key {
                word.store(0, Ordering::Relaxed);
            }
        }
        optimization_barrier(&self.slots);
    }
}

#[cfg(all(test, loom))]
mod models {
    use loom::sync::Arc;
    use loom::thread;

    use super::KeyCache;

    /// Threads that publish two keys in one slot, and a reader, in every order of steps.
    #[test]
    fn loom_a_key_is_whole_or_missing() {
        loom::model(|| {
            let cache = Arc::new(KeyCache::new(1));
            let writers = [1, 2].map(|number: u8| {
                let cache = cache.clone();
                thread::spawn(move || cache.publish(number.into(), &[number; 32]))
            });
            for number in [1, 2] {
                if let Some(key) = cache.find(number) {
                    assert_eq!(*key, [number as u8; 32]);
                }
            }
            for writer in writers {
                writer.join().unwrap();
            }
            let left = [1, 2].map(|number| cache.find(number).is_some());
            assert!(left == [true, false] || left == [false, true]);
        });
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_found_until_another_takes_its_slot() {
        let cache = KeyCache::new(3);
        assert!(cache.find(0).is_none());
        for number in 0..8 {
            cache.publish(number, &[number as u8; 32]);
            assert_eq!(*cache.find(number).unwrap(), [number as u8; 32]);
        }
        assert!(cache.find(3).is_none());
        assert!((4..8).all(|number| cache.find(number).is_some()));
    }

    #[test]
    fn racing_threads_find_whole_keys_only() {
        let cache = KeyCache::new(4);
        let rounds = if cfg!(miri) { 100 } else { 50_000 };
        let key = |number: u64| -> [u8; 32] {
            let word = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes();
            std::array::from_fn(|i| word[i % 8])
        };
        let work = |thread: u64| {
            let mut found = 0;
            for round in 0..rounds {
                let number = (round / 16 * 7 + thread) % 24;
                if let Some(seen) = cache.find(number) {
                    assert_eq!(*seen, key(number), "number {number}");
                    found += 1;
                } else {
                    cache.publish(number, &key(number));
                }
            }
            found
        };
        let found: u64 = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|t| scope.spawn(move || work(t))).collect();
            threads.into_iter().map(|t| t.join().unwrap()).sum()
        });
        assert!(found > 0);
    }
}
