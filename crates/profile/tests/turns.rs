//! Work that is done by turns: each has what happened in its own turns. Skipped where the kernel
//! refuses performance events.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cipherlane_profile::Error;
use cipherlane_profile::phases::Phases;
use cipherlane_profile::record::turns::{Turns, Whose};
use cipherlane_profile::recording::{Kind, Recording};
use cipherlane_profile::rules::Rules;
use rustix::time::{ClockId, clock_gettime};

/// Processor time of each turn: some tens of samples, however busy the machine is.
const TIME: Duration = Duration::from_millis(60);
const ROUNDS: usize = 4;

/// The tests record this process: one at a time.
static ONE: Mutex<()> = Mutex::new(());

#[track_caller]
fn start(whose: Whose) -> Option<Turns> {
    match Turns::start(whose) {
        Ok(turns) => Some(turns),
        Err(error @ (Error::Refused { .. } | Error::Unsupported { .. })) => {
            eprintln!("SKIPPED: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Processor time of this thread.
fn used() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// Works until this thread has used so much more processor time.
fn work(mut of: impl FnMut()) {
    let begin = used();
    while used() - begin < TIME {
        (0..100).for_each(|_| of());
    }
}

#[inline(never)]
fn encrypt_a_block() {
    std::hint::black_box((0..200u64).fold(7, |sum: u64, n| sum.wrapping_mul(n | 1) ^ n));
}

#[inline(never)]
fn md5_of_a_block() {
    std::hint::black_box((0..200u64).fold(9, |sum: u64, n| sum.rotate_left(7) ^ n));
}

#[inline(never)]
fn sha256_between_turns() {
    std::hint::black_box((0..200u64).fold(3, |sum: u64, n| sum.wrapping_add(n) ^ n));
}

fn names(recording: &Recording, kind: Kind) -> BTreeMap<String, u64> {
    let mut names = BTreeMap::new();
    for sample in recording.samples.iter().filter(|of| of.kind == kind) {
        for frame in recording.frames_of(sample.stack) {
            *names.entry(frame.name.clone()).or_insert(0) += sample.ns;
        }
    }
    names
}

fn time_in(recording: &Recording, function: &str) -> u64 {
    let names = names(recording, Kind::Cpu);
    let of = names.iter().filter(|(name, _)| name.contains(function));
    of.map(|(_, ns)| ns).sum()
}

#[test]
fn each_has_what_it_did_in_its_own_turns() {
    let _one = ONE.lock();
    let Some(turns) = start(Whose::Own) else {
        return;
    };
    turns.join();
    let over = AtomicBool::new(false);
    let recorded = std::thread::scope(|scope| {
        // A helper that waits, over and over, is no reason for anything.
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_micros(500));
            }
        });
        for _ in 0..ROUNDS {
            turns.begin(3);
            work(encrypt_a_block);
            turns.end();
            work(sha256_between_turns);
            turns.begin(5);
            work(md5_of_a_block);
            turns.end();
        }
        over.store(true, Ordering::Relaxed);
        turns.finish().unwrap()
    });
    assert_eq!(recorded.keys().copied().collect::<Vec<_>>(), [3, 5]);
    let rules = Rules::built_in();
    for (number, own, main) in [
        (3, "encrypt_a_block", "cipher"),
        (5, "md5_of_a_block", "digest"),
    ] {
        let recording = &recorded[&number];
        assert_eq!(
            Recording::parse(&recording.to_bytes()).as_ref(),
            Ok(recording)
        );
        let wall = u128::from(recording.wall_ns);
        assert!(wall >= TIME.as_nanos() * ROUNDS as u128, "{wall}");
        let samples = recording.samples.iter();
        assert!(
            samples
                .clone()
                .all(|sample| sample.at_ns <= recording.wall_ns)
        );
        // What the others did is not in it, but for a sample at the very border.
        let of = |function| time_in(recording, function);
        let all = of("encrypt_a_block") + of("md5_of_a_block") + of("sha256_between_turns");
        assert!(
            of(own) > 0 && of(own) * 10 >= all * 9,
            "{number}: {} of {all}",
            of(own)
        );
        let phases = Phases::new(recording, &rules);
        let most = (0..rules.phases().len())
            .max_by(|a, b| phases.totals[*a].cpu.total_cmp(&phases.totals[*b].cpu));
        assert_eq!(rules.phases()[most.unwrap()].name, main);
        let timer = rules.phases().iter().position(|of| of.name == "timer");
        assert_eq!(phases.totals[timer.unwrap()].wait, 0.0);
    }
}

#[test]
fn a_wait_of_a_worker_counts() {
    let _one = ONE.lock();
    let Some(turns) = start(Whose::Own) else {
        return;
    };
    turns.join();
    turns.begin(0);
    work(encrypt_a_block);
    for _ in 0..50 {
        std::thread::sleep(Duration::from_millis(1));
    }
    turns.end();
    // Between turns it waits, too.
    std::thread::sleep(Duration::from_millis(200));
    turns.begin(1);
    work(encrypt_a_block);
    turns.end();
    let recorded = turns.finish().unwrap();
    if recorded[&0]
        .missing
        .iter()
        .any(|text| text.contains("kernel's part"))
    {
        eprintln!("SKIPPED: {}", recorded[&0].missing.join("; "));
        return;
    }
    let rules = Rules::built_in();
    let timer = rules.phases().iter().position(|of| of.name == "timer");
    let waits = |number: u32| {
        let recording = &recorded[&number];
        let phases = Phases::new(recording, &rules);
        (phases.totals[timer.unwrap()].wait, recording.wall_ns as f64)
    };
    let (waited, wall) = waits(0);
    assert!(waited >= 50e6 && waited <= wall, "{waited} of {wall}");
    assert_eq!(waits(1).0, 0.0);
}

#[test]
fn of_started_processes_all_are_recorded_and_this_one_is_not() {
    let _one = ONE.lock();
    let Some(turns) = start(Whose::Started) else {
        return;
    };
    let shell = |script: &str| {
        let mut shell = Command::new("sh");
        shell.args(["-c", script]).stdout(Stdio::null());
        assert!(shell.status().unwrap().success());
    };
    let count = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done";
    shell(count);
    turns.begin(1);
    // A child of a child; and this process, which works meanwhile.
    shell(&format!("sh -c '{count}'; true"));
    work(md5_of_a_block);
    turns.end();
    let recorded = turns.finish().unwrap();
    let recording = &recorded[&1];
    let own = std::process::id();
    let cpu = recording.samples.iter().filter(|of| of.kind == Kind::Cpu);
    let pids: Vec<u32> = cpu
        .map(|of| recording.threads[of.thread as usize].pid)
        .collect();
    assert!(!pids.is_empty() && !pids.contains(&own), "{pids:?}");
    assert_eq!(time_in(recording, "md5_of_a_block"), 0);
}
