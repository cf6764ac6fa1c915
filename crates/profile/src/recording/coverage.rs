//! When system calls and waits were recorded, where recording all of them would have cost too much.
//!
//! They are recorded in windows then, and what was seen in a window stands for the time around it:
//! from the middle of the gap before it to the middle of the gap behind it. So each window has a
//! weight of its own, and a time with few windows counts as much as a time with many.

use serde::{Deserialize, Serialize};

use super::Recording;

/// When the events that cost most were recorded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Coverage {
    /// Of system calls.
    #[serde(default)]
    pub calls: Windows,
    /// Of waits, and who ended them.
    #[serde(default)]
    pub waits: Windows,
}

/// Windows in the order of time: begin and end, in nanoseconds since the start. None is all of the
/// time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Windows(pub Vec<(u64, u64)>);

impl Windows {
    /// Whether all of the time was recorded.
    pub fn is_whole(&self) -> bool {
        self.0.is_empty()
    }

    /// The share of `wall` nanoseconds that was recorded, 0 to 1.
    pub fn share(&self, wall: u64) -> f64 {
        if self.is_whole() {
            return 1.0;
        }
        let recorded: u64 = self.0.iter().map(|(begin, end)| end - begin).sum();
        (recorded as f64 / wall.max(1) as f64).min(1.0)
    }

    /// For each window, how many times as long the time is that it stands for, of `wall`
    /// nanoseconds altogether.
    pub fn weights(&self, wall: u64) -> Vec<f64> {
        let middle = |end: u64, begin: u64| end as f64 + (begin as f64 - end as f64) / 2.0;
        let mut weights = Vec::with_capacity(self.0.len());
        for (number, &(begin, end)) in self.0.iter().enumerate() {
            let from = match number.checked_sub(1) {
                Some(before) => middle(self.0[before].1, begin),
                None => 0.0,
            };
            let to = match self.0.get(number + 1) {
                Some(next) => middle(end, next.0),
                None => wall.max(end) as f64,
            };
            weights.push(((to - from) / (end - begin).max(1) as f64).max(1.0));
        }
        weights
    }

    /// The number of the window that has the time `at`, or is the next one behind it.
    pub fn at(&self, at: u64) -> Option<usize> {
        let number = self.0.partition_point(|window| window.1 <= at);
        self.0.len().checked_sub(1).map(|last| number.min(last))
    }

    /// Each window ends behind its begin, and before the next one.
    pub(super) fn are_in_order(&self, longest: u64) -> bool {
        let ends = self.0.iter().all(|of| of.0 <= of.1 && of.1 <= longest);
        ends && self.0.windows(2).all(|two| two[0].1 <= two[1].0)
    }
}

impl Recording {
    /// What was not recorded all of the time, in a sentence; none where everything was.
    pub fn sampled(&self) -> Option<String> {
        let coverage = self.coverage.as_ref()?;
        let share = |of: &Windows| match of.share(self.wall_ns) * 100.0 {
            share if share < 1.0 => format!("{share:.1} %"),
            share => format!("{share:.0} %"),
        };
        let (calls, waits) = (&coverage.calls, &coverage.waits);
        let what = match (calls.is_whole(), waits.is_whole()) {
            (true, true) => return None,
            (false, true) => format!("System calls were recorded in {} of the time", share(calls)),
            (true, false) => format!("Waits were recorded in {} of the time", share(waits)),
            (false, false) => format!(
                "System calls were recorded in {} of the time and waits in {}",
                share(calls),
                share(waits)
            ),
        };
        Some(format!(
            "{what}, and are multiplied up; --exact records each one, and slows the program down"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::tests::recording;

    #[test]
    fn the_windows_together_stand_for_all_of_the_time() {
        let windows = Windows(vec![(0, 200), (300, 320), (700, 720)]);
        assert_eq!(windows.weights(1000), [250.0 / 200.0, 13.0, 24.5]);
        let sum: f64 = windows
            .weights(1000)
            .iter()
            .zip(&windows.0)
            .map(|(weight, (begin, end))| weight * (end - begin) as f64)
            .sum();
        assert!((sum - 1000.0).abs() < 1e-9);
        assert!((windows.share(1000) - 0.24).abs() < 1e-9);
        let numbers = [0, 199, 200, 310, 320, 719, 5000].map(|at| windows.at(at));
        assert_eq!(numbers, [0, 0, 1, 1, 2, 2, 2].map(Some));
        assert_eq!(Windows::default().at(5), None);
    }

    #[test]
    fn what_is_multiplied_up_is_said() {
        let mut recording = recording(&[]);
        assert_eq!(recording.sampled(), None);
        recording.coverage = Some(Coverage {
            calls: Windows(vec![(0, 360_000_000)]),
            waits: Windows::default(),
        });
        let said = recording.sampled().unwrap();
        assert!(said.starts_with("System calls were recorded in 9 % of the time, and are"));
        let both = recording.coverage.as_mut().unwrap();
        both.waits = Windows(vec![(0, 4_000_000)]);
        let said = recording.sampled().unwrap();
        assert!(
            said.contains("9 % of the time and waits in 0.1 %, and"),
            "{said}"
        );
    }
}
