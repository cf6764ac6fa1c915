//! Devices that change while they are used: how soon `auto` follows, and that it does not
//! swing to and fro.

use std::sync::atomic::Ordering;
use std::time::Duration;

use cipherlane_core::Goal;

use crate::callers::{ALGORITHM, Callers, Way};
use crate::cells::{Bench, Cell, device};
use crate::model::{Device, Settings, Temper};

/// A device that is somewhat faster than software.
const MEDIUM: Settings = device("medium", 10e3, 500.0, 0.5, Temper::Even);

/// Who serves is asked of this number of batches together.
const BLOCK: f64 = 20.0;

/// Callers at work on a device whose speed a test changes.
struct Run {
    bench: Bench<Device>,
    callers: Callers,
    until: Duration,
    served: u64,
    done: f64,
    /// Batches that the device served and all batches, step by step.
    steps: Vec<(u64, f64)>,
}

impl Run {
    fn new(way: Way, size: usize, sessions: usize) -> Run {
        let bench = Bench::new(MEDIUM);
        let callers = bench.callers(
            None,
            &Cell {
                device: MEDIUM.name,
                size,
                way,
                sessions,
                goal: Goal::Throughput,
            },
        );
        let mut run = Run {
            bench,
            callers,
            until: Duration::ZERO,
            served: 0,
            done: 0.0,
            steps: Vec::new(),
        };
        run.work(400);
        run.share();
        run.work(100);
        assert!(run.share() > 0.5, "the device serves at first");
        run
    }

    /// Works on for this number of milliseconds of all callers together.
    fn work(&mut self, milliseconds: u64) {
        for _ in 0..milliseconds {
            self.until += Duration::from_millis(1);
            let (served, done) = (self.served(), self.callers.mark().done);
            self.callers.run_until(self.until, |_| {});
            let done = self.callers.mark().done - done;
            self.steps.push((self.served() - served, done));
        }
    }

    fn served(&self) -> u64 {
        let totals = self.bench.framework.statistics("device", ALGORITHM);
        totals.unwrap().requests
    }

    /// The device's share of what was done since this was last asked.
    fn share(&mut self) -> f64 {
        let (served, done) = (self.served(), self.callers.mark().done);
        let share = (served - self.served) as f64 / (done - self.done).max(1.0);
        (self.served, self.done) = (served, done);
        share
    }

    fn slow_down(&self, factor: f64) {
        let thousandths = (factor * 1000.0) as u64;
        self.bench
            .device
            .slowdown
            .store(thousandths, Ordering::Relaxed);
    }

    /// Batches that the device still serves until `auto` has left it, within this number of
    /// milliseconds.
    fn until_left(&mut self, milliseconds: u64) -> u64 {
        let before = self.served();
        self.work(milliseconds);
        self.served() - before
    }

    /// How often another served the most of `BLOCK` batches than of those before; a trial
    /// now and then is none.
    fn switches(&mut self) -> usize {
        let (mut blocks, mut served, mut done) = (Vec::new(), 0, 0.0);
        for (more_served, more_done) in self.steps.drain(..) {
            (served, done) = (served + more_served, done + more_done);
            if done >= BLOCK {
                blocks.push(served as f64 > done / 2.0);
                (served, done) = (0, 0.0);
            }
        }
        blocks.windows(2).filter(|pair| pair[0] != pair[1]).count()
    }
}

const WAIT: Way = Way::Wait { batch: 1 };

#[test]
fn a_tenfold_slowdown_is_left_within_twenty_batches_and_its_end_is_noticed() {
    let mut run = Run::new(WAIT, 128 << 10, 1);
    run.switches();
    run.slow_down(10.0);
    let batches = run.until_left(100);
    assert!(batches <= 20, "{batches}");
    run.work(200);
    run.slow_down(1.0);
    // The worse it was, the longer until it is tried again.
    run.work(400);
    run.share();
    run.work(50);
    assert!(run.share() > 0.9);
    assert!(run.switches() <= 2);
}

#[test]
fn several_callers_follow_a_slowdown_too() {
    for (way, sessions) in [(WAIT, 3), (Way::Submit { depth: 4, batch: 1 }, 2)] {
        let mut run = Run::new(way, 128 << 10, sessions);
        run.slow_down(10.0);
        run.work(100);
        run.share();
        run.work(300);
        let software = 262.0e3 + 1000.0;
        let share = run.share();
        // What it still does, it does beside software, not instead.
        let device = 10.0 * 66_000.0;
        assert!(share <= 1.2 * software / device, "{way:?}: {share}");
    }
}

#[test]
fn a_device_flooded_by_others_is_left_while_it_is_flooded() {
    let mut run = Run::new(WAIT, 16 << 10, 1);
    run.switches();
    run.share();
    for _ in 0..100 {
        // Nine tenths of its time belong to somebody else.
        run.bench.device.flood(Duration::from_micros(900));
        run.work(1);
    }
    run.share();
    for _ in 0..100 {
        run.bench.device.flood(Duration::from_micros(900));
        run.work(1);
    }
    assert!(run.share() < 0.7);
    let flooded = run.callers.mark();
    let served = run.served();
    // The device is tried again when the trials of it have been paid for, and taken when four
    // of them were good.
    let retaken = (1..400).find(|_| {
        run.work(1);
        run.served() - served >= 20
    });
    let requests = run.callers.mark().since(flooded).done;
    assert!(
        retaken.is_some() && requests <= 6000.0,
        "{requests} requests"
    );
    run.share();
    run.work(50);
    assert!(run.share() > 0.9);
    let after = run.callers.mark().since(flooded);
    assert!(after.pace() < 33_768.0);
}

#[test]
fn a_crossover_that_moves_is_followed_where_it_moves() {
    // Three times slower, it loses at 16 KiB and still wins at 1 MiB.
    let mut small = Run::new(WAIT, 16 << 10, 1);
    small.slow_down(3.0);
    let batches = small.until_left(100);
    assert!(batches <= 60, "{batches}");
    let mut large = Run::new(WAIT, 1 << 20, 1);
    large.slow_down(3.0);
    large.work(100);
    large.switches();
    large.share();
    large.work(300);
    assert!(large.share() > 0.9);
    assert!(large.switches() <= 2);
}
