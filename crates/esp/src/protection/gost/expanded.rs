//! Expanded keys of leaves, shared by threads that do not wait for each other.
//!
//! Expanding a key of Kuznyechik takes longer than sealing a short packet. A thread that meets
//! another one at a slot takes the key for missing.

use std::sync::Mutex;

/// Keys kept: packets on their way are of few leaves.
const SLOTS: usize = 8;

type Slot<K> = Mutex<Option<(u64, K)>>;

/// Keys by number; each number has one slot, which it shares with others. They are copied in
/// and out, which is far less than expanding one and needs no allocation; a copy that wipes
/// itself when dropped is wiped when another has taken its slot.
pub(super) struct Expanded<K> {
    slots: [Slot<K>; SLOTS],
}

impl<K: Clone> Expanded<K> {
    pub(super) fn new() -> Self {
        Expanded {
            slots: std::array::from_fn(|_| Mutex::new(None)),
        }
    }

    fn slot(&self, number: u64) -> &Slot<K> {
        &self.slots[number as usize % SLOTS]
    }

    /// The key of that number, if it is there.
    pub(super) fn find(&self, number: u64) -> Option<K> {
        let slot = self.slot(number).try_lock().ok()?;
        let (of, key) = slot.as_ref()?;
        (*of == number).then(|| key.clone())
    }

    /// Puts a key in place of the one in its slot, unless another thread is there.
    pub(super) fn publish(&self, number: u64, key: &K) {
        let Ok(mut slot) = self.slot(number).try_lock() else {
            return;
        };
        *slot = Some((number, key.clone()));
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_key_is_found_until_another_takes_its_slot() {
        let kept = Expanded::new();
        assert!(kept.find(0).is_none());
        // Each is dropped as often as it was copied: what was put out is not kept.
        let keys: Vec<_> = (0..SLOTS as u64 + 2).map(Arc::new).collect();
        for (number, key) in (0..).zip(&keys) {
            kept.publish(number, key);
            assert!(Arc::ptr_eq(&kept.find(number).unwrap(), key));
        }
        assert!(kept.find(1).is_none());
        assert!(kept.find(2).is_some());
        assert_eq!(Arc::strong_count(&keys[1]), 1);
        assert_eq!(Arc::strong_count(&keys[2]), 2);
    }

    #[test]
    fn who_meets_another_thread_goes_on_without_the_key() {
        let kept = Expanded::new();
        kept.publish(3, &7);
        let held = kept.slot(3).lock().unwrap();
        assert!(kept.find(3).is_none());
        kept.publish(3, &8);
        drop(held);
        assert_eq!(kept.find(3), Some(7));
    }
}
