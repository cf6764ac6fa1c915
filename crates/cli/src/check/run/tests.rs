//! The runner against a driver that is right, and against drivers that are each wrong in one way
//! which the self-test cannot see: they spoil only requests of this length.

use std::path::Path;
use std::sync::Arc;

use cipherlane_core::{Config, Transform, Unavailable};
use cipherlane_test_driver::TestDriver;

use super::*;
use crate::check::command::judged;
use crate::check::load;

/// Only payloads of this many bytes are spoilt.
const SPOILT: usize = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// One byte of the output is wrong.
    Byte,
    /// One byte of the output is wrong when several requests come together.
    ByteInCompany,
    /// One byte of the output is wrong when it is not where the input is.
    ByteApart,
    /// One bit of the tag is wrong.
    Tag,
    /// Any tag is taken for right.
    AnyTag,
    /// The output stays where the tag is wrong.
    Unwiped,
    /// The request is given up.
    Idle,
}

struct Faulty {
    inner: Box<dyn Transform>,
    fault: Fault,
}

fn driver(name: &str, fault: Fault) -> Arc<TestDriver> {
    let driver = TestDriver::new(name)
        .offers(move |algorithm| match (fault, algorithm.name) {
            (Fault::None, _) | (_, "cbc(aes)" | "gcm(aes)") => Ok(()),
            _ => Err(Unavailable::NotOffered("only cbc and gcm here".to_owned())),
        })
        .wrap(move |inner| Faulty { inner, fault });
    Arc::new(driver)
}

impl Transform for Faulty {
    fn run(&self, direction: Direction, requests: &mut [Request<'_>]) {
        let company = requests.len() > 1;
        for request in requests {
            if self.fault == Fault::Idle && request.len() == SPOILT {
                request.set_status(Status::Untouched);
                continue;
            }
            self.inner.run(direction, std::slice::from_mut(request));
            if request.len() == SPOILT {
                spoil(self.fault, direction, request, company);
            }
        }
    }
}

fn spoil(fault: Fault, direction: Direction, request: &mut Request<'_>, company: bool) {
    let done = request.status() == Status::Done;
    let apart = !request.is_in_place();
    match fault {
        Fault::None | Fault::Idle => {}
        Fault::Byte if done => request.data().get_out()[SPOILT - 1] ^= 1,
        Fault::ByteInCompany if done && company => request.data().get_out()[0] ^= 0x80,
        Fault::ByteApart if done && apart => request.data().get_out()[7] ^= 4,
        Fault::Tag if direction == Direction::Encrypt && request.tag_len() > 0 => {
            request.tag_bytes()[0] ^= 1;
        }
        Fault::AnyTag => request.set_status(Status::Done),
        Fault::Unwiped if !done => request.data().get_out()[3] = 1,
        _ => {}
    }
}

/// Runs vectors of one algorithm from `vectors/` on a driver with `fault`; gives the row.
fn row(fault: Fault, file: &str, keep: impl Fn(&Case) -> bool) -> serde_json::Value {
    let config = judged(Config {
        // Every answer: what `check` asks for goes before.
        verify: Some(1),
        ..Config::default()
    });
    let builder = Framework::builder(driver("right", Fault::None)).driver(driver("tested", fault));
    let framework = builder.config(config).build().unwrap();
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../vectors")
        .join(file);
    let cases: Vec<Case> = load(&path)
        .unwrap()
        .cases
        .into_iter()
        .filter(keep)
        .collect();
    assert!(!cases.is_empty());
    let mut report = Report::default();
    let mut done = 0;
    run(&framework, &["tested"], &cases, &mut report, |n| done += n);
    assert_eq!(done, cases.len());
    serde_json::to_value(&report).unwrap()["results"][0].clone()
}

const CBC: &str = "nist-cavp/CBCMMT128.rsp";
const GCM: &str = "nist-cavp/gcmDecrypt128.rsp";

/// Groups of 32 bytes (256 bits) of payload and others, few enough to be quick.
fn some_gcm(case: &Case) -> bool {
    case.aad.is_empty() && [0, SPOILT].contains(&case.ciphertext.len())
}

fn spoilt(case: &Case) -> bool {
    case.ciphertext.len() == SPOILT
}

fn spoilt_gcm(verdict: Verdict) -> usize {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../vectors")
        .join(GCM);
    let cases = load(&path).unwrap().cases;
    let wanted = |c: &&Case| some_gcm(c) && spoilt(c) && c.verdict == verdict;
    cases.iter().filter(wanted).count()
}

#[test]
fn a_right_driver_passes() {
    for file in [
        CBC,
        GCM,
        "wycheproof/aes_cbc_pkcs5_test.json",
        "rfc/rfc4231-hmac-sha256.txt",
    ] {
        let row = row(Fault::None, file, |case| {
            !file.starts_with("nist") || some_gcm(case) || file == CBC
        });
        assert_eq!(
            (&row["failed"], &row["skipped"]),
            (&0.into(), &serde_json::json!([])),
            "{row}"
        );
        assert_eq!(row["by_software"], 0);
    }
}

#[test]
fn each_wrong_driver_fails_exactly_the_vectors_it_spoils() {
    // CBCMMT has vectors of 1 to 10 blocks in each direction: two of them have 32 bytes.
    let accept = spoilt_gcm(Verdict::Accept);
    let reject = spoilt_gcm(Verdict::Reject);
    assert!(accept > 10 && reject > 10);
    for (fault, file, failed, what) in [
        (
            Fault::Byte,
            CBC,
            2,
            "encrypting in place, alone: wrong ciphertext: byte 31 of 32",
        ),
        (
            Fault::ByteInCompany,
            CBC,
            2,
            "in one call with 4 requests: wrong ciphertext: byte 0",
        ),
        (
            Fault::ByteApart,
            CBC,
            2,
            "encrypting from one region to another, alone: wrong",
        ),
        (Fault::Byte, GCM, accept, "wrong ciphertext"),
        (
            Fault::Tag,
            GCM,
            accept,
            "encrypting in place, alone: wrong tag: byte 0",
        ),
        (
            Fault::AnyTag,
            GCM,
            accept + reject,
            "not rejected: ended as Done",
        ),
        (
            Fault::Unwiped,
            GCM,
            accept + reject,
            "the output was not wiped",
        ),
    ] {
        let row = row(fault, file, |case| file == CBC || some_gcm(case));
        assert_eq!(row["failed"], failed, "{fault:?} {row}");
        assert_eq!(row["by_software"], 0, "{fault:?} {row}");
        let message = row["failures"][0]["what"].as_str().unwrap();
        assert!(message.contains(what), "{fault:?}: {message}");
    }
}

#[test]
fn work_that_software_did_is_told() {
    let row = row(Fault::Idle, CBC, |_| true);
    assert_eq!(row["failed"], 0);
    // Two vectors, four shapes, two directions, three ways.
    assert_eq!(row["by_software"], 2 * 4 * 2 * 3);
}

#[test]
fn what_a_driver_does_not_offer_is_skipped_with_its_reason() {
    let row = row(Fault::Byte, "rfc/rfc3686-aes-128-ctr.txt", |_| true);
    assert_eq!((&row["passed"], &row["failed"]), (&0.into(), &0.into()));
    assert_eq!(row["skipped"][0]["count"], 3);
    assert_eq!(row["skipped"][0]["reason"], "only cbc and gcm here");
}

#[test]
fn refusals_of_key_or_tag_are_skips_or_the_right_answer() {
    let vector = |verdict, tag: usize| {
        let mut case = Case::new(&Arc::from("f"), 1, "c".into(), "gcm(aes)");
        (case.key, case.iv, case.tag) = (vec![1; 16], vec![0; 12], vec![0; tag]);
        case.verdict = verdict;
        case
    };
    let builder = Framework::builder(driver("right", Fault::None));
    let framework = builder.build().unwrap();
    let mut unknown = vector(Verdict::Accept, 16);
    unknown.algorithm = "xcbc(aes)".into();
    let cases = [
        vector(Verdict::Accept, 5),
        vector(Verdict::Reject, 5),
        vector(Verdict::Reject, 16),
        unknown,
    ];
    let mut report = Report::default();
    run(&framework, &["right"], &cases, &mut report, |_| ());
    assert!(!report.failed());
    let json = serde_json::to_value(&report).unwrap();
    let (gcm, xcbc) = (&json["results"][0], &json["results"][1]);
    assert_eq!(gcm["passed"], 2);
    assert!(
        gcm["skipped"][0]["reason"]
            .as_str()
            .unwrap()
            .contains("a tag of 5 bytes")
    );
    assert_eq!(xcbc["skipped"][0]["reason"], NOT_SUPPORTED);
}
