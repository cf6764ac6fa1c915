//! Up to which size the base serves: all that a small request reads of what was learned.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::table::{COUNT_CLASSES, Class};
use crate::Direction;

/// By direction and batch class, the bytes below which the base serves a batch whose caller waits.
///
/// They are kept apart from the tables, so that one load and one comparison decide for a small
/// request.
pub(crate) struct Limits([[AtomicUsize; COUNT_CLASSES]; 2]);

impl Limits {
    /// The same limit for all batches.
    pub(crate) fn of(bytes: usize) -> Limits {
        Limits(std::array::from_fn(|_| {
            std::array::from_fn(|_| AtomicUsize::new(bytes))
        }))
    }

    /// Whether the base serves a batch. `false` means that the table must be read.
    #[inline]
    pub(crate) fn holds(&self, direction: Direction, requests: usize, bytes: usize) -> bool {
        let limits = &self.0[direction as usize];
        bytes < limits[Class::count_of(requests)].load(Ordering::Relaxed)
    }

    /// Notes the bytes from which on batches of a batch class go elsewhere; `None` if the base serves all
    /// of them.
    pub(super) fn set(&self, direction: Direction, count: usize, bytes: Option<usize>) {
        let bytes = bytes.unwrap_or(usize::MAX);
        self.0[direction as usize][count].store(bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_below_a_limit_is_below_it_for_every_batch_of_the_class() {
        let limits = Limits::of(0);
        assert!(!limits.holds(Direction::Encrypt, 1, 0));
        limits.set(Direction::Encrypt, 0, Some(1024));
        limits.set(Direction::Encrypt, 2, Some(4096));
        limits.set(Direction::Decrypt, 0, None);
        let holds = |n, bytes| limits.holds(Direction::Encrypt, n, bytes);
        assert!(holds(1, 1023) && !holds(1, 1024));
        assert!(holds(4, 4095) && holds(7, 4095) && !holds(4, 4096) && !holds(7, 4096));
        assert!(limits.holds(Direction::Decrypt, 1, usize::MAX - 1));
        assert!(!limits.holds(Direction::Decrypt, 4, 0));
    }
}
