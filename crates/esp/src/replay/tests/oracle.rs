//! Millions of random operations answered as a set would answer them.

use std::collections::BTreeSet;

use super::super::Window;
use crate::Refusal;

/// Knuth's MMIX generator, upper bits.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// The window by its definition.
struct Oracle {
    top: u64,
    width: u64,
    accepted: BTreeSet<u64>,
    lost: u64,
}

impl Oracle {
    fn new(top: u64, width: u64) -> Self {
        Oracle {
            top,
            width,
            accepted: (0..width).filter_map(|d| top.checked_sub(d)).collect(),
            lost: 0,
        }
    }

    fn judge(&self, top: u64, number: u64) -> Result<(), Refusal> {
        match number + self.width <= top {
            true => Err(Refusal::TooOld),
            false if self.accepted.contains(&number) => Err(Refusal::Replayed),
            false => Ok(()),
        }
    }

    fn accept(&mut self, number: u64) {
        assert!(self.accepted.insert(number));
        if number <= self.top {
            return;
        }
        let first_before = (self.top + 1).saturating_sub(self.width);
        self.top = number;
        let first = (number + 1).saturating_sub(self.width);
        self.lost += first - first_before;
        while self.accepted.first().is_some_and(|&number| number < first) {
            self.accepted.pop_first();
            self.lost -= 1;
        }
    }

    /// A number near the top, behind it, just outside, or far ahead.
    fn offer(&self, random: &mut Random) -> u64 {
        let top = self.top;
        let w = self.width;
        match random.below(1000) {
            0 => top + 1 + random.below(1 << 31),
            1..=10 => top + 1 + random.below(4 * w),
            11..=600 => top + 1 + random.below(3),
            601..=620 => top.saturating_sub(random.below(3 * w)),
            621..=640 => top.saturating_sub(w - 1 + random.below(3)),
            641..=650 => top,
            _ => top.saturating_sub(random.below(w)),
        }
    }
}

const OPERATIONS: u64 = if cfg!(miri) { 100 } else { 600_000 };

#[test]
fn one_number_at_a_time() {
    for (width, top) in [(32, 0), (33, 9), (64, 0xffff_0000), (100, 0), (4096, 31)] {
        let window = Window::after(top, width).unwrap();
        let mut oracle = Oracle::new(top, u64::from(width));
        let mut random = Random(u64::from(width));
        for _ in 0..OPERATIONS {
            let number = oracle.offer(&mut random);
            let expected = oracle.judge(oracle.top, number);
            assert_eq!(window.check(number), expected, "{number} {window:?}");
            assert_eq!(window.commit(number), expected, "{number} {window:?}");
            if expected.is_ok() {
                oracle.accept(number);
            }
            assert_eq!(window.top(), oracle.top);
            if random.below(256) == 0 {
                assert_eq!(window.lost(), oracle.lost, "{window:?}");
            }
        }
        assert_eq!(window.lost(), oracle.lost);
    }
}

#[test]
fn batches_with_losses_replays_and_disorder() {
    for width in [32, 64, 1000, 4096] {
        let window = Window::new(width).unwrap();
        let mut oracle = Oracle::new(0, u64::from(width));
        let mut random = Random(1 + u64::from(width));
        for _ in 0..OPERATIONS / 24 {
            let mut batch: Vec<u64> = match random.below(8) {
                0 => (0..random.below(65))
                    .map(|_| oracle.offer(&mut random))
                    .collect(),
                _ => {
                    let first = oracle.offer(&mut random);
                    let count = 1 + random.below(64);
                    (first..first + count)
                        .filter(|_| random.below(16) > 0)
                        .collect()
                }
            };
            if random.below(4) == 0 {
                batch.reverse();
            }
            let mut results = vec![Ok(()); batch.len()];
            window.commit_batch(&batch, &mut results);
            // Judged by the top that the batch found. What the batch itself has made too old
            // is accepted while it has its place, though no more than once.
            let top = oracle.top;
            let mut accepted = BTreeSet::new();
            for (&number, &result) in batch.iter().zip(&results) {
                let expected = oracle.judge(top, number);
                assert!(result.is_err() || accepted.insert(number), "{number} twice");
                if oracle.judge(oracle.top, number) == Err(Refusal::TooOld) && top < oracle.top {
                    continue;
                }
                assert_eq!(result, expected, "{number} of {batch:?}");
                if expected.is_ok() {
                    oracle.accept(number);
                }
            }
            assert_eq!(window.top(), oracle.top);
        }
    }
}

#[test]
fn the_upper_half_is_inferred_as_the_sender_meant_it() {
    for width in [32u32, 64, 4096] {
        let window = Window::after(0xffff_f000, width).unwrap();
        let mut random = Random(2 + u64::from(width));
        for _ in 0..OPERATIONS / 8 {
            let top = window.top();
            let number = match random.below(50) {
                // Close to the next wrap, now and then, from where it can be told.
                0 if top as u32 >= width => (top | 0xffff_ffff) - random.below(32),
                1..=30 => top + 1 + random.below(3),
                _ => top - random.below(u64::from(width)),
            };
            match window.infer(number as u32) {
                Ok(inferred) => {
                    assert_eq!(inferred, number, "{window:?}");
                    assert_eq!(window.commit(inferred), Ok(()));
                }
                Err(refusal) => assert_eq!(window.commit(number), Err(refusal)),
            }
        }
        assert!(cfg!(miri) || window.top() > 1 << 34, "{window:?}");
    }
}
