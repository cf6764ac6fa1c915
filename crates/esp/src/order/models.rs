//! loom models: every order of steps that the memory model allows.

use std::collections::VecDeque;

use loom::sync::{Arc, Mutex};
use loom::thread;

use super::{Order, Readers, Turns};

/// What was handed on. loom reports it if two threads do so at once.
struct Sink {
    results: loom::cell::UnsafeCell<Vec<u64>>,
}

impl Sink {
    fn new() -> Self {
        Sink {
            results: loom::cell::UnsafeCell::new(Vec::new()),
        }
    }

    fn push(&self, result: u64) {
        // SAFETY: loom reports it if anybody else has access.
        #[allow(unsafe_code)]
        self.results.with_mut(|p| unsafe { (*p).push(result) });
    }

    fn into_results(self) -> Vec<u64> {
        self.results.into_inner()
    }
}

/// Completes the places that it gets, asking `own` times.
fn work(order: &Order<u64>, sink: &Sink, own: usize) {
    for _ in 0..own {
        if let Some(ticket) = order.begin() {
            let place = ticket.place();
            ticket.complete(place, |result| sink.push(result));
        }
    }
}

#[test]
fn loom_two_workers_reuse_places_and_keep_the_order() {
    loom::model(|| {
        let shared = Arc::new((Order::new(2), Sink::new()));
        let other = {
            let shared = shared.clone();
            thread::spawn(move || work(&shared.0, &shared.1, 2))
        };
        work(&shared.0, &shared.1, 1);
        other.join().unwrap();
        assert_eq!(shared.0.pending(), 0, "a result was left behind");
        let (_, sink) = Arc::try_unwrap(shared).ok().unwrap();
        let results = sink.into_results();
        assert!(results.is_sorted_by(|a, b| a < b), "{results:?}");
        assert!(results.len() >= 2);
    });
}

#[test]
fn loom_no_result_is_left_behind_by_three() {
    let mut model = loom::model::Builder::new();
    // Every order of three threads would take hours.
    model.preemption_bound = Some(3);
    model.check(|| {
        let shared = Arc::new((Order::new(4), Sink::new()));
        let others = [(); 2].map(|()| {
            let shared = shared.clone();
            thread::spawn(move || work(&shared.0, &shared.1, 1))
        });
        work(&shared.0, &shared.1, 1);
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_eq!(shared.0.pending(), 0);
        let (_, sink) = Arc::try_unwrap(shared).ok().unwrap();
        assert_eq!(sink.into_results(), [0, 1, 2]);
    });
}

#[test]
fn loom_a_full_ring_refuses_and_its_place_is_clean_afterwards() {
    loom::model(|| {
        let shared = Arc::new((Order::new(1), Sink::new()));
        let other = {
            let shared = shared.clone();
            thread::spawn(move || work(&shared.0, &shared.1, 2))
        };
        work(&shared.0, &shared.1, 1);
        other.join().unwrap();
        assert_eq!(shared.0.pending(), 0);
        let (_, sink) = Arc::try_unwrap(shared).ok().unwrap();
        let results = sink.into_results();
        assert_eq!(results, (0..results.len() as u64).collect::<Vec<_>>());
    });
}

/// A queue that threads read from, as the kernel's is: a lock gives it its order.
struct Shared {
    queue: Mutex<VecDeque<u64>>,
    readers: Readers,
    turns: Turns,
    sink: Sink,
}

/// Reads until the queue is empty, and hands everything on in its turn.
fn read(shared: &Shared, thread: usize) {
    loop {
        shared.readers.begin(thread);
        let Some(number) = shared.queue.lock().unwrap().pop_front() else {
            shared.readers.end(thread);
            return;
        };
        let arrived = shared.readers.arrived();
        shared.turns.hold(thread, 0, number, 1);
        shared.readers.end(thread);
        let what = (number, 1);
        while !shared.turns.is_next(&shared.readers, thread, arrived, what) {
            thread::yield_now();
        }
        shared.sink.push(number);
        shared.turns.end(thread, 0);
    }
}

#[test]
fn loom_readers_hand_on_in_the_order_of_the_queue() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let shared = Arc::new(Shared {
            // The second number is lost.
            queue: Mutex::new([1, 3, 4].into()),
            readers: Readers::new(2),
            turns: Turns::new(2),
            sink: Sink::new(),
        });
        let other = {
            let shared = shared.clone();
            thread::spawn(move || read(&shared, 1))
        };
        read(&shared, 0);
        other.join().unwrap();
        let shared = Arc::try_unwrap(shared).ok().unwrap();
        assert_eq!(shared.sink.into_results(), [1, 3, 4]);
    });
}
