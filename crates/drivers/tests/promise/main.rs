//! The promise of `auto`, over simulated devices in virtual time: it reaches 97 % of the
//! better of software and device, is never more than 3 % behind software in total, and uses
//! both where that is better than either.
//!
//! | file | what it holds |
//! |---|---|
//! | `simulation` | what is asked of a device |
//! | `model` | software and a device of which only the times are real |
//! | `accelerator` | the `dma` driver over its simulated transport |
//! | `callers` | callers that wait or do not, each with a time of its own |
//! | `cells` | the matrix, and the measurement of one cell |
//! | `summary` | what it shows |
//! | `workers` | the `cores` driver, of which only the times are real |
//! | `helped` | callers beside workers that may sleep, rest or lose their cores |
//! | `changes` | devices that slow down, recover, or are flooded while they are used |
//! | `faults` | accelerators that die, hang, lie or are wrong while they are used |
//! | `processor` | goal cpu |
//!
//! `cargo bench -p cipherlane-drivers --bench promise` prints the whole matrix.

mod accelerator;
mod callers;
#[path = "../../src/cores/calls.rs"]
mod calls;
mod cells;
mod changes;
mod faults;
mod helped;
mod model;
mod processor;
mod simulation;
mod summary;
mod workers;

use cipherlane_core::Goal;

use accelerator::PRESETS;
use cells::{Bench, DEVICES, Matrix, Outcome};
use summary::{BEHIND, REACH, Summary};

/// Enough of the matrix for every test run.
const SOME: Matrix = Matrix {
    sizes: &[16, 1 << 10, 16 << 10, 1 << 20],
    many: &[1, 4, 16, 64],
    sessions: &[1, 4],
    goals: &[Goal::Throughput],
};

/// Throughout, `auto` reaches what it should and is never behind.
fn judge(outcomes: &[Outcome]) -> Summary<'_> {
    let summary = Summary(outcomes);
    eprintln!("{summary}");
    for outcome in outcomes {
        assert!(outcome.reached() >= REACH, "{outcome}");
        assert!(outcome.behind <= BEHIND, "{outcome}");
    }
    summary
}

#[test]
fn workers_that_sleep_and_rest() {
    const SOME: helped::Places = (
        &[16 << 10, 128 << 10, 512 << 10, 1 << 20, 4 << 20, 16 << 20],
        &[0, 10, 100, 1000],
        &[1, 2],
    );
    for nature in helped::NATURES {
        let outcomes = helped::all(nature, SOME);
        eprintln!("{}", helped::summary(&outcomes));
        for outcome in outcomes {
            assert!(outcome.reached() >= REACH, "{outcome}");
        }
    }
}

fn keeps_the_promise(device: usize) {
    let outcomes = Bench::new(DEVICES[device]).all(&SOME);
    let (spills, missed) = judge(&outcomes).spills();
    // Where a window or the ledger leaves a slow device no room, it stays at home.
    assert!(missed * 6 <= spills, "{missed} of {spills} missed");
}

/// The same over the real driver.
fn keeps_the_promise_over_dma(preset: usize, sizes: &'static [usize]) {
    let matrix = Matrix {
        sizes,
        many: &[1, 16],
        sessions: &[1, 2],
        goals: &[Goal::Throughput],
    };
    let bench = Bench::accelerator(PRESETS[preset], 0, |_| {});
    judge(&bench.all(&matrix));
}

#[test]
fn the_engine_of_a_router() {
    keeps_the_promise_over_dma(0, &[256, 4 << 10, 16 << 10]);
}

#[test]
fn the_engine_of_a_programmable_chip() {
    keeps_the_promise_over_dma(1, &[1 << 10, 4 << 10, 16 << 10]);
}

#[test]
fn a_card_of_today() {
    keeps_the_promise_over_dma(2, &[4 << 10, 64 << 10]);
}

#[test]
fn a_fast_device() {
    keeps_the_promise(0);
}

#[test]
fn a_slow_device() {
    keeps_the_promise(1);
}

#[test]
fn a_device_of_high_latency() {
    keeps_the_promise(2);
}

#[test]
fn a_jittery_device() {
    keeps_the_promise(3);
}

#[test]
fn a_device_that_collapses_under_load() {
    keeps_the_promise(4);
}

#[test]
fn a_device_that_dies() {
    keeps_the_promise(5);
}

#[test]
fn a_device_that_lies() {
    keeps_the_promise(6);
}

#[test]
fn a_caller_that_wants_results_soon() {
    for device in [0, 2, 3, 4] {
        let matrix = Matrix {
            goals: &[Goal::Latency],
            sizes: &[1 << 10, 16 << 10],
            many: &[1, 16],
            ..SOME
        };
        judge(&Bench::new(DEVICES[device]).all(&matrix));
    }
}

/// The same run gives the same times to the nanosecond.
#[test]
fn nothing_is_left_to_chance() {
    let matrix = || Matrix {
        sizes: &[16 << 10],
        many: &[1, 4, 16, 64],
        sessions: &[2],
        goals: &[Goal::Throughput],
    };
    let once = || {
        let run = std::thread::spawn(move || Bench::new(DEVICES[3]).all(&matrix()));
        let outcomes = run.join().unwrap();
        let times = outcomes.iter().map(|o| (o.auto.time, o.auto.done));
        times.collect::<Vec<_>>()
    };
    assert_eq!(once(), once());
}
