//! Sequences of calls, drawn at random, to the provider and to the default one at once: any
//! order, any lengths, any parameters, with right and wrong types and sizes, in place and
//! overlapping. Both return the same, write the same, and put the same errors onto the queue.
//!
//! | file | what it holds |
//! |---|---|
//! | `call` | the calls, and how they are drawn |
//! | `side` | one of the two contexts |
//! | `past` | what a context has had |
//! | `differences` | what is not drawn because the default provider would read or write where it must not, and what the provider refuses on purpose |
//!
//! `PROPTEST_CASES` is the number of sequences, which are other ones in each run; without it
//! the same 20,000 are drawn, since one that this file should not draw may crash the default
//! provider. A sequence that fails is printed, cut to what it takes, and drawn again by later
//! runs.

mod call;
mod differences;
mod past;
mod side;

use std::sync::atomic::{AtomicU64, Ordering};

use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestCaseError, TestRng, TestRunner};

use self::call::{Call, calls};
use self::past::{Kind, Past};
use self::side::Side;
use crate::libcrypto::{DEFAULT, OURS};

pub(crate) const CIPHERS: [&str; 18] = [
    "AES-128-ECB",
    "AES-192-ECB",
    "AES-256-ECB",
    "AES-128-CBC",
    "AES-192-CBC",
    "AES-256-CBC",
    "AES-128-CBC-CTS",
    "AES-192-CBC-CTS",
    "AES-256-CBC-CTS",
    "AES-128-CTR",
    "AES-192-CTR",
    "AES-256-CTR",
    "AES-128-GCM",
    "AES-192-GCM",
    "AES-256-GCM",
    "ChaCha20-Poly1305",
    "AES-128-XTS",
    "AES-256-XTS",
];

/// Runs a test on sequences, each with the name of a cipher.
fn with_sequences(test: impl Fn(&str, &[Call]) -> Result<(), TestCaseError>) {
    let default = ProptestConfig::default();
    let source_file = Some(file!());
    let mut runner = match cipherlane_core::environment::variable("PROPTEST_CASES") {
        Some(_) => TestRunner::new(ProptestConfig {
            source_file,
            ..default
        }),
        None => TestRunner::new_with_rng(
            ProptestConfig {
                cases: 20_000,
                source_file,
                ..default
            },
            TestRng::deterministic_rng(RngAlgorithm::ChaCha),
        ),
    };
    // The ciphers with a tag are the ones with the most calls of their own.
    let with_tag = 12..16usize;
    let which = prop_oneof![1 => 0..CIPHERS.len(), 1 => with_tag];
    let sequences = (which, calls());
    let done = runner.run(&sequences, |(which, calls)| test(CIPHERS[which], &calls));
    if let Err(error) = done {
        panic!("{error}");
    }
}

#[test]
fn any_calls_are_as_with_the_default_provider() {
    let count = AtomicU64::new(0);
    with_sequences(|name, calls| compare(name, calls, &count));
    println!("{} calls", count.into_inner());
}

fn compare(name: &str, calls: &[Call], count: &AtomicU64) -> Result<(), TestCaseError> {
    let mut ours = Side::new(OURS.cipher(name));
    let mut default = Side::new(DEFAULT.cipher(name));
    let mut past = Past::new(Kind::of(name));
    for (i, call) in calls.iter().enumerate() {
        if past.leaves_out(call) {
            continue;
        }
        let our_reply = ours.make(call, |placed| placed);
        let default_reply = default.make(call, |placed| past.place(placed));
        count.fetch_add(1, Ordering::Relaxed);
        let only_ours_failed =
            our_reply.returned <= 0 && default_reply.returned > our_reply.returned;
        if only_ours_failed && past.is_stricter(call) {
            // The two are no longer in the same state.
            ours.tag.clone_from(&default.tag);
            ours.make(&Call::Reset, |placed| placed);
            default.make(&Call::Reset, |placed| placed);
            past = Past::new(Kind::of(name));
            continue;
        }
        let case = || format!("{name} {i} {call:?}: {our_reply:?} {default_reply:?}");
        let returned = (our_reply.returned, default_reply.returned);
        prop_assert!(returned.0 == returned.1, "{}", case());
        // Programs tell what went wrong by these numbers, and a forgery by GCM by there being none.
        let errors = (&our_reply.errors, &default_reply.errors);
        prop_assert!(errors.0 == errors.1, "{}", case());
        past.note(call, &our_reply, ours.context.lengths()[1].max(0) as usize);
        if past.random {
            ours.sealed.clone_from(&default.sealed);
            ours.tag.clone_from(&default.tag);
            continue;
        }
        prop_assert!(our_reply.output == default_reply.output, "{}", case());
        // The default provider does not tell the length of every octet string.
        if our_reply.succeeded() && default_reply.told != usize::MAX {
            prop_assert!(our_reply.told == default_reply.told, "{}", case());
        }
    }
    Ok(())
}

/// With the calls too that crash the default provider.
#[test]
fn nothing_crashes() {
    with_sequences(|name, calls| {
        let mut side = Side::new(OURS.cipher(name));
        for call in calls {
            side.make(call, |placed| placed);
        }
        Ok(())
    });
}
