//! A forked child has its own workers. Alone in its program: the child of a test harness
//! with other threads would be at the mercy of their locks.

#![cfg(not(loom))]

use std::sync::Arc;

use cipherlane_core::{
    Batch, Direction, Framework, OwnedRequest, Payload, Request, Session, Status,
};
use cipherlane_drivers::cores::{Cores, Fault, Settings};
use cipherlane_drivers::software::Software;

const LEN: usize = 2 << 20;

fn message(seed: u8) -> Vec<u8> {
    (0..LEN)
        .map(|i| (i as u8).wrapping_mul(seed) ^ (i >> 8) as u8)
        .collect()
}

fn encrypt(session: &Session, seed: u8) -> Vec<u8> {
    let mut data = message(seed);
    let request = Request::in_place(&mut data).iv(&[seed; 16]);
    session.process(Direction::Encrypt, &mut [request]).unwrap();
    data
}

fn submit(session: &Session, seed: u8) -> cipherlane_core::Ticket {
    let mut batch = Batch::new(Direction::Encrypt);
    batch.push(OwnedRequest::new(Payload::InPlace(message(seed))).iv(vec![seed; 16]));
    session.submit(&mut batch).unwrap()
}

fn landed(ticket: cipherlane_core::Ticket) -> Vec<u8> {
    while !ticket.is_done() {
        std::thread::yield_now();
    }
    let mut requests = ticket.wait().into_requests();
    assert_eq!(requests[0].status(), Status::Done);
    match requests.remove(0).payload {
        Payload::InPlace(data) => data,
        other => panic!("{other:?}"),
    }
}

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

fn open(framework: &Framework, driver: &str) -> Session {
    let builder = framework.session("ctr(aes)", &[7; 16]).unwrap();
    builder.driver(driver).open().unwrap()
}

/// Runs `work` in a child; whether it returned without a panic.
fn in_child(work: impl FnOnce()) -> libc::pid_t {
    // SAFETY: the child uses what works after a fork: memory, threads, `_exit`.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    if child == 0 {
        // The harness's hook keeps the message for a report that the child never makes.
        std::panic::set_hook(Box::new(|panic| eprintln!("in the child: {panic}")));
        let failed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).is_err();
        // SAFETY: ends the child without the harness's exit handlers.
        unsafe { libc::_exit(i32::from(failed)) };
    }
    child
}

fn assert_exits_well(child: libc::pid_t) {
    let mut status = 0;
    // SAFETY: our child, and room for its status.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert!(libc::WIFEXITED(status), "the child died: {status:#x}");
    assert_eq!(libc::WEXITSTATUS(status), 0, "the child panicked");
}

#[test]
fn a_child_works_with_its_own_workers() {
    let settings = Settings {
        cores: vec![0],
        ..Settings::default()
    };
    let cores = Arc::new(Cores::with_fault(settings, Fault::default()));
    let framework = Framework::builder(Arc::new(Software))
        .driver(cores)
        .build()
        .unwrap();
    let (session, software) = (open(&framework, "cores"), open(&framework, "software"));
    let expected: Vec<_> = (0..4).map(|seed| encrypt(&software, seed)).collect();
    assert_eq!(encrypt(&session, 0), expected[0]);
    for _ in 0..10 {
        // The parent has work under way while it forks.
        let ticket = submit(&session, 1);
        let child = in_child(|| {
            assert_eq!(threads(), 1, "before its first use the child has no worker");
            assert_eq!(encrypt(&session, 2), expected[2]);
            assert_eq!(landed(submit(&session, 3)), expected[3]);
            assert_eq!(threads(), 2, "and then its own");
        });
        assert_eq!(landed(ticket), expected[1], "the parent's work");
        assert_exits_well(child);
    }
    // The child's copies of the parent's ticket and session end, too.
    for _ in 0..10 {
        let session = open(&framework, "cores");
        let ticket = submit(&session, 1);
        let mut copies = Some((session, ticket));
        let child = in_child(|| {
            let (session, ticket) = copies.take().expect("put there");
            let requests = ticket.wait().into_requests();
            // Empty where a thread of the parent had the batch in its hands.
            let statuses = requests.iter().map(|request| request.status());
            assert!(
                statuses
                    .into_iter()
                    .all(|s| matches!(s, Status::Done | Status::Failed))
            );
            drop(session);
        });
        let (_session, ticket) = copies.take().expect("the child has its own");
        assert_eq!(landed(ticket), expected[1], "the parent's work");
        assert_exits_well(child);
    }
    assert_eq!(encrypt(&session, 2), expected[2]);
}
