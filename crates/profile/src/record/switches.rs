//! How often the target's threads gave up a processor, as the kernel counts it (proc_pid_status(5)).
//!
//! What is recorded in windows says who waits for whom, but not well how often: a wait that is recorded
//! is slower, so there are fewer in a window than outside of it, and windows are few where there are many.

use std::collections::BTreeMap;
use std::time::Instant;

/// Threads that are asked at most: one takes 10 microseconds.
const MOST: usize = 64;

/// What a thread did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Switches {
    /// It gave up its processor since it had to wait.
    pub(super) waits: u64,
    /// Its processor was taken.
    pub(super) preemptions: u64,
}

/// The switches of the target.
#[derive(Debug)]
pub(super) struct Counted {
    /// What each thread had done at the begin, nothing for those that began later, and what it has done now.
    each: BTreeMap<u32, (Switches, Switches)>,
    /// What was done by those that have ended.
    gone: Switches,
    began: Instant,
    looked: Instant,
}

impl Counted {
    /// From now on; none where there are too many threads (number and process).
    pub(super) fn begin(threads: &BTreeMap<u32, u32>) -> Option<Self> {
        if threads.len() > MOST {
            return None;
        }
        let told = threads
            .iter()
            .map(|(&tid, &pid)| Some((tid, tell(pid, tid)?)));
        let each = told.map(|of| of.map(|(tid, told)| (tid, (told, told))));
        let now = Instant::now();
        Some(Self {
            each: each.collect::<Option<_>>()?,
            gone: Switches::default(),
            began: now,
            looked: now,
        })
    }

    /// What these threads and those before them have done so far; none where they are too many by now.
    pub(super) fn look(&mut self, threads: &BTreeMap<u32, u32>) -> Option<Switches> {
        (threads.len() <= MOST).then(|| {
            self.ask(threads);
            self.sum()
        })
    }

    /// The same at the end. The threads of a command end with it, before they can be asked: they went on
    /// as before.
    pub(super) fn look_at_the_end(&mut self, threads: &BTreeMap<u32, u32>) -> Option<Switches> {
        let (last, before) = (self.looked, self.sum());
        if threads.len() > MOST {
            return None;
        }
        let ended = self.ask(threads);
        let known = last.duration_since(self.began).as_secs_f64();
        let missing = self.looked.duration_since(last).as_secs_f64();
        let more = match ended && known > 0.0 {
            true => missing / known,
            false => 0.0,
        };
        let add = |now: u64, before: u64| now.max(before + (before as f64 * more) as u64);
        let now = self.sum();
        Some(Switches {
            waits: add(now.waits, before.waits),
            preemptions: add(now.preemptions, before.preemptions),
        })
    }

    /// Says whether one has ended since the last time.
    fn ask(&mut self, threads: &BTreeMap<u32, u32>) -> bool {
        let mut ended = false;
        for (&tid, &pid) in threads {
            let told = tell(pid, tid);
            ended |= told.is_none();
            self.told(tid, told);
        }
        let gone: Vec<u32> = self.each.keys().copied().collect();
        for tid in gone.into_iter().filter(|tid| !threads.contains_key(tid)) {
            ended = true;
            self.told(tid, None);
        }
        self.looked = Instant::now();
        ended
    }

    /// `None` of one that has ended.
    fn told(&mut self, tid: u32, told: Option<Switches>) {
        let known = self.each.get(&tid).copied();
        let is_same = |(_, last): (Switches, Switches)| {
            told.is_some_and(|now| now.waits >= last.waits && now.preemptions >= last.preemptions)
        };
        // Another thread may have got its number.
        let first = match known {
            Some(of) if is_same(of) => of.0,
            Some(of) => {
                self.gone = sum([self.gone, since(of)]);
                self.each.remove(&tid);
                Switches::default()
            }
            None => Switches::default(),
        };
        if let Some(now) = told {
            self.each.insert(tid, (first, now));
        }
    }

    fn sum(&self) -> Switches {
        let living = self.each.values().copied().map(since);
        sum(living.chain([self.gone]))
    }
}

fn sum(all: impl IntoIterator<Item = Switches>) -> Switches {
    all.into_iter()
        .fold(Switches::default(), |sum, of| Switches {
            waits: sum.waits.saturating_add(of.waits),
            preemptions: sum.preemptions.saturating_add(of.preemptions),
        })
}

fn since((first, last): (Switches, Switches)) -> Switches {
    Switches {
        waits: last.waits.saturating_sub(first.waits),
        preemptions: last.preemptions.saturating_sub(first.preemptions),
    }
}

/// What a thread has done until now; `None` of one that is no more.
fn tell(pid: u32, tid: u32) -> Option<Switches> {
    parse(&std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/status")).ok()?)
}

fn parse(status: &str) -> Option<Switches> {
    let figure = |name| {
        let mut lines = status.lines().rev();
        let line = lines.find_map(|line| line.strip_prefix(name))?;
        line.trim().parse().ok()
    };
    Some(Switches {
        waits: figure("voluntary_ctxt_switches:")?,
        preemptions: figure("nonvoluntary_ctxt_switches:")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(waits: u64, preemptions: u64) -> Switches {
        Switches { waits, preemptions }
    }

    #[test]
    fn a_thread_tells_how_often_it_gave_up_its_processor() {
        let status = "Name:\ta\nvoluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t3\n";
        assert_eq!(parse(status), Some(of(12, 3)));
        assert_eq!(parse("Name:\tvoluntary_ctxt_switches: 1\n"), None);
        let tid = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        let threads = BTreeMap::from([(tid, std::process::id())]);
        let mut counted = Counted::begin(&threads).unwrap();
        for _ in 0..20 {
            std::thread::sleep(std::time::Duration::from_micros(100));
        }
        let told = counted.look(&threads).unwrap();
        assert!((20..100).contains(&told.waits), "{told:?}");
        let many = (0..=MOST as u32).map(|tid| (tid, 1)).collect();
        assert!(counted.look(&many).is_none() && Counted::begin(&many).is_none());
    }

    #[test]
    fn who_has_ended_still_counts() {
        let mut counted = Counted::begin(&BTreeMap::new()).unwrap();
        counted.each.insert(1, (of(100, 10), of(150, 11)));
        counted.told(2, Some(of(7, 0)));
        assert_eq!(counted.sum(), of(57, 1));
        counted.told(1, Some(of(160, 11)));
        counted.told(2, None);
        assert_eq!(counted.sum(), of(67, 1));
        // Another thread has the number of the first.
        counted.told(1, Some(of(5, 0)));
        counted.told(1, Some(of(6, 2)));
        assert_eq!(counted.sum(), of(73, 3));
    }

    #[test]
    fn those_that_ended_with_the_command_went_on_until_then() {
        let mut counted = Counted::begin(&BTreeMap::new()).unwrap();
        counted.told(u32::MAX, Some(of(1000, 10)));
        let ms = std::time::Duration::from_millis;
        counted.began = Instant::now() - ms(10_000);
        counted.looked = counted.began + ms(8_000);
        let told = counted.look_at_the_end(&BTreeMap::new()).unwrap();
        assert!((1250..1300).contains(&told.waits), "{told:?}");
        // Nobody has ended since.
        let again = counted.look_at_the_end(&BTreeMap::new()).unwrap();
        assert_eq!(again, of(1000, 10));
    }
}
