//! loom models: every order of steps that the memory model allows.

use loom::sync::Arc;
use loom::thread;

use super::Order;

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
