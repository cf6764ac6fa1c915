//! Order, back-pressure, gaps and panics, with one thread and with eight.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::Order;

#[test]
fn results_wait_for_those_before_them() {
    let order = Order::new(4);
    let tickets: [_; 3] = std::array::from_fn(|_| order.begin().unwrap());
    let [a, b, c] = tickets;
    assert_eq!((a.place(), b.place(), c.place()), (0, 1, 2));
    let mut out = Vec::new();
    c.complete('c', |r| out.push(r));
    assert!(out.is_empty());
    a.complete('a', |r| out.push(r));
    assert_eq!(out, ['a']);
    assert_eq!(order.pending(), 2);
    b.complete('b', |r| out.push(r));
    assert_eq!(out, ['a', 'b', 'c']);
    assert_eq!(order.pending(), 0);
}

#[test]
fn a_full_ring_gives_no_ticket_until_the_oldest_is_handed_on() {
    for (asked, places) in [(0, 1), (1, 1), (3, 4), (4, 4)] {
        let order = Order::new(asked);
        let mut tickets: Vec<_> = std::iter::from_fn(|| order.begin()).collect();
        assert_eq!(tickets.len(), places);
        let newest = tickets.pop().unwrap();
        if places > 1 {
            newest.complete((), |()| panic!("nothing is finished before it"));
            assert!(order.begin().is_none());
            tickets.remove(0).complete((), |()| ());
        } else {
            newest.complete((), |()| ());
        }
        assert!(order.begin().is_some());
    }
}

#[test]
fn a_place_without_a_result_is_passed_over() {
    let order = Order::new(4);
    let (a, b) = (order.begin().unwrap(), order.begin().unwrap());
    let mut out = Vec::new();
    b.complete(2, |r| out.push(r));
    drop(a);
    assert!(out.is_empty());
    order.drain(|r| out.push(r));
    assert_eq!(out, [2]);
    drop(order.begin());
    order.begin().unwrap().complete(3, |r| out.push(r));
    assert_eq!(out, [2, 3]);
}

#[test]
fn a_panic_while_handing_on_stops_nobody_else() {
    let order = Order::new(4);
    let tickets: [_; 2] = std::array::from_fn(|_| order.begin().unwrap());
    let [a, b] = tickets;
    let panicked = catch_unwind(AssertUnwindSafe(|| a.complete(1, |_| panic!("the sender"))));
    assert!(panicked.is_err());
    let mut out = Vec::new();
    b.complete(2, |r| out.push(r));
    assert_eq!(out, [2]);
}

#[test]
fn results_never_handed_on_are_dropped_with_the_ring() {
    let result = std::sync::Arc::new(());
    let order = Order::new(2);
    let first = order.begin().unwrap();
    let second = order.begin().unwrap();
    second.complete(result.clone(), |_| ());
    drop(first);
    drop(order);
    assert_eq!(std::sync::Arc::strong_count(&result), 1);
}

#[test]
fn eight_threads_keep_the_order() {
    let (threads, count) = if cfg!(miri) { (3, 60) } else { (8, 60_000) };
    for places in [1, 4, 64] {
        let order = Order::new(places);
        let out = Mutex::new(Vec::new());
        let dropped = AtomicU64::new(0);
        let work = |thread: u64| {
            let mut begun = 0;
            while begun < count / threads {
                // Contended only if two threads drained at once.
                let hand_on = |place| {
                    let mut out = out.try_lock().expect("one drainer at a time");
                    out.push(place);
                };
                let Some(ticket) = order.begin() else {
                    // What stands in the way may be a dropped ticket.
                    order.drain(hand_on);
                    std::thread::yield_now();
                    continue;
                };
                begun += 1;
                let place = ticket.place();
                if (place + thread).is_multiple_of(97) {
                    dropped.fetch_add(1, Ordering::Relaxed);
                    drop(ticket);
                    continue;
                }
                // Some work is longer than other.
                for _ in 0..place % 7 * 20 {
                    std::hint::spin_loop();
                }
                ticket.complete(place, hand_on);
            }
        };
        std::thread::scope(|scope| {
            for thread in 0..threads {
                scope.spawn(move || work(thread));
            }
        });
        order.drain(|place| out.lock().unwrap().push(place));
        let out = out.into_inner().unwrap();
        let given = count / threads * threads;
        assert_eq!(out.len() as u64, given - dropped.into_inner());
        assert!(out.is_sorted_by(|a, b| a < b));
        assert_eq!(order.pending(), 0);
    }
}
