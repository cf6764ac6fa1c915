//! What a program has used: contexts, operations and bytes per algorithm, written when the program
//! ends.
//!
//! Where `CIPHERLANE_OPENSSL_STATS` is the name of a file, the counters of each process are appended
//! there as a line of JSON. Where it is `-`, they go to standard error. Where it is not set, nothing
//! is counted. In a setuid, setgid or capability program nothing is counted either, since its caller
//! could write to files with its rights.

use std::fmt::Write as _;
use std::io::Write;
use std::path::Path;
use std::ptr::null_mut;
use std::slice;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use cipherlane_core::environment;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};

use crate::registry::SPECS;
use crate::spec::Spec;

/// The environment variable.
const VARIABLE: &str = "CIPHERLANE_OPENSSL_STATS";

/// Counters of one cipher.
struct Counters {
    contexts: AtomicU64,
    operations: AtomicU64,
    bytes: AtomicU64,
    pipelines: AtomicU64,
    split: AtomicU64,
}

/// The counters, where the user asked for them.
struct Wanted {
    destination: String,
    /// By the number of the cipher.
    counters: &'static [Counters],
}

static WANTED: OnceLock<Option<Wanted>> = OnceLock::new();

/// A note on a setting that was not followed. Its words are fixed, so that whoever writes the setting
/// cannot choose what somebody else reads.
static PROBLEM: OnceLock<&str> = OnceLock::new();

/// The same for the list of ciphers.
static CIPHERS_PROBLEM: OnceLock<String> = OnceLock::new();

/// Begins to count where the environment says so.
pub(crate) fn start() {
    let wanted = WANTED.get_or_init(|| {
        Some(Wanted {
            destination: environment::text(VARIABLE)?,
            counters: counters()?,
        })
    });
    COUNTS.store(wanted.is_some(), Relaxed);
}

/// Counters in memory that is zero again in a forked child, so that the child writes what it has
/// used itself and not what its parent has used.
fn counters() -> Option<&'static [Counters]> {
    let len = size_of::<Counters>() * SPECS.len();
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: new memory of our own, which is never unmapped. Zeros, which it begins with
    // and may fall back to in a child, are counters; pages are aligned for them.
    unsafe {
        let memory = mmap_anonymous(null_mut(), len, access, MapFlags::PRIVATE).ok()?;
        // Kernels before Linux 4.14 cannot do that: there a child counts on from its parent's
        // counters.
        let _ = madvise(memory, len, Advice::LinuxWipeOnFork);
        Some(slice::from_raw_parts(memory.cast(), SPECS.len()))
    }
}

/// Whether anything is counted.
static COUNTS: AtomicBool = AtomicBool::new(false);

/// The counters of a cipher, if the user asked for them. It costs one load per call.
#[inline(always)]
fn wanted(spec: &Spec) -> Option<&'static Counters> {
    match COUNTS.load(Relaxed) {
        true => counters_of(spec),
        false => None,
    }
}

#[cold]
fn counters_of(spec: &Spec) -> Option<&'static Counters> {
    WANTED.get()?.as_ref()?.counters.get(spec.number)
}

/// Notes a context.
pub(crate) fn count_context(spec: &Spec) {
    if let Some(counters) = wanted(spec) {
        counters.contexts.fetch_add(1, Relaxed);
    }
}

/// Notes a call with `bytes` of input.
#[inline]
pub(crate) fn count(spec: &Spec, bytes: usize) {
    if let Some(counters) = wanted(spec) {
        counters.operations.fetch_add(1, Relaxed);
        counters.bytes.fetch_add(bytes as u64, Relaxed);
    }
}

/// Notes a call of a pipeline. Each of its messages is counted as a call too.
#[inline]
pub(crate) fn count_pipeline(spec: &Spec) {
    if let Some(counters) = wanted(spec) {
        counters.pipelines.fetch_add(1, Relaxed);
    }
}

/// Notes a call that was shared with workers.
pub(crate) fn count_split(spec: &Spec) {
    if let Some(counters) = wanted(spec) {
        counters.split.fetch_add(1, Relaxed);
    }
}

/// Notes a setting that was not followed. The note is written with the counters, as a string of JSON.
pub(crate) fn note(problem: &'static str) {
    let _ = PROBLEM.set(problem);
}

/// Notes that not all of the list of ciphers was followed, as [`note`] does.
pub(crate) fn note_ciphers(problem: String) {
    let _ = CIPHERS_PROBLEM.set(problem);
}

/// Whether this process has written its counters, even if they were all zero.
static TOLD: AtomicBool = AtomicBool::new(false);

/// Writes what was counted and has not been written yet.
pub(crate) fn report_rest() {
    let Some(Some(Wanted { counters, .. })) = WANTED.get() else {
        return;
    };
    let counted = |counters: &Counters| {
        counters.contexts.load(Relaxed) > 0 || counters.operations.load(Relaxed) > 0
    };
    if !TOLD.load(Relaxed) || counters.iter().any(counted) {
        report();
    }
}

/// Writes what was counted.
pub(crate) fn report() {
    let Some(Some(Wanted {
        destination,
        counters,
    })) = WANTED.get()
    else {
        return;
    };
    TOLD.store(true, Relaxed);
    let mut line = format!("{{\"process\":{},\"ciphers\":{{", std::process::id());
    let mut separator = "";
    for (spec, counters) in SPECS.iter().zip(*counters) {
        // Each library context of a process writes what was counted since the last writing.
        let contexts = counters.contexts.swap(0, Relaxed);
        let operations = counters.operations.swap(0, Relaxed);
        let bytes = counters.bytes.swap(0, Relaxed);
        if contexts > 0 || operations > 0 {
            // Writing to a string cannot fail.
            let _ = write!(
                line,
                "{separator}\"{}\":{{\"contexts\":{contexts},\"operations\":{operations},\
                 \"bytes\":{bytes},\"pipelines\":{},\"split\":{}}}",
                spec.name,
                counters.pipelines.swap(0, Relaxed),
                counters.split.swap(0, Relaxed),
            );
            separator = ",";
        }
    }
    line.push('}');
    if let Some(problem) = PROBLEM.get() {
        let _ = write!(line, ",\"problem\":\"{problem}\"");
    }
    if let Some(problem) = CIPHERS_PROBLEM.get() {
        let _ = write!(line, ",\"ciphers_problem\":\"{problem}\"");
    }
    line.push_str("}\n");
    // The program is about to end. If the writing fails, nobody is left to hear of it.
    let _ = match destination.as_str() {
        "-" => std::io::stderr().write_all(line.as_bytes()),
        file => cipherlane_files::append(Path::new(file))
            .and_then(|mut file| file.write_all(line.as_bytes())),
    };
}
