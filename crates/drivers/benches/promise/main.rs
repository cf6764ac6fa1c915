//! The promise of `auto` over the whole matrix, in virtual time, and what one decision costs.
//!
//! `cargo bench -p cipherlane-drivers --bench promise` prints a summary for each device, and all
//! together; with `-- --cells` every place of the matrix too. `-- --model`, `-- --dma` and
//! `-- --beside-cores` are for one part, or some, without the others.

#![expect(dead_code, reason = "the tests use more of it")]

#[path = "../../tests/promise/accelerator.rs"]
mod accelerator;
#[path = "../../tests/promise/callers.rs"]
mod callers;
#[expect(unused_imports, reason = "its tests are not run here")]
#[path = "../../src/cores/calls.rs"]
mod calls;
#[path = "../../tests/promise/cells.rs"]
mod cells;
mod decision;
#[path = "../../tests/promise/helped.rs"]
mod helped;
#[path = "../../tests/promise/model.rs"]
mod model;
#[path = "../../tests/promise/simulation.rs"]
mod simulation;
#[path = "../../tests/promise/summary.rs"]
mod summary;
#[path = "../../tests/promise/workers.rs"]
mod workers;

use std::time::Instant;

use cipherlane_core::Goal;
use cipherlane_measure::machine::Machine;

use accelerator::PRESETS;
use cells::{Bench, DEVICES, Matrix, Outcome};
use summary::Summary;

/// All of it.
const WHOLE: Matrix = Matrix {
    sizes: &[16, 256, 1 << 10, 16 << 10, 128 << 10, 1 << 20],
    many: &[1, 4, 16, 64],
    sessions: &[1, 2, 3, 4],
    goals: &[Goal::Latency, Goal::Throughput],
};

/// Over the driver: sizes up to what most presets take as one request, batches that do not take
/// longer than the timeout. Two callers at the most, for what one finds in the driver's rings
/// may be what another one left there who is ahead in time.
const OVER_DMA: Matrix = Matrix {
    sizes: &[256, 1 << 10, 4 << 10, 16 << 10],
    many: &[1, 4, 16],
    sessions: &[1, 2],
    goals: &[Goal::Throughput],
};

/// Beside cores: bytes, microseconds of pause, callers.
const BESIDE_CORES: helped::Places = (
    &[
        1 << 10,
        16 << 10,
        64 << 10,
        128 << 10,
        256 << 10,
        512 << 10,
        1 << 20,
        4 << 20,
        16 << 20,
    ],
    &[0, 10, 30, 60, 100, 1000, 10_000],
    &[1, 2],
);

fn report(name: &str, outcomes: &[Outcome], cells: bool) {
    println!("\n{name}\n{}", Summary(outcomes));
    if cells {
        outcomes
            .iter()
            .for_each(|outcome| println!("      {outcome}"));
    }
}

/// Each device of a matrix, then all of them by goal.
fn matrix<'a>(title: &str, devices: impl Iterator<Item = (&'a str, Vec<Outcome>)>, cells: bool) {
    println!("\n== {title}");
    let mut all = Vec::new();
    for (name, outcomes) in devices {
        report(name, &outcomes, cells);
        all.extend(outcomes);
    }
    for goal in [Goal::Latency, Goal::Throughput] {
        let of_goal = all.iter().filter(|o| o.cell.goal == goal).copied();
        let of_goal: Vec<Outcome> = of_goal.collect();
        if !of_goal.is_empty() && of_goal.len() < all.len() {
            report(&format!("all, goal {goal:?}"), &of_goal, false);
        }
    }
    report("all", &all, false);
}

/// Callers that wait, beside workers that may sleep, rest or lose their cores.
fn beside_cores(cells: bool) {
    println!("\n== beside cores, over a cost model");
    for nature in helped::NATURES {
        let outcomes = helped::all(nature, BESIDE_CORES);
        println!("\n{}\n{}", nature.name, helped::summary(&outcomes));
        if cells {
            outcomes
                .iter()
                .for_each(|outcome| println!("      {outcome}"));
        }
    }
}

fn main() {
    let asked = |option: &str| std::env::args().any(|argument| argument == option);
    let cells = asked("--cells");
    let parts = ["--model", "--dma", "--beside-cores"].map(asked);
    let is_wanted = |part: usize| parts[part] || !parts.contains(&true);
    let machine = Machine::detect();
    println!("{}, {} processors", machine.cpu, machine.cpus);
    println!("\n== one decision, nanoseconds, median");
    decision::print();
    let began = Instant::now();
    let devices = DEVICES.iter();
    let devices = devices.map(|settings| (settings.name, Bench::new(*settings).all(&WHOLE)));
    if is_wanted(0) {
        matrix("over a cost model", devices, cells);
    }
    let presets = PRESETS.iter().map(|preset| {
        let bench = Bench::accelerator(*preset, 0, |_| {});
        (preset.0, bench.all(&OVER_DMA))
    });
    if is_wanted(1) {
        matrix("over the dma driver", presets, cells);
    }
    if is_wanted(2) {
        beside_cores(cells);
    }
    println!("\nin {:.0} s", began.elapsed().as_secs_f64());
}
