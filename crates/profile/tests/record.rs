//! Recordings of real programs. They are skipped where the kernel refuses performance events.

mod support;

use std::process::{Child, Command};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use cipherlane_profile::Error;
use cipherlane_profile::diff::Diff;
use cipherlane_profile::record::{Options, Target, record};
use cipherlane_profile::recording::{Kind, Recording, Unit};
use cipherlane_profile::rules::Rules;

use self::support::{command, options, recorded};

/// Requests of the program below.
const REQUESTS: u64 = 2000;
/// Bytes of each.
const SIZE: usize = 16 << 10;

/// The program that the tests record: it enciphers, after a fashion, and does what is asked for
/// besides. The calling test gives it its name in the environment.
#[test]
#[ignore = "a program for the other tests"]
fn program() {
    #[allow(clippy::disallowed_methods)]
    let besides = std::env::var("BESIDES").unwrap_or_default();
    let mut data = vec![1u8; SIZE];
    let mut copy = vec![0u8; SIZE];
    let lock = Mutex::new(());
    let (done, begun) = (AtomicBool::new(false), AtomicBool::new(besides != "lock"));
    std::thread::scope(|scope| {
        if besides == "lock" {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    let held = lock.lock().unwrap();
                    begun.store(true, Ordering::Relaxed);
                    std::thread::sleep(Duration::from_micros(300));
                    drop(held);
                    // It lets go for long enough that the other one gets it.
                    std::thread::sleep(Duration::from_micros(50));
                }
            });
        }
        while !begun.load(Ordering::Relaxed) {
            std::thread::yield_now();
        }
        let requests = match besides.as_str() {
            "end" => REQUESTS / 20,
            "long" => REQUESTS * 20,
            _ => REQUESTS,
        };
        for request in 0..requests {
            encrypt_in_place(&mut data, request);
            match besides.as_str() {
                "sleep" => std::thread::sleep(Duration::from_micros(200)),
                "copy" => {
                    for _ in 0..240 {
                        copy.copy_from_slice(std::hint::black_box(&data));
                        std::hint::black_box(&mut copy);
                    }
                }
                "lock" => drop(lock.lock().unwrap()),
                "call" => {
                    for _ in 0..200 {
                        std::hint::black_box(std::os::unix::process::parent_id());
                    }
                }
                _ => {}
            }
        }
        done.store(true, Ordering::Relaxed);
    });
}

/// Its name is what the rules know it by.
#[inline(never)]
fn encrypt_in_place(data: &mut [u8], key: u64) {
    for word in data.chunks_exact_mut(8) {
        let mut state = u64::from_le_bytes(word.try_into().unwrap()) ^ key;
        for _ in 0..16 {
            state = state.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        }
        word.copy_from_slice(&state.to_le_bytes());
    }
    std::hint::black_box(data);
}

fn run(besides: &str) -> Option<Recording> {
    let own = std::env::current_exe().unwrap();
    let target = Target::Command(vec![
        "/usr/bin/env".into(),
        format!("BESIDES={besides}").into(),
        own.into(),
        "--ignored".into(),
        "--exact".into(),
        "program".into(),
        "--test-threads=1".into(),
        "--quiet".into(),
    ]);
    let options = Options {
        work: Some((REQUESTS * SIZE as u64, Unit::Byte)),
        ..options()
    };
    let recording = recorded(&target, &options)?;
    assert_eq!(recording.status, Some(0));
    Some(recording)
}

#[test]
fn what_makes_a_program_slower_is_named() {
    let rules = Rules::built_in();
    for (besides, phase) in [
        ("sleep", "timer"),
        ("copy", "memory"),
        ("lock", "lock"),
        ("call", "syscall"),
    ] {
        // Others on the machine may hide it once, but not every time.
        let mut seen = Vec::new();
        let named = (0..5).any(|_| {
            let (Some(plain), Some(slower)) = (run("nothing"), run(besides)) else {
                return true;
            };
            let diff = Diff::new(&plain, &slower, &rules);
            let mut clear = diff.phases.iter().filter(|row| row.clear);
            // Waiting for a processor comes on top; the lock's holder sleeps, which is seen too.
            let named = match besides {
                "lock" => clear.find(|row| row.phase == "lock"),
                _ => clear.find(|row| row.phase != "queue"),
            };
            let is_it = named.is_some_and(|row| row.phase == phase && row.difference > 0.0);
            seen.push(format!("{:?} {}", named, diff.verdict));
            is_it && !diff.advice.is_empty()
        });
        assert!(named, "{besides}: {seen:#?}");
    }
}

/// Twenty pairs of runs of the same program: in one of twenty the noise may look like a difference.
#[test]
#[ignore = "takes a minute; 'make soak' runs it"]
fn identical_runs_do_not_differ() {
    let rules = Rules::built_in();
    let words = [
        "dd",
        "if=/dev/zero",
        "of=/dev/null",
        "bs=64k",
        "count=60000",
        "status=none",
    ];
    let run = || recorded(&command(&words), &options());
    let mut differ = Vec::new();
    for _ in 0..20 {
        let (Some(a), Some(b)) = (run(), run()) else {
            return;
        };
        let diff = Diff::new(&a, &b, &rules);
        if diff.phases.iter().any(|row| row.clear) {
            differ.push(diff.verdict);
        }
    }
    eprintln!("{} of 20 pairs differ", differ.len());
    assert!(differ.len() <= 1, "{differ:#?}");
}

/// The program is gone before anybody could read /proc/PID/maps: the kernel's records of its
/// mappings are all that names its functions.
#[test]
fn a_program_that_ends_at_once_has_names() {
    // It works for some milliseconds, in which a sample may or may not fall.
    let mut seen = Vec::new();
    let named = (0..20).any(|_| {
        let Some(recording) = run("end") else {
            return true;
        };
        let mut text = Vec::new();
        cipherlane_profile::script::write(&recording, &mut text).unwrap();
        seen.push(String::from_utf8(text).unwrap());
        seen.last().unwrap().contains("encrypt_in_place")
    });
    assert!(named, "{seen:#?}");
}

#[test]
fn a_thousand_children_are_followed() {
    let words = [
        "sh",
        "-c",
        "i=0; while [ $i -lt 1000 ]; do /bin/true & i=$((i+1)); \
                  [ $((i % 50)) -ne 0 ] || wait; done; wait",
    ];
    let with = Options {
        children: true,
        ..options()
    };
    let Some(recording) = recorded(&command(&words), &with) else {
        return;
    };
    let processes: std::collections::HashSet<u32> =
        recording.threads.iter().map(|thread| thread.pid).collect();
    assert!(processes.len() > 500, "{} processes", processes.len());
    assert!(Recording::parse(&recording.to_bytes()).is_ok());
    let without = recorded(&command(&words), &options()).unwrap();
    // Those that wake it have no samples; kernel threads that it wakes have, such as 'kworker/0:1'.
    let sampled = without.samples.iter();
    let processes: std::collections::HashSet<(u32, &str)> = sampled
        .map(|sample| &without.threads[sample.thread as usize])
        .filter(|thread| !thread.name.contains('/'))
        .map(|thread| (thread.pid, thread.name.as_str()))
        .collect();
    assert_eq!(processes.len(), 1, "{processes:?}");
}

/// Samples are rarer after the begin, which is two seconds at most: other events take them then. The
/// program works for long enough that several of them fall into it.
#[test]
fn what_is_started_after_the_begin_is_recorded() {
    let own = std::env::current_exe().unwrap();
    let later = format!(
        "end=$(($(date +%s) + 4)); while [ $(date +%s) -lt $end ]; do :; done; \
         BESIDES=long {} --ignored --exact program --test-threads=1 --quiet",
        own.display()
    );
    let options = Options {
        rate: None,
        children: true,
        ..options()
    };
    let Some(recording) = recorded(&command(&["sh", "-c", &later]), &options) else {
        return;
    };
    let mut text = Vec::new();
    cipherlane_profile::script::write(&recording, &mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains("encrypt_in_place"), "{text}");
    let cpu = || recording.samples.iter().filter(|of| of.kind == Kind::Cpu);
    let early = cpu().any(|sample| sample.at_ns < 1_000_000_000);
    let late = cpu().any(|sample| sample.at_ns > 2_100_000_000);
    assert!(early && late);
    // Each sample stands for the time since the one before it, also where they are rarer: with the
    // weight of the first ones it would be about a tenth of what the program used. A host that takes
    // the processor away makes them differ too.
    let sampled: u64 = cpu().map(|sample| sample.ns).sum();
    let used = recording.counters.processor_ns + recording.counters.kernel_threads_ns;
    let ratio = sampled as f64 / used as f64;
    assert!((0.5..2.0).contains(&ratio), "{ratio}");
}

fn shell(words: &str) -> Child {
    Command::new("sh").args(["-c", words]).spawn().unwrap()
}

#[test]
fn a_process_has_ended_before_its_parent_has_waited_for_it() {
    let mut child = shell("i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done");
    let at_most = Options {
        time: Some(Duration::from_secs(60)),
        ..options()
    };
    let recording = recorded(&Target::Process(child.id()), &at_most);
    assert!(child.wait().unwrap().success());
    if let Some(recording) = recording {
        assert!(recording.wall_ns < 60_000_000_000, "it went on");
    }
}

#[test]
fn a_process_is_recorded_whose_first_thread_has_ended() {
    let words = "import ctypes, os, threading, time\n\
                 def work():\n\
                 \x20   end = time.monotonic() + 60\n\
                 \x20   while time.monotonic() < end: pass\n\
                 \x20   os._exit(0)\n\
                 threading.Thread(target=work).start()\n\
                 ctypes.CDLL(None).pthread_exit(None)\n";
    let Ok(mut child) = Command::new("python3").args(["-c", words]).spawn() else {
        eprintln!("NOT TESTED: python3 is not here");
        return;
    };
    let first = format!("/proc/{0}/task/{0}/stat", child.id());
    while !std::fs::read_to_string(&first).unwrap().contains(") Z ") {
        std::thread::yield_now();
    }
    let second = Options {
        time: Some(Duration::from_secs(1)),
        ..options()
    };
    let recording = recorded(&Target::Process(child.id()), &second);
    child.kill().unwrap();
    child.wait().unwrap();
    if let Some(recording) = recording {
        let mut frames = recording.frames.iter();
        let is_named = frames.any(|frame| frame.module.contains("python"));
        assert!(is_named, "{:?}", recording.frames);
    }
}

#[test]
fn what_a_process_has_used_is_known_after_its_parent_has_waited_for_it() {
    let mut child = shell("while :; do :; done");
    let target = Target::Process(child.id());
    let parent = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_secs(3));
        child.kill().unwrap();
        child.wait().unwrap();
    });
    // Without a budget nothing else asks for it meanwhile.
    let exact = Options {
        exact: true,
        ..options()
    };
    let recording = recorded(&target, &exact);
    parent.join().unwrap();
    if let Some(recording) = recording {
        assert!(recording.counters.processor_ns > 0);
    }
}

#[test]
fn a_process_that_runs_is_recorded_until_it_ends_or_the_caller_stops() {
    let mut child = shell("while :; do :; done");
    let time = Options {
        time: Some(Duration::from_millis(300)),
        ..options()
    };
    let recording = recorded(&Target::Process(child.id()), &time);
    child.kill().unwrap();
    child.wait().unwrap();
    if let Some(recording) = recording {
        assert!(
            recording
                .samples
                .iter()
                .any(|sample| sample.kind == Kind::Cpu)
        );
        assert!(recording.what.contains("while"), "{}", recording.what);
        assert_eq!(recording.status, None);
    }
    // It has ended and was waited for.
    let gone = record(
        &Target::Process(child.id()),
        &options(),
        &AtomicBool::new(false),
    );
    assert!(matches!(gone, Err(Error::NoProcess(pid)) if pid == child.id()));
    let stop = AtomicBool::new(true);
    let begin = Instant::now();
    let stopped = record(&command(&["sleep", "3600"]), &options(), &stop);
    // The command is ended with the recording; an hour would be too long for any test.
    assert!(begin.elapsed() < Duration::from_secs(600));
    if let Err(error) = stopped {
        assert!(!matches!(error, Error::Start { .. }), "{error}");
    }
}
