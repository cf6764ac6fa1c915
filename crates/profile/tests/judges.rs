//! Recordings of real programs beside what strace and perf say, and by the rules. They are skipped
//! where the kernel refuses performance events.

mod support;

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use cipherlane_profile::phases::Phases;
use cipherlane_profile::record::Options;
use cipherlane_profile::rules::Rules;

use self::support::{command, options, recorded};

/// With enough samples in a second for shares.
fn often() -> Options {
    Options {
        rate: Some(997),
        ..options()
    }
}

#[test]
fn system_calls_are_counted_as_strace_counts_them() {
    let words = [
        "dd",
        "if=/dev/zero",
        "of=/dev/null",
        "bs=64k",
        "count=32100",
        "status=none",
    ];
    // Where the work takes long, calls are recorded in windows otherwise.
    let exact = Options {
        exact: true,
        ..options()
    };
    let Some(recording) = recorded(&command(&words), &exact) else {
        return;
    };
    if recording.system_calls.is_empty() {
        eprintln!("SKIPPED: {}", recording.missing.join("; "));
        return;
    }
    let counted = |name: &str| {
        let call = recording.system_calls.iter().find(|call| call.name == name);
        call.map(|call| (call.count, call.exact))
    };
    assert!(counted("write").is_some_and(|(count, exact)| count >= 32100 && exact));
    let bytes = recording.work.as_ref().unwrap();
    assert!(
        bytes.amount >= 32100 * 65536 && bytes.amount < 32101 * 65536,
        "{bytes:?}"
    );
    let Ok(strace) = Command::new("strace")
        .args(["-c", "-o", "/dev/stdout"])
        .args(words)
        .output()
    else {
        eprintln!("SKIPPED: strace is not installed");
        return;
    };
    let text = String::from_utf8_lossy(&strace.stdout);
    let mut compared = 0;
    for line in text.lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (Some(name), Some(Ok(count))) =
            (fields.last(), fields.get(3).map(|c| c.parse::<u64>()))
        else {
            continue;
        };
        // The start of a program and its end are not the same under strace.
        if [
            "read", "write", "openat", "close", "munmap", "mprotect", "lseek",
        ]
        .contains(name)
        {
            let ours = counted(name).map(|(count, _)| count);
            assert_eq!(ours, Some(count), "{name}\n{text}");
            compared += 1;
        }
    }
    assert!(compared >= 3, "{text}");
}

/// Shares of the innermost functions of the kernel, by two recorders of the same work.
#[test]
fn functions_of_the_kernel_have_the_shares_that_perf_finds() {
    let words = [
        "dd",
        "if=/dev/zero",
        "of=/dev/null",
        "bs=1M",
        "count=12000",
        "status=none",
    ];
    let Some(recording) = recorded(&command(&words), &often()) else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("perf.data");
    let perf = Command::new("perf")
        .args(["record", "-q", "-e", "cpu-clock", "-F", "997", "-g", "-o"])
        .arg(&data)
        .args(words)
        .output();
    if !perf.is_ok_and(|perf| perf.status.success()) {
        eprintln!("SKIPPED: perf record does not run here");
        return;
    }
    let script = Command::new("perf")
        .args(["script", "-i"])
        .arg(&data)
        .output()
        .unwrap();
    let script = String::from_utf8_lossy(&script.stdout).into_owned();
    let mut text = Vec::new();
    cipherlane_profile::script::write(&recording, &mut text).unwrap();
    let ours = String::from_utf8(text).unwrap();
    let (theirs, ours) = (leaves(&script, true), leaves(&ours, false));
    let share = |of: &std::collections::HashMap<String, f64>, name: &str| {
        of.get(name).copied().unwrap_or(0.0) / of.values().sum::<f64>()
    };
    let top = theirs.iter().max_by(|a, b| a.1.total_cmp(b.1)).unwrap().0;
    let (theirs, ours) = (share(&theirs, top), share(&ours, top));
    // Some hundred samples each: the standard deviation of a share is below 3 %.
    assert!(
        (theirs - ours).abs() < 0.12,
        "{top}: perf {theirs:.3}, ours {ours:.3}"
    );
}

/// Samples, or their nanoseconds, by the innermost function of each event.
fn leaves(script: &str, count: bool) -> std::collections::HashMap<String, f64> {
    let mut leaves = std::collections::HashMap::new();
    let mut weight = None;
    for line in script.lines() {
        if line.starts_with(['\t', ' ']) && weight.is_some() {
            let name = line.split_whitespace().nth(1).unwrap_or("");
            let name = name.rsplit_once("+0x").map_or(name, |(name, _)| name);
            *leaves.entry(name.to_owned()).or_insert(0.0) += weight.take().unwrap();
        } else if line.contains("cpu-clock") {
            let before = line.split(" cpu-clock").next().unwrap();
            let period = before
                .split_whitespace()
                .last()
                .and_then(|word| word.parse().ok());
            weight = if count { Some(1.0) } else { period };
        } else if !line.starts_with(['\t', ' ']) {
            weight = None;
        }
    }
    leaves
}

/// Shares of processor time that no rule knows, for what this machine has.
#[test]
fn little_of_real_programs_is_unknown() {
    let rules = Rules::built_in();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("data");
    std::fs::write(&file, vec![1u8; 64 << 20]).unwrap();
    let file = file.to_str().unwrap();
    let seen = AtomicU64::new(0);
    for (words, main) in [
        (
            vec![
                "openssl",
                "speed",
                "-seconds",
                "1",
                "-bytes",
                "16384",
                "-evp",
                "aes-256-ctr",
            ],
            "cipher",
        ),
        (
            vec![
                "openssl",
                "enc",
                "-aes-256-cbc",
                "-K",
                "00",
                "-iv",
                "00",
                "-in",
                file,
                "-out",
                "/dev/null",
            ],
            "cipher",
        ),
        (
            vec![
                "dd",
                "if=/dev/zero",
                "of=/dev/null",
                "bs=256k",
                "count=20000",
                "status=none",
            ],
            "file",
        ),
    ] {
        if !Path::new("/usr/bin").join(words[0]).exists() {
            eprintln!("SKIPPED: {} is not installed", words[0]);
            continue;
        }
        let Some(recording) = recorded(&command(&words), &often()) else {
            return;
        };
        let phases = Phases::new(&recording, &rules);
        let unknown = phases.unknown(&rules);
        let samples: u64 = recording.samples.iter().map(|sample| sample.count).sum();
        if samples < 1000 {
            eprintln!("SKIPPED: {words:?} got {samples} samples; the machine is busy");
            continue;
        }
        assert!(unknown <= 0.1, "{words:?}: {unknown}");
        let most = (0..rules.phases().len())
            .max_by(|a, b| phases.totals[*a].cpu.total_cmp(&phases.totals[*b].cpu))
            .unwrap();
        assert_eq!(rules.phases()[most].name, main, "{words:?}");
        seen.fetch_add(1, Ordering::Relaxed);
    }
    eprintln!("{} programs recorded", seen.into_inner());
}
