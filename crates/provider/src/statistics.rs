//! What programs used: contexts, operations and bytes an algorithm, told at exit.
//!
//! `CIPHERLANE_OPENSSL_STATS` set to a file's name has them appended there as JSON, a line
//! a process; set to `-` they go to standard error. Not set, nothing is counted.

use std::fmt::Write as _;
use std::io::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use crate::registry::SPECS;
use crate::spec::Spec;

/// The environment variable.
const VARIABLE: &str = "CIPHERLANE_OPENSSL_STATS";

/// Counters of one cipher.
#[derive(Default)]
pub(crate) struct Counters {
    contexts: AtomicU64,
    operations: AtomicU64,
    bytes: AtomicU64,
    pipelines: AtomicU64,
    split: AtomicU64,
}

impl Counters {
    pub(crate) const fn new() -> Counters {
        Counters {
            contexts: AtomicU64::new(0),
            operations: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            pipelines: AtomicU64::new(0),
            split: AtomicU64::new(0),
        }
    }
}

/// Whether anybody wants to know: one load on the path.
static WANTED: AtomicBool = AtomicBool::new(false);
static DESTINATION: OnceLock<String> = OnceLock::new();
static PROBLEM: OnceLock<String> = OnceLock::new();

/// Begins to count where the environment says so.
pub(crate) fn start() {
    let Ok(destination) = std::env::var(VARIABLE) else {
        return;
    };
    if DESTINATION.set(destination).is_ok() {
        WANTED.store(true, Relaxed);
    }
}

/// Notes a context.
pub(crate) fn count_context(spec: &Spec) {
    if WANTED.load(Relaxed) {
        spec.counters.contexts.fetch_add(1, Relaxed);
    }
}

/// Notes a call with `bytes` of input.
#[inline]
pub(crate) fn count(spec: &Spec, bytes: usize) {
    if WANTED.load(Relaxed) {
        spec.counters.operations.fetch_add(1, Relaxed);
        spec.counters.bytes.fetch_add(bytes as u64, Relaxed);
    }
}

/// Notes a call of a pipeline, whose messages are counted as calls of their own.
#[inline]
pub(crate) fn count_pipeline(spec: &Spec) {
    if WANTED.load(Relaxed) {
        spec.counters.pipelines.fetch_add(1, Relaxed);
    }
}

/// Notes a call that was shared with workers.
pub(crate) fn count_split(spec: &Spec) {
    if WANTED.load(Relaxed) {
        spec.counters.split.fetch_add(1, Relaxed);
    }
}

/// Notes a setting that was not followed, in words, to be told with the counters.
pub(crate) fn note(problem: String) {
    let _ = PROBLEM.set(problem);
}

/// Tells what was counted.
pub(crate) fn report() {
    let Some(destination) = DESTINATION.get().filter(|_| WANTED.load(Relaxed)) else {
        return;
    };
    let mut line = format!("{{\"process\":{},\"ciphers\":{{", std::process::id());
    let mut separator = "";
    for spec in SPECS {
        let counters = &spec.counters;
        // Each library context of a process tells what came since another did.
        let contexts = counters.contexts.swap(0, Relaxed);
        if contexts > 0 {
            // Writing to a string cannot fail.
            let _ = write!(
                line,
                "{separator}\"{}\":{{\"contexts\":{contexts},\"operations\":{},\"bytes\":{},\
                 \"pipelines\":{},\"split\":{}}}",
                spec.name,
                counters.operations.swap(0, Relaxed),
                counters.bytes.swap(0, Relaxed),
                counters.pipelines.swap(0, Relaxed),
                counters.split.swap(0, Relaxed),
            );
            separator = ",";
        }
    }
    line.push('}');
    if let Some(problem) = PROBLEM.get() {
        let _ = write!(line, ",\"problem\":\"{}\"", problem.escape_default());
    }
    line.push_str("}\n");
    // The program is about to end: where this cannot be written, nobody is left to tell.
    let _ = match destination.as_str() {
        "-" => std::io::stderr().write_all(line.as_bytes()),
        file => std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(file)
            .and_then(|mut file| file.write_all(line.as_bytes())),
    };
}
