//! One set of instructions measured by a process of its own, turn by turn. A process chooses its
//! kernels once, so `speed --instruction-sets` starts this program once for each set, and lets
//! these take turns.
//!
//! A turn is a line of JSON on the process's standard input; the answer, a line too, is what it
//! measured. The process ends with its input.

use std::collections::BTreeMap;
use std::io::{BufRead, Write, stdin, stdout};
use std::sync::Arc;
use std::time::Duration;

use cipherlane_core::{Algorithm, Direction, Framework, Session};
use cipherlane_drivers::software::Software;
use cipherlane_kernels::cpu;
use cipherlane_measure::interleave::{Plan, measure};
use cipherlane_measure::run::Run;
use cipherlane_measure::subject::Candidate;
use serde::{Deserialize, Serialize};

use super::waiting::Waiting;
use super::work::{Cell, Work};
use super::{asked::BASE, key};
use crate::failure::Failure;

/// What is measured in a turn, and how long.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Turn {
    algorithm: String,
    /// Bytes.
    key_len: usize,
    decrypts: bool,
    size: usize,
    batch: usize,
    threads: usize,
    time: Duration,
    block: Duration,
    warm_up: Duration,
}

impl Turn {
    pub(super) fn new(cell: &Cell, key_len: usize, plan: &Plan) -> Turn {
        Turn {
            algorithm: cell.work.algorithm.name.to_owned(),
            key_len,
            decrypts: cell.work.direction == Direction::Decrypt,
            size: cell.work.size,
            batch: cell.work.batch,
            threads: plan.threads,
            time: plan.time,
            block: plan.block,
            warm_up: plan.warm_up,
        }
    }

    fn plan(&self) -> Plan {
        Plan {
            time: self.time,
            block: self.block,
            warm_up: self.warm_up,
            threads: self.threads,
            ..Plan::default()
        }
    }
}

/// The process for the set of that name: takes turns until its input ends.
pub(super) fn serve(name: &str) -> Result<(), Failure> {
    let sets = cpu::instruction_sets();
    let Some(set) = sets.iter().find(|set| set.name == name) else {
        let names: Vec<_> = sets.iter().map(|set| set.name).collect();
        return Err(Failure::Usage(format!(
            "this processor has no instruction set '{name}' to measure; it has {}",
            names.join(", ")
        )));
    };
    set.use_only().map_err(|cpu::TooLate| {
        Failure::Runtime("the kernels were chosen before the instruction set was".to_owned())
    })?;
    let framework = Framework::builder(Arc::new(Software)).build()?;
    let mut sessions = BTreeMap::new();
    for (serial, line) in stdin().lock().lines().enumerate() {
        let line = line.map_err(|error| Failure::io("read", "the next turn", &error))?;
        let turn: Turn = serde_json::from_str(&line)
            .map_err(|error| Failure::Usage(format!("no turn of a measurement: {error}")))?;
        let run = take(&turn, serial as u64, &framework, &mut sessions)?;
        let mut answer = serde_json::to_vec(&run).expect("figures are plain data");
        answer.push(b'\n');
        let mut stdout = stdout().lock();
        stdout
            .write_all(&answer)
            .and_then(|()| stdout.flush())
            .map_err(|error| Failure::io("write", "what was measured", &error))?;
    }
    Ok(())
}

/// One turn. Sessions are kept, since cells of one algorithm follow each other.
fn take(
    turn: &Turn,
    serial: u64,
    framework: &Framework,
    sessions: &mut BTreeMap<(String, usize), Session>,
) -> Result<Run, Failure> {
    let of = (turn.algorithm.clone(), turn.key_len);
    if !sessions.contains_key(&of) {
        let builder = framework.session(&turn.algorithm, &key(turn.key_len))?;
        sessions.insert(of.clone(), builder.driver(BASE).open()?);
    }
    let session = &sessions[&of];
    let work = Work {
        algorithm: Algorithm::find(&turn.algorithm)?,
        direction: match turn.decrypts {
            true => Direction::Decrypt,
            false => Direction::Encrypt,
        },
        size: turn.size,
        batch: turn.batch,
    };
    let candidate = Candidate::new(BASE, move |thread| {
        Waiting::new(session, work, serial, thread)
    });
    let measured = measure(&turn.plan(), &[candidate], |_| ())
        .map_err(|error| Failure::Runtime(error.to_string()))?;
    let run = measured.runs.into_iter().next();
    Ok(run.expect("a candidate that was measured has a run"))
}
