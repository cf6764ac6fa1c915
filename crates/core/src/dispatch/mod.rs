//! Dispatch by learned cost: which driver finishes a batch best, for the session's goal.
//!
//! The path of a request reads one cell of a [`table`]. Learning happens beside it, on
//! one batch in some: the batch is timed, the driver's [`model`] moves a step, and now and
//! then the table is written anew. A driver that is not chosen is tried again at times,
//! within a budget of 1 % of the time spent.

pub(crate) mod model;
pub(crate) mod table;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, TryLockError};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use self::model::{COUNTS, Cost, Model, SIZES};
use self::table::{COUNT_CLASSES, Cell, Class, Table};
use crate::Direction;

/// The driver that is always there: yardstick, refuge, and where everything starts.
pub(crate) const BASE: usize = 0;

/// A driver takes over only where it is better by this factor, so that two of about the
/// same cost do not take turns.
const HYSTERESIS: f32 = 0.99;
/// Another driver than the base is counted as dearer by this factor: a gain that small is
/// lost again on the way to it.
const AWAY: f32 = 1.02;
/// Share of the time spent that trying other drivers may cost.
const EXPLORATION: f64 = 0.01;
/// What trying a driver that was never measured here may cost, beyond twice the known one.
const UNKNOWN_NS: f32 = 50_000.0;
/// Nanoseconds of work between two trials of one driver at one place, at the least.
const RETRIAL: f32 = 10e6;
/// Nanoseconds of work between two looks for a driver to try.
const LOOK: u64 = 500_000;
/// Nanoseconds of work between two writings of a table, unless something changed a lot.
const REWRITE: u64 = 20_000_000;

/// What a session wants of its driver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Goal {
    /// The shortest time from call to results. A caller that does not wait has several
    /// batches under way, and its results come the sooner the shorter the time between
    /// them is; so for it this is the same as `Throughput`.
    #[default]
    Latency,
    /// The most work a second, several batches under way.
    Throughput,
    /// The least processor time of the caller that still keeps 90 % of the best throughput.
    Cpu,
}

/// Whether the caller waits for the results or goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// [`Session::process`](crate::Session::process).
    Wait,
    /// [`Session::submit`](crate::Session::submit).
    Submit,
}

const GOALS: [Goal; 3] = [Goal::Latency, Goal::Throughput, Goal::Cpu];
const MODES: [Mode; 2] = [Mode::Wait, Mode::Submit];
const DIRECTIONS: [Direction; 2] = [Direction::Encrypt, Direction::Decrypt];

/// One driver's models: by direction, then by mode.
pub(crate) type Models = [[Model; 2]; 2];

/// What was learned for one algorithm and key length, shared by all its sessions.
pub(crate) struct Dispatch {
    /// By goal, then by mode.
    tables: [[Table; 2]; 3],
    /// By goal, mode, direction and batch class: the base serves requests of fewer bytes.
    base_below: [[[[AtomicUsize; COUNT_CLASSES]; 2]; 2]; 3],
    /// Bit i: driver i may be chosen.
    eligible: AtomicU32,
    learned: Mutex<Learned>,
    /// Estimated nanoseconds of work in all: the clock of learning, which stands still
    /// while nobody works.
    spent: AtomicU64,
    /// Nanoseconds of it lost by exploring.
    explored: AtomicU64,
    /// On that clock: until when nobody need look for a driver to try.
    explore_at: AtomicU64,
}

/// Something for each node of the grid.
type Nodes<T> = [[T; SIZES.len()]; COUNTS.len()];

struct Learned {
    models: Vec<Models>,
    /// When a driver was last tried at a node, on the clock of work: by driver, direction,
    /// mode, count, size.
    tried: Vec<[[Nodes<Option<u64>>; 2]; 2]>,
    /// When a table was last written, by direction and mode.
    written: [[Option<u64>; 2]; 2],
    /// The last switch of each cell: by goal, mode, direction and class.
    switches: HashMap<(Goal, Mode, Direction, Class), Switch>,
}

/// A change of driver, for `why`.
#[derive(Clone, Debug, Serialize)]
pub struct Switch {
    /// When.
    pub at: SystemTime,
    /// Index of the driver before.
    pub from: usize,
    /// Index of the driver after.
    pub to: usize,
    /// Nanoseconds of a batch by the old and by the new driver, as estimated then.
    pub estimates: (f32, f32),
}

/// A batch as dispatch sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) mode: Mode,
    pub(crate) direction: Direction,
    pub(crate) requests: usize,
    pub(crate) bytes: usize,
}

impl Shape {
    fn mean(&self) -> f32 {
        self.bytes as f32 / self.requests.max(1) as f32
    }

    /// Nearest node of the grid.
    fn node(&self) -> (usize, usize) {
        let count = COUNTS
            .partition_point(|&c| (c as usize) * 2 <= self.requests)
            .min(3);
        let size = SIZES
            .partition_point(|&s| (s as f32) * 2.0 <= self.mean())
            .min(10);
        (count, size)
    }
}

impl Dispatch {
    pub(crate) fn new(drivers: usize) -> Self {
        Dispatch {
            tables: std::array::from_fn(|_| std::array::from_fn(|_| Table::new())),
            base_below: Default::default(),
            eligible: AtomicU32::new(1 << BASE),
            learned: Mutex::new(Learned {
                models: vec![Models::default(); drivers],
                tried: vec![Default::default(); drivers],
                written: Default::default(),
                switches: HashMap::new(),
            }),
            spent: AtomicU64::new(0),
            explored: AtomicU64::new(0),
            explore_at: AtomicU64::new(0),
        }
    }

    /// Allows or forbids a driver; tables follow at once.
    pub(crate) fn set_eligible(&self, driver: usize, allowed: bool) {
        let bit = 1u32 << driver;
        let before = match allowed {
            true => self.eligible.fetch_or(bit, Ordering::Relaxed),
            false => self.eligible.fetch_and(!bit, Ordering::Relaxed),
        };
        if before & bit != u32::from(allowed) << driver {
            self.rewrite_all();
        }
    }

    pub(crate) fn is_eligible(&self, driver: usize) -> bool {
        self.eligible.load(Ordering::Relaxed) & (1 << driver) != 0
    }

    /// Whether the base serves a batch, told by one compare; `false` where the table must be
    /// asked.
    #[inline]
    pub(crate) fn is_small(&self, goal: Goal, shape: &Shape) -> bool {
        let limits = &self.base_below[goal as usize][shape.mode as usize][shape.direction as usize];
        let limit = limits[Class::count_of(shape.requests)].load(Ordering::Relaxed);
        shape.bytes < limit.saturating_mul(shape.requests)
    }

    /// The decision for a batch: one load.
    #[inline]
    pub(crate) fn cell(&self, goal: Goal, shape: &Shape) -> Cell {
        let table = &self.tables[goal as usize][shape.mode as usize];
        table.load(shape.direction, Class::of(shape.requests, shape.bytes))
    }

    /// Whether this batch should go to another driver than `chosen`, to learn.
    pub(crate) fn explore(&self, shape: &Shape, chosen: usize) -> Option<usize> {
        let eligible = self.eligible.load(Ordering::Relaxed);
        if eligible == 1 << BASE {
            return None;
        }
        let now = self.spent.load(Ordering::Relaxed);
        if now < self.explore_at.load(Ordering::Relaxed) {
            return None;
        }
        self.explore_at.store(now + LOOK, Ordering::Relaxed);
        let budget = now as f64 * EXPLORATION - self.explored.load(Ordering::Relaxed) as f64;
        let mut learned = self.learned.try_lock().ok()?;
        let (d, m) = (shape.direction as usize, shape.mode as usize);
        let (c, s) = shape.node();
        let estimate =
            |driver: usize| learned.models[driver][d][m].estimate(shape.requests, shape.mean());
        let known = estimate(chosen)?.period;
        let candidate = (0..learned.models.len())
            .filter(|&driver| driver != chosen && eligible & (1 << driver) != 0)
            .filter(|&driver| {
                let expected = estimate(driver).map(|c| c.period);
                let excess = expected.unwrap_or(UNKNOWN_NS + 2.0 * known) - known;
                // The worse a driver was, the longer until it is tried again.
                let patience = expected.map_or(1.0, |e| (e / known).clamp(1.0, 30.0).powi(2));
                let rested = learned.tried[driver][d][m][c][s]
                    .is_none_or(|at| (now - at) as f32 >= RETRIAL * patience);
                rested && f64::from(excess) <= budget
            })
            .min_by_key(|&driver| learned.tried[driver][d][m][c][s])?;
        learned.tried[candidate][d][m][c][s] = Some(now);
        Some(candidate)
    }

    /// Learns from a batch that `driver` finished. `share` is how much of all time the
    /// batch stands for; `explored` that it was sent there to learn.
    pub(crate) fn learn(
        &self,
        driver: usize,
        shape: &Shape,
        seen: Cost,
        share: f32,
        explored: bool,
    ) {
        let mut learned = match self.learned.try_lock() {
            Ok(learned) => learned,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            // Somebody else is learning: this sample is not worth waiting for.
            Err(TryLockError::WouldBlock) => return,
        };
        let spent = (seen.period * share) as u64;
        let now = self.spent.fetch_add(spent, Ordering::Relaxed) + spent;
        let (d, m) = (shape.direction as usize, shape.mode as usize);
        let (n, mean) = (shape.requests, shape.mean());
        if explored {
            let known = (0..learned.models.len())
                .filter(|&other| other != driver)
                .filter_map(|other| learned.models[other][d][m].estimate(n, mean))
                .map(|cost| cost.period)
                .fold(f32::INFINITY, f32::min);
            let excess = (seen.period - known).max(0.0);
            if excess.is_finite() {
                self.explored.fetch_add(excess as u64, Ordering::Relaxed);
            }
        }
        let change = learned.models[driver][d][m].learn(n, mean, seen);
        let due = learned.written[d][m].is_none_or(|at| now - at >= REWRITE);
        let choice = self.eligible.load(Ordering::Relaxed) != 1 << BASE;
        if choice && (change > 0.2 || change > 0.005 && due) {
            self.rewrite(&mut learned, shape.direction, shape.mode);
        }
    }

    fn rewrite_all(&self) {
        let mut learned = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
        for direction in DIRECTIONS {
            for mode in MODES {
                self.rewrite(&mut learned, direction, mode);
            }
        }
    }

    /// Decides every class of one direction and mode anew.
    fn rewrite(&self, learned: &mut Learned, direction: Direction, mode: Mode) {
        let (d, m) = (direction as usize, mode as usize);
        learned.written[d][m] = Some(self.spent.load(Ordering::Relaxed));
        let eligible = self.eligible.load(Ordering::Relaxed);
        let drivers = learned.models.len();
        for (class, n, size) in Class::all() {
            let mut costs = [None; crate::stats::MAX_DRIVERS];
            for driver in (0..drivers).filter(|driver| eligible & (1 << driver) != 0) {
                costs[driver] = learned.models[driver][d][m].estimate(n, size);
            }
            if costs[BASE].is_none() {
                continue;
            }
            for goal in GOALS {
                let table = &self.tables[goal as usize][m];
                let old = table.load(direction, class);
                let cell = decide(goal, mode, &costs[..drivers], old);
                if cell == old {
                    continue;
                }
                table.store(direction, class, cell);
                if cell.best != old.best {
                    let price = |driver: u8| {
                        costs[usize::from(driver)].map_or(f32::INFINITY, |c| price(goal, mode, &c))
                    };
                    let switch = Switch {
                        at: SystemTime::now(),
                        from: old.best.into(),
                        to: cell.best.into(),
                        estimates: (price(old.best), price(cell.best)),
                    };
                    learned
                        .switches
                        .insert((goal, mode, direction, class), switch);
                }
            }
        }
        self.set_base_below(direction, mode);
    }

    /// Notes up to which size the base serves batches of each class.
    fn set_base_below(&self, direction: Direction, mode: Mode) {
        for goal in GOALS {
            let table = &self.tables[goal as usize][mode as usize];
            let limits = &self.base_below[goal as usize][mode as usize][direction as usize];
            for (count, limit) in limits.iter().enumerate() {
                let taken = Class::of_count(count)
                    .find(|&(class, _)| usize::from(table.load(direction, class).best) != BASE);
                limit.store(
                    taken.map_or(usize::MAX, |(_, least)| least),
                    Ordering::Relaxed,
                );
            }
        }
    }

    /// Estimated cost and samples of a driver for a batch.
    pub(crate) fn estimate(&self, driver: usize, shape: &Shape) -> (Option<Cost>, u32) {
        let learned = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
        let model = &learned.models[driver][shape.direction as usize][shape.mode as usize];
        let mean = shape.mean();
        (
            model.estimate(shape.requests, mean),
            model.samples(shape.requests, mean),
        )
    }

    /// The last switch in the class of a batch.
    pub(crate) fn last_switch(&self, goal: Goal, shape: &Shape) -> Option<Switch> {
        let class = Class::of(shape.requests, shape.bytes);
        let learned = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
        learned
            .switches
            .get(&(goal, shape.mode, shape.direction, class))
            .cloned()
    }

    /// A driver's models, for the profile file.
    pub(crate) fn models(&self, driver: usize) -> Models {
        let learned = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
        learned.models[driver].clone()
    }

    /// Replaces what is known of a driver.
    pub(crate) fn set_models(&self, driver: usize, models: Models) {
        let mut learned = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
        learned.models[driver] = models;
        drop(learned);
        self.rewrite_all();
    }
}

/// What a driver is judged by.
pub(crate) fn price(goal: Goal, mode: Mode, cost: &Cost) -> f32 {
    match (goal, mode) {
        (Goal::Latency, Mode::Wait) => cost.latency,
        (Goal::Latency, Mode::Submit) | (Goal::Throughput, _) => cost.period,
        (Goal::Cpu, _) => cost.cpu,
    }
}

/// The cheapest driver for the goal, the runner-up, and the gain; the one that serves
/// now keeps its place unless the new one is clearly better.
fn decide(goal: Goal, mode: Mode, costs: &[Option<Cost>], old: Cell) -> Cell {
    let fastest = costs
        .iter()
        .flatten()
        .map(|c| c.period)
        .fold(f32::INFINITY, f32::min);
    let allowed = |cost: &Cost| goal != Goal::Cpu || cost.period <= fastest / 0.9;
    let of = |driver: usize| {
        let cost = costs.get(driver).copied().flatten().filter(allowed)?;
        let factor = if driver == BASE { 1.0 } else { AWAY };
        Some(price(goal, mode, &cost) * factor)
    };
    let cheapest = |but: Option<usize>| {
        (0..costs.len())
            .filter(|&driver| Some(driver) != but)
            .filter_map(|driver| Some((driver, of(driver)?)))
            .min_by(|a, b| a.1.total_cmp(&b.1))
    };
    let Some((mut best, mut cost)) = cheapest(None) else {
        return Cell::default();
    };
    if let Some(current) = of(old.best.into())
        && cost > current * HYSTERESIS
    {
        (best, cost) = (old.best.into(), current);
    }
    let (second, second_cost) = cheapest(Some(best)).unwrap_or((BASE, cost));
    let gain = (second_cost - cost).clamp(0.0, 4e9) as u32;
    Cell {
        best: best as u8,
        second: second as u8,
        gain,
    }
}

#[cfg(test)]
mod tests;
