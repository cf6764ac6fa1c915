//! Processor time of other processes.

use std::fs;
use std::time::Duration;

/// What a process has used of the processors so far, kernel included.
pub(crate) fn used(process: u32) -> Duration {
    let path = format!("/proc/{process}/schedstat");
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let nanoseconds = text.split(' ').next().and_then(|word| word.parse().ok());
    Duration::from_nanos(nanoseconds.unwrap_or_else(|| panic!("{path}: {text}")))
}

/// The children of a process.
pub(crate) fn children(process: u32) -> Vec<u32> {
    let path = format!("/proc/{process}/task/{process}/children");
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    text.split_whitespace()
        .map(|word| word.parse().unwrap())
        .collect()
}
