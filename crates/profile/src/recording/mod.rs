//! A recording: what it has, and how it is read and written.
//!
//! The file is one JSON document. docs/profile.md describes its fields for other programs. A file
//! may come from a stranger: [`Recording::parse`] checks each number that points into a table, so
//! that nothing behind it needs to.

mod check;
mod coverage;
mod row;

use std::fs::File;
use std::io::Read;
use std::path::Path;

use cipherlane_measure::machine::Machine;
use serde::{Deserialize, Serialize};

pub use self::coverage::{Coverage, Windows};
pub use self::row::{Kind, Sample, Wake};
use crate::Error;

/// What the field `schema` says.
pub const SCHEMA: &str = "cipherlane/recording";
/// Grows when a field changes its meaning or goes.
pub const VERSION: u32 = 1;
/// Larger files are refused, in bytes.
const LARGEST: u64 = 256 << 20;

/// Where the time of a program went.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recording {
    /// [`SCHEMA`].
    pub schema: String,
    /// [`VERSION`].
    pub version: u32,
    /// The machine, and when.
    pub machine: Machine,
    /// The command with its arguments, or which processes.
    pub what: String,
    /// How the command ended: its exit status, or 128 and the number of the signal.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub status: Option<i32>,
    /// The kernel's event that the samples of processor time were taken by.
    pub event: String,
    /// Nanoseconds between two samples of a processor.
    pub period_ns: u64,
    /// Nanoseconds that the recording lasted.
    pub wall_ns: u64,
    /// What was done in that time, if known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub work: Option<Work>,
    /// What was counted rather than sampled.
    pub counters: Counters,
    /// System calls, those called most often first. Empty where they cannot be counted.
    #[serde(default)]
    pub system_calls: Vec<SystemCall>,
    /// Samples that the kernel had no room for.
    pub lost: u64,
    /// Processor time of the recorder itself meanwhile, in nanoseconds.
    pub recorder_ns: u64,
    /// What is missing and what would give it, in sentences.
    #[serde(default)]
    pub missing: Vec<String>,
    /// Threads that have samples, or woke one that has.
    pub threads: Vec<Thread>,
    /// Functions.
    pub frames: Vec<Frame>,
    /// Stacks as a tree: the stack that called (its number and one, 0 for none), and the
    /// function. A stack stands behind its caller.
    pub stacks: Vec<(u32, u32)>,
    /// In the order of time.
    pub samples: Vec<Sample>,
    /// When system calls and waits were recorded, where that was not all of the time: their counts,
    /// times and bytes are multiplied up then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coverage: Option<Coverage>,
    /// Waits by who ended them, the longest first. Empty where wake-ups cannot be recorded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wakes: Vec<Wake>,
    /// Time that the hypervisor gave to others: nanoseconds since the start, and how much since
    /// the entry before.
    #[serde(default)]
    pub steal: Vec<(u64, u64)>,
}

/// The work that time is divided by.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Work {
    /// How much.
    pub amount: u64,
    /// Of what.
    pub unit: Unit,
    /// Where the figure is from.
    pub source: String,
}

/// What work is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Bytes.
    Byte,
    /// Whatever the user counts.
    Operation,
    /// Seconds of the recording, where no work is known.
    Second,
}

/// Figures over the whole recording. Those of the machine are of all programs on it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Counters {
    /// Processor time, in nanoseconds.
    pub processor_ns: u64,
    /// Processor time of kernel threads that worked for the program, in nanoseconds, by samples. It is
    /// not in `processor_ns`.
    #[serde(default)]
    pub kernel_threads_ns: u64,
    /// Page faults.
    pub page_faults: u64,
    /// Moves of a thread to another processor; multiplied up where waits were recorded in windows.
    pub migrations: u64,
    /// Times that a thread gave up its processor because it had to wait.
    pub waits: u64,
    /// Times that a thread was made to give up its processor.
    pub preemptions: u64,
    /// Bytes read by read(2) and its relatives, where the kernel tells.
    pub read_bytes: u64,
    /// Bytes written by write(2) and its relatives.
    pub written_bytes: u64,
    /// Interrupts of the machine.
    pub machine_interrupts: u64,
    /// Soft interrupts of the machine.
    pub machine_softirqs: u64,
    /// Time that the hypervisor took from the machine, in nanoseconds.
    pub machine_steal_ns: u64,
    /// Processor time of all programs on the machine, in nanoseconds; 0 where it is not known.
    #[serde(default)]
    pub machine_busy_ns: u64,
}

/// One kind of system call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SystemCall {
    /// Its name, or its number.
    pub name: String,
    /// How often; an estimate where `exact` says so.
    pub count: u64,
    /// Whether every one was counted.
    pub exact: bool,
    /// Bytes that it returned, for those that return bytes.
    pub bytes: u64,
}

/// A thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Thread {
    /// Its process.
    pub pid: u32,
    /// Its own number.
    pub tid: u32,
    /// Its name, 15 bytes at most.
    pub name: String,
}

/// A function.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Frame {
    /// Its name, or the file and the place in it.
    pub name: String,
    /// The file that it is in; `[kernel]` for the kernel.
    pub module: String,
}

impl Recording {
    /// Reads a file.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let io = |source| Error::Io {
            path: path.to_owned(),
            source,
        };
        let mut bytes = Vec::new();
        let file = File::open(path).map_err(io)?;
        file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(io)?;
        Self::parse(&bytes).map_err(|reason| Error::Damaged {
            path: path.to_owned(),
            reason,
        })
    }

    /// The recording in `bytes`; `Err` says what is wrong with them.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        /// What says whether the rest can be understood.
        #[derive(Deserialize)]
        struct Head {
            schema: String,
            version: u32,
        }
        if bytes.len() as u64 > LARGEST {
            return Err(format!("it is larger than {} MiB", LARGEST >> 20));
        }
        if bytes.starts_with(b"PERFILE2") {
            return Err("it is a file of 'perf record'".to_owned());
        }
        let syntax = |error: serde_json::Error| match error.is_eof() {
            true => format!("it ends too early ({error})"),
            false => error.to_string(),
        };
        let head: Head = serde_json::from_slice(bytes).map_err(syntax)?;
        if head.schema != SCHEMA {
            return Err(format!(
                "it says that it is '{}'",
                head.schema.escape_debug()
            ));
        }
        if head.version != VERSION {
            return Err(format!(
                "it has version {}, and this program reads version {VERSION}",
                head.version
            ));
        }
        let recording: Self = serde_json::from_slice(bytes).map_err(syntax)?;
        recording.check()?;
        Ok(recording)
    }

    /// As it is written to a file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = serde_json::to_vec(self).expect("a recording is plain data");
        bytes.push(b'\n');
        bytes
    }

    /// The functions of a stack, from the innermost outwards.
    pub fn frames_of(&self, stack: u32) -> impl Iterator<Item = &Frame> {
        let numbers = self.frame_numbers_of(stack);
        numbers.map(|frame| &self.frames[frame as usize])
    }

    /// The same as indices of [`frames`](Self::frames).
    pub(crate) fn frame_numbers_of(&self, stack: u32) -> impl Iterator<Item = u32> {
        let mut next = stack;
        std::iter::from_fn(move || {
            let (caller, frame) = self.stacks[next.checked_sub(1)? as usize];
            next = caller;
            Some(frame)
        })
    }

    /// What work the times are divided by: seconds where none is known.
    pub fn unit(&self) -> Unit {
        self.work.as_ref().map_or(Unit::Second, |work| work.unit)
    }

    /// How many of `unit` there were, if that is known.
    pub fn amount(&self, unit: Unit) -> Option<f64> {
        match (unit, &self.work) {
            (Unit::Second, _) => Some(self.wall_ns.max(1) as f64 / 1e9),
            (unit, Some(work)) if work.unit == unit => Some(work.amount as f64),
            _ => None,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A recording of one thread, with `stacks` as text (`outer;inner`) and what they cost.
    pub(crate) fn recording(stacks: &[(&str, Kind, u64)]) -> Recording {
        let mut recording = Recording {
            schema: SCHEMA.to_owned(),
            version: VERSION,
            machine: Machine::detect(),
            what: "a test".to_owned(),
            status: Some(0),
            event: "cpu-clock".to_owned(),
            period_ns: 1_000_000,
            wall_ns: 4_000_000_000,
            work: None,
            counters: Counters::default(),
            system_calls: Vec::new(),
            lost: 0,
            recorder_ns: 0,
            missing: Vec::new(),
            threads: vec![Thread {
                pid: 1,
                tid: 1,
                name: "test".to_owned(),
            }],
            frames: Vec::new(),
            stacks: Vec::new(),
            samples: Vec::new(),
            coverage: None,
            wakes: Vec::new(),
            steal: Vec::new(),
        };
        for at in 0..400 {
            for (text, kind, ns) in stacks {
                let mut stack = 0;
                for part in text.split(';') {
                    let (name, module) = part.split_once('@').unwrap_or((part, "program"));
                    let frame = Frame {
                        name: name.to_owned(),
                        module: module.to_owned(),
                    };
                    let known = recording.frames.iter().position(|known| *known == frame);
                    let frame = known.unwrap_or_else(|| {
                        recording.frames.push(frame);
                        recording.frames.len() - 1
                    });
                    let entry = (stack, frame as u32);
                    let known = recording.stacks.iter().position(|known| *known == entry);
                    stack = 1 + known.unwrap_or_else(|| {
                        recording.stacks.push(entry);
                        recording.stacks.len() - 1
                    }) as u32;
                }
                recording.samples.push(Sample {
                    at_ns: at * 10_000_000,
                    kind: *kind,
                    thread: 0,
                    stack,
                    count: 1,
                    ns: *ns,
                });
            }
        }
        recording
    }

    #[test]
    fn there_and_back() {
        let recording = recording(&[("main;encrypt", Kind::Cpu, 5_000_000)]);
        assert_eq!(Recording::parse(&recording.to_bytes()), Ok(recording));
    }

    #[test]
    fn what_is_no_recording_is_refused_with_a_reason() {
        let whole = recording(&[("main;encrypt", Kind::Cpu, 5_000_000)]);
        let bytes = whole.to_bytes();
        let refused = |bytes: &[u8], word: &str| {
            let reason = Recording::parse(bytes).unwrap_err();
            assert!(reason.contains(word), "{reason}");
        };
        refused(b"", "ends too early");
        refused(&bytes[..bytes.len() / 2], "ends too early");
        refused(b"PERFILE2\0\0", "perf record");
        refused(b"\x7fELF", "expected value");
        let with = |change: fn(&mut Recording)| {
            let mut changed = whole.clone();
            change(&mut changed);
            changed.to_bytes()
        };
        refused(&with(|r| r.schema = "other".to_owned()), "'other'");
        refused(&with(|r| r.version = 2), "version 2");
        refused(&with(|r| r.stacks[0].0 = 7), "stack 0");
        refused(&with(|r| r.stacks[1].1 = 7), "stack 1");
        refused(&with(|r| r.samples[3].stack = 7), "sample 3");
        refused(&with(|r| r.samples[3].thread = 7), "sample 3");
        refused(&with(|r| r.samples[3].at_ns = u64::MAX), "sample 3");
        let windows = |windows: &[(u64, u64)]| {
            let mut changed = whole.clone();
            changed.coverage = Some(Coverage {
                calls: Windows(windows.to_vec()),
                waits: Windows::default(),
            });
            changed.to_bytes()
        };
        assert!(Recording::parse(&windows(&[(0, 5), (5, 9)])).is_ok());
        for wrong in [[(5, 4), (9, 9)], [(0, 5), (4, 9)], [(0, 5), (6, u64::MAX)]] {
            refused(&windows(&wrong), "windows");
        }
        let wake = |change: fn(&mut Wake)| {
            let mut changed = whole.clone();
            let mut wake = Wake::from((0, 1, 1, 2, 3, 4));
            change(&mut wake);
            changed.wakes = vec![wake, wake];
            changed.to_bytes()
        };
        assert!(Recording::parse(&wake(|_| {})).is_ok());
        refused(&wake(|w| w.thread = 1), "wake-up 0");
        refused(&wake(|w| w.stack = 3), "wake-up 0");
        refused(&wake(|w| w.waker = 2), "wake-up 0");
        refused(&wake(|w| w.waker_stack = 3), "wake-up 0");
        refused(&wake(|w| w.ns = u64::MAX), "added up");
        refused(
            &with(|r| {
                r.samples
                    .iter_mut()
                    .for_each(|sample| sample.ns = u64::MAX / 2)
            }),
            "added up",
        );
    }
}
