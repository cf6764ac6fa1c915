//! Calibration: careful measurements of every driver, within a time budget.
//!
//! Whatever disturbs a machine, such as a host that takes a processor away, lasts longer than a
//! measurement and is over when all else has been measured. So each is repeated at times that lie
//! far apart.

mod measuring;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use self::measuring::Scratch;
use crate::dispatch::model::{COUNTS, Cost, SIZES};
use crate::dispatch::{BASE, Mode, Models};
use crate::selftest::Random;
use crate::{Algorithm, Direction, Driver, Error, Framework, Session, Transform, Unavailable};

/// Seconds of calibration per driver, algorithm and key length, unless the settings say otherwise:
/// enough for most nodes of an algorithm that does a gigabyte per second.
const SECONDS_PER_ALGORITHM: f64 = 0.12;
/// Seconds of calibration per driver at least.
const LEAST_SECONDS: f64 = 2.0;
/// Most bytes in one measured batch; larger nodes follow the slope.
const LARGEST: usize = 4 << 20;
/// Times that all is measured, one after the other.
const PASSES: usize = 3;
/// Repetitions at a node, each time.
const REPETITIONS: usize = 2;
/// Of all repetitions, sorted by time, the one behind one part in this many counts: the lower
/// quartile. A driver that is thought too cheap gets the work and is soon found out; one that is
/// thought too dear waits for a trial.
const PART: usize = 4;

/// How far a calibration is.
#[derive(Clone, Copy, Debug)]
pub struct CalibrationStep<'a> {
    /// The algorithm being measured.
    pub algorithm: &'static str,
    /// The driver being measured.
    pub driver: &'a str,
    /// Part of the whole that is done, 0 to 1.
    pub done: f64,
}

impl Framework {
    /// Drivers that `auto` may choose for an algorithm but knows nothing of.
    pub fn uncalibrated(&self, algorithm: &'static Algorithm, key_len: usize) -> Vec<&str> {
        let dispatch = self.dispatch(algorithm, key_len);
        let unknown = (0..self.shared.entries.len()).filter(|&index| {
            dispatch.is_eligible(index) && dispatch.models(index)[0][0].is_empty()
        });
        unknown
            .map(|index| self.shared.entries[index].driver.name())
            .collect()
    }

    /// Measures every usable driver for the given algorithms and key lengths, for at most
    /// `calibration_seconds` of the settings per driver over all of them; by default for 0.12 s per
    /// algorithm and key length, and 2 s at least.
    pub fn calibrate(
        &self,
        what: &[(&'static Algorithm, usize)],
        progress: &mut dyn FnMut(CalibrationStep<'_>),
    ) -> Result<(), Error> {
        let usual = (what.len() as f64 * SECONDS_PER_ALGORITHM).max(LEAST_SECONDS);
        let seconds = self.shared.config.calibration_seconds.unwrap_or(usual);
        let share = Duration::from_secs_f64(seconds / what.len().max(1) as f64);
        let mut measured: Vec<BTreeMap<usize, Measured>> = vec![BTreeMap::new(); what.len()];
        for pass in 0..PASSES {
            for (i, &(algorithm, key_len)) in what.iter().enumerate() {
                let dispatch = self.dispatch(algorithm, key_len);
                let mut subjects = (0..self.shared.entries.len())
                    .filter(|&index| dispatch.is_eligible(index))
                    .map(|index| {
                        let measured = measured[i].remove(&index).unwrap_or_default();
                        self.subject(index, (algorithm, key_len), measured)
                    })
                    .collect::<Result<Vec<_>, _>>()?;
                let mut step = |driver: usize, part: f64| {
                    let done = pass as f64 + (i as f64 + part) / what.len() as f64;
                    progress(CalibrationStep {
                        algorithm: algorithm.name,
                        driver: self.shared.entries[driver].driver.name(),
                        done: done / PASSES as f64,
                    });
                };
                self.measure((algorithm, key_len), &mut subjects, share, &mut step)?;
                for subject in subjects {
                    dispatch.set_models(subject.index, subject.measured.models());
                    measured[i].insert(subject.index, subject.measured);
                }
            }
        }
        Ok(())
    }

    /// A driver with a key, to be measured.
    fn subject(
        &self,
        index: usize,
        (algorithm, key_len): (&'static Algorithm, usize),
        measured: Measured,
    ) -> Result<Subject, Error> {
        let driver = &self.shared.entries[index].driver;
        let unusable = |reason: Unavailable| Error::DriverUnusable {
            driver: driver.name().to_owned(),
            algorithm: algorithm.name,
            reason: reason.into(),
        };
        let key = Random(key_len as u64).bytes(key_len);
        let transform = driver.transform(algorithm, &key).map_err(unusable)?;
        let session = self.session(algorithm.name, &key)?.driver(driver.name());
        Ok(Subject {
            index,
            is_device: self.dispatch(algorithm, key_len).is_device(index),
            driver: driver.clone(),
            transform,
            session: session.without_learning().open()?,
            measured,
            used: Duration::ZERO,
        })
    }

    /// Measures drivers node by node, each driver at one node after another, so that those that are
    /// compared are known at the same nodes and were measured at about the same time. A device, which
    /// may be very slow, has time of its own. `step` is told whose turn it is, and which part is done.
    fn measure(
        &self,
        (algorithm, key_len): (&'static Algorithm, usize),
        subjects: &mut [Subject],
        share: Duration,
        step: &mut dyn FnMut(usize, f64),
    ) -> Result<(), Error> {
        let has_devices = self.dispatch(algorithm, key_len).has_devices();
        let share = share / PASSES as u32;
        let clock = &self.shared.clock;
        let mut scratch = Scratch::new(algorithm, clock.clone(), &mut Random(key_len as u64));
        let nodes = nodes(algorithm);
        for (at, &(count, size)) in nodes.iter().enumerate() {
            // Two nodes of each model at least, so that there is a slope.
            let is_needed = size == 0 || size == SIZES.len() / 2;
            let home = subjects.iter().filter(|subject| !subject.is_device);
            let (drivers, used) = home.fold((0, Duration::ZERO), |(drivers, used), subject| {
                (drivers + 1, used + subject.used)
            });
            let home_is_done = used > share * drivers;
            for subject in &mut *subjects {
                let is_done = match subject.is_device {
                    true => subject.used > share,
                    false => home_is_done,
                };
                let fits = SIZES[size] as usize <= subject.transform.max_len();
                if !fits || is_done && !is_needed {
                    continue;
                }
                step(subject.index, at as f64 / nodes.len() as f64);
                let started = clock.now();
                subject.measure(&mut scratch, (count, size), has_devices)?;
                subject.used += clock.now() - started;
            }
        }
        Ok(())
    }
}

/// A driver that is measured.
struct Subject {
    index: usize,
    is_device: bool,
    driver: Arc<dyn Driver>,
    transform: Box<dyn Transform>,
    session: Session,
    measured: Measured,
    /// The time that was spent on it in this pass.
    used: Duration,
}

/// What was measured of a driver in all passes: by direction, mode, count and size.
#[derive(Clone, Default)]
struct Measured(BTreeMap<(usize, usize, usize, usize), Vec<Cost>>);

impl Measured {
    fn add(
        &mut self,
        direction: Direction,
        mode: Mode,
        (count, size): (usize, usize),
        costs: Vec<Cost>,
    ) {
        let at = (direction as usize, mode as usize, count, size);
        self.0.entry(at).or_default().extend(costs);
    }

    fn models(&self) -> Models {
        let mut models = Models::default();
        for (&(direction, mode, count, size), costs) in &self.0 {
            models[direction][mode].set(count, size, typical(costs), costs.len() as u32);
        }
        models
    }
}

impl Subject {
    fn measure(
        &mut self,
        scratch: &mut Scratch,
        (count, size): (usize, usize),
        has_devices: bool,
    ) -> Result<(), Error> {
        let node = (count, size);
        for direction in [Direction::Encrypt, Direction::Decrypt] {
            scratch.wake((&*self.driver, &*self.transform), count, size);
            let waiting = scratch.wait(&*self.transform, direction, count, size);
            // The base runs submitted work at once. Between its batches the caller still has to
            // deal with them, which callers of other drivers do while those work.
            let submitting = match self.index {
                BASE if has_devices => waiting.clone(),
                BASE => {
                    let flows = scratch.submit(&self.session, direction, count, size)?;
                    let both = waiting.iter().zip(flows);
                    both.map(|(&cost, flow)| Cost {
                        period: flow.period.max(cost.period),
                        ..cost
                    })
                    .collect()
                }
                _ => {
                    scratch.wake((&*self.driver, &*self.transform), count, size);
                    scratch.submit(&self.session, direction, count, size)?
                }
            };
            self.measured.add(direction, Mode::Wait, node, waiting);
            self.measured.add(direction, Mode::Submit, node, submitting);
        }
        Ok(())
    }
}

/// Nodes of the grid, those that tell the most first.
fn nodes(algorithm: &Algorithm) -> Vec<(usize, usize)> {
    let mut order = Vec::new();
    for (counts, first, stride) in [
        (&[0, 2][..], 0, 5),
        (&[0, 2], 0, 2),
        // About 256 KiB, and this alone: where helpers begin to pay a lone request, a guess is wrong.
        (&[0], 7, SIZES.len()),
        (&[1, 3], 0, 2),
        (&[0, 1, 2, 3], 0, 1),
    ] {
        for &count in counts {
            for size in (first..SIZES.len()).step_by(stride) {
                let bytes = SIZES[size] as usize;
                let fits = COUNTS[count] as usize * bytes <= LARGEST
                    && bytes >= algorithm.min_len
                    && bytes as u64 <= algorithm.max_len;
                if fits && !order.contains(&(count, size)) {
                    order.push((count, size));
                }
            }
        }
    }
    order
}

/// The cost that counts of all repetitions.
fn typical(costs: &[Cost]) -> Cost {
    let mut costs = costs.to_vec();
    costs.sort_by(|a, b| a.period.total_cmp(&b.period));
    costs[costs.len() / PART]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_that_was_disturbed_does_not_decide() {
        let mut measured = Measured::default();
        let passes = [[100.0, 101.0], [900.0, 950.0], [99.0, 102.0]];
        for costs in passes {
            let costs = costs.map(Cost::inline).to_vec();
            measured.add(Direction::Encrypt, Mode::Wait, (0, 0), costs);
        }
        let models = measured.models();
        let model = &models[Direction::Encrypt as usize][Mode::Wait as usize];
        let cost = model.estimate(1, SIZES[0] as f32).expect("measured");
        assert!((99.0..=102.0).contains(&cost.latency), "{cost:?}");
        assert_eq!(model.samples(1, SIZES[0] as f32), 6);
    }
}
