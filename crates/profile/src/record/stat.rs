//! What the whole machine did meanwhile, from proc_stat(5).

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

/// How often the machine's counters are read.
pub(super) const STAT_PACE: Duration = Duration::from_millis(200);

/// The file that has them.
const STAT: &str = "/proc/stat";

/// The machine's counters at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Stat {
    pub(super) interrupts: u64,
    pub(super) softirqs: u64,
    /// Switches between threads.
    pub(super) switches: u64,
    /// Time in which processors did something.
    pub(super) busy_ns: u64,
    pub(super) steal_ns: u64,
}

impl Stat {
    pub(super) fn now() -> Self {
        Self::parse(&std::fs::read_to_string(STAT).unwrap_or_default())
    }

    fn parse(text: &str) -> Self {
        let first = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            let word = line.and_then(|line| line.split_whitespace().next());
            word.and_then(|word| word.parse().ok()).unwrap_or(0)
        };
        let cpu = text.lines().find_map(|line| line.strip_prefix("cpu "));
        // User, nice, system, idle, waiting for disks, interrupts, soft interrupts, steal, in ticks:
        // USER_HZ is 100 on every Linux of interest.
        let ns = |field: usize| {
            let word = cpu.and_then(|line| line.split_whitespace().nth(field));
            let ticks: u64 = word.and_then(|word| word.parse().ok()).unwrap_or(0);
            ticks.saturating_mul(10_000_000)
        };
        Self {
            interrupts: first("intr "),
            softirqs: first("softirq "),
            switches: first("ctxt "),
            busy_ns: [0, 1, 2, 5, 6]
                .map(ns)
                .iter()
                .fold(0, |sum: u64, ns| sum.saturating_add(*ns)),
            steal_ns: ns(7),
        }
    }

    pub(super) fn since(self, earlier: Self) -> Self {
        Self {
            interrupts: self.interrupts.saturating_sub(earlier.interrupts),
            softirqs: self.softirqs.saturating_sub(earlier.softirqs),
            switches: self.switches.saturating_sub(earlier.switches),
            busy_ns: self.busy_ns.saturating_sub(earlier.busy_ns),
            steal_ns: self.steal_ns.saturating_sub(earlier.steal_ns),
        }
    }
}

/// When the hypervisor took time, and how often the machine switches.
pub(super) struct Steal {
    pub(super) begin: Instant,
    pub(super) looked: Instant,
    pub(super) last: Stat,
    pub(super) seen: Vec<(u64, u64)>,
    /// Switches per second of all processors.
    pub(super) switches: f64,
    /// The counters' file, which stays open: to open it takes as long as to read it.
    file: Option<File>,
    /// What the file had last; its memory is used again.
    text: Vec<u8>,
}

impl Steal {
    pub(super) fn new(begin: Instant, last: Stat) -> Self {
        Self {
            begin,
            looked: begin,
            last,
            seen: Vec::new(),
            switches: 0.0,
            file: File::open(STAT).ok(),
            text: Vec::new(),
        }
    }

    pub(super) fn look(&mut self) {
        if self.looked.elapsed() < STAT_PACE {
            return;
        }
        let passed = self.looked.elapsed().as_secs_f64();
        self.looked = Instant::now();
        let now = self.read().unwrap_or(self.last);
        let meanwhile = now.since(self.last);
        let stolen = meanwhile.steal_ns;
        self.switches = meanwhile.switches as f64 / passed;
        self.last = now;
        if stolen > 0 {
            self.seen
                .push((self.begin.elapsed().as_nanos() as u64, stolen));
        }
    }

    fn read(&mut self) -> Option<Stat> {
        let file = self.file.as_ref()?;
        read_again(file, &mut self.text).ok()?;
        Some(Stat::parse(&String::from_utf8_lossy(&self.text)))
    }
}

/// Reads all that a file has now into `text`, whose memory stays.
fn read_again(file: &File, text: &mut Vec<u8>) -> io::Result<()> {
    /// Bytes of the first read at least.
    const SOME: usize = 8192;
    text.resize(text.capacity().max(SOME), 0);
    let mut length = 0;
    loop {
        match file.read_at(&mut text[length..], length as u64)? {
            0 => break,
            more => length += more,
        }
        if length == text.len() {
            text.resize(2 * length, 0);
        }
    }
    text.truncate(length);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_stays_open_is_read_as_it_is_now() {
        let (file, mut text) = (tempfile::tempfile().unwrap(), Vec::new());
        let long = "a".repeat(100_000).into_bytes();
        for content in [&long[..], b"cpu  1\n", b""] {
            file.set_len(0).unwrap();
            file.write_all_at(content, 0).unwrap();
            read_again(&file, &mut text).unwrap();
            assert!(text == content, "{} bytes", text.len());
        }
    }

    #[test]
    fn the_machine_tells_another_moment_each_time() {
        let mut machine = Steal::new(Instant::now(), Stat::now());
        let Some(begin) = machine.read().filter(|of| of.switches > 0) else {
            eprintln!("NOT TESTED: no switches are counted here");
            return;
        };
        let mut later = (0..10_000).map(|_| {
            std::thread::sleep(Duration::from_millis(1));
            machine.read().unwrap()
        });
        assert!(later.any(|now| now.since(begin).switches > 0));
    }

    #[test]
    fn figures_of_the_machine() {
        let text = "cpu  1 2 3 4 5 6 7 8 0 0\nintr 100 1 2\nctxt 70\nsoftirq 50 3 4\n";
        let stat = Stat::parse(text);
        let expected = Stat {
            interrupts: 100,
            softirqs: 50,
            switches: 70,
            busy_ns: 190_000_000,
            steal_ns: 80_000_000,
        };
        assert_eq!(stat, expected);
        assert_eq!(Stat::parse("rubbish"), Stat::default());
        assert_eq!(stat.since(stat), Stat::default());
    }
}
