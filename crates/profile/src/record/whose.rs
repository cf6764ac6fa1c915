//! Whose records are the target's, where the events are those of every processor.
//!
//! A clock for each thread is set anew each time the thread gets a processor, which costs a program
//! that waits often some percent of its speed. A clock for each processor runs on. It also meets
//! other programs: what it tells of them is dropped here, before anything of it is kept.

use std::collections::BTreeSet;

use super::collect::Collector;
use super::records::{Happened, What};

/// The processes that are recorded.
#[derive(Debug, Default)]
pub(super) struct Whose {
    processes: BTreeSet<u32>,
    /// The command, until it becomes the program that was asked for.
    starts: Option<u32>,
}

impl Whose {
    /// A process that runs.
    pub(super) fn process(pid: u32) -> Self {
        Self {
            processes: BTreeSet::from([pid]),
            starts: None,
        }
    }

    /// A process that is to become another program, and counts from then on.
    pub(super) fn command(pid: u32) -> Self {
        Self {
            processes: BTreeSet::new(),
            starts: Some(pid),
        }
    }

    pub(super) fn has(&self, pid: u32) -> bool {
        self.processes.contains(&pid)
    }

    /// Whether that process is the target's from now on; with `children`, so are those that it starts.
    fn started(&mut self, pid: u32, parent: u32, children: bool) -> bool {
        let is_ours = self.has(parent) && (children || parent == pid);
        if is_ours {
            self.processes.insert(pid);
        } else {
            // Numbers are used again.
            self.processes.remove(&pid);
        }
        is_ours
    }

    fn becomes_program(&mut self, pid: u32) -> bool {
        let is_it = self.starts == Some(pid);
        if is_it {
            self.starts = None;
            self.processes.insert(pid);
        }
        is_it || self.has(pid)
    }
}

impl Collector {
    /// Whether that is of another program. All that is kept of those is what their threads have to do
    /// with the target's: whom they wake.
    pub(super) fn is_foreign(&mut self, happened: &Happened) -> bool {
        let Some(whose) = &mut self.whose else {
            return false;
        };
        let Happened { pid, tid, .. } = *happened;
        let is_ours = match happened.what {
            What::Started { parent } => whose.started(pid, parent, self.children),
            What::Named { exec: true, .. } => whose.becomes_program(pid),
            What::Ran { .. } | What::Mapped { .. } | What::Named { .. } | What::Ended => {
                whose.has(pid)
            }
            // These are of events of the target's threads, or of nobody.
            _ => true,
        };
        if !is_ours {
            match happened.what {
                What::Started { .. } => self.forget(tid),
                // What was read of a process that woke one of ours is true no more.
                What::Named { exec: true, .. } => self.spaces.clear(pid),
                What::Ended if pid == tid => self.spaces.clear(pid),
                _ => {}
            }
        }
        !is_ours
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::records::KERNEL;
    use crate::recording::Kind;

    fn at(pid: u32, what: What) -> Happened {
        Happened {
            time: 5,
            pid,
            tid: pid,
            processor: 0,
            what,
        }
    }

    fn ran(pid: u32) -> Happened {
        let chain = vec![KERNEL, 0x10];
        at(pid, What::Ran { period: 7, chain })
    }

    /// Processes with samples.
    fn sampled(mut collector: Collector) -> Vec<u32> {
        collector.finish(10);
        let samples = collector.samples.iter().filter(|of| of.kind == Kind::Cpu);
        let mut pids: Vec<u32> = samples
            .map(|of| collector.threads[of.thread as usize].pid)
            .collect();
        pids.sort_unstable();
        assert_eq!(collector.threads.len(), pids.len());
        assert_eq!(collector.ran, 7 * pids.len() as u64);
        pids
    }

    fn of(whose: Whose, children: bool) -> Collector {
        let mut collector = Collector::default();
        (collector.whose, collector.children) = (Some(whose), children);
        collector
    }

    fn family(collector: &mut Collector) {
        // 7 starts 8, which starts 9; 1 starts 2.
        for (child, parent) in [(8, 7), (9, 8), (2, 1)] {
            collector.add(at(child, What::Started { parent }));
        }
        for pid in [7, 8, 9, 1, 2] {
            collector.add(ran(pid));
        }
    }

    #[test]
    fn nothing_of_other_programs_is_kept() {
        let mut alone = of(Whose::process(7), false);
        family(&mut alone);
        let mapped = What::Mapped {
            start: 0x1000,
            length: 0x1000,
            offset: 0,
            path: b"/bin/other".to_vec(),
        };
        alone.add(at(1, mapped));
        let name = b"other".to_vec();
        alone.add(at(1, What::Named { name, exec: false }));
        assert!(alone.spaces.files.is_empty() && !alone.spaces.knows(1));
        assert_eq!(sampled(alone), [7]);
        let mut with = of(Whose::process(7), true);
        family(&mut with);
        assert_eq!(sampled(with), [7, 8, 9]);
    }

    #[test]
    fn a_number_that_another_process_gets_is_not_the_targets() {
        let mut collector = of(Whose::process(7), true);
        collector.add(at(8, What::Started { parent: 7 }));
        collector.add(at(8, What::Ended));
        collector.add(at(8, What::Started { parent: 1 }));
        collector.add(ran(8));
        collector.add(ran(7));
        assert_eq!(sampled(collector), [7]);
    }

    #[test]
    fn a_command_counts_from_its_program_on() {
        let mut collector = of(Whose::command(7), false);
        collector.add(ran(7));
        assert_eq!(collector.ran, 0);
        let name = b"program".to_vec();
        collector.add(at(7, What::Named { name, exec: true }));
        collector.add(ran(7));
        assert_eq!(sampled(collector), [7]);
    }
}
