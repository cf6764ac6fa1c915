//! Looks for words of keys in the stack that a call has used and left. Tests of other crates look by
//! it, too.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::hint::black_box;
use std::os::unix::fs::FileExt;
use std::process::Command;
use std::sync::Mutex;

use crate::feature_sets;

/// Deeper than any call goes.
const DEPTH: usize = 96 << 10;

/// The part of it that is not looked at, since the search itself runs there.
const OWN: usize = 12 << 10;

/// A word that no key has.
pub(crate) const PAINT: u64 = 0xa5a5_a5a5_a5a5_a5a5;

thread_local! {
    static WATCH: RefCell<Watch> = RefCell::default();
}

/// What is looked for, and what was found.
#[derive(Default)]
struct Watch {
    /// Addresses and lengths of the expanded keys.
    keys: Vec<(usize, usize)>,
    /// What is called with them.
    calls: String,
    /// The deepest place of a key, in all calls of that name that left one.
    found: BTreeMap<String, usize>,
}

/// Runs the ignored test of that name once for each set of features, in a process of its own, and
/// fails where one of them has a [`verdict`] that something is left.
pub(crate) fn on_each_set_of_features(test: &str) {
    let found = Mutex::new(Vec::new());
    feature_sets::side_by_side(feature_sets::denials(), |denied| {
        let run = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--ignored", "--nocapture"])
            .env(feature_sets::VARIABLE, denied)
            .output()
            .unwrap();
        let report = String::from_utf8_lossy(&run.stdout);
        let left = report.lines().filter(|line| line.starts_with("left:"));
        let left: Vec<String> = left
            .map(|left| format!("without '{denied}': {left}"))
            .collect();
        assert!(
            run.status.success() || !left.is_empty(),
            "without '{denied}': {report}{}",
            String::from_utf8_lossy(&run.stderr)
        );
        assert!(
            report.contains("1 passed") || !run.status.success(),
            "'{test}' is no test"
        );
        found.lock().unwrap().extend(left);
    });
    let found = found.into_inner().unwrap();
    assert!(found.is_empty(), "keys on the stack: {found:#?}");
}

/// Tells the test around what was found, and fails if that is anything.
pub(crate) fn verdict() {
    let found = found();
    for (calls, depth) in &found {
        println!("left: {calls}, {depth} bytes deep at most");
    }
    assert!(found.is_empty());
}

/// The keys of the calls that come next. They stay where they are until those have run.
pub(crate) fn keys<K>(keys: &[&K], calls: String) {
    // The key of GCM, the only large one, ends with 31 bytes of padding, which have any content.
    let padding = if size_of::<K>() > 1200 { 31 } else { 0 };
    WATCH.with_borrow_mut(|watch| {
        watch.keys = keys
            .iter()
            .map(|&key| ((&raw const *key).addr(), size_of::<K>() - padding))
            .collect();
        watch.calls = calls;
    });
}

/// Runs what uses the keys and wipes the stack after that, and looks at the stack.
pub(crate) fn after<R>(run: impl FnOnce() -> R) -> R {
    let (result, below) = below(run);
    WATCH.with_borrow_mut(|watch| watch.search(&below));
    result
}

/// Runs something, and gives what it has left of the paint below its caller.
#[inline(never)]
pub(crate) fn below<R>(run: impl FnOnce() -> R) -> (R, Vec<u8>) {
    let (mut run, mut result) = (Some(run), None);
    let mut below = vec![0; DEPTH - OWN];
    let memory = File::open("/proc/self/mem").expect("/proc is mounted");
    let here = 0u64;
    let from = (&raw const here).addr() - DEPTH + 1024;
    paint();
    deeper(&mut || result = run.take().map(|run| run()));
    memory
        .read_exact_at(&mut below, from as u64)
        .expect("the stack is mapped");
    (result.expect("it ran"), below)
}

/// How many bytes below the caller a place of the stack is that [`below`] has given.
pub(crate) fn depth_of(place: usize) -> usize {
    DEPTH - 1024 - OWN - place
}

/// The calls that left a key, and how many bytes below their caller.
pub(crate) fn found() -> BTreeMap<String, usize> {
    WATCH.with_borrow_mut(|watch| std::mem::take(&mut watch.found))
}

/// Overwrites the stack below with what is no word of a key.
#[inline(never)]
pub(crate) fn paint() {
    let below = [PAINT; DEPTH / 8];
    black_box(&below);
}

/// Calls from below the room that the search needs.
#[inline(never)]
fn deeper(call: &mut dyn FnMut()) {
    let own = [0u8; OWN];
    black_box(&own);
    call();
    black_box(&own);
}

impl Watch {
    fn search(&mut self, below: &[u8]) {
        let wanted = self.wanted();
        let word = |bytes: &[u8]| u64::from_ne_bytes(bytes.try_into().expect("8 bytes"));
        // Twelve bytes in a row: eight may stand in the padding of a key by chance.
        let found = below.windows(12).step_by(4).position(|bytes| {
            let words = [word(&bytes[..8]), word(&bytes[4..])];
            words
                .iter()
                .all(|word| *word != PAINT && wanted.contains(word))
        });
        if let Some(place) = found {
            let deepest = self.found.entry(self.calls.clone()).or_default();
            *deepest = (*deepest).max(depth_of(4 * place));
        }
    }

    /// The words of the keys, and what a register has that repeats half of one.
    fn wanted(&self) -> HashSet<u64> {
        let memory = File::open("/proc/self/mem").expect("/proc is mounted");
        let mut wanted = HashSet::new();
        let mut places: Vec<_> = self.keys.iter().map(|&key| (key, true)).collect();
        while let Some(((address, len), is_key)) = places.pop() {
            let mut bytes = vec![0; len];
            if memory.read_exact_at(&mut bytes, address as u64).is_err() {
                continue;
            }
            for word in bytes.windows(8).step_by(4) {
                let word = u64::from_ne_bytes(word.try_into().expect("8 bytes"));
                if is_key {
                    places.extend(allocation(&memory, word).map(|inner| (inner, false)));
                }
                let halves = [word as u32, (word >> 32) as u32];
                if !is_address(word) && halves.iter().all(|half| is_secret(*half)) {
                    wanted.insert(word);
                    wanted.extend(halves.map(|half| u64::from(half) << 32 | u64::from(half)));
                }
            }
        }
        wanted
    }
}

/// The allocation that starts at an address, if there is one: a key may own it. Its length
/// stands before it.
fn allocation(memory: &File, address: u64) -> Option<(usize, usize)> {
    if !address.is_multiple_of(16) || !is_address(address) {
        return None;
    }
    let mut len = [0; 8];
    memory.read_exact_at(&mut len, address - 8).ok()?;
    let len = usize::from_ne_bytes(len) & !7;
    (32..4096)
        .contains(&len)
        .then(|| (address as usize, len - 8))
}

/// Neither a small number nor paint, which padding has.
fn is_secret(half: u32) -> bool {
    half.count_ones() > 3 && half != PAINT as u32
}

fn is_address(word: u64) -> bool {
    (0x5000..0x8000).contains(&(word >> 32))
}
