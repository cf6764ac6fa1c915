//! What costs too much is recorded in windows and multiplied up; what does not is recorded whole.
//! The kernel's tracepoints need a file system that is not mounted everywhere: the test mounts it
//! where only its own processes see it.

#[path = "support/tracing.rs"]
mod tracing;

use std::io::{Read, Write};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use cipherlane_profile::phases::Phases;
use cipherlane_profile::record::{Options, Target, record};
use cipherlane_profile::recording::{Kind, Recording};
use cipherlane_profile::rules::Rules;

use self::tracing::with_tracepoints;

/// How long the program below goes on where it is recorded in windows, and where each of its events
/// is: on a fast processor a number of events would not last for several windows.
const IN_WINDOWS: Duration = Duration::from_secs(4);
const EXACTLY: Duration = Duration::from_millis(500);

/// Time from one call of the program below to the next: with less of it, a window of few milliseconds is
/// followed by a pause of seconds. The program waits by the clock: a loop of instructions may take longer while
/// its calls are recorded, and then there are fewer calls in a window than outside of it.
const BETWEEN_CALLS: Duration = Duration::from_micros(15);

/// The program that the tests record: it makes very many system calls, or two of its threads wait for
/// each other very often, or it is quiet. It leaves the number of calls or of waits in a file.
#[test]
#[ignore = "a program for the other tests"]
#[allow(clippy::disallowed_methods)]
fn program() {
    let does = std::env::var("DOES").unwrap_or_default();
    let lasts = std::env::var("LASTS").ok().and_then(|ms| ms.parse().ok());
    let (begin, lasts) = (Instant::now(), Duration::from_millis(lasts.unwrap_or(0)));
    let told = match does.as_str() {
        "calls" => {
            let mut calls = 0;
            while begin.elapsed() < lasts {
                let called = Instant::now();
                std::hint::black_box(std::os::unix::process::parent_id());
                calls += 1;
                while called.elapsed() < BETWEEN_CALLS {}
            }
            calls
        }
        "waits" => hand_to_and_fro(|| begin.elapsed() < lasts),
        _ => {
            for _ in 0..50 {
                std::thread::sleep(Duration::from_millis(10));
            }
            // Something has to be sampled.
            std::hint::black_box((0..50_000_000u64).fold(1, |a, b| std::hint::black_box(a ^ b)));
            50
        }
    };
    if let Ok(path) = std::env::var("TELLS") {
        std::fs::write(path, told.to_string()).unwrap();
    }
}

/// How often the two have waited, as the kernel counts it.
fn hand_to_and_fro(goes_on: impl Fn() -> bool) -> u64 {
    let (mut near, mut to_far) = std::io::pipe().unwrap();
    let (mut far, mut to_near) = std::io::pipe().unwrap();
    let other = std::thread::spawn(move || {
        let mut byte = [0];
        while near.read(&mut byte).unwrap() > 0 {
            to_near.write_all(&byte).unwrap();
        }
        waits()
    });
    let mut byte = [1];
    while goes_on() {
        to_far.write_all(&byte).unwrap();
        far.read_exact(&mut byte).unwrap();
    }
    drop(to_far);
    other.join().unwrap() + waits()
}

/// Voluntary switches of the calling thread.
fn waits() -> u64 {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
    let mut lines = status.lines();
    let line = lines.find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    line.unwrap().trim().parse().unwrap()
}

#[test]
fn what_costs_too_much_is_recorded_in_windows() {
    with_tracepoints("in_windows");
}

/// A recording, and what the program has told of itself.
fn run(does: &str, exact: bool, place: &Path) -> Option<(Recording, u64)> {
    let told = place.join("told");
    let lasts = if exact { EXACTLY } else { IN_WINDOWS };
    let own = std::env::current_exe().unwrap();
    let words = [
        "/usr/bin/env".into(),
        format!("DOES={does}").into(),
        format!("TELLS={}", told.display()).into(),
        format!("LASTS={}", lasts.as_millis()).into(),
        own.into_os_string(),
        "--ignored".into(),
        "--exact".into(),
        "program".into(),
        "--test-threads=1".into(),
        "--quiet".into(),
    ];
    let options = Options {
        children: false,
        time: None,
        rate: Some(499),
        exact,
        work: None,
        meter: None,
    };
    match record(
        &Target::Command(words.to_vec()),
        &options,
        &AtomicBool::new(false),
    ) {
        Ok(recording) if recording.missing.is_empty() => {
            assert_eq!(recording.status, Some(0));
            assert_eq!(
                Recording::parse(&recording.to_bytes()).as_ref(),
                Ok(&recording)
            );
            let told = std::fs::read_to_string(told).unwrap().parse().unwrap();
            Some((recording, told))
        }
        Ok(recording) => {
            eprintln!("SKIPPED: {}", recording.missing.join("; "));
            None
        }
        Err(error) => {
            eprintln!("SKIPPED: {error}");
            None
        }
    }
}

fn calls(recording: &Recording, name: &str) -> (u64, bool) {
    let of = recording.system_calls.iter().find(|call| call.name == name);
    of.map_or((0, true), |call| (call.count, call.exact))
}

/// Runs `work`, and says how many performance events this process had open when it had fewest, from a
/// quarter of the time of the program to three quarters.
fn fewest_events<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let begin = Instant::now();
    let watcher = std::thread::spawn(move || {
        let is_event = |entry: std::io::Result<std::fs::DirEntry>| {
            let file = entry.and_then(|entry| std::fs::read_link(entry.path()));
            file.is_ok_and(|file| file.ends_with("anon_inode:[perf_event]"))
        };
        let mut fewest = usize::MAX;
        while begin.elapsed() < IN_WINDOWS * 3 / 4 {
            std::thread::sleep(Duration::from_millis(2));
            if begin.elapsed() > IN_WINDOWS / 4 {
                let open = std::fs::read_dir("/proc/self/fd").unwrap();
                fewest = fewest.min(open.map(is_event).filter(|is| *is).count());
            }
        }
        fewest
    });
    (work(), watcher.join().unwrap())
}

#[track_caller]
fn is_about(estimate: u64, truth: u64) {
    let ratio = estimate as f64 / truth as f64;
    assert!((0.5..2.0).contains(&ratio), "{estimate} for {truth}");
}

#[test]
#[ignore = "the test above runs it"]
fn in_windows() {
    let place = tempfile::tempdir().unwrap();
    // Where the host takes processors away for a part of the time, one recording may be unlike the others.
    let once = || run("calls", false, place.path());
    let Some(first) = once() else { return };
    let again = || once().expect("the first could be made");
    let mut runs = [first, again(), again()];
    runs.sort_by_key(|(recording, truth)| 1000 * calls(recording, "getppid").0 / truth);
    for (recording, truth) in &runs {
        let (count, _) = calls(recording, "getppid");
        eprintln!("{count} calls for {truth}, {:?}", recording.coverage);
    }
    let [_, (recording, truth), _] = runs;
    let coverage = recording
        .coverage
        .as_ref()
        .expect("there are too many calls");
    assert!(coverage.calls.0.len() > 1, "{coverage:?}");
    let (count, exact) = calls(&recording, "getppid");
    assert!(!exact);
    is_about(count, truth);

    let (ran, fewest) = fewest_events(|| run("waits", false, place.path()));
    let (recording, truth) = ran.unwrap();
    // Between windows only processors have events: their clock, wake-ups of the target and of the
    // kernel's threads, and the owners of the rings of calls and switches. Threads have none.
    let processors = cipherlane_measure::machine::Machine::detect().cpus;
    assert!(
        fewest <= 5 * processors,
        "{fewest} of {processors} processors"
    );
    let coverage = recording
        .coverage
        .as_ref()
        .expect("there are too many waits");
    assert!(coverage.waits.0.len() > 1, "{coverage:?}");
    // The kernel counts them, too. Other threads of the program have waited a few times.
    let ratio = recording.counters.waits as f64 / truth as f64;
    assert!((0.8..1.2).contains(&ratio), "{ratio} of {truth}");
    eprintln!(
        "{} waits for {truth}, {:?}",
        recording.counters.waits,
        recording.sampled()
    );
    // No thread can have waited for longer than it was there.
    let rules = Rules::built_in();
    let waited = Phases::new(&recording, &rules)
        .totals
        .iter()
        .map(|of| of.wait)
        .sum::<f64>();
    let threads: std::collections::BTreeSet<u32> =
        recording.samples.iter().map(|of| of.thread).collect();
    let most = recording.wall_ns as f64 * threads.len() as f64;
    assert!(
        waited > 0.1 * recording.wall_ns as f64 && waited < 1.1 * most,
        "{waited} of {most}"
    );
    // The reader of a pipe is woken by its writer.
    let waker = recording.wakes.iter().map(|wake| wake.count).sum::<u64>();
    assert!(waker * 3 > recording.counters.waits, "{waker}");

    // Whatever it costs, or where it costs nothing, all of it is there.
    let (recording, truth) = run("calls", true, place.path()).unwrap();
    assert_eq!(recording.coverage, None);
    let (count, exact) = calls(&recording, "getppid");
    let lost = recording.lost;
    assert!(
        exact && count + lost >= truth,
        "{count} and {lost} lost, of {truth}"
    );
    let (recording, truth) = run("nothing", false, place.path()).unwrap();
    assert_eq!(recording.coverage, None);
    assert_eq!(recording.sampled(), None);
    let (count, exact) = calls(&recording, "clock_nanosleep");
    assert!(exact && count == truth, "{count} for {truth}");
    let sleeps = recording.samples.iter().filter(|of| of.kind == Kind::Wait);
    let slept: u64 = sleeps.map(|of| of.ns).sum();
    assert!(slept >= 500_000_000, "{slept}");
}
