//! What is recorded in windows: one sum for each, and all of them together in the end.

use crate::recording::Windows;

/// Sums of one kind of event.
#[derive(Debug)]
pub(super) struct Windowed<T> {
    /// The sums of the window that is open.
    pub(super) now: T,
    pub(super) is_open: bool,
    /// When that window was opened, on the kernel's clock; 0 for the begin of the recording.
    pub(super) since: u64,
    /// Processor time that the target had used then.
    ran: u64,
    closed: Vec<Closed<T>>,
}

/// A window that is over: its begin and end, processor time of the target then, and its sums.
#[derive(Debug)]
struct Closed<T> {
    time: (u64, u64),
    ran: (u64, u64),
    sums: T,
}

/// Nanoseconds of processor time that windows need at least, to say what others stand for.
const LEAST_RAN: f64 = 1e7;

impl<T: Default> Default for Windowed<T> {
    fn default() -> Self {
        Self {
            now: T::default(),
            is_open: true,
            since: 0,
            ran: 0,
            closed: Vec::new(),
        }
    }
}

impl<T: Default> Windowed<T> {
    /// A window begins at `time`, until when the target has used `ran` nanoseconds of processors.
    pub(super) fn open(&mut self, time: u64, ran: u64) {
        (self.is_open, self.since, self.ran) = (true, time, ran);
    }

    /// It ends; recording it has cost the target `price` of that processor time, about.
    pub(super) fn close(&mut self, time: u64, ran: u64, price: u64) {
        // The price is not known exactly, so something has to be left.
        let most = ran.saturating_sub(self.ran) / 8 * 7;
        let ran = ran - price.min(most);
        self.closed.push(Closed {
            time: (self.since, time),
            ran: (self.ran, ran),
            sums: std::mem::take(&mut self.now),
        });
        self.is_open = false;
    }

    /// The recording has lasted from `begin` to `end`: its windows, in nanoseconds since `begin`,
    /// and the sums of each with its weight. There are no windows where there was no gap.
    ///
    /// With `ran`, the processor time altogether, weights are by processor time: who has no
    /// processor during a window makes no system calls, which says nothing of the time around it.
    pub(super) fn finish(
        &mut self,
        begin: u64,
        end: u64,
        ran: Option<u64>,
    ) -> (Windows, Vec<(f64, T)>) {
        if self.is_open && self.closed.is_empty() {
            return (
                Windows::default(),
                vec![(1.0, std::mem::take(&mut self.now))],
            );
        }
        if self.is_open {
            self.close(end, ran.unwrap_or(0), 0);
        }
        let closed = std::mem::take(&mut self.closed);
        let since = |time: u64| time.saturating_sub(begin);
        let windows = closed.iter().map(|of| (since(of.time.0), since(of.time.1)));
        let windows = Windows(windows.collect());
        let weights = match ran {
            None => windows.weights(since(end)),
            Some(ran) => by_processor(closed.iter().map(|of| of.ran).collect(), ran),
        };
        let sums = closed.into_iter().map(|of| of.sums);
        (windows, weights.into_iter().zip(sums).collect())
    }
}

/// Weights by processor time. Windows in which the target hardly ran have one together with those
/// that follow.
fn by_processor(ran: Vec<(u64, u64)>, all: u64) -> Vec<f64> {
    let windows = Windows(ran);
    let mut weights = windows.weights(all);
    let lengths: Vec<f64> = windows
        .0
        .iter()
        .map(|of| (of.1 - of.0).max(1) as f64)
        .collect();
    let mut first = 0;
    while first < weights.len() {
        let (mut last, mut length, mut stands_for) = (first, 0.0, 0.0);
        while last < weights.len() && length < LEAST_RAN {
            length += lengths[last];
            stands_for += weights[last] * lengths[last];
            last += 1;
        }
        let rest: f64 = lengths[last..].iter().sum();
        if rest < LEAST_RAN {
            let rest_stands_for = weights[last..].iter().zip(&lengths[last..]);
            stands_for += rest_stands_for
                .map(|(weight, length)| weight * length)
                .sum::<f64>();
            (last, length) = (weights.len(), length + rest);
        }
        weights[first..last].fill(stands_for / length);
        first = last;
    }
    weights
}

/// `count` of what was seen, multiplied up.
pub(super) fn scaled(count: u64, weight: f64) -> u64 {
    (count as f64 * weight).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_window_has_its_sum_and_its_weight() {
        let mut sums = Windowed::<u64>::default();
        sums.now += 7;
        let mut whole = Windowed {
            now: 7,
            ..Windowed::default()
        };
        assert_eq!(
            whole.finish(100, 300, None),
            (Windows::default(), vec![(1.0, 7)])
        );
        sums.close(200, 0, 0);
        sums.open(260, 0);
        sums.now += 2;
        let (windows, parts) = sums.finish(100, 300, None);
        assert_eq!(windows, Windows(vec![(0, 100), (160, 200)]));
        assert_eq!(parts, [(1.3, 7), (1.75, 2)]);
        // A quarter of the processor time was the price of recording.
        let mut slowed = Windowed::<u64>::default();
        slowed.close(1000, 4000, 1000);
        assert_eq!(slowed.finish(0, 2000, Some(6000)).1, [(2.0, 0)]);
        // In milliseconds of processors: a window of 100, none in the next, 20 in the last.
        let ms = |from: u64, to: u64| (from * 1_000_000, to * 1_000_000);
        let weights = by_processor(vec![ms(0, 100), ms(200, 200), ms(300, 320)], 400_000_000);
        assert_eq!(weights[0], 1.5);
        assert!((weights[1] - 12.5).abs() < 1e-5 && weights[1] == weights[2]);
        let rest = by_processor(vec![ms(0, 100), ms(200, 201)], 400_000_000);
        assert!(
            (rest[0] - 400.0 / 101.0).abs() < 1e-9 && rest[0] == rest[1],
            "{rest:?}"
        );
        assert_eq!((scaled(7, 1.3), scaled(2, 1.75), scaled(0, 9.0)), (9, 4, 0));
    }
}
