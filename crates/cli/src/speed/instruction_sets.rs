//! `--instruction-sets`: software with each set of instructions that this processor has, side by
//! side, as it would run on older processors. Each set has a process of this program of its own
//! ([`turn`](super::turn)), and these take turns.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use cipherlane_kernels::cpu;
use cipherlane_measure::interleave::{Plan, Progress};
use cipherlane_measure::run::{Measurement, Run};

use super::asked::Asked;
use super::turn::Turn;
use super::work::Cell;
use crate::failure::Failure;

/// Turns into which the time of a cell and set is cut. Each has six blocks or more, and neighbours
/// in time are compared.
const TURNS: u32 = 4;
/// Blocks of a turn.
const BLOCKS: u32 = 6;
/// The longest warm-up of a turn: the kernels need no helpers, only their caches.
const WARM_UP: Duration = Duration::from_millis(5);

/// The processes, that of the widest set first.
#[derive(Debug)]
pub(super) struct InstructionSets {
    processes: Vec<Process>,
}

#[derive(Debug)]
struct Process {
    set: &'static str,
    child: Child,
    /// `None` once no more turns come.
    turns: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

/// How many sets this processor has.
pub(super) fn count() -> usize {
    cpu::instruction_sets().len()
}

/// What cannot be asked for together with the sets.
pub(super) fn check(asked: &Asked, forced: Option<&str>) -> Result<(), Failure> {
    let others = [
        (forced.is_some(), "--driver"),
        (asked.drivers_named, "--drivers"),
        (asked.depths != [None], "--submit"),
        (asked.pauses != [None], "--pause"),
    ];
    match others.iter().find(|(given, _)| *given) {
        None => Ok(()),
        Some((_, option)) => Err(Failure::Usage(format!(
            "--instruction-sets measures software by callers that wait, so {option} has no place \
             beside it; leave one out"
        ))),
    }
}

impl InstructionSets {
    pub(super) fn start() -> Result<InstructionSets, Failure> {
        let sets = cpu::instruction_sets();
        let processes = sets.iter().map(|set| Process::start(set.name));
        Ok(InstructionSets {
            processes: processes.collect::<Result<_, _>>()?,
        })
    }

    pub(super) fn len(&self) -> usize {
        self.processes.len()
    }

    /// What this processor's own software has, which the others are compared with.
    pub(super) fn base(&self) -> &'static str {
        self.processes[0].set
    }

    /// Measures a cell by all of them in turn.
    pub(super) fn measure(
        &mut self,
        plan: &Plan,
        cell: &Cell,
        key_len: usize,
        mut progress: impl FnMut(Progress),
    ) -> Result<Measurement, Failure> {
        let time = plan.time / TURNS;
        let plan = Plan {
            time,
            block: plan.block.min(time / BLOCKS),
            warm_up: plan.warm_up.min(WARM_UP),
            ..plan.clone()
        };
        let turn = Turn::new(cell, key_len, &plan);
        let mut runs: Vec<Option<Run>> = vec![None; self.processes.len()];
        for round in 0..TURNS as usize {
            // Forwards and backwards, so that no set always comes after the same other.
            let mut order: Vec<usize> = (0..runs.len()).collect();
            if !round.is_multiple_of(2) {
                order.reverse();
            }
            for index in order {
                let later = self.processes[index].take(&turn)?;
                match &mut runs[index] {
                    Some(run) => run.append(later),
                    none => *none = Some(later),
                }
            }
            progress(Progress {
                round: round + 1,
                rounds: TURNS as usize,
            });
        }
        Ok(Measurement {
            runs: runs.into_iter().flatten().collect(),
        })
    }
}

impl Process {
    fn start(set: &'static str) -> Result<Process, Failure> {
        let failed = |error| Failure::io("start", "another process of this program", &error);
        let program = std::env::current_exe().map_err(failed)?;
        let mut child = Command::new(program)
            .args(["speed", "--turns-with", set])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let turns = child.stdin.take();
        let answers = child.stdout.take().expect("standard output is a pipe");
        Ok(Process {
            set,
            child,
            turns,
            answers: BufReader::new(answers),
        })
    }

    /// One turn; the run has the name of the set.
    fn take(&mut self, turn: &Turn) -> Result<Run, Failure> {
        let mut line = serde_json::to_string(turn).expect("a turn is plain data");
        line.push('\n');
        let ended = || {
            Failure::Runtime(format!(
                "the process that measures with '{}' has ended; its message stands above",
                self.set
            ))
        };
        let turns = self.turns.as_mut().ok_or_else(ended)?;
        turns.write_all(line.as_bytes()).map_err(|_| ended())?;
        line.clear();
        if self.answers.read_line(&mut line).map_err(|_| ended())? == 0 {
            return Err(ended());
        }
        let run: Run = serde_json::from_str(&line).map_err(|_| ended())?;
        Ok(Run {
            name: self.set.to_owned(),
            ..run
        })
    }
}

impl Drop for Process {
    /// The process ends with its input.
    fn drop(&mut self) {
        self.turns = None;
        let _ = self.child.wait();
    }
}
