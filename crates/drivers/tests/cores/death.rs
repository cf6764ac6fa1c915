//! Workers that die, before a piece and inside the kernel.

use std::sync::Arc;

use cipherlane_core::{Algorithm, Batch, Direction, OwnedRequest, Session, Status};
use cipherlane_drivers::cores::{Cores, Fault};

use super::{Random, assert_same, borrow, cores, framework_of, process, request, same, session};

struct Rig {
    cores: Arc<Cores>,
    dying: Arc<Session>,
    software: Arc<Session>,
    algorithm: &'static Algorithm,
}

fn rig(name: &str, fault: Fault) -> Rig {
    let cores = cores(fault.clone());
    let framework = framework_of(cores.clone());
    let algorithm = Algorithm::find(name).unwrap();
    let key_len = algorithm.key_lengths()[0];
    let rig = Rig {
        dying: session(&framework, algorithm, key_len, "cores"),
        software: session(&framework, algorithm, key_len, "software"),
        cores,
        algorithm,
    };
    fault.arm();
    rig
}

impl Rig {
    fn expected(&self, requests: &[OwnedRequest]) -> Vec<OwnedRequest> {
        let mut expected: Vec<_> = requests.iter().map(same).collect();
        process(&self.software, Direction::Encrypt, &mut expected).unwrap();
        expected
    }

    /// Calls `work` until all deaths have happened, and once more.
    fn until_spent(&self, fault: &Fault, mut work: impl FnMut()) {
        let mut rounds = 0;
        while !fault.is_spent() {
            work();
            rounds += 1;
            // On a machine with much other work they are long without a processor.
            assert!(rounds < 200_000, "workers never claimed enough pieces");
        }
        work();
        assert!(self.cores.restarts() > 0);
    }
}

#[test]
fn a_piece_not_begun_is_done_by_others() {
    for name in ["ctr(aes)", "gcm(aes)", "hmac(sha256)"] {
        let fault = Fault::before(2, 5);
        let rig = rig(name, fault.clone());
        let mut random = Random(20);
        rig.until_spent(&fault, || {
            let mut requests: Vec<_> = (0..12)
                .map(|_| request(rig.algorithm, 60_000, false, &mut random))
                .collect();
            let expected = rig.expected(&requests);
            process(&rig.dying, Direction::Encrypt, &mut requests).unwrap();
            assert_same(rig.algorithm, &requests, &expected);
        });
    }
}

#[test]
fn a_piece_begun_out_of_place_is_run_again() {
    for name in ["ctr(aes)", "gcm(aes)", "rfc7539(chacha20,poly1305)"] {
        let fault = Fault::inside(1, 4);
        let rig = rig(name, fault.clone());
        let mut random = Random(21);
        rig.until_spent(&fault, || {
            let mut requests: Vec<_> = (0..12)
                .map(|_| request(rig.algorithm, 80_000, true, &mut random))
                .collect();
            let expected = rig.expected(&requests);
            process(&rig.dying, Direction::Encrypt, &mut requests).unwrap();
            assert_same(rig.algorithm, &requests, &expected);
        });
    }
}

#[test]
fn a_piece_begun_in_place_fails_its_request_alone() {
    let fault = Fault::inside(3, 3);
    let rig = rig("gcm(aes)", fault.clone());
    let mut random = Random(22);
    let mut failed = 0;
    rig.until_spent(&fault, || {
        let mut requests: Vec<_> = (0..6)
            .map(|_| request(rig.algorithm, 300_000, false, &mut random))
            .collect();
        let expected = rig.expected(&requests);
        let mut borrowed: Vec<_> = requests.iter_mut().map(borrow).collect();
        let result = rig.dying.process(Direction::Encrypt, &mut borrowed);
        let statuses: Vec<_> = borrowed.iter().map(|r| r.status()).collect();
        drop(borrowed);
        assert_eq!(result.is_ok(), statuses.iter().all(|&s| s == Status::Done));
        for (i, status) in statuses.into_iter().enumerate() {
            match status {
                Status::Done => assert_same(rig.algorithm, &requests[i..=i], &expected[i..=i]),
                Status::Failed => failed += 1,
                other => panic!("{other:?}"),
            }
        }
    });
    assert!((1..=3).contains(&failed), "{failed}");
}

#[test]
fn submitted_work_lands_whatever_dies() {
    for fault in [Fault::before(0, 20), Fault::inside(0, 20)] {
        let rig = rig("ctr(aes)", fault.clone());
        let mut random = Random(23);
        rig.until_spent(&fault, || {
            let requests: Vec<_> = (0..4)
                .map(|_| request(rig.algorithm, 50_000, true, &mut random))
                .collect();
            let expected = rig.expected(&requests);
            let mut batch = Batch::new(Direction::Encrypt);
            requests.into_iter().for_each(|r| batch.push(r));
            let ticket = rig.dying.submit(&mut batch).unwrap();
            while !ticket.is_done() {
                // Without the caller's help: the workers alone must finish it.
                std::thread::yield_now();
            }
            let found = ticket.wait().into_requests();
            assert!(found.iter().all(|r| r.status() == Status::Done));
            assert_same(rig.algorithm, &found, &expected);
        });
        assert!(rig.cores.restarts() >= 20);
    }
}

#[test]
fn callers_that_share_a_dying_pool_all_return() {
    let fault = Fault::before(10, 200);
    let rig = rig("ctr(aes)", fault.clone());
    std::thread::scope(|scope| {
        for seed in 0..4 {
            let (rig, fault) = (&rig, &fault);
            scope.spawn(move || {
                let mut random = Random(30 + seed);
                rig.until_spent(fault, || {
                    let size = 10_000 + random.below(400_000);
                    let mut requests = vec![request(rig.algorithm, size, true, &mut random)];
                    let expected = rig.expected(&requests);
                    process(&rig.dying, Direction::Encrypt, &mut requests).unwrap();
                    assert_same(rig.algorithm, &requests, &expected);
                });
            });
        }
    });
}
