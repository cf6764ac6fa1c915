//! Keeps the price of recording to a share of the time that is recorded.
//!
//! Each event costs the program that is recorded some time. While what was spent is covered by the
//! allowance, which grows with the time, everything is recorded. Beyond it, a pause follows, until
//! there is enough for another window. Windows have a length that does not depend on what happens
//! in them, and pauses a random one: else a program that does something at regular times would be
//! seen always or never at it.
//!
//! Pauses become longer in the course of a recording: the more windows there are, the less another one
//! tells. What can be recorded without a gap is.
//!
//! Nothing here knows the clock: the caller says what time it is.

use cipherlane_measure::random::Random;

/// Nanoseconds until the price is looked at again at most, where all of it is covered by what is earned. It is
/// looked at when the window is twice as old, too: a command that has just begun says nothing of what follows.
const CALM: u64 = 100_000_000;
/// Nanoseconds of a window; shorter where what happens is so dear that pauses would be long.
const LONGEST: u64 = 40_000_000;
const SHORTEST: u64 = 5_000_000;
/// Nanoseconds of a pause, about, that a window may make necessary before it is made shorter.
const PAUSE: f64 = 5e8;
/// Parts of the mean pause that a pause takes at least and at most.
const PAUSES: (f64, f64) = (0.5, 1.5);
/// Nanoseconds from the begin for which pauses earn the whole share, and the least part of it that they earn
/// later: in between it is less in proportion to the time.
const WHOLE: f64 = 8e9;
const LEAST: f64 = 0.25;

/// The budget of one kind of event.
pub(super) struct Budget {
    /// The share of the time that may be spent.
    share: f64,
    /// What may be spent now, in nanoseconds; debts are below zero.
    credit: f64,
    /// The most that is saved up.
    most: f64,
    /// What beginning a window costs, in nanoseconds.
    opening: f64,
    state: State,
    /// When the recording began.
    began: u64,
    /// When it was asked last.
    asked: u64,
    random: Random,
}

/// What is recorded at the moment, in nanoseconds of the caller's clock.
enum State {
    /// Everything: since when, until when at least, and what it has cost.
    Window { since: u64, until: u64, spent: f64 },
    /// Nothing: until when, and how long the next window will be.
    Pause { until: u64, next: u64 },
}

/// What the caller has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Nothing,
    Open,
    Close,
}

impl Budget {
    /// A budget of `share` of the time, with `most` nanoseconds in advance, which are the most too
    /// that is saved up. Everything is recorded from `now` on.
    pub(super) fn new(now: u64, share: f64, most: u64, seed: u64) -> Self {
        Self {
            share,
            credit: most as f64,
            most: most as f64,
            opening: 0.0,
            state: State::Window {
                since: now,
                until: now + SHORTEST,
                spent: 0.0,
            },
            began: now,
            asked: now,
            random: Random::new(seed),
        }
    }

    /// At `now`, `price` nanoseconds were spent since the last call, in which the target has used
    /// `processor` nanoseconds of processors.
    pub(super) fn look(&mut self, now: u64, price: u64, processor: u64) -> Order {
        let passed = now.saturating_sub(self.asked);
        self.asked = now;
        // A program that waits most of the time is not slowed down by more than what this costs
        // one processor.
        let income = self.share * processor.max(passed) as f64;
        let part = self.part(now);
        let earned = match self.state {
            State::Window { .. } => income,
            State::Pause { .. } => part * income,
        };
        self.credit = (self.credit + earned).min(self.most) - price as f64;
        match &mut self.state {
            State::Window {
                since,
                until,
                spent,
            } => {
                *spent += price as f64;
                if now < *until {
                    return Order::Nothing;
                }
                let dearness = *spent / now.saturating_sub(*since).max(1) as f64;
                let income = (income / passed.max(1) as f64).max(self.share);
                let window = length(dearness, income);
                if self.credit >= 0.0 {
                    let calm = now.saturating_sub(*since).clamp(SHORTEST, CALM);
                    *until = now + if dearness <= income { calm } else { window };
                    return Order::Nothing;
                }
                let pause = self.pause(dearness, part * income, window);
                self.state = State::Pause {
                    until: now + pause,
                    next: window,
                };
                Order::Close
            }
            State::Pause { until, next } => {
                if now < *until {
                    return Order::Nothing;
                }
                self.state = State::Window {
                    since: now,
                    until: now + *next,
                    spent: 0.0,
                };
                Order::Open
            }
        }
    }

    /// Nanoseconds until `now` of a window, as far as it was not asked about them.
    pub(super) fn open_until(&self, now: u64) -> u64 {
        match self.state {
            State::Window { since, .. } => now.saturating_sub(self.asked.max(since)),
            State::Pause { .. } => 0,
        }
    }

    /// The window is open since `now`, and beginning it has cost `price` nanoseconds. The kernel waits
    /// for all processors before it lets events begin: a window that counted from the order on would be
    /// over before it has begun, and look as if nothing happened.
    pub(super) fn opened(&mut self, now: u64, price: u64) {
        self.opening = price as f64;
        self.credit -= price as f64;
        if let State::Window { since, until, .. } = &mut self.state {
            (*since, *until) = (now, now + (*until - *since));
        }
    }

    /// When it has to be asked again at the latest.
    pub(super) fn next(&self) -> u64 {
        match self.state {
            State::Window { until, .. } | State::Pause { until, .. } => until,
        }
    }

    /// The part of the share that a pause at `now` earns.
    fn part(&self, now: u64) -> f64 {
        let recorded = now.saturating_sub(self.began) as f64;
        (WHOLE / recorded.max(1.0)).clamp(LEAST, 1.0)
    }

    /// Nanoseconds until another window of that length can be paid, and the debt as far as it is not
    /// above the price of a window: a window that ended late, since the recorder was not given a
    /// processor, is paid for in the course of several pauses. One pause for all of it could be
    /// longer than the recording.
    fn pause(&mut self, dearness: f64, income: f64, window: u64) -> u64 {
        let window = window as f64 * dearness + self.opening;
        let debt = (-self.credit).clamp(0.0, window);
        let mean = (window + debt) / income.max(1e-9);
        /// Steps of the random part.
        const STEPS: usize = 1 << 20;
        let part = self.random.below(STEPS) as f64 / STEPS as f64;
        (mean * (PAUSES.0 + (PAUSES.1 - PAUSES.0) * part)) as u64
    }
}

/// Nanoseconds of a window. Both are per nanosecond: what is spent in it, and what is earned.
fn length(dearness: f64, income: f64) -> u64 {
    let affordable = PAUSE * income / dearness.max(1e-9);
    affordable.clamp(SHORTEST as f64, LONGEST as f64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: u64 = 20_000_000;
    const IN_ADVANCE: u64 = 10_000_000;
    const SHARE: f64 = 0.005;

    /// Runs for `seconds`; at each time events cost `dearness(time)` per nanosecond while they are
    /// recorded: the windows, and all that was spent.
    fn run(seconds: u64, seed: u64, dearness: impl Fn(u64) -> f64) -> (Vec<(u64, u64)>, u64) {
        let mut budget = Budget::new(0, SHARE, IN_ADVANCE, seed);
        let (mut now, mut on, mut windows, mut spent) = (0, Some(0), Vec::new(), 0);
        while now < seconds * 1_000_000_000 {
            let next = (now + TICK).min(budget.next().max(now + 1));
            let price = match on {
                Some(_) => (dearness(now) * (next - now) as f64) as u64,
                None => 0,
            };
            spent += price;
            now = next;
            match budget.look(now, price, 0) {
                Order::Nothing => {}
                Order::Open => {
                    spent += 300_000;
                    // The kernel takes longer than some windows.
                    now += 15_000_000;
                    budget.opened(now, 300_000);
                    on = Some(now);
                }
                Order::Close => windows.push((on.take().unwrap(), now)),
            }
        }
        if let Some(since) = on {
            windows.push((since, now));
        }
        (windows, spent)
    }

    #[test]
    fn what_is_cheap_is_recorded_without_a_gap() {
        let (windows, _) = run(60, 1, |_| SHARE * 0.9);
        assert_eq!((windows.len(), windows[0].0), (1, 0));
        // A burst that the savings cover is, too.
        let burst = |now| {
            if now / 1_000_000_000 == 30 {
                0.014
            } else {
                0.0
            }
        };
        assert_eq!(run(60, 1, burst).0.len(), 1);
    }

    #[test]
    fn what_is_dear_costs_no_more_than_its_share() {
        for dearness in [0.01, 0.05, 0.3, 0.8] {
            for seed in 0..10 {
                let (windows, spent) = run(20, seed, |_| dearness);
                let allowed = SHARE * 20e9 + IN_ADVANCE as f64;
                assert!((spent as f64) < 1.25 * allowed, "{dearness}: {spent}");
                assert!(spent as f64 > 0.4 * allowed, "{dearness}: {spent}");
                assert!(windows.len() >= 10, "{dearness}: {}", windows.len());
                // The begin is recorded as long as the advance lasts.
                assert!(windows[0].1 as f64 * dearness >= IN_ADVANCE as f64);
            }
        }
    }

    #[test]
    fn a_command_that_is_dear_soon_after_its_begin_hardly_spends_more_than_its_advance() {
        let dearness = |now| if now < 20_000_000 { 0.0 } else { 0.3 };
        let (windows, _) = run(1, 1, dearness);
        let spent = (windows[0].1 - 20_000_000) as f64 * 0.3;
        let most = IN_ADVANCE as f64 + 0.3 * LONGEST as f64;
        assert!((IN_ADVANCE as f64..most).contains(&spent), "{spent}");
    }

    #[test]
    fn windows_are_at_no_regular_distance() {
        let (windows, _) = run(30, 3, |_| 0.1);
        let gaps: Vec<u64> = windows.windows(2).map(|w| w[1].0 - w[0].1).collect();
        let (least, most) = (gaps.iter().min().unwrap(), gaps.iter().max().unwrap());
        assert!(*most > 2 * *least, "{gaps:?}");
        assert_eq!(run(30, 3, |_| 0.1).0, windows);
    }

    #[test]
    fn less_is_spent_the_longer_a_recording_lasts() {
        for seed in 0..10 {
            let (windows, spent) = run(60, seed, |_| 0.05);
            let between = |from: u64, to: u64| {
                let begins = windows.iter().map(|of| of.0 / 1_000_000_000);
                begins.filter(|begin| (from..to).contains(begin)).count()
            };
            let (early, late) = (between(0, 8), between(40, 60));
            assert!(
                early >= 10 && late >= 6 && 2 * late < 3 * early,
                "{early} {late}"
            );
            // The windows stay as long as they were.
            let longest = windows[1..].iter().map(|of| of.1 - of.0).max();
            assert!(longest <= Some(120_000_000), "{longest:?}");
            assert!((spent as f64) < 0.6 * SHARE * 60e9, "{spent}");
        }
    }

    #[test]
    fn a_program_that_becomes_quiet_is_recorded_without_a_gap_again() {
        let (windows, _) = run(30, 5, |now| if now < 10_000_000_000 { 0.2 } else { 0.0001 });
        let last = windows.last().unwrap();
        assert!(last.1 - last.0 > 17_000_000_000, "{last:?}");
    }

    #[test]
    fn a_window_that_ended_late_makes_no_long_pause() {
        let mut budget = Budget::new(0, SHARE, IN_ADVANCE, 1);
        // Looked at after 200 ms for the first time, and 160 of them were spent.
        let mut now = 10 * TICK;
        assert_eq!(budget.look(now, 8 * TICK, 0), Order::Close);
        let spent = loop {
            let pause = budget.next() - now;
            now = budget.next();
            assert_eq!(budget.look(now, 0, 0), Order::Open);
            // A window of 5 ms is 4 ms of price, which 0.8 s earn, and four times that later on.
            let most = if now < 8_000_000_000 { 2.4e9 } else { 9.6e9 };
            assert!((pause as f64) < most, "{pause} at {now}");
            let window = budget.next() - now;
            now += window;
            match budget.look(now, window / 5 * 4, 0) {
                Order::Close if budget.credit > -6e6 => break 0.8 * window as f64,
                order => assert_eq!(order, Order::Close),
            }
        };
        // In the end all is paid for.
        assert!(160e6 + spent < SHARE * now as f64 + 2.0 * IN_ADVANCE as f64);
    }

    #[test]
    fn processors_in_use_earn_their_share() {
        let mut budget = Budget::new(0, SHARE, IN_ADVANCE, 1);
        // Four processors, and events that cost three times what one of them earns.
        let closed = (1..1000).any(|tick| {
            let price = 3.0 * SHARE * TICK as f64;
            budget.look(tick * TICK, price as u64, 4 * TICK) == Order::Close
        });
        assert!(!closed);
    }
}
