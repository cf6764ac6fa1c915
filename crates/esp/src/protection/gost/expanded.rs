//! Expanded keys of leaves, shared by threads that do not wait for each other.
//!
//! Expanding a key of Kuznyechik takes longer than sealing a short packet. A thread that meets
//! another one at a slot takes the key for missing.

use std::sync::{Arc, Mutex};

/// Keys kept: packets on their way are of few leaves.
const SLOTS: usize = 8;

type Slot<K> = Mutex<Option<(u64, Arc<K>)>>;

/// Keys by number; each number has one slot, which it shares with others. A key is wiped when
/// another has taken its slot and nobody uses it any more.
pub(super) struct Expanded<K> {
    slots: [Slot<K>; SLOTS],
}

impl<K> Expanded<K> {
    pub(super) fn new() -> Self {
        Expanded {
            slots: std::array::from_fn(|_| Mutex::new(None)),
        }
    }

    fn slot(&self, number: u64) -> &Slot<K> {
        &self.slots[number as usize % SLOTS]
    }

    /// The key of that number, if it is there.
    pub(super) fn find(&self, number: u64) -> Option<Arc<K>> {
        let slot = self.slot(number).try_lock().ok()?;
        let (of, key) = slot.as_ref()?;
        (*of == number).then(|| key.clone())
    }

    /// Puts a key in place of the one in its slot, unless another thread is there.
    pub(super) fn publish(&self, number: u64, key: &Arc<K>) {
        let Ok(mut slot) = self.slot(number).try_lock() else {
            return;
        };
        let before = slot.replace((number, key.clone()));
        // It may be the last use, and wiping is not done while others are kept away.
        drop(slot);
        drop(before);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_found_until_another_takes_its_slot() {
        let kept = Expanded::new();
        assert!(kept.find(0).is_none());
        let keys: Vec<_> = (0..SLOTS as u64 + 2).map(Arc::new).collect();
        for (number, key) in (0..).zip(&keys) {
            kept.publish(number, key);
            assert!(Arc::ptr_eq(&kept.find(number).unwrap(), key));
        }
        assert!(kept.find(1).is_none());
        assert!(kept.find(2).is_some());
        // What was put out is not held any longer.
        assert_eq!(Arc::strong_count(&keys[1]), 1);
        assert_eq!(Arc::strong_count(&keys[2]), 2);
    }

    #[test]
    fn who_meets_another_thread_goes_on_without_the_key() {
        let kept = Expanded::new();
        kept.publish(3, &Arc::new(7));
        let held = kept.slot(3).lock().unwrap();
        assert!(kept.find(3).is_none());
        kept.publish(3, &Arc::new(8));
        drop(held);
        assert_eq!(kept.find(3).as_deref(), Some(&7));
    }
}
