//! From estimates to tables: as estimates change, the driver of each class of batches is decided
//! again.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::SystemTime;

use super::choice::{Candidates, decide, rival};
use super::table::{COUNT_CLASSES, Class};
use super::{BASE, DIRECTIONS, Dispatch, GOALS, Goal, Learned, MODES, Mode, Shape, Switch, price};
use crate::Direction;

/// Nanoseconds of work between two writings of a table, unless something changed a lot.
const REWRITE: u64 = 20_000_000;
/// The work between two writings of a table is at least this many times what the last writing took,
/// so that writings cost at most one part in this many where the processor is slow.
const WORK_PER_WRITING: u64 = 200;

impl Dispatch {
    /// Writes the tables again, if `change`, the relative change of an estimate, asks for it.
    pub(super) fn update_tables(&self, learned: &mut Learned, shape: &Shape, change: f32) {
        let eligible = self.eligible.load(Ordering::Relaxed);
        if eligible == 1 << BASE {
            return;
        }
        let (direction, mode) = (shape.direction, shape.mode);
        let (d, m) = (direction as usize, mode as usize);
        let class = Class::of(shape.requests, shape.bytes);
        let has_drifted = learned.typical[d][m].see(class, shape.requests, shape.mean());
        let now = self.spent.load(Ordering::Relaxed);
        let is_large = change > 0.2;
        let least = WORK_PER_WRITING * learned.writing;
        let pause = match is_large || learned.is_owed[d][m] {
            true => Some(least),
            false if change > 0.005 => Some(least.max(REWRITE)),
            false => None,
        };
        let is_due = |pause| learned.written[d][m].is_none_or(|at| now - at >= pause);
        if pause.is_some_and(is_due) {
            self.rewrite(learned, direction, mode);
        } else if is_large || has_drifted {
            learned.is_owed[d][m] |= is_large;
            if self.rewrite_class(learned, direction, mode, class) {
                self.set_limits(learned, direction, mode);
            }
        }
        if !self.facts.iter().any(|facts| facts.patience > 0) {
            return;
        }
        let table = &self.tables[Goal::Latency as usize][m];
        let trusted = table.load(direction, class).max_queued == u8::MAX;
        learned.batches = learned.batches.wrapping_add(1);
        let is_due = change > 0.002 || !trusted || learned.batches.is_multiple_of(8);
        if is_due && self.rewrite_class(learned, direction, mode, class) {
            self.set_limits(learned, direction, mode);
        }
    }

    pub(super) fn rewrite_all(&self) {
        let mut learned = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
        for direction in DIRECTIONS {
            for mode in MODES {
                self.rewrite(&mut learned, direction, mode);
            }
        }
    }

    /// Decides every class of one direction and mode again.
    fn rewrite(&self, learned: &mut Learned, direction: Direction, mode: Mode) {
        let (d, m) = (direction as usize, mode as usize);
        let before = self.clock.processor();
        learned.written[d][m] = Some(self.spent.load(Ordering::Relaxed));
        learned.is_owed[d][m] = false;
        for class in Class::all() {
            self.rewrite_class(learned, direction, mode, class);
        }
        self.set_limits(learned, direction, mode);
        let took = self.clock.processor().saturating_sub(before);
        learned.writing = took.as_nanos() as u64;
    }

    /// Decides a class again, for the batches that it has seen. Returns whether another driver serves the
    /// class now.
    fn rewrite_class(
        &self,
        learned: &mut Learned,
        direction: Direction,
        mode: Mode,
        class: Class,
    ) -> bool {
        let (d, m) = (direction as usize, mode as usize);
        let (n, size) = learned.typical[d][m].of(class);
        let eligible = self.eligible.load(Ordering::Relaxed);
        let mut homes = Candidates::default();
        let mut devices = Candidates::default();
        let base = learned.models[BASE][d][m].estimate(n, size);
        let drivers = learned.models.len();
        for driver in (0..drivers).filter(|driver| eligible & (1 << driver) != 0) {
            if base.is_some_and(|base| self.too_little(driver, mode, base.latency).is_some()) {
                continue;
            }
            let cost = learned.models[driver][d][m].estimate(n, size);
            match self.is_device(driver) {
                true => devices[driver] = cost,
                false => homes[driver] = cost,
            }
        }
        if homes[BASE].is_none() {
            return false;
        }
        let mut changed = false;
        for goal in GOALS {
            let table = &self.tables[goal as usize][m];
            let old = table.load(direction, class);
            let mut cell = decide(goal, mode, &homes[..drivers], old);
            let home = homes[usize::from(cell.best)].unwrap_or_default();
            if let Some((driver, pace)) = rival(goal, mode, &home, &devices[..drivers]) {
                let samples = learned.models[driver][d][m].samples(n, size);
                cell.rival = driver as u8;
                cell.max_queued = samples.min(u8::MAX.into()) as u8;
                self.paces[m].store(direction, class, pace);
            }
            if cell == old {
                continue;
            }
            table.store(direction, class, cell);
            let (from, to) = (old.serving(), cell.serving());
            if from != to {
                changed = true;
                let price = |driver: usize| {
                    let cost = homes[driver].or(devices[driver]);
                    cost.map_or(f32::INFINITY, |c| price(goal, mode, &c))
                };
                let switch = Switch {
                    at: SystemTime::now(),
                    from,
                    to,
                    estimates: (price(from), price(to)),
                };
                learned
                    .switches
                    .insert((goal, mode, direction, class), switch);
            }
        }
        changed
    }

    /// Notes up to which size the base serves batches of each class.
    fn set_limits(&self, learned: &Learned, direction: Direction, mode: Mode) {
        if mode == Mode::Submit {
            return;
        }
        let (d, m) = (direction as usize, mode as usize);
        let (base, typical) = (&learned.models[BASE][d][m], &learned.typical[d][m]);
        for goal in GOALS {
            let table = &self.tables[goal as usize][mode as usize];
            for count in 0..COUNT_CLASSES {
                let mut classes = Class::of_count(count).map(|(class, least)| {
                    let driver = table.load(direction, class).serving();
                    (driver, class, least)
                });
                let least = classes.find(|&(driver, ..)| driver != BASE);
                let least = least.map(|(driver, class, least)| {
                    // The class is decided for batches as it has seen, or for its middle. The shortest ones
                    // of the class may have too little work for the driver.
                    let (n, mean) = typical.of(class);
                    let time = base
                        .estimate(n, mean)
                        .map_or(f32::INFINITY, |cost| cost.latency);
                    let work = self.facts[driver].least_work[mode as usize] as f32 / time;
                    let enough = n as f32 * mean * work.min(1.0);
                    (least << count).max(enough as usize)
                });
                self.limits[goal as usize].set(direction, count, least);
            }
        }
    }
}
