//! Who ends the waits of a recording, by the functions that a reader knows.

use std::collections::HashMap;

use serde::Serialize;

use crate::recording::{Frame, Kind, Recording};
use crate::symbols::KERNEL;

/// Libraries and runtimes by which programs wait and wake, as patterns of modules and beginnings of
/// names: who called them is asked for.
const LIBRARIES: [&str; 8] = [
    "libc.so",
    "libc-",
    "libpthread",
    "ld-linux",
    "libstdc++",
    "libgcc_s",
    "[vdso]",
    "[anonymous]",
];
const RUNTIMES: [&str; 12] = [
    "std::",
    "<std::",
    "core::",
    "<core::",
    "alloc::",
    "<alloc::",
    "parking_lot",
    "__rust_",
    "runtime.",
    "internal/",
    "syscall.",
    "std[",
];
/// Functions by which the kernel wakes any thread, the innermost of each wake-up.
const WAKES: [&str; 14] = [
    "try_to_wake_up",
    "ttwu_",
    "perf_trace_",
    "__traceiter_",
    "trace_",
    "wake_up_",
    "__wake_up",
    "_raw_spin_",
    "default_wake_function",
    "autoremove_wake_function",
    "woken_wake_function",
    "pollwake",
    "perf_tp_event",
    "do_perf_trace_",
];
/// Functions by which the kernel stops any thread.
const STOPS: [&str; 6] = [
    "schedule",
    "__schedule",
    "preempt_schedule",
    "io_schedule",
    "perf_event_",
    "__perf_event_",
];

/// Waits in one function that were ended by one other.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ended<'r> {
    /// The thread that waited, and the function that it waited in.
    pub thread: &'r str,
    /// The function of the program, or the kernel's where the program is none of it.
    pub waits_in: &'r str,
    /// The thread that woke it; none where an interrupt did.
    pub waker: Option<&'r str>,
    /// The function that woke it; none where its stack is not known.
    pub woken_by: Option<&'r str>,
    /// Waits.
    pub count: u64,
    /// Nanoseconds together.
    pub wait_ns: u64,
}

/// Who ends waits, the longest first.
pub fn of(recording: &Recording) -> Vec<Ended<'_>> {
    let mut sums = HashMap::<_, (u64, u64)>::new();
    for wake in &recording.wakes {
        let name = |thread: u32| recording.threads[thread as usize].name.as_str();
        let waits_in = function(recording, wake.stack, &STOPS);
        let waker = wake.waker.checked_sub(1).map(name);
        let woken_by = function(recording, wake.waker_stack, &WAKES);
        let of = (name(wake.thread), waits_in, waker, woken_by);
        let sum = sums.entry(of).or_default();
        *sum = (
            sum.0.saturating_add(wake.count),
            sum.1.saturating_add(wake.ns),
        );
    }
    let mut ended: Vec<Ended<'_>> = sums
        .into_iter()
        .map(
            |((thread, waits_in, waker, woken_by), (count, wait_ns))| Ended {
                thread,
                waits_in: waits_in.unwrap_or("unknown"),
                waker,
                woken_by,
                count,
                wait_ns,
            },
        )
        .collect();
    ended.sort_by_key(|of| {
        let names = (of.thread, of.waits_in, of.waker, of.woken_by);
        (std::cmp::Reverse(of.wait_ns), names)
    });
    ended
}

/// The share of all waiting whose end is known, 0 to 1.
pub fn known(recording: &Recording) -> f64 {
    let waits = recording.samples.iter();
    let waited: u64 = waits
        .filter(|sample| sample.kind == Kind::Wait)
        .map(|sample| sample.ns)
        .sum();
    let known: u64 = recording.wakes.iter().map(|wake| wake.ns).sum();
    known as f64 / waited.max(1) as f64
}

/// The function that a reader knows a stack by: the innermost one of the program itself, else of
/// a library, else of the kernel but those that every such stack ends with.
fn function<'r>(recording: &'r Recording, stack: u32, common: &[&str]) -> Option<&'r str> {
    let frames = || recording.frames_of(stack);
    let begins =
        |text: &str, with: &[&str]| with.iter().any(|beginning| text.starts_with(beginning));
    let is_program = |frame: &&Frame| frame.module != KERNEL;
    let is_own =
        |frame: &&Frame| !begins(&frame.module, &LIBRARIES) && !begins(&frame.name, &RUNTIMES);
    let own = frames().filter(is_program).find(is_own);
    let library = || frames().find(is_program);
    let kernel = || frames().find(|frame| !begins(&frame.name, common));
    let found = own
        .or_else(library)
        .or_else(kernel)
        .or_else(|| frames().next());
    found.map(|frame| frame.name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::tests::recording;
    use crate::recording::{Thread, Wake};

    #[test]
    fn both_are_named_by_functions_of_the_program() {
        let mut recording = recording(&[
            (
                "main;receive;read@libc.so.6;pipe_read@[kernel];schedule@[kernel]",
                Kind::Wait,
                100,
            ),
            (
                "main;produce;std::io::Write::write_all;write@libc.so.6;pipe_write@[kernel];\
                 __wake_up_sync_key@[kernel];try_to_wake_up@[kernel]",
                Kind::Cpu,
                1,
            ),
            (
                "asm_sysvec_apic_timer_interrupt@[kernel];hrtimer_wakeup@[kernel];\
                 try_to_wake_up@[kernel]",
                Kind::Cpu,
                1,
            ),
        ]);
        recording.threads.push(Thread {
            pid: 2,
            tid: 2,
            name: "writer".to_owned(),
        });
        let [reader, writer, timer] = [0, 1, 2].map(|at| recording.samples[at].stack);
        recording.wakes = vec![
            Wake::from((0, reader, 2, writer, 3, 600)),
            Wake::from((0, reader, 0, timer, 1, 200)),
            Wake::from((0, reader, 2, writer, 1, 200)),
        ];
        // 400 waits of 100 ns, of which 1000 ns are known.
        assert!((known(&recording) - 0.025).abs() < 1e-9);
        let ended = of(&recording);
        let rows: Vec<_> = ended
            .iter()
            .map(|of| (of.waits_in, of.waker, of.woken_by, of.count, of.wait_ns))
            .collect();
        assert_eq!(
            rows,
            [
                ("receive", Some("writer"), Some("produce"), 4, 800),
                ("receive", None, Some("hrtimer_wakeup"), 1, 200),
            ]
        );
    }

    #[test]
    fn a_stack_that_is_not_known_has_no_function() {
        let mut recording = recording(&[("schedule@[kernel]", Kind::Wait, 100)]);
        let stack = recording.samples[0].stack;
        recording.wakes = vec![Wake::from((0, stack, 1, 0, 1, 100))];
        let ended = of(&recording);
        assert_eq!((ended[0].waits_in, ended[0].woken_by), ("schedule", None));
    }
}
