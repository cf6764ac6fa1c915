//! Dispatch by learned cost: which driver finishes a batch best, for the session's goal.
//!
//! A request's path reads one cell of a [`table`]. Learning happens beside that path, on a
//! sample of the batches: the sampled batch is timed, the driver's [`model`] moves one step, and
//! from time to time the table is written again. A driver that is not chosen is tried again
//! now and then; the trials may cost 1 % of the time spent.
//!
//! A device is a driver with [patience](crate::Driver::patience). The table never chooses a
//! device directly. The device is the *rival* of the best other driver, which is called *home*,
//! and each batch goes to the one that finishes the batch in time, given what the device has
//! queued. Every batch that a device served is measured, and the [`ledger`] keeps the total loss
//! through devices below 2 %.

mod change;
mod choice;
mod explore;
mod learning;
pub(crate) mod ledger;
mod limits;
pub(crate) mod model;
pub(crate) mod queue;
mod rewrite;
pub(crate) mod submit_depth;
pub(crate) mod table;
mod typical;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use self::choice::{Plan, adds, enough, limit, plan};
use self::ledger::Ledger;
use self::model::{COUNTS, Cost, Model, SIZES};
use self::queue::Queue;
use self::submit_depth::SubmitDepth;
use self::table::{Class, Paces, Table, TableCell};
use self::typical::Typical;
use crate::selftest::FirstSight;
use crate::{Clock, Direction, Transform};

pub(crate) use self::choice::price;
pub(crate) use self::learning::StandsFor;
pub(crate) use self::limits::Limits;

/// The driver that is always present. The others are compared with it, it finishes what they
/// give up, and it serves until something has been learned.
pub(crate) const BASE: usize = 0;

/// A device gets a batch only if the ledger affords a loss of this many times the time that the
/// batch should take.
const CAUTION: u64 = 3;

/// What a session wants of its driver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Goal {
    /// The shortest time from call to results. A caller that does not wait has several batches
    /// under way, and what counts for such a caller is the time between results; so for a caller
    /// that does not wait this goal is the same as `Throughput`.
    #[default]
    Latency,
    /// The most work per second, with several batches under way.
    Throughput,
    /// The least processor time of the caller, among the drivers that reach 90 % of the best
    /// throughput.
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
    /// By goal.
    limits: [Arc<Limits>; 3],
    /// Bit i: driver i may be chosen.
    eligible: AtomicU32,
    learned: Mutex<Learned>,
    /// By mode: the times that decide between home and rival.
    paces: [Paces; 2],
    /// By driver.
    facts: Vec<DriverFacts>,
    /// All work so far, and how much time devices have gained or lost.
    pub(crate) ledger: Ledger,
    /// Nanoseconds of all callers' time. This is the clock of learning; the clock stands still
    /// while no caller works.
    spent: AtomicU64,
    /// Nanoseconds of that time that were lost by trying other drivers.
    explored: AtomicU64,
    /// The time on that clock before which no thread looks for a driver to try.
    explore_at: AtomicU64,
    /// Tells how long the writing of tables takes.
    clock: Clock,
}

/// What is known of a driver before it has served.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DriverFacts {
    /// Nanoseconds that a request can be stuck in the driver; 0 where the driver is no device.
    pub(crate) patience: u64,
    /// What the self-test of a device has measured.
    pub(crate) first_sight: Option<FirstSight>,
    /// [`Driver::least_work`](crate::Driver::least_work) in nanoseconds, by mode.
    pub(crate) least_work: [u64; 2],
}

/// One value for each node of the grid.
type Nodes<T> = [[T; SIZES.len()]; COUNTS.len()];

struct Learned {
    models: Vec<Models>,
    /// When each driver was last tried at each node, on the clock of learning: by driver,
    /// direction, mode, count and size.
    tried: Vec<[[Nodes<Option<u64>>; 2]; 2]>,
    /// By direction and mode.
    typical: [[Typical; 2]; 2],
    /// The number of batches that were learned from.
    batches: u32,
    /// When a table was last written, by direction and mode.
    written: [[Option<u64>; 2]; 2],
    /// By direction and mode: a large change was written to the class in which it was seen only,
    /// and not yet to the others.
    is_owed: [[bool; 2]; 2],
    /// Nanoseconds of processor time that the last writing of a table took.
    writing: u64,
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

    /// Whether helpers of a driver are given any of the batch, where the driver has helpers.
    pub(crate) fn is_for_helpers(&self, transform: &dyn Transform) -> bool {
        match self.mode {
            Mode::Wait => transform.shares(self.direction, self.requests),
            Mode::Submit => transform.hands_over(self.direction, self.requests, self.bytes),
        }
    }

    /// The nearest node of the grid.
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
    /// A dispatch for these drivers.
    pub(crate) fn new(facts: Vec<DriverFacts>, clock: Clock) -> Self {
        let drivers = facts.len();
        Dispatch {
            tables: std::array::from_fn(|_| std::array::from_fn(|_| Table::new())),
            limits: std::array::from_fn(|_| Arc::new(Limits::of(0))),
            eligible: AtomicU32::new(1 << BASE),
            learned: Mutex::new(Learned {
                models: vec![Models::default(); drivers],
                tried: vec![Default::default(); drivers],
                typical: Default::default(),
                batches: 0,
                written: Default::default(),
                is_owed: Default::default(),
                writing: 0,
                switches: HashMap::new(),
            }),
            paces: std::array::from_fn(|_| Paces::new()),
            facts,
            ledger: Ledger::default(),
            spent: AtomicU64::new(0),
            explored: AtomicU64::new(0),
            explore_at: AtomicU64::new(0),
            clock,
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

    /// Up to which size the base serves a session that has this choice: of all eligible drivers
    /// for a goal, or of one alone.
    pub(crate) fn limits(&self, goal: Goal, alone: Option<usize>) -> Arc<Limits> {
        match alone {
            None => self.limits[goal as usize].clone(),
            Some(BASE) => Arc::new(Limits::of(usize::MAX)),
            Some(_) => Arc::new(Limits::of(0)),
        }
    }

    /// The decision for a batch. It costs one load.
    #[inline]
    pub(crate) fn cell(&self, goal: Goal, shape: &Shape) -> TableCell {
        let table = &self.tables[goal as usize][shape.mode as usize];
        table.load(shape.direction, Class::of(shape.requests, shape.bytes))
    }

    /// The decision for a batch as sessions come to it: below the limit the base serves.
    pub(crate) fn decision(&self, goal: Goal, shape: &Shape) -> TableCell {
        let Shape {
            mode,
            direction,
            requests,
            bytes,
        } = *shape;
        let limits = &self.limits[goal as usize];
        match mode == Mode::Wait && limits.holds(direction, requests, bytes) {
            true => TableCell::default(),
            false => self.cell(goal, shape),
        }
    }

    /// Whether a driver is a device: a driver that has a queue and may hang.
    #[inline]
    pub(crate) fn is_device(&self, driver: usize) -> bool {
        self.facts[driver].patience > 0
    }

    /// Whether a device may be chosen.
    pub(crate) fn has_devices(&self) -> bool {
        let eligible = self.eligible.load(Ordering::Relaxed);
        (0..self.facts.len()).any(|driver| eligible & 1 << driver != 0 && self.is_device(driver))
    }

    /// The nanoseconds that software must take for work that a driver is for, if work that takes
    /// software `base_ns` is too little.
    pub(crate) fn too_little(&self, driver: usize, mode: Mode, base_ns: f32) -> Option<u64> {
        let least = self.facts[driver].least_work[mode as usize];
        (base_ns < least as f32).then_some(least)
    }

    /// What is known of the rival for a batch.
    #[inline]
    pub(crate) fn pace(&self, shape: &Shape) -> table::Pace {
        let class = Class::of(shape.requests, shape.bytes);
        self.paces[shape.mode as usize].load(shape.direction, class)
    }

    /// Whether the rival of a cell would finish a batch in time: earlier than home, or before the
    /// caller wants the result.
    #[inline]
    pub(crate) fn favours_rival(
        &self,
        (goal, cell): (Goal, &TableCell),
        shape: &Shape,
        queue: &Queue,
        submit_depth: Option<&SubmitDepth>,
        now: u64,
    ) -> bool {
        let queued = queue.batches();
        if queued > cell.max_queued.into() && cell.max_queued != u8::MAX {
            return false;
        }
        let pace = self.pace(shape);
        let backlog = queue.backlog(now);
        let finish = backlog + u64::from(pace.latency);
        if !self.ledger.affords(self.risk(cell.rival.into(), finish)) {
            return false;
        }
        if let Some(submit_depth) = submit_depth
            && submit_depth.depth() > 1
        {
            return match plan(goal, &pace, submit_depth) {
                Plan::Home => false,
                Plan::Device(share) => !submit_depth.takes_turn_at_home(share),
                Plan::Both(share) => {
                    let busy = backlog >= pace.home.into();
                    backlog <= enough(&pace) && !(busy && submit_depth.takes_turn_at_home(share))
                }
            };
        }
        finish <= limit(goal, &pace) && (goal != Goal::Throughput || adds(&pace, backlog))
    }

    /// The loss, in nanoseconds, that the ledger must afford before a device gets a batch that
    /// should take `finish` nanoseconds.
    #[inline]
    fn risk(&self, device: usize, finish: u64) -> u64 {
        self.facts[device].patience + CAUTION * finish
    }

    /// Why the ledger keeps a device from a batch: the nanoseconds of work that must be done before
    /// the device gets such a batch, and the nanoseconds of work done so far. `None` if the
    /// ledger allows the batch.
    pub(crate) fn kept_out(&self, device: usize, shape: &Shape) -> Option<(u64, u64)> {
        let DriverFacts {
            patience,
            first_sight,
            ..
        } = self.facts[device];
        let (known, _) = self.estimate(device, shape);
        let risk = match (known, first_sight) {
            (Some(cost), _) => self.risk(device, cost.latency as u64),
            (None, Some(seen)) => patience + seen.expected(shape.requests, shape.bytes) as u64,
            (None, None) => patience,
        };
        (patience > 0 && !self.ledger.affords(risk)).then(|| self.ledger.due(risk))
    }

    /// How long a device should take for a batch of a shape that the device has not served yet,
    /// by the device's self-test.
    pub(crate) fn first_sight(&self, device: usize, shape: &Shape) -> Option<f32> {
        let seen = self.facts[device].first_sight?;
        Some(seen.expected(shape.requests, shape.bytes))
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

    /// What a device is expected to cost for a batch.
    pub(crate) fn expected(&self, device: usize, shape: &Shape) -> Option<Cost> {
        let (cost, _) = self.estimate(device, shape);
        cost.map(|cost| Cost {
            period: cost.period.min(cost.latency),
            ..cost
        })
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

#[cfg(test)]
mod tests;
