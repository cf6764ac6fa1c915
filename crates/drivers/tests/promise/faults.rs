//! Accelerators that die, hang, lie or are wrong while `auto` uses them.

use std::time::Duration;

use cipherlane_core::{Goal, Health};
use cipherlane_drivers::dma::model::{Change, Fault, FaultKind};

use crate::accelerator::Accelerator;
use crate::callers::{ALGORITHM, Callers, Way};
use crate::cells::{Bench, Cell};
use crate::simulation::Simulation;
use crate::summary::{BEHIND, REACH};

const CARD: (&str, u64) = ("pcie-modern", 1);
/// Where the card is better for either kind of caller.
const SIZE: usize = 16 << 10;
const WAYS: [Way; 2] = [
    Way::Wait { batch: 16 },
    Way::Submit {
        depth: 16,
        batch: 1,
    },
];

fn cell(way: Way, size: usize) -> Cell {
    Cell {
        device: CARD.0,
        size,
        way,
        sessions: 1,
        goal: Goal::Throughput,
    }
}

/// `auto` at work, and how far it was ever behind software.
struct Run {
    bench: Bench<Accelerator>,
    callers: Callers,
    software: f64,
    until: Duration,
    behind: f64,
}

impl Run {
    fn new(bench: Bench<Accelerator>, way: Way, size: usize) -> Run {
        let callers = bench.callers(None, &cell(way, size));
        let software = bench.device.software().of(way.batch(), way.batch() * size);
        Run {
            bench,
            callers,
            software,
            until: Duration::ZERO,
            behind: 0.0,
        }
    }

    fn work(&mut self, time: Duration) {
        self.until += time;
        let (software, behind) = (self.software, &mut self.behind);
        self.callers.run_until(self.until, |mark| {
            *behind = behind.max(mark.time / (mark.done * software) - 1.0);
        });
    }

    fn served(&self) -> u64 {
        let totals = self
            .bench
            .framework
            .statistics(self.bench.device.driver(), ALGORITHM);
        totals.unwrap().requests
    }

    /// Requests that the device is given within some time.
    fn given(&mut self, time: Duration) -> u64 {
        let before = self.served();
        self.work(time);
        self.served() - before
    }

    fn inject(&self, kind: FaultKind, after: u64, count: u64) {
        let controls = self.bench.device.driver.controls().unwrap();
        controls.inject(Fault {
            kind,
            after,
            count,
            delay_ns: 0,
        });
    }

    fn health(&self) -> Health {
        let rows = self.bench.framework.rows();
        let driver = self.bench.device.driver();
        let row = rows.iter().find(|row| row.driver == driver);
        row.unwrap().health.clone()
    }
}

#[test]
fn one_that_falls_off_the_bus_is_left() {
    for way in WAYS {
        let mut run = Run::new(Bench::accelerator(CARD, 0, |_| {}), way, SIZE);
        run.work(run.bench.device.learning());
        assert!(run.served() > 100, "{way:?}: it is used while it works");
        run.inject(FaultKind::Gone, 50, 1);
        run.work(Duration::from_millis(500));
        let given = run.given(Duration::from_millis(500));
        assert!(given <= 10 * way.batch() as u64, "{way:?}: {given}");
        assert!(run.behind <= BEHIND, "{way:?}: {}", run.behind);
        assert!(run.bench.device.driver.incidents().unanswered_resets > 0);
        run.callers.finish();
    }
}

#[test]
fn one_that_dies_young_costs_three_percent_at_most() {
    for way in WAYS {
        for after in [0, 1, 3, 10] {
            let mut run = Run::new(Bench::accelerator(CARD, 0, |_| {}), way, SIZE);
            run.inject(FaultKind::Gone, after, 1);
            run.work(4 * run.bench.device.learning());
            assert!(run.served() > 0);
            assert!(run.behind <= BEHIND, "{way:?} {after}: {}", run.behind);
            run.callers.finish();
        }
    }
}

#[test]
fn one_that_hangs_again_and_again_is_not_trusted_for_long() {
    for way in WAYS {
        let mut run = Run::new(Bench::accelerator(CARD, 0, |_| {}), way, SIZE);
        for i in 0..50 {
            run.inject(FaultKind::Hang, 20 * i, 1);
        }
        run.work(4 * run.bench.device.learning());
        assert!(run.behind <= BEHIND, "{way:?}: {}", run.behind);
        assert!(run.bench.device.driver.incidents().resets > 1);
        run.callers.finish();
    }
}

/// Ten times as fast in its self-test as ever after.
#[test]
fn one_that_shone_in_its_self_test_is_found_out() {
    let change = Change {
        at_ns: 1_000_000_000,
        factor: 10.0,
    };
    let bench = Bench::accelerator(CARD, 0, |device| device.behaviour.changes = vec![change]);
    let began = Duration::from_nanos(change.at_ns);
    assert!(bench.device.time().now() < began);
    bench.device.time().sleep_until(began);
    for size in [4 << 10, SIZE] {
        for way in WAYS {
            let outcome = bench.measure(cell(way, size));
            assert!(outcome.reached() >= REACH, "{outcome}");
            assert!(outcome.behind <= BEHIND, "{outcome}");
        }
    }
}

#[test]
fn one_that_is_wrong_is_quarantined_and_never_used_again() {
    let mut run = Run::new(Bench::accelerator(CARD, 16, |_| {}), WAYS[0], SIZE);
    run.inject(FaultKind::WrongResult, 40, u64::MAX);
    let wrong = |run: &Run| matches!(run.health(), Health::Quarantined { .. });
    for _ in 0..400 {
        run.work(Duration::from_millis(1));
        run.bench.framework.finish_verification();
        if wrong(&run) {
            break;
        }
    }
    assert!(wrong(&run), "{:?}", run.health());
    assert_eq!(run.given(Duration::from_millis(50)), 0);
    assert!(run.behind <= BEHIND, "{}", run.behind);
}
