//! What programs used: contexts, operations and bytes an algorithm, told at exit.
//!
//! `CIPHERLANE_OPENSSL_STATS` set to a file's name has them appended there as JSON, a line
//! a process; set to `-` they go to standard error. Not set, nothing is counted. Nor is it in a
//! setuid, setgid or capability program, whose caller could write by its rights.

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

/// Somebody wants to know.
struct Wanted {
    destination: String,
    /// By the ciphers' numbers.
    counters: &'static [Counters],
}

static WANTED: OnceLock<Option<Wanted>> = OnceLock::new();

/// A setting that was not followed, in words that no setting can choose: whoever sets it may not
/// be whoever reads them.
static PROBLEM: OnceLock<&str> = OnceLock::new();

/// The same of the list of ciphers.
static CIPHERS_PROBLEM: OnceLock<String> = OnceLock::new();

/// Begins to count where the environment says so.
pub(crate) fn start() {
    WANTED.get_or_init(|| {
        Some(Wanted {
            destination: environment::text(VARIABLE)?,
            counters: counters()?,
        })
    });
}

/// Counters in memory that is zero again in a forked child: it tells what it used itself,
/// and not what its parent had.
fn counters() -> Option<&'static [Counters]> {
    let len = size_of::<Counters>() * SPECS.len();
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: new memory of our own, which is never unmapped. Zeros, which it begins with
    // and may fall back to in a child, are counters; pages are aligned for them.
    unsafe {
        let memory = mmap_anonymous(null_mut(), len, access, MapFlags::PRIVATE).ok()?;
        // Kernels before Linux 4.14 cannot: there a child goes on where its parent was.
        let _ = madvise(memory, len, Advice::LinuxWipeOnFork);
        Some(slice::from_raw_parts(memory.cast(), SPECS.len()))
    }
}

/// The counters of a cipher, if anybody wants to know: one load on the path.
#[inline]
fn wanted(spec: &Spec) -> Option<&'static Counters> {
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

/// Notes a call of a pipeline, whose messages are counted as calls of their own.
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

/// Notes a setting that was not followed, to be told with the counters in a string of JSON.
pub(crate) fn note(problem: &'static str) {
    let _ = PROBLEM.set(problem);
}

/// Notes that not all of the list of ciphers was followed, as [`note`] does.
pub(crate) fn note_ciphers(problem: String) {
    let _ = CIPHERS_PROBLEM.set(problem);
}

/// Whether this process has told something, even that nothing was counted.
static TOLD: AtomicBool = AtomicBool::new(false);

/// Tells what was counted and not told yet.
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

/// Tells what was counted.
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
        // Each library context of a process tells what came since another did.
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
    // The program is about to end: where this cannot be written, nobody is left to tell.
    let _ = match destination.as_str() {
        "-" => std::io::stderr().write_all(line.as_bytes()),
        file => cipherlane_files::append(Path::new(file))
            .and_then(|mut file| file.write_all(line.as_bytes())),
    };
}
