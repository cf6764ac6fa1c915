//! Dispatch by learned cost: which driver finishes a batch best, for the session's goal.
//!
//! The path of a request reads one cell of a [`table`]. Learning happens beside it, on
//! one batch in some: the batch is timed, the driver's [`model`] moves a step, and now and
//! then the table is written anew. A driver that is not chosen is tried again at times,
//! within a budget of 1 % of the time spent.
//!
//! A device (a driver with [patience](crate::Driver::patience)) is never simply chosen: it
//! is a *rival* of the best other driver, which is *home*, and each batch goes where it will
//! be finished in time, given what the device has queued. Every batch that a device had is
//! measured, and a [`ledger`] sees to it that devices cannot cost more than 2 % in all.

mod choice;
mod explore;
pub(crate) mod ledger;
pub(crate) mod model;
pub(crate) mod queue;
mod rewrite;
pub(crate) mod submit_depth;
pub(crate) mod table;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, TryLockError};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use self::choice::{Plan, adds, enough, limit, plan};
use self::ledger::Ledger;
use self::model::{COUNTS, Cost, Model, SIZES};
use self::queue::Queue;
use self::submit_depth::SubmitDepth;
use self::table::{COUNT_CLASSES, Class, Paces, Table, TableCell};
use crate::Direction;
use crate::selftest::FirstSight;

pub(crate) use self::choice::price;

/// The driver that is always there: yardstick, refuge, and where everything starts.
pub(crate) const BASE: usize = 0;

/// A device gets a batch if a loss of so many times what it should take could be borne.
const CAUTION: u64 = 3;

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
    /// By mode: what decides between home and rival.
    paces: [Paces; 2],
    /// By driver.
    facts: Vec<DriverFacts>,
    /// All work so far, and what devices have made of it.
    pub(crate) ledger: Ledger,
    /// Nanoseconds of callers' time in all: the clock of learning, which stands still while
    /// nobody works.
    spent: AtomicU64,
    /// Nanoseconds of it lost by exploring.
    explored: AtomicU64,
    /// On that clock: until when nobody need look for a driver to try.
    explore_at: AtomicU64,
}

/// What is known of a driver before it has served.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DriverFacts {
    /// Nanoseconds that a request can be stuck in it; 0 where it is no device.
    pub(crate) patience: u64,
    /// Of a device.
    pub(crate) first_sight: Option<FirstSight>,
}

/// Something for each node of the grid.
type Nodes<T> = [[T; SIZES.len()]; COUNTS.len()];

struct Learned {
    models: Vec<Models>,
    /// When a driver was last tried at a node, on the clock of work: by driver, direction,
    /// mode, count, size.
    tried: Vec<[[Nodes<Option<u64>>; 2]; 2]>,
    /// Batches learned from.
    seen: u32,
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
    /// One for these drivers.
    pub(crate) fn new(facts: Vec<DriverFacts>) -> Self {
        let drivers = facts.len();
        Dispatch {
            tables: std::array::from_fn(|_| std::array::from_fn(|_| Table::new())),
            base_below: Default::default(),
            eligible: AtomicU32::new(1 << BASE),
            learned: Mutex::new(Learned {
                models: vec![Models::default(); drivers],
                tried: vec![Default::default(); drivers],
                seen: 0,
                written: Default::default(),
                switches: HashMap::new(),
            }),
            paces: std::array::from_fn(|_| Paces::new()),
            facts,
            ledger: Ledger::default(),
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
    pub(crate) fn cell(&self, goal: Goal, shape: &Shape) -> TableCell {
        let table = &self.tables[goal as usize][shape.mode as usize];
        table.load(shape.direction, Class::of(shape.requests, shape.bytes))
    }

    /// Whether a driver is a device, which may hang and has a queue.
    #[inline]
    pub(crate) fn is_device(&self, driver: usize) -> bool {
        self.facts[driver].patience > 0
    }

    /// What is known of the rival for a batch.
    #[inline]
    pub(crate) fn pace(&self, shape: &Shape) -> table::Pace {
        let class = Class::of(shape.requests, shape.bytes);
        self.paces[shape.mode as usize].load(shape.direction, class)
    }

    /// Whether the rival of a cell would finish a batch in time: sooner than home, or before
    /// the caller wants it.
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

    /// Nanoseconds that must be affordable to give a device a batch which should take so long.
    #[inline]
    fn risk(&self, device: usize, finish: u64) -> u64 {
        self.facts[device].patience + CAUTION * finish
    }

    /// What keeps a device from a batch that it may be good for: nanoseconds of work to be done
    /// before it is given one, and of work done so far. `None` if nothing does.
    pub(crate) fn kept_out(&self, device: usize, shape: &Shape) -> Option<(u64, u64)> {
        let DriverFacts {
            patience,
            first_sight,
        } = self.facts[device];
        let (known, _) = self.estimate(device, shape);
        let risk = match (known, first_sight) {
            (Some(cost), _) => self.risk(device, cost.latency as u64),
            (None, Some(seen)) => patience + seen.expected(shape.requests, shape.bytes) as u64,
            (None, None) => patience,
        };
        (patience > 0 && !self.ledger.affords(risk)).then(|| self.ledger.due(risk))
    }

    /// What a device should take that has not served such batches, by its self-test.
    pub(crate) fn first_sight(&self, device: usize, shape: &Shape) -> Option<f32> {
        let seen = self.facts[device].first_sight?;
        Some(seen.expected(shape.requests, shape.bytes))
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
        let (d, m) = (shape.direction as usize, shape.mode as usize);
        let (n, mean) = (shape.requests, shape.mean());
        if explored {
            let known = (0..learned.models.len())
                .filter(|&other| other != driver)
                .filter_map(|other| learned.models[other][d][m].estimate(n, mean))
                .map(|cost| cost.period)
                .fold(f32::INFINITY, f32::min);
            if known.is_finite() {
                let excess = (seen.period - known).max(0.0);
                self.explored.fetch_add(excess as u64, Ordering::Relaxed);
                // The batches that it stands for went where they always go.
                self.work(known * (share - 1.0));
            }
            self.work(seen.period);
        } else {
            self.work(seen.period * share);
        }
        let change = learned.models[driver][d][m].learn(n, mean, seen, false);
        self.follow(&mut learned, shape, change);
    }

    /// Learns from a batch that a device finished, of which some parts may not have been
    /// measured. `spent` is the caller's time that it took, if `auto` sent it there; `elapsed`
    /// the share of all time that it stands for.
    pub(crate) fn learn_device(
        &self,
        driver: usize,
        shape: &Shape,
        seen: Cost,
        spent: Option<f32>,
        explored: bool,
        elapsed: f32,
    ) {
        let mut learned = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
        let (d, m) = (shape.direction as usize, shape.mode as usize);
        let (n, mean) = (shape.requests, shape.mean());
        let home = learned.models[BASE][d][m].estimate(n, mean);
        if let (Some(spent), Some(home)) = (spent, home) {
            self.ledger.worked(home.period);
            self.ledger.gain(home.period - spent);
            self.spent.fetch_add(elapsed as u64, Ordering::Relaxed);
            if explored {
                let excess = seen.latency.max(spent) - home.period;
                self.explored
                    .fetch_add(excess.max(0.0) as u64, Ordering::Relaxed);
                // It is better than it was thought to be: no need to rest it.
                if excess < 0.0 && seen.latency > 0.0 {
                    let (c, s) = shape.node();
                    learned.tried[driver][d][m][c][s] = None;
                }
            }
        }
        if seen == Cost::default() {
            return;
        }
        let change = learned.models[driver][d][m].learn(n, mean, seen, true);
        self.follow(&mut learned, shape, change);
    }

    /// Counts the work of batches that a sampled one stands for, when that one went elsewhere.
    pub(crate) fn pass(&self, chosen: usize, shape: &Shape, batches: f32) {
        if let (Some(cost), _) = self.estimate(chosen, shape) {
            self.work(cost.period * batches);
        }
    }

    /// Counts work done at home.
    fn work(&self, nanoseconds: f32) {
        self.ledger.worked(nanoseconds);
        self.spent.fetch_add(nanoseconds as u64, Ordering::Relaxed);
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
