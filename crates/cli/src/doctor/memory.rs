//! What the kernel gives programs slowly: large memory in small pages, random bytes.

use std::time::Instant;

use super::finding::{Finding, Outcome};
use super::system::System;

/// Nanoseconds of a call for 16 random bytes from which it is slow: some 400 ns are usual.
const SLOW: f64 = 5_000.0;
/// Calls that are measured.
const CALLS: usize = 1_000;
/// Bits of randomness with which a kernel before 5.18 gives random bytes without a pause.
const ENOUGH: u64 = 128;
const BITS: &str = "proc/sys/kernel/random/entropy_avail";

/// Large memory in pages of 4 KiB only.
pub(super) fn huge_pages(system: &System) -> Outcome {
    let path = "sys/kernel/mm/transparent_hugepage/enabled";
    let Some(text) = system.read(path) else {
        return Outcome::Unknown(format!("/{path} is not there"));
    };
    let reserved = system.read("proc/sys/vm/nr_hugepages");
    let never = text.contains("[never]");
    let seen: Vec<String> = never
        .then(|| format!("/{path} says '{text}'"))
        .into_iter()
        .collect();
    let reserved = reserved
        .filter(|pages| pages != "0")
        .unwrap_or_else(|| "none".to_owned());
    Outcome::of(&seen, |seen| Finding {
        check: "",
        what: "No program gets huge pages unless it asks for reserved ones.".to_owned(),
        times_slower: None,
        guess: 1.05,
        evidence: format!("{seen}; reserved: {reserved}"),
        remedy: "let programs ask for them, which those with large buffers do: their page faults \
                 and misses of the TLB become fewer"
            .to_owned(),
        command: Some(format!("echo madvise | sudo tee /{path}")),
    })
}

/// Random bytes that come slowly: each key, nonce and handshake needs some.
pub(super) fn randomness(system: &System) -> Outcome {
    // A call waits where there is too little.
    let ns = match bits(system) {
        Some(bits) if bits < ENOUGH => None,
        _ => ns_per_call(),
    };
    random(system, ns)
}

/// Bits of randomness that the kernel has.
fn bits(system: &System) -> Option<u64> {
    system.read(BITS)?.parse().ok()
}

fn random(system: &System, ns: Option<f64>) -> Outcome {
    let bits = bits(system);
    if bits.is_none() && ns.is_none() {
        return Outcome::Unknown("getrandom(2) fails, and /proc does not tell".to_owned());
    }
    let mut seen = Vec::new();
    if let Some(bits) = bits.filter(|bits| *bits < ENOUGH) {
        seen.push(format!("/{BITS} has {bits} bits"));
    }
    if let Some(ns) = ns.filter(|ns| *ns > SLOW) {
        seen.push(format!("getrandom(2) of 16 bytes takes {:.1} µs", ns / 1e3));
    }
    Outcome::of(&seen, |seen| Finding {
        check: "",
        what: "Random bytes come slowly: keys, nonces and handshakes wait for them.".to_owned(),
        times_slower: None,
        guess: 1.2,
        evidence: seen,
        remedy: "give the machine a source: RDRAND of the processor, virtio-rng in a virtual \
                 machine; programs should draw many bytes at once"
            .to_owned(),
        command: Some("cat /sys/class/misc/hw_random/rng_available".to_owned()),
    })
}

/// What a call for 16 bytes takes here, the fastest of some turns: others may use the processor.
/// `None`: the call is denied.
fn ns_per_call() -> Option<f64> {
    const TURNS: usize = 10;
    let mut fastest = f64::INFINITY;
    let mut bytes = [0u8; 16];
    for _ in 0..TURNS {
        let begin = Instant::now();
        for _ in 0..CALLS / TURNS {
            getrandom::fill(&mut bytes).ok()?;
        }
        fastest = fastest.min(begin.elapsed().as_nanos() as f64 / (CALLS / TURNS) as f64);
    }
    Some(fastest)
}

#[cfg(test)]
mod tests {
    use super::super::system::machine;
    use super::*;

    #[test]
    fn huge_pages_that_nobody_gets_are_named() {
        let path = "sys/kernel/mm/transparent_hugepage/enabled";
        let (system, _directory) = machine(&[
            (path, "always madvise [never]\n"),
            ("proc/sys/vm/nr_hugepages", "64\n"),
        ]);
        let found = huge_pages(&system).found();
        assert!(found.evidence.ends_with("; reserved: 64"), "{found:?}");
        for enabled in ["always [madvise] never", "[always] madvise never"] {
            let (system, _directory) = machine(&[(path, enabled)]);
            assert!(matches!(huge_pages(&system), Outcome::Fine));
        }
        let (system, _directory) = machine(&[]);
        assert!(matches!(huge_pages(&system), Outcome::Unknown(_)));
    }

    #[test]
    fn slow_random_bytes_are_named() {
        let (system, _directory) = machine(&[(BITS, "256\n")]);
        assert!(matches!(random(&system, Some(420.0)), Outcome::Fine));
        let found = random(&system, Some(21_000.0)).found();
        assert!(found.evidence.contains("takes 21.0 µs"), "{found:?}");
        let (system, _directory) = machine(&[(BITS, "17\n")]);
        let found = random(&system, None).found();
        assert!(found.evidence.ends_with("has 17 bits"), "{found:?}");
        let (system, _directory) = machine(&[]);
        assert!(matches!(random(&system, None), Outcome::Unknown(_)));
        assert!(ns_per_call().is_none_or(|ns| ns > 0.0));
    }
}
