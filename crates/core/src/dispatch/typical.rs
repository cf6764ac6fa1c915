//! What the batches of each class are like, for which the class is decided.
//!
//! The largest batches of a class may be 2.4 times the work of the smallest, and different drivers may suit
//! them. Programs mostly have batches of a few shapes, so a class is decided for those that it has seen.

use super::table::{CLASSES, Class};

/// The share of the difference by which a batch moves what is known of its class.
const STEP: f32 = 1.0 / 8.0;
/// A class is decided again when its batches have become more or less work by this share.
const DRIFT: f32 = 1.0 / 32.0;

/// The mean of the batches that each class of one direction and mode has seen; empty before any.
#[derive(Default)]
pub(super) struct Typical(Vec<Batch>);

/// All zero before any was seen.
#[derive(Clone, Copy, Default)]
struct Batch {
    requests: f32,
    /// Mean bytes of a request.
    size: f32,
    /// Bytes of the batch that the class was decided for.
    decided: f32,
}

impl Typical {
    /// The batch length and the mean size of a request for which the class is decided: the middle of a class
    /// that has seen none.
    pub(super) fn of(&self, class: Class) -> (usize, f32) {
        match self.0.get(class.number()) {
            Some(batch) if batch.decided > 0.0 => (batch.requests.round() as usize, batch.size),
            _ => class.middle(),
        }
    }

    /// Notes a batch. Whether the class is to be decided again for it.
    pub(super) fn see(&mut self, class: Class, requests: usize, size: f32) -> bool {
        if self.0.is_empty() {
            self.0 = vec![Batch::default(); CLASSES];
        }
        let batch = &mut self.0[class.number()];
        let step = if batch.decided == 0.0 { 1.0 } else { STEP };
        batch.requests += (requests as f32 - batch.requests) * step;
        batch.size += (size - batch.size) * step;
        let bytes = (batch.requests * batch.size).max(1.0);
        let has_drifted = (bytes - batch.decided).abs() > DRIFT * batch.decided;
        if has_drifted {
            batch.decided = bytes;
        }
        has_drifted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_is_decided_for_its_middle_and_then_for_what_it_has_seen() {
        let mut typical = Typical::default();
        let class = Class::of(16, 16 << 12);
        assert_eq!(typical.of(class), (24, 4608.0));
        assert!(typical.see(class, 16, 4096.0));
        assert_eq!(typical.of(class), (16, 4096.0));
        assert!(!typical.see(class, 16, 4100.0));
        let again = (0..50).filter(|_| typical.see(class, 30, 5000.0)).count();
        assert!((5..=20).contains(&again), "{again}");
        let (requests, size) = typical.of(class);
        assert!(
            requests == 30 && (4995.0..=5000.0).contains(&size),
            "{size}"
        );
        assert_eq!(typical.of(Class::of(8, 8 << 12)), (12, 4608.0));
    }
}
