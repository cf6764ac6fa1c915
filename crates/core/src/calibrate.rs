//! Calibration: careful measurements of every driver, within a time budget.

use std::collections::VecDeque;
use std::time::Duration;

use crate::batch::{Batch, OwnedRequest, Payload};
use crate::dispatch::model::{COUNTS, Cost, SIZES};
use crate::dispatch::{BASE, Mode, Models};
use crate::request::Request;
use crate::selftest::Random;
use crate::{
    Algorithm, Clock, Direction, Error, Framework, Kind, Session, Ticket, Transform, Unavailable,
};

/// Seconds of calibration per driver, algorithm and key length, unless the settings say otherwise:
/// enough for most nodes of an algorithm that does a gigabyte per second.
const SECONDS_PER_ALGORITHM: f64 = 0.1;
/// Seconds of calibration per driver at least.
const LEAST_SECONDS: f64 = 2.0;
/// Most bytes in one measured batch; larger nodes follow the slope.
const LARGEST: usize = 4 << 20;
/// Batches under way when the caller does not wait.
const DEPTH: usize = 4;
/// One in this number of submissions has its processor time read, which takes as long as a short
/// request.
const CLOCKED: u32 = 8;
/// Repetitions at a node, of which the median counts.
const REPETITIONS: usize = 5;
/// Short batches repeat for this long, so that the clock's own cost vanishes.
const MIN_MEASUREMENT: Duration = Duration::from_micros(100);

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
    /// `calibration_seconds` of the settings per driver over all of them; by default for 0.1 s per
    /// algorithm and key length, and 2 s at least.
    pub fn calibrate(
        &self,
        what: &[(&'static Algorithm, usize)],
        progress: &mut dyn FnMut(CalibrationStep<'_>),
    ) -> Result<(), Error> {
        let usual = (what.len() as f64 * SECONDS_PER_ALGORITHM).max(LEAST_SECONDS);
        let seconds = self.shared.config.calibration_seconds.unwrap_or(usual);
        let share = Duration::from_secs_f64(seconds / what.len().max(1) as f64);
        for (i, &(algorithm, key_len)) in what.iter().enumerate() {
            let dispatch = self.dispatch(algorithm, key_len);
            let mut subjects = (0..self.shared.entries.len())
                .filter(|&index| dispatch.is_eligible(index))
                .map(|index| self.subject(index, algorithm, key_len))
                .collect::<Result<Vec<_>, _>>()?;
            let mut step = |driver: usize, part: f64| {
                progress(CalibrationStep {
                    algorithm: algorithm.name,
                    driver: self.shared.entries[driver].driver.name(),
                    done: (i as f64 + part) / what.len() as f64,
                });
            };
            self.measure((algorithm, key_len), &mut subjects, share, &mut step)?;
            for subject in subjects {
                dispatch.set_models(subject.index, subject.models);
            }
        }
        Ok(())
    }

    /// A driver with a key, to be measured.
    fn subject(
        &self,
        index: usize,
        algorithm: &'static Algorithm,
        key_len: usize,
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
            transform,
            session: session.without_learning().open()?,
            models: Models::default(),
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
    transform: Box<dyn Transform>,
    session: Session,
    models: Models,
    /// The time that was spent on it.
    used: Duration,
}

impl Subject {
    fn measure(
        &mut self,
        scratch: &mut Scratch,
        (count, size): (usize, usize),
        has_devices: bool,
    ) -> Result<(), Error> {
        for direction in [Direction::Encrypt, Direction::Decrypt] {
            let cost = scratch.wait(&*self.transform, direction, count, size);
            let by_mode = &mut self.models[direction as usize];
            by_mode[Mode::Wait as usize].set(count, size, cost, REPETITIONS as u32);
            // The base runs submitted work at once. Between its batches the caller still has to
            // deal with them, which callers of other drivers do while those work.
            let cost = match self.index {
                BASE if has_devices => cost,
                BASE => {
                    let flow = scratch.submit(&self.session, direction, count, size)?;
                    let period = flow.period.max(cost.period);
                    Cost { period, ..cost }
                }
                _ => scratch.submit(&self.session, direction, count, size)?,
            };
            by_mode[Mode::Submit as usize].set(count, size, cost, REPETITIONS as u32);
        }
        Ok(())
    }
}

/// Nodes of the grid, those that tell the most first.
fn nodes(algorithm: &Algorithm) -> Vec<(usize, usize)> {
    let mut order = Vec::new();
    for (counts, stride) in [
        (&[0, 2][..], 5),
        (&[0, 2], 2),
        (&[1, 3], 2),
        (&[0, 1, 2, 3], 1),
    ] {
        for &count in counts {
            for size in (0..SIZES.len()).step_by(stride) {
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

/// Memory for measured batches.
struct Scratch {
    algorithm: &'static Algorithm,
    clock: Clock,
    iv: Vec<u8>,
    aad: Vec<u8>,
    input: Vec<u8>,
    output: Vec<u8>,
    tags: Vec<u8>,
}

impl Scratch {
    fn new(algorithm: &'static Algorithm, clock: Clock, random: &mut Random) -> Self {
        Scratch {
            algorithm,
            clock,
            iv: algorithm.fit_iv(random.bytes(algorithm.iv_len)),
            aad: random.bytes(algorithm.aad.fit(8)),
            input: vec![0; LARGEST],
            output: vec![0; LARGEST],
            tags: vec![0; 64 * COUNTS[COUNTS.len() - 1] as usize],
        }
    }

    /// What time it is, and the processor time used.
    fn times(&self) -> (Duration, Duration) {
        (self.clock.now(), self.clock.processor())
    }

    /// Time of a batch whose caller waits: the median of some repetitions.
    fn wait(
        &mut self,
        transform: &dyn Transform,
        direction: Direction,
        count: usize,
        size: usize,
    ) -> Cost {
        let (count, size) = (COUNTS[count] as usize, SIZES[size] as usize);
        // Decryption of an AEAD wants true tags: encrypt first, and keep the ciphertext.
        if direction == Direction::Decrypt {
            self.once(transform, Direction::Encrypt, count, size);
            let bytes = count * size;
            self.input[..bytes].copy_from_slice(&self.output[..bytes]);
        }
        self.once(transform, direction, count, size);
        let mut repeats = 1;
        let mut costs = Vec::new();
        while costs.len() < REPETITIONS {
            let (wall, cpu) = self.times();
            for _ in 0..repeats {
                self.once(transform, direction, count, size);
            }
            let (now, used) = self.times();
            let (wall, cpu) = (now - wall, used.saturating_sub(cpu));
            if wall < MIN_MEASUREMENT && repeats < 1 << 16 {
                repeats *= 2;
                continue;
            }
            let each = |time: Duration| time.as_nanos() as f32 / repeats as f32;
            costs.push(Cost {
                cpu: each(cpu).max(1.0),
                ..Cost::inline(each(wall))
            });
        }
        median(costs)
    }

    fn once(&mut self, transform: &dyn Transform, direction: Direction, count: usize, size: usize) {
        let tag_len = self.algorithm.tag_len();
        let inputs = self.input.chunks_exact(size);
        let outputs = self.output.chunks_exact_mut(size);
        let tags = self.tags.chunks_exact_mut(64);
        let mut requests: arrayvec::ArrayVec<Request<'_>, 64> = arrayvec::ArrayVec::new();
        for ((input, output), tag) in inputs.zip(outputs).zip(tags).take(count) {
            let request = match (self.algorithm.kind, direction) {
                (Kind::Mac, _) => Request::mac(input),
                // Its ciphertext must stay what it is, or the tag is wrong.
                (Kind::Aead, Direction::Decrypt) => Request::new(input, output),
                _ => Request::in_place(output),
            };
            requests.push(request.iv(&self.iv).aad(&self.aad).tag(&mut tag[..tag_len]));
        }
        transform.run(direction, &mut requests);
    }

    /// Time of a batch whose caller keeps several under way.
    fn submit(
        &mut self,
        session: &Session,
        direction: Direction,
        count: usize,
        size: usize,
    ) -> Result<Cost, Error> {
        let (count, size) = (COUNTS[count] as usize, SIZES[size] as usize);
        let batches = (LARGEST / (count * size)).clamp(DEPTH, 8 * DEPTH);
        let mut idle: Vec<Batch> = (0..DEPTH)
            .map(|_| self.batch(session, direction, count, size))
            .collect::<Result<_, _>>()?;
        let mut costs = Vec::new();
        for _ in 0..REPETITIONS {
            let mut under_way = VecDeque::with_capacity(2 * DEPTH);
            let mut submitting = Duration::ZERO;
            let mut submissions = 0_u32;
            let mut latencies = Duration::ZERO;
            let (mut wall, mut cpu) = self.times();
            let started = wall;
            // In requests: a driver may take a batch in parts.
            let (mut done, mut before) = (0, None);
            while done < (DEPTH + batches) * count {
                // The first batches find the driver idle, so that they tell its latency, and wake its
                // helpers. What comes after them tells its pace.
                if before.is_none() && done >= DEPTH * count {
                    before = Some(done);
                    submitting = Duration::ZERO;
                    (wall, cpu) = self.times();
                }
                for mut batch in idle.drain(..) {
                    submissions += 1;
                    let cpu = (submissions.is_multiple_of(CLOCKED)).then(|| self.clock.processor());
                    while !batch.is_empty() {
                        under_way.push_back(session.submit(&mut batch)?);
                    }
                    if let Some(cpu) = cpu {
                        submitting += CLOCKED * self.clock.processor().saturating_sub(cpu);
                    }
                }
                let Some(ticket) = under_way.pop_front() else {
                    break;
                };
                let batch = ticket.wait();
                if !batch.is_empty() {
                    if before.is_none() {
                        latencies += self.clock.now() - started;
                    }
                    done += batch.requests().len();
                    idle.push(batch);
                }
            }
            let (now, used) = self.times();
            let whole = used.saturating_sub(cpu);
            let first = before.unwrap_or(done).max(1) as f32 / count as f32;
            let counted = (done - before.unwrap_or(0)).max(1) as f32 / count as f32;
            let each = |time: Duration| time.as_nanos() as f32 / counted;
            costs.push(Cost {
                latency: latencies.as_nanos() as f32 / first,
                period: each(now - wall),
                // A caller that goes on does not help, so only its submitting counts.
                cpu: each(submitting.min(whole)).max(1.0),
            });
            let landed = under_way.into_iter().map(Ticket::wait);
            idle.extend(landed.filter(|batch| !batch.is_empty()));
        }
        Ok(median(costs))
    }

    fn batch(
        &mut self,
        session: &Session,
        direction: Direction,
        count: usize,
        size: usize,
    ) -> Result<Batch, Error> {
        let mut batch = Batch::new(direction);
        for _ in 0..count {
            let mut data = vec![0; size];
            let mut tag = vec![0; self.algorithm.tag_len()];
            if direction == Direction::Decrypt && !tag.is_empty() {
                let request = match self.algorithm.kind {
                    Kind::Mac => Request::mac(&data),
                    _ => Request::in_place(&mut data),
                };
                let request = request.iv(&self.iv).aad(&self.aad).tag(&mut tag);
                session.process(Direction::Encrypt, &mut [request])?;
            }
            let payload = match (self.algorithm.kind, direction) {
                (Kind::Mac, _) => Payload::Mac(data),
                (Kind::Aead, Direction::Decrypt) => Payload::Copy {
                    output: vec![0; size],
                    input: data,
                },
                _ => Payload::InPlace(data),
            };
            let request = OwnedRequest::new(payload);
            batch.push(request.iv(self.iv.clone()).aad(self.aad.clone()).tag(tag));
        }
        Ok(batch)
    }
}

fn median(mut costs: Vec<Cost>) -> Cost {
    costs.sort_by(|a, b| a.period.total_cmp(&b.period));
    costs[costs.len() / 2]
}
