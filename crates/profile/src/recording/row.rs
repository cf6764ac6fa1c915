//! What a recording has most of, each a row of numbers in the file.

use serde::{Deserialize, Serialize};

/// What a thread did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// It had a processor.
    Cpu,
    /// It waited for something.
    Wait,
    /// It could have run, and waited for a processor.
    Ready,
}

/// Time of one kind of one thread in one stack, summed over some milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "Row", into = "Row")]
pub struct Sample {
    /// Nanoseconds since the start of the recording.
    pub at_ns: u64,
    /// What the thread did.
    pub kind: Kind,
    /// Index of the thread.
    pub thread: u32,
    /// Number of the stack, from 1 on; 0 where it is not known.
    pub stack: u32,
    /// Samples or waits.
    pub count: u64,
    /// Nanoseconds together.
    pub ns: u64,
}

/// Waits of one thread in one stack that were ended by one thread in one stack, over the whole
/// recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "WakeRow", into = "WakeRow")]
pub struct Wake {
    /// Index of the thread that waited.
    pub thread: u32,
    /// Number of the stack that it waited in, from 1 on; 0 where it is not known.
    pub stack: u32,
    /// Index of the thread that woke it, and one; 0 for an interrupt.
    pub waker: u32,
    /// Number of the stack that it was woken from, from 1 on; 0 where it is not known.
    pub waker_stack: u32,
    /// Waits.
    pub count: u64,
    /// Nanoseconds together.
    pub ns: u64,
}

/// Thread, stack, waker, stack of the waker, count, nanoseconds.
type WakeRow = (u32, u32, u32, u32, u64, u64);

/// Time, kind, thread, stack, count, nanoseconds.
type Row = (u64, Kind, u32, u32, u64, u64);

impl From<Row> for Sample {
    fn from((at_ns, kind, thread, stack, count, ns): Row) -> Self {
        Self {
            at_ns,
            kind,
            thread,
            stack,
            count,
            ns,
        }
    }
}

impl From<Sample> for Row {
    fn from(sample: Sample) -> Self {
        let Sample {
            at_ns,
            kind,
            thread,
            stack,
            count,
            ns,
        } = sample;
        (at_ns, kind, thread, stack, count, ns)
    }
}

impl From<WakeRow> for Wake {
    fn from((thread, stack, waker, waker_stack, count, ns): WakeRow) -> Self {
        Self {
            thread,
            stack,
            waker,
            waker_stack,
            count,
            ns,
        }
    }
}

impl From<Wake> for WakeRow {
    fn from(wake: Wake) -> Self {
        let Wake {
            thread,
            stack,
            waker,
            waker_stack,
            count,
            ns,
        } = wake;
        (thread, stack, waker, waker_stack, count, ns)
    }
}
