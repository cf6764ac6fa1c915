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
    /// What the target had done then.
    done: u64,
    closed: Vec<Closed<T>>,
}

/// A window that is over: its begin and end, what the target had done then, and its sums.
#[derive(Debug)]
struct Closed<T> {
    time: (u64, u64),
    done: (u64, u64),
    sums: T,
}

/// What the target has done altogether: processor time that it has used, or something that is counted all
/// of the time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Done {
    pub(super) all: u64,
    /// What windows need at least of it, to say what the time around them stands for.
    pub(super) least: f64,
}

impl<T: Default> Default for Windowed<T> {
    fn default() -> Self {
        Self {
            now: T::default(),
            is_open: true,
            since: 0,
            done: 0,
            closed: Vec::new(),
        }
    }
}

impl<T: Default> Windowed<T> {
    /// A window begins at `time`, until when the target has `done` that much.
    pub(super) fn open(&mut self, time: u64, done: u64) {
        (self.is_open, self.since, self.done) = (true, time, done);
    }

    /// It ends; of what the target has done since, `price` is what recording it has cost, about.
    pub(super) fn close(&mut self, time: u64, done: u64, price: u64) {
        // The price is not known exactly, so something has to be left.
        let most = done.saturating_sub(self.done) / 8 * 7;
        let done = done - price.min(most);
        self.closed.push(Closed {
            time: (self.since, time),
            done: (self.done, done),
            sums: std::mem::take(&mut self.now),
        });
        self.is_open = false;
    }

    /// Whether nothing was left out until now.
    pub(super) fn is_whole(&self) -> bool {
        self.is_open && self.closed.is_empty()
    }

    /// What the target has done in the windows that are over, as far as that is known.
    pub(super) fn done(&self) -> u64 {
        let windows = self.closed.iter();
        windows.map(|of| of.done.1.saturating_sub(of.done.0)).sum()
    }

    /// What was seen in them.
    pub(super) fn seen(&self, count: impl Fn(&T) -> u64) -> u64 {
        self.closed.iter().map(|of| count(&of.sums)).sum()
    }

    /// The recording has lasted from `begin` to `end`: its windows, in nanoseconds since `begin`,
    /// and the sums of each with its weight. There are no windows where there was no gap.
    ///
    /// With `done`, weights are by that: who has no processor during a window makes no system calls, which
    /// says nothing of the time around it.
    pub(super) fn finish(
        &mut self,
        begin: u64,
        end: u64,
        done: Option<Done>,
    ) -> (Windows, Vec<(f64, T)>) {
        if self.is_whole() {
            return (
                Windows::default(),
                vec![(1.0, std::mem::take(&mut self.now))],
            );
        }
        if self.is_open {
            self.close(end, done.map_or(0, |of| of.all), 0);
        }
        let closed = std::mem::take(&mut self.closed);
        let since = |time: u64| time.saturating_sub(begin);
        let windows = closed.iter().map(|of| (since(of.time.0), since(of.time.1)));
        let windows = Windows(windows.collect());
        let weights = match done {
            None => windows.weights(since(end)),
            Some(all) => by_done(closed.iter().map(|of| of.done).collect(), all),
        };
        let sums = closed.into_iter().map(|of| of.sums);
        (windows, weights.into_iter().zip(sums).collect())
    }
}

/// Weights by what was done until the begin and the end of each window. Windows in which the target did
/// hardly anything have one together with those that follow.
fn by_done(windows: Vec<(u64, u64)>, done: Done) -> Vec<f64> {
    let windows = Windows(windows);
    let mut weights = windows.weights(done.all);
    let lengths: Vec<f64> = windows
        .0
        .iter()
        .map(|of| (of.1 - of.0).max(1) as f64)
        .collect();
    let mut first = 0;
    while first < weights.len() {
        let (mut last, mut length, mut stands_for) = (first, 0.0, 0.0);
        while last < weights.len() && length < done.least {
            length += lengths[last];
            stands_for += weights[last] * lengths[last];
            last += 1;
        }
        let rest: f64 = lengths[last..].iter().sum();
        if rest < done.least {
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
        let done = |all| Done { all, least: 1e7 };
        assert_eq!(slowed.finish(0, 2000, Some(done(6000))).1, [(2.0, 0)]);
        // It was not known any more when a window ended.
        let mut unknown = Windowed::<u64>::default();
        unknown.close(1000, 500, 0);
        unknown.open(2000, 700);
        unknown.close(3000, 0, 0);
        assert_eq!((unknown.done(), unknown.is_whole()), (500, false));
        // In milliseconds of processors: a window of 100, none in the next, 20 in the last.
        let ms = |from: u64, to: u64| (from * 1_000_000, to * 1_000_000);
        let weights = by_done(
            vec![ms(0, 100), ms(200, 200), ms(300, 320)],
            done(400_000_000),
        );
        assert_eq!(weights[0], 1.5);
        assert!((weights[1] - 12.5).abs() < 1e-5 && weights[1] == weights[2]);
        let rest = by_done(vec![ms(0, 100), ms(200, 201)], done(400_000_000));
        assert!(
            (rest[0] - 400.0 / 101.0).abs() < 1e-9 && rest[0] == rest[1],
            "{rest:?}"
        );
        assert_eq!((scaled(7, 1.3), scaled(2, 1.75), scaled(0, 9.0)), (9, 4, 0));
    }
}
