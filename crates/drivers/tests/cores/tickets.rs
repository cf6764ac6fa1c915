//! Callers that do not wait.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use cipherlane_core::{Algorithm, Batch, Direction, OwnedRequest, Status, Ticket};

use super::{Random, assert_same, framework, process, request, same, session};

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

fn poll(mut ticket: Ticket) -> Batch {
    loop {
        match ticket.poll() {
            Ok(batch) => return batch,
            Err(again) => ticket = again,
        }
        std::thread::yield_now();
    }
}

fn batch(requests: Vec<OwnedRequest>) -> Batch {
    let mut batch = Batch::new(Direction::Encrypt);
    requests.into_iter().for_each(|r| batch.push(r));
    batch
}

#[test]
fn polled_awaited_and_waited_for() {
    let framework = framework();
    let mut random = Random(7);
    for algorithm in Algorithm::all() {
        let key_len = algorithm.key_lengths()[0];
        let cores = session(&framework, algorithm, key_len, "cores");
        let software = session(&framework, algorithm, key_len, "software");
        for (i, size) in [1400, 40_000, 1 << 20].into_iter().enumerate() {
            for (j, finish) in [poll, Ticket::wait, block_on::<Ticket>]
                .into_iter()
                .enumerate()
            {
                let requests: Vec<_> = (0..1 + 5 * i + j)
                    .map(|k| request(algorithm, size, k % 2 == 0, &mut random))
                    .collect();
                let mut expected: Vec<_> = requests.iter().map(same).collect();
                process(&software, Direction::Encrypt, &mut expected).unwrap();
                // The workers fall asleep between some of the rounds.
                std::thread::sleep(std::time::Duration::from_micros(300 * j as u64));
                let ticket = cores.submit(&mut batch(requests)).unwrap();
                assert_eq!(ticket.taken(), expected.len());
                let found = finish(ticket).into_requests();
                assert!(found.iter().all(|r| r.status() == Status::Done));
                assert_same(algorithm, &found, &expected);
            }
        }
    }
}

#[test]
fn more_than_the_ring_holds_goes_back_and_nothing_is_lost() {
    let framework = framework();
    let algorithm = Algorithm::find("ctr(aes)").unwrap();
    let cores = session(&framework, algorithm, 16, "cores");
    let software = session(&framework, algorithm, 16, "software");
    let mut random = Random(8);
    let requests: Vec<_> = (0..5000)
        .map(|i| request(algorithm, 9000 + i % 100, false, &mut random))
        .collect();
    let mut expected: Vec<_> = requests.iter().map(same).collect();
    process(&software, Direction::Encrypt, &mut expected).unwrap();
    let mut found = Vec::new();
    let mut in_flight = std::collections::VecDeque::new();
    let mut turned_back = false;
    // Batches of 20, far more of them than there are slots.
    let mut requests = requests.into_iter();
    let mut rest = batch(requests.by_ref().take(20).collect());
    while !rest.is_empty() {
        let offered = rest.len();
        let ticket = cores.submit(&mut rest).unwrap();
        assert_eq!(ticket.taken() + rest.len(), offered);
        if !rest.is_empty() {
            turned_back = true;
            if let Some(first) = in_flight.pop_front() {
                found.extend(block_on::<Ticket>(first).into_requests());
            }
        }
        in_flight.push_back(ticket);
        if rest.is_empty() {
            rest = batch(requests.by_ref().take(20).collect());
        }
    }
    for ticket in in_flight {
        found.extend(ticket.wait().into_requests());
    }
    assert!(turned_back, "the ring was never full");
    assert_same(algorithm, &found, &expected);
}

#[test]
fn a_batch_over_the_limit_of_one_task_is_taken_in_parts() {
    let framework = framework();
    let algorithm = Algorithm::find("gcm(aes)").unwrap();
    let cores = session(&framework, algorithm, 16, "cores");
    let mut random = Random(9);
    let mut all = batch(
        (0..2500)
            .map(|_| request(algorithm, 64, false, &mut random))
            .collect(),
    );
    let mut taken = 0;
    while !all.is_empty() {
        let ticket = cores.submit(&mut all).unwrap();
        taken += ticket.taken();
        assert!(ticket.taken() < 2500);
        let landed = ticket.wait();
        assert!(landed.requests().iter().all(|r| r.status() == Status::Done));
    }
    assert_eq!(taken, 2500);
}

#[test]
fn a_session_closes_after_work_in_flight() {
    let framework = framework();
    let algorithm = Algorithm::find("xts(aes)").unwrap();
    let software = session(&framework, algorithm, 32, "software");
    let mut random = Random(10);
    for round in 0..20 {
        let cores = session(&framework, algorithm, 32, "cores");
        let requests: Vec<_> = (0..4)
            .map(|_| request(algorithm, 300_000, round % 2 == 0, &mut random))
            .collect();
        let mut expected: Vec<_> = requests.iter().map(same).collect();
        process(&software, Direction::Encrypt, &mut expected).unwrap();
        let ticket = cores.submit(&mut batch(requests)).unwrap();
        drop(cores);
        assert!(ticket.is_done(), "closing did not wait");
        assert_same(algorithm, &poll(ticket).into_requests(), &expected);
    }
}

#[test]
fn everything_dropped_while_work_is_in_flight() {
    let algorithm = Algorithm::find("ctr(aes)").unwrap();
    for _ in 0..20 {
        let framework = framework();
        let cores = session(&framework, algorithm, 16, "cores");
        let requests = vec![request(algorithm, 1 << 20, false, &mut Random(11))];
        let ticket = cores.submit(&mut batch(requests)).unwrap();
        drop(framework);
        drop(ticket);
        // The driver goes with the last flight, perhaps on a worker.
        drop(cores);
    }
}
