//! How a caller that does not wait works: how many batches the caller keeps under way, and how
//! often the caller submits. Both tell when the caller will want a result.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// A submission moves the mean interval by one part in this many.
const STEP: u64 = 16;
/// One batch, in the fixed-point numbers below.
const ONE: u64 = 1 << 16;
/// The depth that is assumed of a caller that has never waited yet.
const UNKNOWN_DEPTH: u32 = 64;

/// One session's submitted batches, in nanoseconds of the framework's clock.
#[derive(Debug, Default)]
pub(crate) struct SubmitDepth {
    /// Tickets that the caller has.
    tickets: AtomicU32,
    /// The most tickets that the caller keeps at once; 0 until that is known.
    depth: AtomicU32,
    submitted: AtomicU64,
    /// Mean nanoseconds between submissions.
    interval: AtomicU64,
    /// Batches since the one at `submitted` at which nobody looked at the clock.
    unclocked: AtomicU32,
    /// Batches that the device finishes for each of this session's, in parts of `ONE`.
    crowd: AtomicU64,
    /// Batches that the device had finished when it finished this session's last one.
    finished: AtomicU64,
    /// The part of a batch that is to be done at home and has not been done yet; an overflow of
    /// this number is one batch.
    owed: AtomicU32,
    /// When a driver at home last finished a batch.
    ended_at_home: AtomicU64,
    /// Batches that have landed at home since one was last learned from.
    unlearned: AtomicU32,
    /// Their number at which one is learned from again.
    learn_at: AtomicU32,
    /// When the caller last asked in vain, if the caller has done nothing else since; else 0.
    idle_since: AtomicU64,
}

impl SubmitDepth {
    /// Notes that the caller is given a ticket.
    pub(crate) fn ticket(&self) {
        let tickets = self.tickets.fetch_add(1, Ordering::Relaxed) + 1;
        let depth = self.depth.load(Ordering::Relaxed);
        if depth > 0 && tickets > depth {
            self.depth.store(tickets, Ordering::Relaxed);
        }
    }

    /// Notes that a batch is submitted.
    pub(crate) fn submit(&self, now: u64) {
        self.idle_since.store(0, Ordering::Relaxed);
        // Threads that share this may lose a step; an exchange would cost each of them.
        let before = self.submitted.load(Ordering::Relaxed);
        let batches = u64::from(self.unclocked.load(Ordering::Relaxed)) + 1;
        self.submitted.store(now, Ordering::Relaxed);
        self.unclocked.store(0, Ordering::Relaxed);
        if before > 0 {
            let mean = self.interval.load(Ordering::Relaxed);
            let step = now.saturating_sub(before) / batches;
            let next = match mean {
                0 => step,
                // A single long pause says little about the usual interval.
                _ => {
                    let weight = batches.min(STEP);
                    let longest = mean.saturating_mul((STEP / weight).max(2));
                    (mean * (STEP - weight) + step.min(longest) * weight) / STEP
                }
            };
            self.interval.store(next.max(1), Ordering::Relaxed);
        }
    }

    /// Notes that a batch was submitted, and done at home, without a look at the clock.
    pub(crate) fn skip(&self) {
        for count in [&self.unclocked, &self.unlearned] {
            let counted = count.load(Ordering::Relaxed);
            count.store(counted.saturating_add(1), Ordering::Relaxed);
        }
    }

    /// Whether the next batch is to be timed: the one that is learned from is, and the one before it,
    /// whose end says for how long there was nothing to do.
    pub(crate) fn is_due(&self) -> bool {
        let next = self.unlearned.load(Ordering::Relaxed).saturating_add(2);
        next >= self.learn_at.load(Ordering::Relaxed)
    }

    /// Notes that a ticket is gone.
    pub(crate) fn take_back(&self) {
        self.tickets.fetch_sub(1, Ordering::Relaxed);
    }

    /// Notes that the caller waits for a result: the caller has all the tickets that it wants.
    pub(crate) fn stall(&self) {
        let tickets = self.tickets.load(Ordering::Relaxed);
        self.depth.store(tickets, Ordering::Relaxed);
    }

    /// Notes that the caller asked for a result that is not there. Returns the nanoseconds since
    /// the caller last asked, if the caller did nothing else in between.
    pub(crate) fn ask(&self, now: u64) -> u64 {
        let since = self.idle_since.swap(now, Ordering::Relaxed);
        if since == 0 {
            return 0;
        }
        self.stall();
        now.saturating_sub(since)
    }

    /// Notes that the caller does other work. Returns the nanoseconds since the caller last asked
    /// in vain.
    pub(crate) fn go_on(&self, now: u64) -> u64 {
        match self.idle_since.swap(0, Ordering::Relaxed) {
            0 => 0,
            since => now.saturating_sub(since),
        }
    }

    /// Notes that a driver at home has finished a batch that it began at `started`. Returns the
    /// nanoseconds since the batch before was finished, for which there was nothing to do; 0 if there
    /// was none before.
    pub(crate) fn idle_at_home(&self, started: u64, now: u64) -> u64 {
        // Threads that share this may lose a batch; an exchange would cost each of them.
        let before = self.ended_at_home.load(Ordering::Relaxed);
        self.ended_at_home.store(now, Ordering::Relaxed);
        match before {
            0 => 0,
            before => started.saturating_sub(before),
        }
    }

    /// Notes that a batch has landed at home. If it is one to learn from, returns how many it stands
    /// for: those that have landed since the last one, itself included. `next` says after how many
    /// the next one is.
    pub(crate) fn counts(&self, next: impl FnOnce() -> u32) -> Option<u32> {
        let unlearned = self.unlearned.fetch_add(1, Ordering::Relaxed) + 1;
        if unlearned < self.learn_at.load(Ordering::Relaxed) {
            return None;
        }
        self.unlearned.store(0, Ordering::Relaxed);
        self.learn_at.store(next(), Ordering::Relaxed);
        Some(unlearned)
    }

    /// Mean nanoseconds between submissions.
    pub(crate) fn interval(&self) -> u64 {
        self.interval.load(Ordering::Relaxed)
    }

    /// The most tickets that the caller keeps at once. A caller that has never waited yet might
    /// want any number.
    pub(crate) fn depth(&self) -> u32 {
        match self.depth.load(Ordering::Relaxed) {
            0 => UNKNOWN_DEPTH,
            depth => depth,
        }
    }

    /// Notes that a device has finished a batch of this session. `all` is the number of batches
    /// that the device has finished for all sessions.
    pub(crate) fn finished(&self, all: u64) {
        let before = match self.finished.swap(all, Ordering::Relaxed) {
            0 => all.saturating_sub(1),
            before => before,
        };
        let step = all.saturating_sub(before).clamp(1, 64) * ONE;
        let crowd = self.crowd.load(Ordering::Relaxed).max(ONE);
        self.crowd
            .store(crowd - crowd / STEP + step / STEP, Ordering::Relaxed);
    }

    /// Batches that the device finishes per batch of this session, that batch included.
    pub(crate) fn crowd(&self) -> f32 {
        self.crowd.load(Ordering::Relaxed).max(ONE) as f32 / ONE as f32
    }

    /// Whether the next batch is to be done at home, when this share of all batches is. The turns
    /// are spread evenly.
    pub(crate) fn takes_turn_at_home(&self, share: f32) -> bool {
        let share = (share.clamp(0.0, 1.0) * u32::MAX as f32) as u32;
        let owed = self.owed.fetch_add(share, Ordering::Relaxed);
        owed.checked_add(share).is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_and_interval_are_those_of_the_caller() {
        let submit_depth = SubmitDepth::default();
        assert_eq!(submit_depth.depth(), UNKNOWN_DEPTH);
        let mut now = 1;
        for _ in 0..200 {
            while submit_depth.tickets.load(Ordering::Relaxed) < 8 {
                now += 100;
                submit_depth.submit(now);
                submit_depth.ticket();
            }
            submit_depth.stall();
            submit_depth.take_back();
        }
        assert_eq!(submit_depth.depth(), 8);
        assert!((90..=101).contains(&submit_depth.interval()));
    }

    #[test]
    fn batches_without_a_look_at_the_clock_count_for_the_interval() {
        let submit_depth = SubmitDepth::default();
        let mut now = 1;
        let mut batches = |count, each| {
            for i in 0..count {
                now += each;
                match i % 100 {
                    99 => submit_depth.submit(now),
                    _ => submit_depth.skip(),
                }
            }
            submit_depth.interval()
        };
        assert_eq!(batches(1000, 100), 100);
        // Longer ones count as twice the mean at most.
        assert_eq!(batches(100, 50_000), 200);
        assert_eq!(batches(100, 100), 100);
    }

    #[test]
    fn two_batches_in_a_row_are_due() {
        let submit_depth = SubmitDepth::default();
        assert_eq!(submit_depth.counts(|| 10), Some(1));
        let due: Vec<bool> = (0..20)
            .map(|_| {
                let due = submit_depth.is_due();
                match due {
                    true => drop(submit_depth.counts(|| 10)),
                    false => submit_depth.skip(),
                }
                due
            })
            .collect();
        let expected = |i: usize| i % 10 >= 8;
        assert_eq!(due, (0..20).map(expected).collect::<Vec<_>>());
    }

    #[test]
    fn home_has_nothing_to_do_from_one_batch_to_the_next() {
        let submit_depth = SubmitDepth::default();
        assert_eq!(submit_depth.idle_at_home(1000, 1300), 0);
        assert_eq!(submit_depth.idle_at_home(1500, 1800), 200);
        // Another thread began before.
        assert_eq!(submit_depth.idle_at_home(1700, 1900), 0);
    }

    #[test]
    fn each_batch_is_counted_once_by_one_that_is_learned_from() {
        let submit_depth = SubmitDepth::default();
        let count = |next| {
            let learned: Vec<u32> = (0..120)
                .filter_map(|_| submit_depth.counts(|| next))
                .collect();
            (learned.len(), learned.iter().sum::<u32>())
        };
        assert_eq!(count(1), (120, 120));
        // The first one was due by the pause before.
        assert_eq!(count(4), (30, 117));
        assert_eq!(count(0), (120, 123));
    }

    #[test]
    fn turns_at_home_are_as_many_as_they_should_be() {
        let submit_depth = SubmitDepth::default();
        for (share, want) in [(0.0, 0), (0.25, 250), (1.0 / 3.0, 333), (1.0, 999)] {
            let turns = (0..1000).filter(|_| submit_depth.takes_turn_at_home(share));
            let turns = turns.count();
            assert!(turns.abs_diff(want) <= 1, "{share}: {turns}");
        }
    }

    #[test]
    fn a_crowd_is_counted() {
        let submit_depth = SubmitDepth::default();
        (1..200).for_each(|i| submit_depth.finished(i * 3));
        assert!(
            (submit_depth.crowd() - 3.0).abs() < 0.05,
            "{}",
            submit_depth.crowd()
        );
    }

    #[test]
    fn a_caller_that_asks_twice_is_waiting() {
        let submit_depth = SubmitDepth::default();
        (1..5).for_each(|_| submit_depth.ticket());
        submit_depth.take_back();
        assert_eq!(
            (submit_depth.ask(50), submit_depth.depth()),
            (0, UNKNOWN_DEPTH)
        );
        assert_eq!((submit_depth.ask(70), submit_depth.depth()), (20, 3));
        assert_eq!(submit_depth.go_on(75), 5);
        assert_eq!((submit_depth.ask(80), submit_depth.go_on(80)), (0, 0));
    }
}
