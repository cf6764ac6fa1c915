//! Waits: how long each thread had no processor, in which stack, and who ended that.
//!
//! Where waits are recorded in windows, a wait counts by the part of it that lies within them, and
//! as one where its begin does. A long wait is met by more windows than a short one, for just as
//! much longer as it is, so the times are right on average, whichever way waits and windows meet.
//! Of a thread that has no processor when a window begins, the stack is known if it has not run
//! since the window before. If it has, what it waits in is not known: the time is given to the
//! stacks that it waits in otherwise, by their shares, which is how likely it is to be found there.

use super::collect::Collector;
use super::records::USER;
use super::turns;
use super::wakes::{Waker, Wakes};
use crate::recording::Kind;

/// The threads that processors run while they have nothing to do.
const NOBODY: u32 = 0;

/// Of a thread.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct State {
    /// The last stack that it stopped in.
    pub(super) stack: u32,
    /// Since when it has stopped, and how.
    pub(super) out: Option<(u64, Kind)>,
    /// Who has woken it since.
    waker: Option<Waker>,
    /// That was in a window before this one.
    is_old: bool,
    /// The processor that it had last in this window.
    processor: Option<u32>,
    /// A window has begun, and nothing has told yet whether it has a processor.
    is_unknown: bool,
}

/// What is counted of waits in a window.
#[derive(Debug, Default)]
pub(super) struct WaitSums {
    pub(super) waits: u64,
    pub(super) preemptions: u64,
    pub(super) migrations: u64,
    pub(super) wakes: Wakes,
}

impl Collector {
    /// A thread has this processor, or has had it until now.
    pub(super) fn is_on(&mut self, tid: u32, processor: u32) {
        if !self.waits.is_open || tid == NOBODY {
            return;
        }
        let state = self.states.entry(tid).or_default();
        let before = state.processor.replace(processor);
        self.waits.now.migrations += u64::from(before.is_some_and(|before| before != processor));
    }

    /// A thread gives up its processor.
    pub(super) fn stopped(&mut self, time: u64, pid: u32, tid: u32, preempted: bool) {
        if !self.waits.is_open {
            return;
        }
        let kind = match preempted {
            true => Kind::Ready,
            false => Kind::Wait,
        };
        match kind {
            Kind::Ready => self.waits.now.preemptions += 1,
            _ => self.waits.now.waits += 1,
        }
        self.begin.get_or_insert(time);
        self.thread(pid, tid);
        let state = self.states.entry(tid).or_default();
        (state.out, state.waker) = (Some((time, kind)), None);
        (state.is_old, state.is_unknown) = (false, false);
    }

    /// A thread has a processor again.
    pub(super) fn resumed(&mut self, time: u64, pid: u32, tid: u32) {
        if !self.waits.is_open {
            return self.has_run(tid);
        }
        let Some(state) = self.states.get_mut(&tid) else {
            return;
        };
        if std::mem::take(&mut state.is_unknown) {
            return self.edge(time, pid, tid);
        }
        let (Some((since, kind)), stack) = (state.out.take(), state.stack) else {
            return;
        };
        let waker = state.waker.take();
        let count = u64::from(!std::mem::take(&mut state.is_old));
        // Who waits beyond a turn's ends has nothing to do with the work of the turn.
        let Some(since) = turns::within(self.turns.as_ref(), since, kind) else {
            return;
        };
        let thread = self.thread(pid, tid);
        let ns = time.saturating_sub(since);
        self.sample(since, kind, thread, stack, (count, ns));
        if let Some(waker) = waker {
            self.waits.now.wakes.add(thread, stack, waker, (count, ns));
        }
    }

    /// A thread has a processor: between windows, and where it is not known, that says that it does
    /// not wait any more.
    pub(super) fn has_run(&mut self, tid: u32) {
        if let Some(state) = self.states.get_mut(&tid) {
            state.is_unknown = false;
            if !self.waits.is_open {
                state.out = None;
            }
        }
    }

    /// A thread of ours may wait no more. Others may wake it again before it runs: the first has
    /// ended the wait. `waker` is `None` for an interrupt.
    pub(super) fn woke(&mut self, woken: u32, waker: Option<(u32, u32)>, chain: &[u64]) {
        self.waits.now.wakes.seen += 1;
        let waits = |state: &State| matches!(state.out, Some((_, Kind::Wait)));
        let ours = self.states.get(&woken);
        if !ours.is_some_and(|state| waits(state) && state.waker.is_none()) {
            return;
        }
        let waker = match waker {
            Some((pid, tid)) if tid != NOBODY => {
                (self.thread(pid, tid) + 1, self.stack(pid, chain))
            }
            _ => {
                let program = chain.iter().position(|address| *address == USER);
                let kernel = &chain[..program.unwrap_or(chain.len())];
                (0, self.stack(NOBODY, kernel))
            }
        };
        if let Some(state) = self.states.get_mut(&woken) {
            state.waker = Some(waker);
        }
    }

    /// A window begins. Who waited when the last one ended, and was not seen to run since, waits.
    pub(super) fn resume_waits(&mut self, time: u64, done: u64) {
        self.waits.open(time, done);
        let alive = self.alive.keys().copied();
        for tid in alive {
            self.states.entry(tid).or_default();
        }
        for state in self.states.values_mut() {
            state.processor = None;
            match &mut state.out {
                Some((since, _)) => (*since, state.is_old) = (time, true),
                None => state.is_unknown = true,
            }
        }
    }

    /// A window ends: those who wait have waited until now, and may go on.
    pub(super) fn pause_waits(&mut self, time: u64) {
        let tids: Vec<u32> = self.states.keys().copied().collect();
        for tid in tids {
            let state = self.states.get(&tid).copied().unwrap_or_default();
            let pid = self.alive.get(&tid).copied().unwrap_or(0);
            self.resumed(time, pid, tid);
            if let (Some(after), Some((_, kind))) = (self.states.get_mut(&tid), state.out) {
                after.out = Some((time, kind));
            }
        }
        self.flush();
    }

    /// A thread had no processor from the begin of the window until now.
    fn edge(&mut self, time: u64, pid: u32, tid: u32) {
        let since = self.waits.since;
        let thread = self.thread(pid, tid);
        let at = since.saturating_sub(self.begin.unwrap_or(since));
        self.edges.push((at, thread, time.saturating_sub(since)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::records::{Happened, KERNEL, Kinds, What};

    /// What happens to the thread 1.
    fn at(time: u64, what: What) -> Happened {
        Happened {
            time,
            pid: 1,
            tid: 1,
            processor: 0,
            what,
        }
    }

    fn stops(collector: &mut Collector, time: u64, address: u64) {
        let chain = vec![KERNEL, address];
        collector.add(at(time, What::Stack { chain }));
        collector.add(at(time, What::Out { preempted: false }));
    }

    fn window(collector: &mut Collector, time: u64, is_open: bool) {
        let of = Kinds::Waits;
        collector.add(at(
            time,
            What::Window {
                of,
                is_open,
                done: 0,
                counted: 0,
            },
        ));
    }

    fn begun() -> Collector {
        let mut collector = Collector::default();
        collector.begin = Some(0);
        collector.alive.insert(1, 1);
        collector
    }

    /// How many waits begin, and nanoseconds of waiting by stack.
    fn waited(collector: &Collector) -> (u64, Vec<(u32, u64)>) {
        let mut times = std::collections::BTreeMap::new();
        for sample in collector.samples.iter().filter(|of| of.kind != Kind::Cpu) {
            *times.entry(sample.stack).or_insert(0) += sample.ns;
        }
        (collector.sums.waits, times.into_iter().collect())
    }

    #[test]
    fn the_first_who_wakes_a_thread_that_waits_has_ended_its_wait() {
        let mut collector = Collector::default();
        let woke = |tid, interrupt| Happened {
            tid,
            ..at(
                0,
                What::Woke {
                    woken: 1,
                    interrupt,
                    chain: vec![KERNEL, 0x10, USER, 0x20],
                },
            )
        };
        // It has not stopped yet; then it waits, and is made to stop.
        collector.add(woke(7, false));
        collector.add(at(10, What::Out { preempted: false }));
        collector.add(woke(2, false));
        collector.add(woke(3, false));
        collector.add(at(30, What::In));
        collector.add(at(40, What::Out { preempted: true }));
        collector.add(woke(4, false));
        collector.add(at(50, What::In));
        collector.add(at(60, What::Out { preempted: false }));
        collector.add(woke(5, true));
        collector.add(at(65, What::In));
        collector.finish(100);
        let mut named = crate::symbols::resolve(&collector.places, &collector.stacks, &[]);
        let wakes = collector.sums.wakes.named(&mut named);
        assert_eq!(
            wakes.iter().map(|wake| wake.ns).collect::<Vec<_>>(),
            [20, 5]
        );
        let waker = &collector.threads[wakes[0].waker as usize - 1];
        assert_eq!((waker.tid, wakes[1].waker), (2, 0));
        let depth = |mut stack: u32| {
            let callers = std::iter::from_fn(|| {
                stack = named.stacks[stack.checked_sub(1)? as usize].0;
                Some(())
            });
            callers.count()
        };
        let depths = wakes.iter().map(|wake| depth(wake.waker_stack));
        assert_eq!(depths.collect::<Vec<_>>(), [2, 1]);
    }

    #[test]
    fn a_thread_that_goes_on_elsewhere_has_moved() {
        let mut collector = begun();
        let mut switch = |time, processor, what| {
            collector.add(Happened {
                processor,
                ..at(time, what)
            });
        };
        switch(10, 0, What::Out { preempted: false });
        switch(20, 1, What::In);
        switch(30, 1, What::Out { preempted: true });
        switch(40, 1, What::In);
        // Between windows it moves unseen.
        window(&mut collector, 100, false);
        window(&mut collector, 300, true);
        collector.add(at(310, What::Out { preempted: false }));
        collector.finish(400);
        assert_eq!(collector.sums.migrations, 2, "one, and a weight of 2");
    }

    #[test]
    fn a_wait_over_several_windows_counts_once_and_for_its_length() {
        let mut collector = begun();
        stops(&mut collector, 40, 0x10);
        window(&mut collector, 100, false);
        window(&mut collector, 300, true);
        window(&mut collector, 400, false);
        window(&mut collector, 900, true);
        collector.finish(1000);
        // Weights are 2, 4.5 and 3.5: of the first window it has 60, of the others 100.
        let (waits, times) = waited(&collector);
        assert_eq!(waits, 2, "multiplied up with the window that it begins in");
        assert_eq!(times, [(1, 120 + 450 + 350)]);
    }

    #[test]
    fn a_wait_that_ends_in_a_gap_counts_to_the_end_of_the_window() {
        let mut collector = begun();
        stops(&mut collector, 40_000, 0x10);
        window(&mut collector, 100_000, false);
        // It runs, and waits for something else until the next window is over.
        let chain = vec![KERNEL, 0x99];
        collector.add(at(150_000, What::Ran { period: 1, chain }));
        window(&mut collector, 300_000, true);
        collector.add(at(310_000, What::In));
        stops(&mut collector, 380_000, 0x20);
        window(&mut collector, 400_000, false);
        collector.finish(500_000);
        // Of microseconds 60 in the first window, and 20 in the second, before which 10 have no stack of their own:
        // they are shared by 60 to 20. The weights are 2 and 3.
        let (_, times) = waited(&collector);
        assert_eq!(
            times.iter().map(|of| of.1).sum::<u64>(),
            120_000 + 24_000 + 66_000
        );
        assert_eq!(times.len(), 2);
    }

    #[test]
    fn a_thread_of_which_nothing_is_seen_waits() {
        let mut collector = begun();
        window(&mut collector, 100, false);
        window(&mut collector, 300, true);
        window(&mut collector, 400, false);
        collector.finish(500);
        assert_eq!(waited(&collector), (0, vec![(0, 300)]));
        let mut busy = begun();
        window(&mut busy, 100, false);
        window(&mut busy, 300, true);
        let chain = vec![KERNEL, 0x99];
        busy.add(at(350, What::Ran { period: 1, chain }));
        busy.finish(500);
        assert_eq!(waited(&busy), (0, vec![]));
    }

    /// Waits that take much longer than the windows, and others that are much shorter: the times
    /// come out right, though the windows meet the long ones more often and never whole.
    #[test]
    fn long_and_short_waits_have_their_true_shares() {
        let mut random = cipherlane_measure::random::Random::new(11);
        let mut collector = begun();
        let (mut now, mut truth, mut is_open, mut edge) = (0, [0, 0], true, 1_000_000);
        let mut began = 0;
        while now < 20_000_000_000 {
            let of = random.below(2);
            let length = [300_000, 90_000_000][of];
            let length = length / 2 + random.below(length as usize) as u64;
            let events = [(now, true), (now + length, false)];
            truth[of] += length;
            began += 1;
            for (time, is_begin) in events {
                while edge <= time {
                    is_open = !is_open;
                    window(&mut collector, edge, is_open);
                    let mean = if is_open { 20_000_000 } else { 100_000_000 };
                    edge += (mean / 2 + random.below(mean)) as u64;
                }
                match is_begin {
                    true => stops(&mut collector, time, 0x10 + of as u64),
                    false => {
                        collector.add(at(time, What::In));
                        let chain = vec![KERNEL, 0x99];
                        collector.add(at(time, What::Ran { period: 1, chain }));
                    }
                }
            }
            now += length + 50_000;
        }
        collector.finish(now);
        let (waits, times) = waited(&collector);
        let ratio = waits as f64 / f64::from(began);
        assert!((0.6..1.6).contains(&ratio), "{ratio}");
        let all: u64 = times.iter().map(|of| of.1).sum();
        let ratio = all as f64 / (truth[0] + truth[1]) as f64;
        assert!((0.97..1.03).contains(&ratio), "{ratio}");
        let long = times.iter().map(|of| of.1).max().unwrap();
        let ratio = long as f64 / truth[1] as f64;
        assert!((0.97..1.03).contains(&ratio), "{ratio} {times:?}");
    }
}
