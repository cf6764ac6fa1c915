//! Threads that offer the same numbers at the same time.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use super::super::Window;

const THREADS: u64 = if cfg!(miri) { 3 } else { 8 };

/// Every thread takes batches from one counter and offers them, and half of the time the
/// batch that another thread took just before; both again in pieces and in disorder.
fn stress(width: u32, batch: u64, numbers: u64) {
    let first = 0xffff_ff00;
    let window = Window::after(first - 1, width).unwrap();
    let accepted: Vec<AtomicU8> = (0..numbers).map(|_| AtomicU8::new(0)).collect();
    let next = AtomicU64::new(first);
    let offer = |thread: u64| {
        let mut turn = thread;
        loop {
            let start = next.fetch_add(batch, Ordering::Relaxed);
            let end = (start + batch).min(first + numbers);
            if start >= end {
                break;
            }
            turn += 1;
            let mut offers: Vec<u64> = (start..end).collect();
            if turn.is_multiple_of(2) {
                offers.extend((start.saturating_sub(batch)..start).filter(|&n| n >= first));
            }
            if turn.is_multiple_of(3) {
                offers.reverse();
            }
            if turn.is_multiple_of(5) {
                offers.extend_from_within(..);
            }
            // A number too old is inferred too high, and fails its integrity check.
            offers.retain(|&number| window.infer(number as u32) == Ok(number));
            let mut results = vec![Ok(()); offers.len()];
            window.commit_batch(&offers, &mut results);
            for (number, _) in offers.iter().zip(&results).filter(|(_, r)| r.is_ok()) {
                accepted[(number - first) as usize].fetch_add(1, Ordering::Relaxed);
            }
        }
    };
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || offer(thread));
        }
    });
    let counts = |n| {
        accepted
            .iter()
            .filter(move |c| c.load(Ordering::Relaxed) == n)
    };
    let (never, once) = (counts(0).count() as u64, counts(1).count() as u64);
    assert_eq!(never + once, numbers, "accepted more than once");
    assert!(once > 0);
    if u64::from(width) >= numbers {
        assert_eq!((never, window.lost()), (0, 0));
    }
    assert_eq!(window.top(), first + numbers - 1);
}

const SCALE: u64 = if cfg!(miri) { 40 } else { 100_000 };

#[test]
fn nothing_is_accepted_twice_and_nothing_lost_in_a_wide_window() {
    stress(65_536, 64, SCALE.min(65_536));
    stress(65_536, 1, SCALE.min(65_536));
}

#[test]
fn nothing_is_accepted_twice_when_threads_fall_out_of_the_window() {
    stress(32, 7, SCALE);
    stress(64, 64, 5 * SCALE);
    stress(1024, 16, 5 * SCALE);
}
