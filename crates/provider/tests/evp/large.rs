//! Large calls in a process with a core dedicated to them. Settings are read when the
//! provider is loaded, so each test starts a process for one of those that are ignored here.

use std::fs;
use std::panic::AssertUnwindSafe;
use std::process::Command;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use crate::libcrypto::{Cipher, Context, Lib, Refused};

const KIB: usize = 1 << 10;
/// The first six calls go alone, and the next six are shared.
const CALLS: usize = 12;

const CIPHERS: [&str; 11] = [
    "AES-128-ECB",
    "AES-256-ECB",
    "AES-128-CBC",
    "AES-256-CBC",
    "AES-128-CBC-CTS",
    "AES-192-CTR",
    "AES-256-CTR",
    "AES-128-GCM",
    "AES-256-GCM",
    "AES-128-XTS",
    "AES-256-XTS",
];

/// Runs an ignored test in a process of its own, and gives the lines of its statistics.
fn process(test: &str, cores: &str) -> Vec<serde_json::Value> {
    let folder = tempfile::tempdir().unwrap();
    let statistics = folder.path().join("statistics");
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("large::{test}"), "--ignored"])
        .env("CIPHERLANE_CORES", cores)
        .env("CIPHERLANE_OPENSSL_STATS", &statistics)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{output:?}"
    );
    let lines = fs::read_to_string(statistics).unwrap();
    lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn split(lines: &[serde_json::Value], cipher: &str) -> u64 {
    let count = |line: &serde_json::Value| line["ciphers"][cipher]["split"].as_u64();
    lines.iter().filter_map(count).sum()
}

/// The last core that this process may use.
fn core() -> String {
    // SAFETY: plain data, which the call fills.
    let (set, got) = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        let got = libc::sched_getaffinity(0, size_of_val(&set), &mut set);
        (set, got)
    };
    assert_eq!(got, 0);
    // SAFETY: in range.
    let usable = |&core: &usize| unsafe { libc::CPU_ISSET(core, &set) };
    let last = (0..libc::CPU_SETSIZE as usize).rev().find(usable);
    last.unwrap().to_string()
}

fn bytes(len: usize, seed: usize) -> Vec<u8> {
    (0..len)
        .map(|i| (i * 167 + i / 199 + (i >> 16) * 31 + seed * 41) as u8)
        .collect()
}

fn begun(cipher: &Cipher, encrypt: bool) -> Context {
    let mut context = cipher.context();
    let iv = bytes(cipher.iv_len(), 2);
    context
        .init(encrypt, Some(&bytes(cipher.key_len(), 1)), Some(&iv))
        .unwrap();
    context.set_padding(false);
    context
}

/// A message in pieces of the given lengths, in place where that is possible: its output,
/// and its tag where it has one. Decrypting, the tag is one to expect.
fn run(
    cipher: &Cipher,
    name: &str,
    (input, tag): (&[u8], Option<&[u8]>),
    lens: &[usize],
    in_place: bool,
) -> Result<(Vec<u8>, Vec<u8>), Refused> {
    let (gcm, encrypt) = (name.ends_with("GCM"), tag.is_none());
    let mut context = begun(cipher, encrypt);
    if gcm {
        context.aad(&bytes(21, 8))?;
    }
    let (mut all, mut from) = (Vec::new(), 0);
    for len in lens {
        let piece = &input[from..from + len];
        all.extend(match in_place {
            true => context.update_in_place(piece)?,
            false => context.update(piece)?,
        });
        from += len;
    }
    if let (true, Some(tag)) = (gcm, tag) {
        context.set_tag(tag)?;
    }
    all.extend(context.finish()?);
    let tag = match gcm && encrypt {
        true => context.tag(16)?,
        false => Vec::new(),
    };
    Ok((all, tag))
}

/// Calls both ways, several times.
fn compare(ours: &Cipher, default: &Cipher, name: &str, lens: &[usize], calls: usize) {
    let plain = bytes(lens.iter().sum(), lens.len());
    let sealed = run(default, name, (&plain, None), lens, false).unwrap();
    for call in 0..calls {
        let in_place = call % 4 < 2;
        let found = run(ours, name, (&plain, None), lens, in_place).unwrap();
        assert!(found == sealed, "{name} {lens:?} {call}");
        let input = (&sealed.0[..], Some(&sealed.1[..]));
        let (found, _) = run(ours, name, input, lens, in_place).unwrap();
        assert!(found == plain, "{name} {lens:?} {call}");
        if name.ends_with("GCM") {
            let mut wrong = sealed.0.clone();
            wrong[plain.len() - 1 - call * 4099] ^= 4;
            let refused = run(ours, name, (&wrong, input.1), lens, in_place);
            assert!(refused.is_err(), "{name} {lens:?} {call}");
        }
    }
}

/// Threads of this process that work for the provider.
fn workers() -> usize {
    let threads = fs::read_dir("/proc/self/task").unwrap();
    let name = |thread: fs::DirEntry| fs::read_to_string(thread.path().join("comm"));
    threads
        .filter_map(|thread| name(thread.unwrap()).ok())
        .filter(|name| name.starts_with("cipherlane-"))
        .count()
}

/// Waits until `count` workers run: a thread takes its name, and leaves the list, a little after
/// it is started, and joined.
fn becomes(count: usize) -> bool {
    let end = Instant::now() + Duration::from_secs(20);
    while workers() != count {
        if Instant::now() > end {
            return false;
        }
        thread::sleep(Duration::from_millis(1));
    }
    true
}

#[test]
fn every_form_is_split_and_equal() {
    let lines = process("every_form", &core());
    for name in CIPHERS {
        // An encryption in CBC is a chain, which cannot be.
        let both_ways = if name.contains("CBC") { 1 } else { 2 };
        let calls = split(&lines, name);
        assert!(calls >= both_ways * 2, "{name}: {lines:?}");
    }
}

#[test]
#[ignore = "every_form_is_split_and_equal runs it"]
fn every_form() {
    let (ours, default) = (Lib::ours(), Lib::default());
    for name in CIPHERS {
        let (ours, default) = (ours.cipher(name), default.cipher(name));
        let lens: &[&[usize]] = match &name[8..] {
            "ECB" | "CBC" => &[&[512 * KIB], &[32, 1024 * KIB + 48, 512 * KIB - 16]],
            // Every call is a message.
            "XTS" | "CBC-CTS" => &[&[544 * KIB], &[600 * KIB + 1], &[1100 * KIB + 31]],
            _ => &[
                &[512 * KIB],
                &[5, 700 * KIB + 3, 600 * KIB, 11, 512 * KIB + 16],
            ],
        };
        for lens in lens {
            compare(&ours, &default, name, lens, CALLS);
        }
    }
}

#[test]
fn threads_and_children_share_the_workers_or_have_their_own() {
    let lines = process("threads_and_children", &core());
    // The process itself and its two children.
    assert!(split(&lines, "AES-256-CTR") > 0 && split(&lines, "AES-256-GCM") > 0);
}

#[test]
#[ignore = "threads_and_children_share_the_workers_or_have_their_own runs it"]
fn threads_and_children() {
    const NAMES: [&str; 2] = ["AES-256-CTR", "AES-256-GCM"];
    let (ours, default) = (Lib::ours(), Lib::default());
    let ours = NAMES.map(|name| ours.cipher(name));
    let default = NAMES.map(|name| default.cipher(name));
    let compare = |which: usize, calls| {
        let lens = [600 * KIB, 7, 700 * KIB];
        compare(&ours[which], &default[which], NAMES[which], &lens, calls);
    };
    assert_eq!(workers(), 0, "loading starts none");
    let in_child = || {
        // SAFETY: the child only computes, and leaves without the harness's handlers at exit.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let done = std::panic::catch_unwind(AssertUnwindSafe(|| {
                let inherited = workers();
                compare(0, CALLS);
                compare(1, CALLS);
                inherited == 0 && becomes(1)
            }));
            // SAFETY: ends the child here.
            unsafe { libc::_exit(i32::from(!matches!(done, Ok(true)))) };
        }
        let mut status = 0;
        // SAFETY: our own child; the status has a place.
        assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
        assert_eq!(status, 0);
    };
    in_child();
    assert_eq!(workers(), 0, "a child's are its own");
    compare(0, CALLS);
    assert!(becomes(1));
    in_child();
    let together = Barrier::new(8);
    thread::scope(|scope| {
        for i in 0..8 {
            let (compare, together) = (&compare, &together);
            scope.spawn(move || {
                together.wait();
                compare(i % 2, 4);
            });
        }
    });
    assert!(becomes(1));
}

#[test]
fn small_calls_start_no_worker_and_the_last_context_ends_them() {
    let lines = process("small_calls", &core());
    assert!(
        lines.iter().all(|line| line["problem"].is_null()),
        "{lines:?}"
    );
}

#[test]
#[ignore = "small_calls_start_no_worker_and_the_last_context_ends_them runs it"]
fn small_calls() {
    let (ours, other) = (Lib::ours(), Lib::ours());
    let cipher = ours.cipher("AES-128-CTR");
    let call = |len| begun(&cipher, true).update(&vec![0; len]).unwrap();
    for _ in 0..100 {
        call(512 * KIB - 1);
    }
    assert_eq!(workers(), 0);
    for _ in 0..CALLS {
        call(512 * KIB);
    }
    assert!(becomes(1));
    drop(other);
    assert_eq!(workers(), 1, "the other library context uses them");
    drop(cipher);
    drop(ours);
    assert!(becomes(0));
    // And another begins anew, with a length of which nothing is known.
    let ours = Lib::ours();
    let cipher = ours.cipher("AES-128-CTR");
    for _ in 0..CALLS {
        begun(&cipher, true).update(&vec![0; 1024 * KIB]).unwrap();
    }
    assert!(becomes(1));
}

#[test]
fn cores_that_are_not_there_are_told_and_done_without() {
    let lines = process("alone", "100000");
    assert_eq!(split(&lines, "AES-256-CTR"), 0);
    let problem = lines[0]["problem"].as_str().unwrap();
    assert!(
        problem.contains("no list of cores that are online"),
        "{problem}"
    );
}

#[test]
#[ignore = "cores_that_are_not_there_are_told_and_done_without runs it"]
fn alone() {
    let (ours, default) = (Lib::ours(), Lib::default());
    let name = "AES-256-CTR";
    compare(
        &ours.cipher(name),
        &default.cipher(name),
        name,
        &[600 * KIB],
        CALLS,
    );
    assert_eq!(workers(), 0);
}
