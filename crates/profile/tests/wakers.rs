//! Who ends a wait is named. The kernel's tracepoints need a file system that is not mounted
//! everywhere: the test mounts it where only its own processes see it.

#[path = "support/tracing.rs"]
mod tracing;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use cipherlane_profile::phases::Phases;
use cipherlane_profile::record::turns::{Turns, Whose};
use cipherlane_profile::record::{Options, Target, record};
use cipherlane_profile::recording::{Recording, Wake};
use cipherlane_profile::rules::Rules;
use cipherlane_profile::{page, wakers};

use self::tracing::with_tracepoints;

#[test]
fn who_ends_a_wait_is_named_by_function() {
    with_tracepoints("named_by_function");
}

#[test]
fn who_ends_a_wait_in_a_turn_is_named() {
    with_tracepoints("named_in_turns");
}

#[test]
#[ignore = "a test above runs it"]
fn named_in_turns() {
    let turns = match Turns::start(Whose::Own) {
        Ok(turns) => turns,
        Err(error) => return eprintln!("SKIPPED: {error}"),
    };
    turns.join();
    let ((ask, asked), (answer, answered)) = (mpsc::channel(), mpsc::channel());
    let helper = std::thread::Builder::new().name("helper".to_owned());
    let helper = helper.spawn(move || {
        for () in asked {
            // For long enough that the other one sleeps.
            std::thread::sleep(Duration::from_micros(300));
            answer.send(()).unwrap();
        }
    });
    let work = || {
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_millis(200) {
            std::hint::spin_loop();
        }
    };
    turns.begin(0);
    work();
    for _ in 0..300 {
        ask.send(()).unwrap();
        answered.recv().unwrap();
    }
    turns.end();
    turns.begin(1);
    work();
    turns.end();
    drop(ask);
    helper.unwrap().join().unwrap();
    let recorded = turns.finish().unwrap();
    let (first, second) = (&recorded[&0], &recorded[&1]);
    if !first.missing.is_empty() {
        return eprintln!("SKIPPED: {}", first.missing.join("; "));
    }
    let by_helper = |recording: &Recording| -> u64 {
        let thread = |wake: &Wake| recording.threads.get(wake.waker.checked_sub(1)? as usize);
        let wakes = recording.wakes.iter();
        let of = wakes.filter(|wake| thread(wake).is_some_and(|of| of.name == "helper"));
        of.map(|wake| wake.count).sum()
    };
    assert!(by_helper(first) > 100, "{:#?}", wakers::of(first));
    assert_eq!(by_helper(second), 0, "{:#?}", wakers::of(second));
    assert_eq!(Recording::parse(&first.to_bytes()).as_ref(), Ok(first));
}

#[test]
#[ignore = "a test above runs it"]
fn named_by_function() {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("waits");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/waits.c");
    let compiled = Command::new("cc")
        .args([
            "-O1",
            "-fno-omit-frame-pointer",
            "-fno-optimize-sibling-calls",
        ])
        .args(["-pthread", "-o"])
        .arg(&program)
        .arg(source)
        .status();
    assert!(compiled.unwrap().success());
    for (way, waits_in, woken_by) in [
        ("pipe", "takes_over", "hands_over"),
        ("mutex", "wants_it", "lets_go"),
        ("chain", "wants_it", "lets_go"),
    ] {
        let options = Options {
            children: true,
            time: None,
            rate: Some(499),
            exact: false,
            work: None,
            meter: None,
        };
        let words = vec![program.clone().into_os_string(), way.into()];
        let target = Target::Command(words);
        let recording = while_busy(|| record(&target, &options, &AtomicBool::new(false)));
        let recording = match recording {
            Ok(recording) if recording.missing.is_empty() => recording,
            Ok(recording) => return eprintln!("SKIPPED: {}", recording.missing.join("; ")),
            Err(error) => return eprintln!("SKIPPED: {error}"),
        };
        assert_eq!(recording.status, Some(0));
        let ended = wakers::of(&recording);
        let is_it = |of: &&wakers::Ended<'_>| of.waits_in == waits_in;
        let longest = ended.iter().find(is_it);
        assert_eq!(
            longest.and_then(|of| of.woken_by),
            Some(woken_by),
            "{ended:#?}"
        );
        // Nearly each round was a wait. Timers end the others.
        assert!(longest.unwrap().count > 100, "{ended:#?}");
        let timer = ended.iter().find(|of| of.waker.is_none());
        assert!(
            timer.is_some_and(|of| of.woken_by == Some("hrtimer_wakeup")),
            "{ended:#?}"
        );
        // Most of them at least: how many the kernel tells of depends on the machine.
        let known = wakers::known(&recording);
        assert!((0.5..=1.0).contains(&known), "{known} {ended:#?}");
        // Who sleeps with the lock is a matter of the lock, who waits for a peer is not.
        match way {
            "mutex" => assert!(waits(&recording, "lock") > 100e6, "{ended:#?}"),
            "chain" => {
                let [lock, peer] = ["lock", "peer"].map(|phase| waits(&recording, phase));
                assert!(peer > 2.0 * lock, "{peer} {lock}");
            }
            _ => {}
        }
        let read = Recording::parse(&recording.to_bytes());
        assert_eq!(read.as_ref(), Ok(&recording));
        let page = page::html(&recording, &Rules::built_in());
        let drawn = page.find("Who ends the waits").map(|at| &page[at..]);
        assert!(
            drawn.is_some_and(|drawn| drawn.contains(woken_by)),
            "{page}"
        );
    }
}

/// Nanoseconds of waiting in a phase.
fn waits(recording: &Recording, phase: &str) -> f64 {
    let rules = Rules::built_in();
    let at = rules.phases().iter().position(|of| of.name == phase);
    Phases::new(recording, &rules).totals[at.unwrap()].wait
}

/// Does something while no processor is idle: on some virtual machines the kernel gives no events of
/// interrupts that come while one is, to perf neither.
fn while_busy<R>(work: impl FnOnce() -> R) -> R {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while !is_over.load(Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let result = catch_unwind(AssertUnwindSafe(work));
        is_over.store(true, Relaxed);
        result.unwrap_or_else(|panic| resume_unwind(panic))
    })
}
