//! What a caller that does not wait sees: tickets, partial takes, futures, closing.

mod common;

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use cipherlane_core::{
    Batch, Direction, Error, Framework, OwnedRequest, Payload, Request, Status, Transform,
};
use cipherlane_test_driver::TestDriver;
use common::{AEAD, AEAD_KEY, Fault, framework, shared_framework, with_rogue};
use std::sync::atomic::{AtomicUsize, Ordering};

const ENCRYPT: Direction = Direction::Encrypt;
const DECRYPT: Direction = Direction::Decrypt;

/// Bytes of each payload, and of the first segment where it has more than one. Miri interprets
/// every instruction, and takes less.
const LEN: usize = if cfg!(miri) { 20 } else { 100 };
const FIRST: usize = LEN / 3;

/// Requests of every shape.
fn sealing(requests: usize) -> Batch {
    let mut batch = Batch::new(ENCRYPT);
    for i in 0..requests {
        let payload = match i % 4 {
            0 => Payload::InPlace(vec![i as u8; LEN]),
            1 => Payload::Copy {
                input: vec![i as u8; LEN],
                output: vec![0; LEN],
            },
            2 => Payload::ScatterInPlace(vec![vec![i as u8; FIRST], vec![i as u8; LEN - FIRST]]),
            _ => Payload::Scatter {
                input: vec![vec![i as u8; 1], vec![i as u8; LEN - 1]],
                output: vec![vec![0; LEN / 2], vec![], vec![0; LEN / 2]],
            },
        };
        let mut iv = vec![0; 12];
        iv[0] = i as u8;
        batch.push(
            OwnedRequest::new(payload)
                .iv(iv)
                .aad(vec![1, 2, 3])
                .tag(vec![0; 16]),
        );
    }
    batch
}

fn output(request: &OwnedRequest) -> Vec<u8> {
    match &request.payload {
        Payload::InPlace(data) | Payload::Copy { output: data, .. } => data.clone(),
        Payload::ScatterInPlace(list) | Payload::Scatter { output: list, .. } => list.concat(),
        Payload::Mac(_) | Payload::Raw(_) => Vec::new(),
    }
}

/// Decrypts with a waiting caller and compares.
fn judge(session: &cipherlane_core::Session, batch: Batch) {
    for (i, request) in batch.into_requests().into_iter().enumerate() {
        assert_eq!(request.status(), Status::Done, "{i}");
        let i = request.iv[0];
        let (mut data, mut tag) = (output(&request), request.tag.clone());
        let open = cipherlane_core::Request::in_place(&mut data);
        let open = open.iv(&request.iv).aad(&request.aad).tag(&mut tag);
        session.process(DECRYPT, &mut [open]).unwrap();
        assert!(data.iter().all(|&b| b == i) && data.len() == LEN);
    }
}

#[test]
fn a_batch_comes_back_whole_by_wait_and_by_poll() {
    let session = shared_framework()
        .session(AEAD, AEAD_KEY)
        .unwrap()
        .open()
        .unwrap();
    let count = if cfg!(miri) { 5 } else { 40 };
    let mut batch = sealing(count);
    let ticket = session.submit(&mut batch).unwrap();
    assert_eq!((ticket.taken(), batch.len()), (count, 0));
    judge(&session, ticket.wait());
    let mut ticket = session.submit(&mut sealing(4)).unwrap();
    let landed = loop {
        match ticket.poll() {
            Ok(batch) => break batch,
            Err(again) => ticket = again,
        }
    };
    judge(&session, landed);
}

struct Nobody;
impl Wake for Nobody {
    fn wake(self: Arc<Self>) {}
}

#[test]
fn a_ticket_is_a_future() {
    let session = shared_framework()
        .session(AEAD, AEAD_KEY)
        .unwrap()
        .open()
        .unwrap();
    let submit = async { session.submit(&mut sealing(7)).unwrap().await };
    let waker = Waker::from(Arc::new(Nobody));
    let Poll::Ready(batch) = pin!(submit).poll(&mut Context::from_waker(&waker)) else {
        panic!("the base driver has finished when it returns")
    };
    judge(&session, batch);
}

#[test]
fn what_a_driver_has_no_room_for_stays_in_the_batch_in_order() {
    let (room, count) = if cfg!(miri) { (2, 5) } else { (10, 25) };
    let (framework, armed, _) = with_rogue(Fault::Room(room));
    let session = framework.session(AEAD, AEAD_KEY).unwrap();
    let session = session.driver("rogue").open().unwrap();
    armed.store(true, Ordering::Relaxed);
    let mut batch = sealing(count);
    let mut taken = Vec::new();
    while !batch.is_empty() {
        let ticket = session.submit(&mut batch).unwrap();
        taken.push(ticket.taken());
        judge(&session, ticket.wait());
    }
    assert_eq!(taken, [room, room, count - 2 * room]);
}

#[test]
fn a_full_driver_takes_nothing_and_loses_nothing() {
    let (framework, armed, _) = with_rogue(Fault::Full);
    let session = framework.session(AEAD, AEAD_KEY).unwrap();
    let session = session.driver("rogue").open().unwrap();
    armed.store(true, Ordering::Relaxed);
    let mut batch = sealing(8);
    let ticket = session.submit(&mut batch).unwrap();
    assert_eq!((ticket.taken(), batch.len()), (0, 8));
    assert!(ticket.wait().is_empty());
    armed.store(false, Ordering::Relaxed);
    let ticket = session.submit(&mut batch).unwrap();
    assert_eq!(ticket.taken(), 8);
    judge(&session, ticket.wait());
}

#[test]
fn a_dropped_flight_is_finished_in_software_where_the_input_is_intact() {
    let (framework, armed, _) = with_rogue(Fault::Drop);
    let session = framework.session(AEAD, AEAD_KEY).unwrap();
    let session = session.driver("rogue").open().unwrap();
    armed.store(true, Ordering::Relaxed);
    let batch = session.submit(&mut sealing(2)).unwrap().wait();
    let [in_place, apart] = batch.requests() else {
        panic!()
    };
    assert_eq!(in_place.status(), Status::Failed);
    let words = session.batch_error(in_place).unwrap().to_string();
    assert!(
        words.contains("rogue") && words.contains("again"),
        "{words}"
    );
    assert_eq!(apart.status(), Status::Done);
}

#[test]
fn refused_requests_come_back_with_their_reason() {
    let session = shared_framework()
        .session(AEAD, AEAD_KEY)
        .unwrap()
        .open()
        .unwrap();
    let mut batch = sealing(2);
    batch.requests_mut()[0].iv.pop();
    batch.push(
        OwnedRequest::new(Payload::Copy {
            input: vec![0; 5],
            output: vec![0; 6],
        })
        .iv(vec![0; 12])
        .tag(vec![0; 16]),
    );
    let batch = session.submit(&mut batch).unwrap().wait();
    let errors: Vec<_> = batch
        .requests()
        .iter()
        .map(|r| session.batch_error(r))
        .collect();
    assert!(matches!(
        errors[0],
        Some(Error::IvLength {
            given: 11,
            expected: 12,
            ..
        })
    ));
    assert!(errors[1].is_none());
    assert!(matches!(
        errors[2],
        Some(Error::OutputLength {
            input: 5,
            output: 6,
            ..
        })
    ));
    assert!(matches!(
        session.submit(&mut Batch::new(ENCRYPT)),
        Err(Error::EmptyBatch)
    ));
}

#[test]
fn a_forged_scattered_request_is_wiped() {
    let session = shared_framework()
        .session(AEAD, AEAD_KEY)
        .unwrap()
        .open()
        .unwrap();
    let batch = session.submit(&mut sealing(4)).unwrap().wait();
    let mut forged = Batch::new(DECRYPT);
    for mut request in batch.into_requests() {
        request.tag[3] ^= 4;
        if let Payload::Scatter { input, output } = &mut request.payload {
            std::mem::swap(input, output);
        }
        forged.push(request);
    }
    let batch = session.submit(&mut forged).unwrap().wait();
    for request in batch.requests() {
        assert_eq!(request.status(), Status::BadTag);
        assert!(output(request).iter().all(|&b| b == 0));
    }
}

#[test]
fn a_ticket_may_be_dropped_and_the_session_closed() {
    let framework = framework();
    let session = framework.session(AEAD, AEAD_KEY).unwrap().open().unwrap();
    drop(session.submit(&mut sealing(9)).unwrap());
    session.close();
    assert_eq!(framework.statistics("base", AEAD).unwrap().requests, 9);
}

/// A transform that tells when it is gone, and its key with it.
struct Told(Box<dyn Transform>, Arc<AtomicUsize>);

impl Transform for Told {
    fn run(&self, direction: Direction, requests: &mut [Request<'_>]) {
        self.0.run(direction, requests);
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        self.1.fetch_add(1, Ordering::Relaxed);
    }
}

/// Each thread has its own part of the session, which lasts as long as its flights.
#[test]
fn threads_submit_to_one_session_and_others_wait_for_it() {
    let gone = Arc::new(AtomicUsize::new(0));
    let told = gone.clone();
    let base = TestDriver::new("base").wrap(move |kernel| Told(kernel, told.clone()));
    let framework = Framework::builder(Arc::new(base)).build().unwrap();
    let session = framework.session(AEAD, AEAD_KEY).unwrap().open().unwrap();
    // The self-test has had keys of its own.
    gone.store(0, Ordering::Relaxed);
    let (threads, batches) = if cfg!(miri) { (3, 2) } else { (8, 50) };
    let tickets: Vec<_> = std::thread::scope(|scope| {
        let submit = || {
            let submit = |_| session.submit(&mut sealing(4)).unwrap();
            (0..batches).map(submit).collect::<Vec<_>>()
        };
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(submit)).collect();
        let tickets = threads.into_iter().flat_map(|t| t.join().unwrap());
        tickets.collect()
    });
    assert_eq!(tickets.len(), threads * batches);
    let mut tickets = tickets.into_iter();
    let kept = tickets.next().unwrap();
    std::thread::scope(|scope| {
        let half = tickets.len() / 2;
        for part in [
            tickets.by_ref().take(half).collect(),
            tickets.collect::<Vec<_>>(),
        ] {
            let session = &session;
            scope.spawn(move || part.into_iter().for_each(|t| judge(session, t.wait())));
        }
    });
    session.close();
    assert_eq!(
        gone.load(Ordering::Relaxed),
        1,
        "a kept ticket keeps no key"
    );
    assert_eq!(kept.wait().len(), 4);
}
