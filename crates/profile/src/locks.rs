//! What those wait for that wait for a lock: the thread that lets go of it may have waited for a
//! device or a peer meanwhile, and then so have they.
//!
//! A recording knows who ended a thread's waits in a stack, and what each thread did altogether. A
//! wait for a lock is passed on to a device or a peer where most of it was ended by threads that
//! spent most of their own time in waits for that. Time in which those had no processor counts for
//! nothing, and their own waits for locks count once they are passed on: so a chain of locks is
//! followed, some steps far.

use std::collections::HashMap;

use crate::recording::{Recording, Sample};

/// Steps of a chain of locks that are followed.
const STEPS: usize = 3;

/// What a sample says of a thread that may have a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holder {
    /// It did something itself.
    Works,
    /// It waited for what is outside of the program, of that phase.
    Waits(usize),
    /// It waited for a lock.
    Lock,
    /// It says nothing.
    Nothing,
}

/// Nanoseconds of one thread, or of one wait.
#[derive(Clone, Debug, Default)]
struct Times {
    all: u64,
    waits: HashMap<usize, u64>,
}

impl Times {
    fn add(&mut self, phase: Option<usize>, ns: u64) {
        self.all = self.all.saturating_add(ns);
        if let Some(phase) = phase {
            let sum = self.waits.entry(phase).or_default();
            *sum = sum.saturating_add(ns);
        }
    }

    /// The phase of more than half of the time.
    fn most(&self) -> Option<usize> {
        let mut waits = self.waits.iter();
        let most = waits.find(|(_, ns)| **ns > self.all / 2);
        most.map(|(phase, _)| *phase)
    }
}

/// Waits for locks by thread and stack, and the phase that each is passed on to.
pub(crate) fn passed_on(
    recording: &Recording,
    holder: impl Fn(&Sample) -> Holder,
) -> HashMap<(u32, u32), usize> {
    let mut passed = HashMap::new();
    if recording.wakes.is_empty() {
        return passed;
    }
    let mut own = vec![Times::default(); recording.threads.len()];
    let mut locks: HashMap<(u32, u32), u64> = HashMap::new();
    for sample in &recording.samples {
        match holder(sample) {
            Holder::Works => own[sample.thread as usize].add(None, sample.ns),
            Holder::Waits(phase) => own[sample.thread as usize].add(Some(phase), sample.ns),
            Holder::Lock => *locks.entry((sample.thread, sample.stack)).or_default() += sample.ns,
            Holder::Nothing => {}
        }
    }
    for _ in 0..STEPS {
        let mut whole = own.clone();
        for (of, phase) in &passed {
            whole[of.0 as usize].add(Some(*phase), locks[of]);
        }
        let mut ended: HashMap<(u32, u32), Times> = HashMap::new();
        for wake in &recording.wakes {
            let of = (wake.thread, wake.stack);
            if locks.contains_key(&of) {
                let waker = wake.waker.checked_sub(1);
                let phase = waker.and_then(|waker| whole[waker as usize].most());
                ended.entry(of).or_default().add(phase, wake.ns);
            }
        }
        let found = ended.into_iter();
        let found = found.filter_map(|(of, times)| Some((of, times.most()?)));
        let found: HashMap<_, _> = found.collect();
        if found == passed {
            break;
        }
        passed = found;
    }
    passed
}

#[cfg(test)]
mod tests {
    use crate::phases::Phases;
    use crate::recording::tests::recording;
    use crate::recording::{Kind, Recording, Thread, Wake};
    use crate::rules::Rules;

    const DEVICE: &str = "main;read@libc.so.6;io_schedule@[kernel]";
    const LOCK: &str = "main;pthread_mutex_lock@libc.so.6;futex_wait@[kernel]";
    const SLEEP: &str = "main;sleep;hrtimer_nanosleep@[kernel]";
    const CIPHER: &str = "main;aes_cbc";

    /// Threads that each do one thing and are woken by another one, or by an interrupt.
    fn threads(of: &[(&str, Kind, u64, u32)]) -> Recording {
        let stacks: Vec<_> = of.iter().map(|of| (of.0, of.1, of.2)).collect();
        let mut recording = recording(&stacks);
        let count = of.len();
        recording.threads = (0..count as u32)
            .map(|tid| Thread {
                pid: 1,
                tid,
                name: "test".to_owned(),
            })
            .collect();
        for (number, sample) in recording.samples.iter_mut().enumerate() {
            sample.thread = (number % count) as u32;
        }
        for (number, of) in of.iter().enumerate().filter(|(_, of)| of.1 == Kind::Wait) {
            let stack = recording.samples[number].stack;
            let row = (number as u32, stack, of.3, 0, 400, 400 * of.2);
            recording.wakes.push(Wake::from(row));
        }
        recording
    }

    #[track_caller]
    fn waits(recording: &Recording, phase: &str) -> f64 {
        let rules = Rules::built_in();
        let at = rules.phases().iter().position(|of| of.name == phase);
        Phases::new(recording, &rules).totals[at.unwrap()].wait / 4e6
    }

    #[test]
    fn a_chain_of_locks_ends_at_the_device() {
        let recording = threads(&[
            (DEVICE, Kind::Wait, 10_000, 0),
            (LOCK, Kind::Wait, 20_000, 1),
            (LOCK, Kind::Wait, 30_000, 2),
        ]);
        assert_eq!(waits(&recording, "device"), 6.0);
        assert_eq!(waits(&recording, "lock"), 0.0);
    }

    #[test]
    fn a_lock_whose_holder_works_or_sleeps_stays_one() {
        for (holder, kind) in [(CIPHER, Kind::Cpu), (SLEEP, Kind::Wait)] {
            let recording = threads(&[(holder, kind, 10_000, 0), (LOCK, Kind::Wait, 20_000, 1)]);
            assert_eq!(waits(&recording, "lock"), 2.0, "{holder}");
        }
    }

    #[test]
    fn without_a_known_waker_a_lock_stays_one() {
        let mut recording = threads(&[
            (DEVICE, Kind::Wait, 10_000, 0),
            (LOCK, Kind::Wait, 20_000, 0),
        ]);
        assert_eq!(waits(&recording, "lock"), 2.0);
        recording.wakes.clear();
        assert_eq!(waits(&recording, "lock"), 2.0);
    }

    #[test]
    fn threads_that_wait_for_each_other_alone_stay_at_their_lock() {
        let recording = threads(&[(LOCK, Kind::Wait, 20_000, 2), (LOCK, Kind::Wait, 20_000, 1)]);
        assert_eq!(waits(&recording, "lock"), 4.0);
    }
}
