//! System calls with the time that passed in them. Their counts and bytes are the kernel's; the time
//! is that of samples and waits below the kernel's entry, so that no call is slower for it.

use std::collections::HashMap;

use serde::Serialize;

use crate::recording::{Kind, Recording};
use crate::symbols::KERNEL;

/// The kernel's entry of all system calls: what is called by the last of these is the call. In the
/// newer kernels the second stands between.
const ENTRIES: [&str; 2] = ["x64_sys_call", "do_syscall_64"];
/// What the kernel puts before the name of a call in its functions, the longest of those that begin
/// alike first.
const PREFIXES: [&str; 9] = [
    "__x64_sys_",
    "__do_sys_",
    "__se_sys_",
    "__sys_",
    "ksys_",
    "__ksys_",
    "kernel_",
    "do_sys_",
    "do_",
];

/// One kind of system call.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Call<'r> {
    /// Its name, or its number.
    pub name: &'r str,
    /// How often; an estimate where `exact` says so, and `None` where calls were not counted.
    pub count: Option<u64>,
    /// Whether every one was counted.
    pub exact: bool,
    /// Bytes that it returned, for those that return bytes.
    pub bytes: u64,
    /// Nanoseconds of processors in it.
    pub cpu_ns: u64,
    /// Nanoseconds in which threads waited in it, for what they asked for or for a processor.
    pub wait_ns: u64,
}

/// System calls, those first in which most time passed.
#[must_use]
pub fn of(recording: &Recording) -> Vec<Call<'_>> {
    let mut times = times(recording);
    let counted = recording.system_calls.iter().map(|call| {
        let (cpu_ns, wait_ns) = times.remove(call.name.as_str()).unwrap_or_default();
        Call {
            name: &call.name,
            count: Some(call.count),
            exact: call.exact,
            bytes: call.bytes,
            cpu_ns,
            wait_ns,
        }
    });
    let mut calls: Vec<Call<'_>> = counted.collect();
    calls.extend(times.into_iter().map(|(name, (cpu_ns, wait_ns))| Call {
        name,
        count: None,
        exact: false,
        bytes: 0,
        cpu_ns,
        wait_ns,
    }));
    calls.sort_by_key(|call| {
        let time = call.cpu_ns + call.wait_ns;
        (std::cmp::Reverse((time, call.count)), call.name)
    });
    calls
}

/// Nanoseconds of processors and of waits by the call in which they passed.
fn times(recording: &Recording) -> HashMap<&str, (u64, u64)> {
    // Samples share few stacks.
    let mut names: HashMap<u32, Option<&str>> = HashMap::new();
    let mut times: HashMap<&str, (u64, u64)> = HashMap::new();
    for sample in &recording.samples {
        let name = *names
            .entry(sample.stack)
            .or_insert_with(|| name(recording, sample.stack));
        let Some(name) = name else {
            continue;
        };
        let (cpu, wait) = times.entry(name).or_default();
        match sample.kind {
            Kind::Cpu => *cpu += sample.ns,
            _ => *wait += sample.ns,
        }
    }
    times
}

/// The system call that a stack is in.
fn name(recording: &Recording, stack: u32) -> Option<&str> {
    let mut called = None;
    for frame in recording.frames_of(stack) {
        if frame.module != KERNEL {
            return None;
        }
        if ENTRIES.contains(&frame.name.as_str()) {
            return called;
        }
        called = call_of(&frame.name);
    }
    None
}

/// The system call that a function of the kernel is the beginning of.
fn call_of(function: &str) -> Option<&str> {
    let name = PREFIXES
        .iter()
        .find_map(|prefix| function.strip_prefix(prefix))?;
    match name {
        // Their first versions have the plain names.
        "newstat" | "newfstat" | "newlstat" | "newuname" => Some(&name[3..]),
        "openat2" if function.starts_with("do_sys_") => Some("openat"),
        "group_exit" => Some("exit_group"),
        // What a tracer has done at the entry.
        name if name.starts_with("syscall_") => None,
        name => Some(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::SystemCall;
    use crate::recording::tests::recording;

    #[test]
    fn time_is_that_below_the_entry_of_a_call() {
        let (user, kernel) = ("main;read@libc.so.6", "do_syscall_64@[kernel]");
        let reads = format!("{user};{kernel};ksys_read@[kernel];vfs_read@[kernel]");
        let newer = format!("{user};{kernel};x64_sys_call@[kernel];__x64_sys_newfstat@[kernel]");
        let leaves = format!("{user};{kernel};syscall_exit_work@[kernel]");
        let begins = format!("{user};{kernel}");
        let mut recording = recording(&[
            (&reads, Kind::Cpu, 7),
            (&reads, Kind::Wait, 100),
            (&newer, Kind::Cpu, 5),
            (&leaves, Kind::Cpu, 1000),
            (&begins, Kind::Cpu, 1000),
            ("main;do_read", Kind::Cpu, 1000),
        ]);
        recording.system_calls = ["write", "read"]
            .map(|name| SystemCall {
                name: name.to_owned(),
                count: 3,
                exact: true,
                bytes: 12,
            })
            .into();
        let seen = of(&recording);
        let seen: Vec<_> = seen
            .iter()
            .map(|call| (call.name, call.count, call.cpu_ns, call.wait_ns))
            .collect();
        // Each stack is there 400 times.
        let expected = [
            ("read", Some(3), 400 * 7, 400 * 100),
            ("fstat", None, 400 * 5, 0),
            ("write", Some(3), 0, 0),
        ];
        assert_eq!(seen, expected);
    }
}
