//! Goal cpu: the most processor time freed that keeps 90 % of the best throughput.

use cipherlane::Goal;

use crate::callers::Way;
use crate::cells::{Bench, Cell, DEVICES};

#[test]
fn goal_cpu_frees_the_processor_and_keeps_the_throughput() {
    for settings in &DEVICES[..3] {
        let bench = Bench::new(*settings);
        for size in [1 << 10, 16 << 10, 128 << 10] {
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
                    let fast = bench.measure(cell(Goal::Throughput));
                    let cpu = bench.measure(cell(Goal::Cpu));
                    let [software, device] = [cpu.software, cpu.device];
                    let best = software.pace().min(device.pace()).min(fast.auto.pace());
                    // Measurements of `auto` have retrials in them.
                    let keeps = |pace: f64| pace <= best / 0.9 * 1.03;
                    assert!(keeps(cpu.auto.pace()), "{cpu}, best {best:.0}");
                    let frees = match device.pace() <= best / 0.9 {
                        true => software.work().min(device.work()),
                        false => software.work(),
                    };
                    let freed = software.work() - cpu.auto.work();
                    let most = software.work() - frees;
                    assert!(freed >= most * 0.97, "{cpu}: {freed:.0} of {most:.0}");
                }
            }
        }
    }
}
