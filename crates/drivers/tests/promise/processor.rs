//! Goal cpu: the most processor time freed that keeps 90 % of the best throughput.

use cipherlane_core::Goal;

use crate::callers::Way;
use crate::cells::{Bench, Cell, DEVICES};
use crate::simulation::Simulation;

#[test]
fn goal_cpu_frees_the_processor_and_keeps_the_throughput() {
    for settings in &DEVICES[..3] {
        let bench = Bench::new(*settings);
        for size in [1 << 10, 16 << 10, 128 << 10] {
            // A long queue must be paid for before a slow device may have it.
            let learning = bench.device.learning() * if size < 128 << 10 { 1 } else { 5 };
            for many in [1, 4, 16, 64] {
                let submit = Way::Submit {
                    depth: many,
                    batch: 1,
                };
                for way in [Way::Wait { batch: many }, submit] {
                    let cell = |goal| Cell {
                        device: settings.name,
                        size,
                        way,
                        sessions: 1,
                        goal,
                    };
                    let fast = bench.measure_after(learning, cell(Goal::Throughput));
                    let cpu = bench.measure_after(learning, cell(Goal::Cpu));
                    let [software, device] = [cpu.software, cpu.device];
                    let best = software.pace().min(device.pace()).min(fast.auto.pace());
                    // Measurements of `auto` have retrials in them.
                    let keeps = |pace: f64| pace <= best / 0.9 * 1.03;
                    assert!(keeps(cpu.auto.pace()), "{cpu}, best {best:.0}");
                    // Of all ways to split the work that keep nine tenths.
                    let splits = bench.device.splits(&cpu.cell, &software, &device);
                    let paces = splits.iter().map(|split| split.pace);
                    let allowed = paces.fold(best, f64::min) / 0.9;
                    let least = splits.iter().filter(|split| split.pace <= allowed);
                    let least = least
                        .map(|split| split.work)
                        .fold(software.work(), f64::min);
                    let freed = software.work() - cpu.auto.work();
                    let most = software.work() - least;
                    assert!(freed >= most * 0.97, "{cpu}: {freed:.0} of {most:.0}");
                }
            }
        }
    }
}
