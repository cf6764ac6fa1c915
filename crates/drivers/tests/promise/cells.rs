//! The matrix: devices, sizes, ways to call, sessions and goals, and what `auto` makes of each.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use cipherlane_core::{Config, Framework, Goal};

use crate::callers::{ALGORITHM, Callers, KEY, Mark, Way};
use crate::model::{Device, Price, Settings, Temper, World, driver_of, ns, software};
use crate::simulation::Simulation;

/// The processor: about that of a small router.
pub(crate) const SOFTWARE: Price = Price {
    call: 500.0,
    request: 500.0,
    byte: 2.0,
};

const CORE: Price = Price {
    call: 400.0,
    request: 100.0,
    byte: 0.0,
};

pub(crate) const fn device(
    name: &'static str,
    latency: f64,
    request: f64,
    byte: f64,
    temper: Temper,
) -> Settings {
    Settings {
        name,
        latency,
        service: Price {
            call: 300.0,
            request,
            byte,
        },
        core: CORE,
        temper,
        timeout: 1e6,
    }
}

/// Each is off in another way.
pub(crate) const DEVICES: [Settings; 7] = [
    device("fast", 4e3, 200.0, 0.1, Temper::Even),
    device("slow", 20e3, 2000.0, 4.0, Temper::Even),
    device("high latency", 300e3, 200.0, 0.1, Temper::Even),
    device("jittery", 10e3, 500.0, 0.5, Temper::Jitter(10, 5.0)),
    device("collapsing", 4e3, 300.0, 0.3, Temper::Collapse(8.0)),
    device("dying", 4e3, 200.0, 0.1, Temper::Dies(60)),
    device("lying", 4e3, 200.0, 0.2, Temper::Lies(10.0)),
];

/// How much of the matrix.
pub(crate) struct Matrix {
    pub(crate) sizes: &'static [usize],
    /// Requests in a batch, or batches under way.
    pub(crate) many: &'static [usize],
    pub(crate) sessions: &'static [usize],
    pub(crate) goals: &'static [Goal],
}

/// Learning must be over after this number of batches in software, of all callers, if not before.
const LEARNING: u32 = 150;

/// A place in the matrix.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell {
    pub(crate) device: &'static str,
    pub(crate) size: usize,
    pub(crate) way: Way,
    pub(crate) sessions: usize,
    pub(crate) goal: Goal,
}

/// What came of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome {
    pub(crate) cell: Cell,
    pub(crate) software: Mark,
    pub(crate) device: Mark,
    pub(crate) auto: Mark,
    /// What software and device together would do, as a multiple of the better one's
    /// throughput.
    pub(crate) together: f64,
    /// The most that `auto` was behind software in total at any moment, as a share.
    pub(crate) behind: f64,
    /// Nanoseconds that `auto` lost on the better of the two, the whole way; below zero if it
    /// was better than both.
    pub(crate) regret: f64,
    /// Nanoseconds that `auto` worked in all.
    pub(crate) time: f64,
}

impl Outcome {
    /// Share of the better one's throughput that `auto` reached.
    pub(crate) fn reached(&self) -> f64 {
        self.software.pace().min(self.device.pace()) / self.auto.pace()
    }
}

/// One device and all that is measured with it.
pub(crate) struct Bench<D> {
    pub(crate) framework: Framework,
    pub(crate) device: Arc<D>,
}

impl Bench<Device> {
    /// A cost model.
    pub(crate) fn new(settings: Settings) -> Bench<Device> {
        let world = World::new();
        let device = Device::new(&world, settings);
        // Results of a cost model are nonsense.
        let config = Config {
            verify: Some(0),
            ..Config::default()
        };
        let framework = Framework::builder(software(&world, SOFTWARE))
            .driver(driver_of(&device))
            .clock(world.time.clock())
            .config(config)
            .build()
            .unwrap();
        // Admission computes; after it only times count.
        drop(framework.session(ALGORITHM, &KEY).unwrap().open().unwrap());
        world.computing.store(false, Ordering::Relaxed);
        Bench { framework, device }
    }
}

impl<D: Simulation + 'static> Bench<D> {
    pub(crate) fn callers(&self, driver: Option<&str>, cell: &Cell) -> Callers {
        self.device.renew();
        self.framework.forget();
        let way = (cell.sessions, cell.way, cell.size);
        let device: Arc<dyn Simulation> = self.device.clone();
        Callers::new((&self.framework, device), driver, cell.goal, way)
    }

    pub(crate) fn measure(&self, cell: Cell) -> Outcome {
        self.measure_after(self.device.learning(), cell)
    }

    /// The result when learning is given this time, or more.
    pub(crate) fn measure_after(&self, learning: Duration, cell: Cell) -> Outcome {
        let price = self.device.software();
        let w = price.of(cell.way.batch(), cell.way.batch() * cell.size);
        let software = Mark {
            time: w,
            worked: w,
            done: 1.0,
        };
        let learning = learning.max(ns(w) * LEARNING);
        let end = learning * 2;
        // One that changes counts as it is in the end.
        let (from, to) = match self.device.is_steady() {
            true => (learning / 6, learning / 2),
            false => (learning, end),
        };
        let mut forced = self.callers(Some(self.device.driver()), &cell);
        let device = forced.between(from, to, |_| {});
        forced.finish();
        let mut behind = 0.0f64;
        let mut auto = self.callers(None, &cell);
        let steady = auto.between(learning, end, |mark| {
            behind = behind.max(mark.time / (mark.done * w) - 1.0);
        });
        let whole = auto.mark();
        auto.finish();
        let best = w.min(device.pace());
        Outcome {
            cell,
            software,
            device,
            auto: steady,
            together: self.device.together(&cell, &software, &device),
            behind,
            regret: whole.time - whole.done * best,
            time: whole.time,
        }
    }

    /// Every place of the matrix with this device.
    pub(crate) fn all(&self, matrix: &Matrix) -> Vec<Outcome> {
        let mut outcomes = Vec::new();
        for cell in matrix.cells(self.device.name()) {
            outcomes.push(self.measure(cell));
        }
        outcomes
    }
}

impl Matrix {
    /// Its places, for a device.
    pub(crate) fn cells(&self, device: &'static str) -> Vec<Cell> {
        let mut cells = Vec::new();
        for &sessions in self.sessions {
            for &size in self.sizes {
                for &many in self.many {
                    for &goal in self.goals {
                        let submit = Way::Submit {
                            depth: many,
                            batch: 1,
                        };
                        for way in [Way::Wait { batch: many }, submit] {
                            cells.push(Cell {
                                device,
                                size,
                                way,
                                sessions,
                                goal,
                            });
                        }
                    }
                }
            }
        }
        cells
    }
}
