//! Why a driver serves: the answer that every framework before could not give.

use serde::Serialize;

use crate::dispatch::{Mode, Shape, Switch, price};
use crate::health::Health;
use crate::{Algorithm, Direction, Error, Framework, Goal};

/// A batch to ask about.
#[derive(Clone, Copy, Debug)]
pub struct Question {
    /// The algorithm.
    pub algorithm: &'static Algorithm,
    /// Bytes of the key.
    pub key_len: usize,
    /// What the driver is chosen for.
    pub goal: Goal,
    /// Whether the caller waits.
    pub mode: Mode,
    /// Which way.
    pub direction: Direction,
    /// Requests in the batch.
    pub requests: usize,
    /// Bytes of each request.
    pub size: usize,
}

/// Who serves a batch, and why.
#[derive(Clone, Debug, Serialize)]
pub struct Why {
    /// CryptoAPI name.
    pub algorithm: &'static str,
    /// Key bits.
    pub key_bits: u32,
    /// The goal.
    pub goal: Goal,
    /// The kind of caller.
    pub mode: Mode,
    /// Requests in the batch.
    pub requests: usize,
    /// Bytes of each request.
    pub size: usize,
    /// The driver that serves.
    pub served_by: String,
    /// In a sentence.
    pub reason: String,
    /// Every driver.
    pub candidates: Vec<Candidate>,
    /// The last change of driver here, with the drivers' names.
    pub last_switch: Option<(String, String, Switch)>,
}

/// One driver's part in the answer.
#[derive(Clone, Debug, Serialize)]
pub struct Candidate {
    /// Driver name.
    pub driver: String,
    /// Estimated nanoseconds from call to results.
    pub latency_ns: Option<f32>,
    /// Estimated nanoseconds between results with several batches under way.
    pub period_ns: Option<f32>,
    /// Estimated processor time of the caller in nanoseconds.
    pub cpu_ns: Option<f32>,
    /// Samples near this place.
    pub samples: u32,
    /// Health.
    pub health: Health,
    /// Why it is not used; `None` for the one that serves.
    pub not_used_because: Option<String>,
}

impl std::fmt::Display for Why {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "'{}' serves {} for {} x {} bytes: {}",
            self.served_by, self.algorithm, self.requests, self.size, self.reason
        )
    }
}

impl Framework {
    /// Who would serve one request of `size` bytes, and why: [`explain`](Self::explain) with the
    /// algorithm's shortest key, the goal of the settings and a caller that waits.
    ///
    /// ```
    /// let why = cipherlane::Framework::new()?.why("ctr(aes)", 64)?;
    /// println!("{why}");
    /// assert_eq!(why.served_by, "software");
    /// # Ok::<(), cipherlane::Error>(())
    /// ```
    pub fn why(&self, algorithm: &str, size: usize) -> Result<Why, Error> {
        let algorithm = Algorithm::find(algorithm)?;
        self.explain(Question {
            algorithm,
            key_len: algorithm.key_lengths()[0],
            goal: self.shared.config.goal,
            mode: Mode::Wait,
            direction: Direction::Encrypt,
            requests: 1,
            size,
        })
    }

    /// Who would serve a batch, what each driver is estimated to take, and why the others
    /// are not used.
    pub fn explain(&self, question: Question) -> Result<Why, Error> {
        let Question {
            algorithm,
            key_len,
            goal,
            mode,
            direction,
            requests,
            size,
        } = question;
        let shape = Shape {
            mode,
            direction,
            requests,
            bytes: requests * size,
        };
        let dispatch = self.dispatch(algorithm, key_len);
        let name = |index: usize| self.shared.entries[index].driver.name().to_owned();
        let cell = dispatch.cell(goal, &shape);
        let home = usize::from(cell.best);
        // Calibration looks at no limit of a driver.
        let too_large = |index: usize| {
            let key = vec![0x5a; key_len];
            let device = dispatch.is_device(index) && dispatch.is_eligible(index);
            let driver = &self.shared.entries[index].driver;
            device && (driver.transform(algorithm, &key)).is_ok_and(|t| t.max_len() < size)
        };
        let serving = match &self.shared.config.force {
            Some(forced) => self.driver_index(forced)?,
            None if too_large(cell.serving()) => home,
            None => cell.serving(),
        };
        // A device that is kept out serves later.
        let chosen = serving;
        let kept_out_now = match &self.shared.config.force {
            None if dispatch.is_device(chosen) => dispatch.kept_out(chosen, &shape),
            _ => None,
        };
        let serving = if kept_out_now.is_some() { home } else { chosen };
        let beside = self.shared.config.force.is_none() && dispatch.is_device(serving);
        let price_of = |index: usize| {
            let (cost, _) = dispatch.estimate(index, &shape);
            cost.map(|cost| price(goal, mode, &cost))
        };
        let candidates: Vec<Candidate> = (0..self.shared.entries.len())
            .map(|index| {
                let (cost, samples) = dispatch.estimate(index, &shape);
                let barred = self.not_used(index, algorithm);
                let dearer = match (price_of(index), price_of(serving)) {
                    _ if index == serving => None,
                    _ if too_large(index) => Some("it takes no requests that large".to_owned()),
                    (Some(_), Some(_)) if beside && index == home => {
                        Some(format!("it serves what finds '{}' busy", name(serving)))
                    }
                    (Some(_), Some(_)) if index == chosen => Some(format!(
                        "it would serve beside '{}', since that costs the caller less",
                        name(serving)
                    )),
                    (Some(own), Some(best)) if own > best => Some(format!(
                        "{:.2} times the cost of '{}'",
                        own / best,
                        name(serving)
                    )),
                    (Some(own), Some(best)) => Some(format!(
                        "{:.2} times the cost of '{}', which is not less by enough to change over",
                        own / best,
                        name(serving)
                    )),
                    _ => Some(match dispatch.first_sight(index, &shape) {
                        Some(ns) => format!("never used here; {ns:.0} ns by its self-test"),
                        None => "never measured here; 'cipherlane calibrate' does it".to_owned(),
                    }),
                };
                let dearer = dearer.map(|reason| match dispatch.kept_out(index, &shape) {
                    Some(due) => format!("{reason}; {}", kept_out(due)),
                    None => reason,
                });
                Candidate {
                    driver: name(index),
                    latency_ns: cost.map(|c| c.latency),
                    period_ns: cost.map(|c| c.period),
                    cpu_ns: cost.map(|c| c.cpu),
                    samples,
                    health: self.shared.entries[index].breaker.health(),
                    not_used_because: barred.or(dearer),
                }
            })
            .collect();
        let others = candidates.iter().filter(|c| c.driver != name(serving));
        let measured = others.clone().filter(|c| c.latency_ns.is_some()).count();
        let reason = match (&self.shared.config.force, price_of(serving)) {
            (Some(forced), _) => format!("the user forces '{forced}'"),
            (None, None) => "nothing was measured yet, so the base driver serves".to_owned(),
            (None, Some(_)) if measured == 0 => {
                match self.uncalibrated(algorithm, key_len).is_empty() {
                    true => "no other driver can be used".to_owned(),
                    false => "no other driver was measured yet".to_owned(),
                }
            }
            (None, Some(ns)) => format!(
                "it is estimated to cost the least for goal {}: {ns:.0} ns per batch",
                match goal {
                    Goal::Latency => "latency",
                    Goal::Throughput => "throughput",
                    Goal::Cpu => "cpu",
                }
            ),
        };
        let cpu = |index: usize| dispatch.estimate(index, &shape).0.map(|cost| cost.cpu);
        let reason = match (kept_out_now, beside) {
            (Some(due), _) => {
                format!(
                    "{reason}; '{}' does not serve yet: {}",
                    name(chosen),
                    kept_out(due)
                )
            }
            (None, false) => reason,
            // The device's price is no reason: what it does is done beside the home's work.
            (None, true) => match (cpu(serving), cpu(home)) {
                (Some(own), Some(other)) => format!(
                    "it works beside '{}', which serves what finds it busy, and costs the caller \
                     {own:.0} ns of processor time per batch instead of {other:.0} ns",
                    name(home)
                ),
                _ => format!("{reason}; while it is busy, '{}' serves", name(home)),
            },
        };
        let last_switch = dispatch
            .last_switch(goal, &shape)
            .map(|switch| (name(switch.from), name(switch.to), switch));
        Ok(Why {
            algorithm: algorithm.name,
            key_bits: algorithm.key_bits(key_len),
            goal,
            mode,
            requests,
            size,
            served_by: name(serving),
            reason,
            candidates,
            last_switch,
        })
    }
}

/// What keeps a device out that may hang.
fn kept_out((due, done): (u64, u64)) -> String {
    let seconds = |nanoseconds: u64| nanoseconds as f64 / 1e9;
    format!(
        "since it may hang, it is used after {:.1} s of work, which pay for that ({:.1} s so far)",
        seconds(due),
        seconds(done)
    )
}
