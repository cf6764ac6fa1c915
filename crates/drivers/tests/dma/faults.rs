//! Bad days: whatever the device does, every request finishes once with the right result.

use std::time::Duration;

use cipherlane_core::{Batch, Direction, Health, OwnedRequest, Payload, Request, Session, Status};
use cipherlane_drivers::dma::model::FaultKind;
use cipherlane_drivers::dma::{Completions, Incidents, Settings};

use crate::rig::{Rig, bytes, device, encrypted, inject, rig, rig_verifying, rig_with};

const ENCRYPT: Direction = Direction::Encrypt;
const NAME: &str = "gcm(aes)";
const KEY: [u8; 16] = [9; 16];
/// Requests of a batch; the third is struck.
const REQUESTS: usize = 5;

/// All but the one that needs the framework to be found.
const KINDS: [FaultKind; 12] = [
    FaultKind::LostInterrupt,
    FaultKind::Hang,
    FaultKind::Reset,
    FaultKind::Gone,
    FaultKind::ShortWrite,
    FaultKind::HalfWritten,
    FaultKind::Refused,
    FaultKind::GarbageCompletion,
    FaultKind::GarbageIndex,
    FaultKind::DoubleCompletion,
    FaultKind::UnknownCompletion,
    FaultKind::LateDma,
];

/// How a batch is given.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    InPlace,
    Apart,
    Submitted,
}

fn plain(i: usize) -> Vec<u8> {
    bytes(i as u8, 100 + 300 * i)
}

fn want(i: usize) -> (Vec<u8>, Vec<u8>) {
    encrypted(NAME, &KEY, &[i as u8; 12], &[3; 9], &plain(i))
}

/// Runs a batch and judges every request of it.
fn run(session: &Session, way: Way, what: &str) {
    let outcome = match way {
        Way::Submitted => submitted(session),
        _ => waited(session, way),
    };
    assert_eq!(outcome.len(), REQUESTS, "{what}");
    for (i, (status, data, tag)) in outcome.into_iter().enumerate() {
        assert_eq!(status, Status::Done, "{what}: {i}");
        assert!((data, tag) == want(i), "{what}: {i} is wrong");
    }
}

fn waited(session: &Session, way: Way) -> Vec<(Status, Vec<u8>, Vec<u8>)> {
    let input: Vec<_> = (0..REQUESTS).map(plain).collect();
    let mut output = input.clone();
    let mut tags = vec![vec![0; 16]; REQUESTS];
    let parts = input.iter().zip(&mut output).zip(&mut tags);
    let mut requests: Vec<_> = parts
        .enumerate()
        .map(|(i, ((from, to), tag))| {
            let request = match way {
                Way::InPlace => Request::in_place(to),
                _ => {
                    to.fill(0xee);
                    Request::new(from, to)
                }
            };
            request.iv(&[i as u8; 12]).aad(&[3; 9]).tag(tag)
        })
        .collect();
    session.process(ENCRYPT, &mut requests).unwrap();
    let statuses: Vec<_> = requests.iter().map(Request::status).collect();
    drop(requests);
    // A caller's input is its own.
    assert!(way == Way::InPlace || (0..REQUESTS).all(|i| input[i] == plain(i)));
    let results = statuses.into_iter().zip(output).zip(tags);
    results
        .map(|((status, data), tag)| (status, data, tag))
        .collect()
}

fn submitted(session: &Session) -> Vec<(Status, Vec<u8>, Vec<u8>)> {
    let mut batch = Batch::new(ENCRYPT);
    for i in 0..REQUESTS {
        let request = OwnedRequest::new(Payload::InPlace(plain(i)));
        let request = request.iv(vec![i as u8; 12]).aad(vec![3; 9]);
        batch.push(request.tag(vec![0; 16]));
    }
    let ticket = session.submit(&mut batch).unwrap();
    assert_eq!(ticket.taken(), REQUESTS);
    let landed = ticket.wait().into_requests().into_iter();
    let result = |request: OwnedRequest| {
        let Payload::InPlace(data) = &request.payload else {
            panic!()
        };
        (request.status(), data.clone(), request.tag.clone())
    };
    landed.map(result).collect()
}

fn warm(rig: &Rig) -> Session {
    let session = rig.session(NAME, &KEY);
    run(&session, Way::InPlace, "good");
    assert_eq!(rig.retries(NAME), 0);
    session
}

#[test]
fn every_request_finishes_once_and_right_whatever_goes_wrong() {
    for kind in KINDS {
        for way in [Way::InPlace, Way::Apart, Way::Submitted] {
            for completions in [
                Completions::Interrupt,
                Completions::Poll,
                Completions::Adaptive,
            ] {
                for revocable in [true, false] {
                    let what = format!("{kind:?} {way:?} {completions:?} revocable {revocable}");
                    let settings = Settings {
                        completions,
                        ..Settings::default()
                    };
                    let rig = rig_with(device(|d| d.rules.revocable = revocable), settings);
                    let session = warm(&rig);
                    inject(&rig.driver, kind, 2, Duration::from_millis(1050));
                    run(&session, way, &what);
                    judge(&rig, kind, &what);
                    recovers(&rig, &session, kind, way, &what);
                }
            }
        }
    }
}

/// What the driver noticed, and how many requests were left to software.
fn judge(rig: &Rig, kind: FaultKind, what: &str) {
    let Incidents {
        spurious_completions,
        resets,
        unanswered_resets,
        ..
    } = rig.driver.incidents();
    let retries = rig.retries(NAME);
    let noticed = (resets, unanswered_resets, spurious_completions);
    let others = REQUESTS as u64 - 1;
    match kind {
        FaultKind::LostInterrupt => assert_eq!((noticed, retries), ((0, 0, 0), 0), "{what}"),
        FaultKind::ShortWrite | FaultKind::HalfWritten | FaultKind::Refused => {
            assert_eq!((noticed, retries), ((0, 0, 0), 1), "{what}");
        }
        FaultKind::DoubleCompletion | FaultKind::UnknownCompletion => {
            assert_eq!((noticed, retries), ((0, 0, 1), 0), "{what}");
        }
        FaultKind::GarbageCompletion => assert_eq!((noticed, retries), ((1, 0, 1), 1), "{what}"),
        FaultKind::Gone | FaultKind::LateDma => {
            assert_eq!((noticed.0, noticed.1), (1, 1), "{what}");
            assert!((1..=others + 1).contains(&retries), "{what}: {retries}");
        }
        _ => {
            assert_eq!((noticed.0, noticed.1), (1, 0), "{what}");
            assert!((1..=others + 1).contains(&retries), "{what}: {retries}");
        }
    }
}

/// After a while the device serves again, unless it is gone.
fn recovers(rig: &Rig, session: &Session, kind: FaultKind, way: Way, what: &str) {
    rig.rest(Duration::from_secs(1));
    // What the device had is still withheld from it, or it answers and it is not.
    run(session, way, what);
    let before = rig.retries(NAME);
    run(session, way, what);
    let left = rig.retries(NAME) - before;
    let expected = if kind == FaultKind::Gone {
        REQUESTS as u64
    } else {
        0
    };
    assert_eq!(left, expected, "{what}: afterwards");
    let withheld = rig.driver.incidents().withheld_bytes;
    assert_eq!(
        withheld > 0,
        kind == FaultKind::Gone && !what.contains("true"),
        "{what}"
    );
}

#[test]
fn a_lost_interrupt_is_found_long_before_the_timeout() {
    let settings = Settings {
        completions: Completions::Interrupt,
        ..Settings::default()
    };
    let rig = rig_with(device(|d| d.interrupt.coalesce_requests = 1), settings);
    let session = warm(&rig);
    let mut data = bytes(1, 1000);
    let mut tag = [0; 16];
    let mut once = || {
        let request = Request::in_place(&mut data).iv(&[0; 12]).tag(&mut tag);
        rig.timed(|| session.process(ENCRYPT, &mut [request]).unwrap())
    };
    once();
    inject(&rig.driver, FaultKind::LostInterrupt, 0, Duration::ZERO);
    let lost = once();
    assert!((1_000_000..2_000_000).contains(&lost), "{lost}");
    assert_eq!(rig.driver.incidents().lost_interrupts, 1);
    assert_eq!(rig.driver.incidents().resets, 0);
}

/// A device that was cut off writes later, and hits nothing.
#[test]
fn late_dma_does_not_reach_memory_that_was_given_back() {
    for revocable in [true, false] {
        let rig = rig_with(
            device(|d| d.rules.revocable = revocable),
            Settings::default(),
        );
        let session = warm(&rig);
        inject(
            &rig.driver,
            FaultKind::LateDma,
            0,
            Duration::from_millis(1050),
        );
        let input = bytes(1, 3000);
        let mut output = vec![0; input.len()];
        let mut tag = [0; 16];
        let request = Request::new(&input, &mut output).iv(&[1; 12]).tag(&mut tag);
        session.process(ENCRYPT, &mut [request]).unwrap();
        let (want, want_tag) = encrypted(NAME, &KEY, &[1; 12], &[], &input);
        assert!(output == want && tag == want_tag[..]);
        output.fill(0x77);
        let withheld = rig.driver.incidents().withheld_bytes;
        assert_eq!(withheld > 0, !revocable, "{withheld}");
        let faults = rig.driver.incidents().dma_faults;
        // The write comes 1.05 s after the request; the driver has tried nothing meanwhile.
        rig.rest(Duration::from_millis(80));
        rig.driver.poll();
        assert_eq!(rig.driver.incidents().dma_faults > faults, revocable);
        assert!(
            output.iter().all(|&b| b == 0x77),
            "the device wrote to a caller's memory"
        );
        assert_eq!(rig.driver.incidents().withheld_bytes, withheld);
        // It answers at last, and what was withheld is used again.
        rig.rest(Duration::from_secs(1));
        run(&session, Way::Apart, "after");
        assert_eq!(rig.driver.incidents().withheld_bytes, 0);
        assert_eq!(rig.driver.incidents().resets, 2);
    }
}

#[test]
fn a_full_ring_takes_what_fits_and_loses_nothing() {
    let rig = rig(device(|d| {
        (d.rules.ring, d.rules.max_segment) = (16, 256);
        d.interrupt.coalesce_requests = 1;
    }));
    let session = rig.session("ctr(aes)", &KEY);
    // Up to 15 descriptors a request, and some that can never fit.
    let sizes: Vec<usize> = (0..200).map(|i| i * 37 % 2000).collect();
    let mut data: Vec<_> = sizes.iter().map(|&n| bytes(n as u8, n)).collect();
    let mut requests: Vec<_> = data
        .iter_mut()
        .map(|d| Request::in_place(d).iv(&[5; 16]))
        .collect();
    session.process(ENCRYPT, &mut requests).unwrap();
    drop(requests);
    let judge = |size: usize, found: &[u8]| {
        let (want, _) = encrypted("ctr(aes)", &KEY, &[5; 16], &[], &bytes(size as u8, size));
        assert!(found == want, "{size}");
    };
    sizes.iter().zip(&data).for_each(|(&n, d)| judge(n, d));
    let mut batch = Batch::new(ENCRYPT);
    for &n in &sizes {
        let request = OwnedRequest::new(Payload::InPlace(bytes(n as u8, n)));
        batch.push(request.iv(vec![5; 16]));
    }
    let mut tickets = Vec::new();
    let mut turned_back = 0;
    let mut landed = Vec::new();
    while !batch.is_empty() {
        let ticket = session.submit(&mut batch).unwrap();
        match ticket.taken() {
            0 => {
                turned_back += 1;
                let first: cipherlane_core::Ticket = tickets.remove(0);
                landed.extend(first.wait().into_requests());
            }
            _ => tickets.push(ticket),
        }
    }
    landed.extend(tickets.into_iter().flat_map(|t| t.wait().into_requests()));
    assert!(turned_back > 0);
    assert_eq!(landed.len(), sizes.len());
    for (request, &size) in landed.iter().zip(&sizes) {
        let Payload::InPlace(data) = &request.payload else {
            panic!()
        };
        judge(size, data);
    }
    assert_eq!(rig.driver.incidents().resets, 0);
}

#[test]
fn a_device_that_is_gone_is_left_alone_and_tried_less_and_less() {
    let rig = rig(device(|_| {}));
    let session = warm(&rig);
    inject(&rig.driver, FaultKind::Gone, 0, Duration::ZERO);
    let mut took = Vec::new();
    for _ in 0..50 {
        took.push(rig.timed(|| run(&session, Way::InPlace, "gone")));
        rig.rest(Duration::from_millis(50));
    }
    // The first waits for the reset; most of the others do not even ring.
    assert!(took[0] >= 10_000_000, "{}", took[0]);
    assert!(took.iter().filter(|&&ns| ns == 0).count() > 40, "{took:?}");
    let incidents = rig.driver.incidents();
    assert!((2..10).contains(&incidents.resets), "{incidents:?}");
    assert_eq!(incidents.resets, incidents.unanswered_resets);
    let rows = rig.framework.rows();
    let row = rows.iter().find(|r| r.driver == "dma:test").unwrap();
    assert!(matches!(row.health, Health::Suspended { .. }), "{row:?}");
    assert!(
        row.notes.iter().any(|n| n.contains("not acknowledged")),
        "{:?}",
        row.notes
    );
}

/// Nothing tells a lie from the truth but computing it again.
#[test]
fn a_wrong_result_is_found_by_verification_and_ends_the_devices_use() {
    for way in [Way::InPlace, Way::Apart, Way::Submitted] {
        // The first after the good batch is the one that is verified, and the lie.
        let rig = rig_verifying(device(|_| {}), Settings::default(), REQUESTS as u64 + 1);
        let session = warm(&rig);
        inject(&rig.driver, FaultKind::WrongResult, 0, Duration::ZERO);
        let outcome = match way {
            Way::Submitted => submitted(&session),
            _ => waited(&session, way),
        };
        // Every request has finished, once; one is wrong, and nobody could know.
        let wrong = outcome
            .into_iter()
            .enumerate()
            .filter(|(i, (status, data, tag))| {
                assert_eq!(*status, Status::Done);
                (data.clone(), tag.clone()) != want(*i)
            });
        assert_eq!(wrong.map(|(i, _)| i).collect::<Vec<_>>(), [0], "{way:?}");
        rig.framework.finish_verification();
        let rows = rig.framework.rows();
        let row = rows.iter().find(|row| row.driver == "dma:test").unwrap();
        let Health::Quarantined { mismatch } = &row.health else {
            panic!("{way:?}: {}", row.health)
        };
        assert_eq!(
            (mismatch.algorithm, &mismatch.input),
            (NAME, &plain(0)),
            "{way:?}"
        );
        let (output, tag) = want(0);
        assert!(mismatch.expected.output == output && mismatch.expected.tag == tag);
        // From now on all is right, and software's.
        run(&session, way, "after");
        assert_eq!(rig.retries(NAME), REQUESTS as u64);
    }
}
