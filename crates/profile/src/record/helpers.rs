//! Kernel threads that work for the target: their processor time is on its bill.
//!
//! A program's request may be done by a thread of the kernel: a block of a disk is enciphered or
//! written by a kworker, packets are taken in by ksoftirqd. The rule: what a kernel thread does after
//! a thread of the target has woken it is the target's, until it sleeps. It runs again only if
//! somebody wakes it, so the last one to wake it decides. A kernel thread that works for the target
//! and wakes another one passes this on. What an interrupt of a device wakes is nobody's, so that
//! the end of a read from a disk, which an interrupt begins, is not counted.

use std::collections::{HashMap, HashSet};

use super::collect::Collector;
use super::target::field;
use crate::recording::Kind;

/// Names of kernel threads that do other programs' work, as the kernel's filters take them.
pub(super) const NAMES: [&str; 9] = [
    "kworker/*",
    "ksoftirqd/*",
    "kswapd*",
    "napi/*",
    "vhost-*",
    "jbd2/*",
    "dmcrypt_write*",
    "md*_raid*",
    "xfsaild/*",
];
/// The threads that processors run while they have nothing to do.
const NOBODY: u32 = 0;

/// Kernel threads by whom they work for.
#[derive(Debug, Default)]
pub(super) struct Helpers {
    /// Whether a thread with such a name is one of the kernel: any program may call itself so.
    known: HashMap<u32, bool>,
    /// Those that work for the target.
    working: HashSet<u32>,
    /// Sum of the periods of their samples.
    pub(super) ran: u64,
}

impl Helpers {
    /// Another thread got the number of one that has ended.
    pub(super) fn forget(&mut self, tid: u32) {
        self.known.remove(&tid);
        self.working.remove(&tid);
    }

    /// Nothing tells any more who wakes them.
    pub(super) fn stop(&mut self) {
        self.working.clear();
    }

    fn is_kernel(&mut self, tid: u32) -> bool {
        *self.known.entry(tid).or_insert_with(|| is_kernel(tid))
    }
}

impl Collector {
    /// A kernel thread is woken; `waker` is `None` for an interrupt.
    pub(super) fn asked(&mut self, woken: u32, waker: Option<(u32, u32)>) {
        let is_for_us = waker.is_some_and(|(pid, tid)| {
            let is_ours = self.whose.as_ref().is_some_and(|whose| whose.has(pid));
            is_ours || self.helpers.working.contains(&tid)
        });
        if is_for_us && self.helpers.is_kernel(woken) {
            self.helpers.working.insert(woken);
        } else {
            self.helpers.working.remove(&woken);
        }
    }

    /// Somebody who is not of the target's processes had a processor.
    pub(super) fn other_has_run(&mut self, time: u64, tid: u32, period: u64, chain: &[u64]) {
        if !self.helpers.working.contains(&tid) {
            return;
        }
        self.helpers.ran = self.helpers.ran.saturating_add(period);
        // It has no memory of a program: all of its stack is the kernel's.
        let stack = self.stack(NOBODY, chain);
        let thread = self.thread(tid, tid);
        self.sample(time, Kind::Cpu, thread, stack, (1, period));
    }
}

/// Whether that is the number of a thread of the kernel.
pub(super) fn is_kernel(tid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{tid}/stat"));
    stat.is_ok_and(|stat| is_of_kernel(&stat))
}

/// Whether proc_pid_stat(5) is that of a thread of the kernel.
fn is_of_kernel(stat: &str) -> bool {
    /// `PF_KTHREAD` of the kernel's include/linux/sched.h.
    const KERNEL_THREAD: u64 = 0x0020_0000;
    field(stat, 9).is_some_and(|flags| flags & KERNEL_THREAD != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::records::{Happened, KERNEL, What};
    use crate::record::whose::Whose;

    const OURS: u32 = 7;
    const OTHER: u32 = 1;
    const WORKER: u32 = 20;
    const WRITER: u32 = 21;

    fn collector() -> Collector {
        let mut collector = Collector::default();
        collector.whose = Some(Whose::process(OURS));
        for tid in [WORKER, WRITER] {
            collector.helpers.known.insert(tid, true);
        }
        collector
    }

    fn add(collector: &mut Collector, pid: u32, what: What) {
        collector.add(Happened {
            time: 5,
            pid,
            tid: pid,
            processor: 0,
            what,
        });
    }

    fn wakes(collector: &mut Collector, waker: u32, woken: u32, interrupt: bool) {
        add(collector, waker, What::Asked { woken, interrupt });
    }

    /// Whether a sample of that thread counts.
    fn counts(collector: &mut Collector, tid: u32) -> bool {
        let before = collector.helpers.ran;
        let chain = vec![KERNEL, 0x10];
        add(collector, tid, What::Ran { period: 3, chain });
        collector.helpers.ran > before
    }

    #[test]
    fn a_kernel_thread_works_for_the_last_one_that_woke_it() {
        let mut collector = collector();
        assert!(!counts(&mut collector, WORKER));
        wakes(&mut collector, OURS, WORKER, false);
        assert!(counts(&mut collector, WORKER) && !counts(&mut collector, WRITER));
        wakes(&mut collector, WORKER, WRITER, false);
        assert!(counts(&mut collector, WRITER));
        for (waker, interrupt) in [(OTHER, false), (OURS, true)] {
            wakes(&mut collector, OURS, WORKER, false);
            wakes(&mut collector, waker, WORKER, interrupt);
            assert!(!counts(&mut collector, WORKER));
        }
        wakes(&mut collector, OURS, WORKER, false);
        collector.helpers.stop();
        assert!(!counts(&mut collector, WORKER));
        collector.finish(10);
        let mut names: Vec<u32> = collector.threads.iter().map(|of| of.tid).collect();
        names.sort_unstable();
        assert_eq!(names, [WORKER, WRITER]);
        assert_eq!(collector.ran, 0);
    }

    #[test]
    fn a_program_that_calls_itself_a_kernel_thread_is_none() {
        let mut collector = collector();
        let own = std::process::id();
        wakes(&mut collector, OURS, own, false);
        assert!(!counts(&mut collector, own));
        assert!(is_of_kernel(
            "9 (kworker/0:0-a) b) I 2 0 0 0 -1 69238880 0 0"
        ));
        assert!(!is_of_kernel("9 (kworker/0:0) S 2 0 0 0 -1 4194304 0 0"));
        assert!(!is_of_kernel("rubbish"));
    }
}
