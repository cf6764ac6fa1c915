//! The time of one batch at a node: of a caller that waits, and of one that keeps several under way.

use std::collections::VecDeque;
use std::time::Duration;

use super::{LARGEST, REPETITIONS};
use crate::batch::{Batch, OwnedRequest, Payload};
use crate::dispatch::model::{COUNTS, Cost, SIZES};
use crate::request::Request;
use crate::selftest::Random;
use crate::{Algorithm, Clock, Direction, Driver, Error, Kind, Session, Ticket, Transform};

/// Batches under way when the caller does not wait.
const DEPTH: usize = 4;
/// One in this number of submissions has its processor time read, which takes as long as a short
/// request.
const CLOCKED: u32 = 8;
/// How long helpers may take to wake up, and the most batches meanwhile.
const WAKE_UP: Duration = Duration::from_micros(200);
const MOST_TO_WAKE: usize = 10_000;
/// Short batches repeat for this long, so that the clock's own cost vanishes.
const MIN_MEASUREMENT: Duration = Duration::from_micros(50);

/// Memory for measured batches.
pub(super) struct Scratch {
    algorithm: &'static Algorithm,
    clock: Clock,
    iv: Vec<u8>,
    aad: Vec<u8>,
    input: Vec<u8>,
    output: Vec<u8>,
    tags: Vec<u8>,
}

impl Scratch {
    pub(super) fn new(algorithm: &'static Algorithm, clock: Clock, random: &mut Random) -> Self {
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

    /// Works until helpers of a driver that slept are there, as they are for a caller that goes on
    /// working.
    pub(super) fn wake(
        &mut self,
        (driver, transform): (&dyn Driver, &dyn Transform),
        count: usize,
        size: usize,
    ) {
        let (count, size) = (COUNTS[count] as usize, SIZES[size] as usize);
        let until = self.clock.now() + WAKE_UP;
        for _ in 0..MOST_TO_WAKE {
            let sleeps = (1..u32::MAX).contains(&driver.load().delay_ns);
            if !sleeps || self.clock.now() >= until {
                break;
            }
            driver.missed(u32::MAX);
            self.once(transform, Direction::Encrypt, count, size);
        }
    }

    /// What time it is, and the processor time used.
    fn times(&self) -> (Duration, Duration) {
        (self.clock.now(), self.clock.processor())
    }

    /// Times of a batch whose caller waits.
    pub(super) fn wait(
        &mut self,
        transform: &dyn Transform,
        direction: Direction,
        count: usize,
        size: usize,
    ) -> Vec<Cost> {
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
        costs
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

    /// Times of a batch whose caller keeps several under way.
    pub(super) fn submit(
        &mut self,
        session: &Session,
        direction: Direction,
        count: usize,
        size: usize,
    ) -> Result<Vec<Cost>, Error> {
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
        Ok(costs)
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
