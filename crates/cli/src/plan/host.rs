//! What this machine has now: software on the caller's core, and dedicated cores if any.

use std::time::Duration;

use cipherlane_core::{Error, Framework, Session};
use cipherlane_measure::interleave::{Plan, measure};
use cipherlane_measure::run::{Measurement, Run};
use cipherlane_measure::subject::Candidate;

use crate::algorithms::Choice;
use crate::failure::Failure;
use crate::speed::{Submitting, Waiting, Work, key};

/// What the accelerator is compared with.
pub(super) const BASE: &str = "software";
/// The workers of dedicated cores.
const CORES: &str = "cores";
/// Behind the name of a driver to which the caller submits.
const SUBMITTED: &str = ", submitted";
/// The longest warm-up.
const WARM_UP: Duration = Duration::from_millis(30);
/// The longest block: short enough that others leave some of them alone on a busy machine.
const BLOCK: Duration = Duration::from_millis(2);

/// The machine's own ways.
#[derive(Debug)]
pub(super) struct Host {
    sessions: Vec<(&'static str, Session)>,
}

impl Host {
    pub(super) fn new(framework: &Framework, choice: &Choice) -> Result<Host, Failure> {
        let mut sessions = Vec::new();
        for name in [BASE, CORES] {
            let builder = framework.session(choice.algorithm.name, &key(choice.key_len))?;
            match builder.driver(name).open() {
                Ok(session) => sessions.push((name, session)),
                // No core is dedicated.
                Err(Error::DriverUnusable { .. }) if name != BASE => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Host { sessions })
    }

    /// Measures each of them for `time`. `serial` is another for every call.
    pub(super) fn measure(
        &self,
        work: Work,
        depth: Option<usize>,
        time: Duration,
        serial: u64,
    ) -> Result<Measurement, Failure> {
        let plan = Plan {
            time,
            block: (time / 50).min(BLOCK),
            warm_up: time.min(WARM_UP),
            ..Plan::default()
        };
        let mut candidates: Vec<Candidate<'_>> = Vec::new();
        for (name, session) in &self.sessions {
            candidates.push(Candidate::new(*name, move |thread| {
                Waiting::new(session, work, serial, thread)
            }));
            if let Some(depth) = depth {
                candidates.push(Candidate::new(
                    format!("{name}{SUBMITTED}"),
                    move |thread| Submitting::new(session, work, depth, serial, thread),
                ));
            }
        }
        let mut measured = measure(&plan, &candidates, |_| ())
            .map_err(|error| Failure::Runtime(error.to_string()))?;
        // The device of the model shares its machine with nobody either.
        measured.leave_out_disturbed();
        keep_the_faster_way(&mut measured);
        Ok(measured)
    }
}

/// Of calls that wait and calls that submit, the way that gives more stays, under the driver's
/// name: nobody has to submit to software because a device would have it so.
fn keep_the_faster_way(measured: &mut Measurement) {
    let (submitted, mut waiting): (Vec<Run>, Vec<Run>) = std::mem::take(&mut measured.runs)
        .into_iter()
        .partition(|run| run.name.ends_with(SUBMITTED));
    let rate = |run: &Run| run.rate().map_or(0.0, |rate| rate.median);
    for run in submitted {
        let name = run.name.trim_end_matches(SUBMITTED).to_owned();
        let other = waiting.iter_mut().find(|waiting| waiting.name == name);
        if let Some(other) = other.filter(|other| rate(other) < rate(&run)) {
            *other = Run { name, ..run };
        }
    }
    measured.runs = waiting;
}
