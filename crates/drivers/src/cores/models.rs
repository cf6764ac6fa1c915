//! loom models of the protocols: every order of steps that the memory model allows.
//! `RUSTFLAGS="--cfg loom" cargo test -p cipherlane-drivers --release loom`

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;

use super::claim::{Pieces, Slots};
use super::sleep::Sleepers;

/// Where the caller begins, and where a worker does.
const FIRST: u32 = 0;
const LAST: u32 = 1;

/// One slot and the payload of its task: `input` is written before it opens and when it
/// is taken down, `output` by whoever holds the piece.
struct Board {
    slots: Slots,
    pieces: Pieces,
    input: UnsafeCell<u32>,
    output: [UnsafeCell<u32>; 2],
}

impl Board {
    fn new() -> Arc<Self> {
        Arc::new(Board {
            slots: Slots::new(),
            pieces: Pieces::new(),
            input: UnsafeCell::new(0),
            output: [UnsafeCell::new(0), UnsafeCell::new(0)],
        })
    }

    fn publish(&self, input: u32, claimed: usize) -> usize {
        let slot = self.slots.take(1).expect("the slot is free");
        self.open(input, claimed);
        slot
    }

    fn open(&self, input: u32, claimed: usize) {
        // SAFETY: loom reports it if anybody else has access.
        self.input.with_mut(|p| unsafe { *p = input });
        self.pieces.open(2, claimed);
    }

    /// Does one piece, if there is one; whether it was the last.
    fn work(&self, next: u32) -> Option<bool> {
        let piece = self.pieces.claim(next)?;
        self.do_piece(piece);
        Some(self.pieces.finish())
    }

    fn do_piece(&self, piece: u32) {
        // SAFETY: loom reports it if anybody writes.
        let input = self.input.with(|p| unsafe { *p });
        // SAFETY: loom reports it if anybody else has access.
        self.output[piece as usize].with_mut(|p| unsafe { *p = input + piece });
    }

    /// What the owner does when all is finished.
    fn take_down(&self, expected: u32) {
        for (i, cell) in self.output.iter().enumerate() {
            // SAFETY: loom reports it if anybody writes.
            assert_eq!(cell.with(|p| unsafe { *p }), expected + i as u32);
        }
        // SAFETY: loom reports it if anybody else has access.
        self.input.with_mut(|p| unsafe { *p = 0 });
    }

    /// A caller that waits and works, and has the first piece from the beginning.
    fn run(&self, input: u32) {
        let slot = self.publish(input, 1);
        self.do_piece(0);
        self.pieces.finish();
        while !self.pieces.are_finished() {
            if self.work(FIRST).is_none() {
                thread::yield_now();
            }
        }
        self.take_down(input);
        self.slots.release(slot);
    }
}

#[test]
fn loom_a_slot_is_used_again_while_a_worker_is_slow() {
    loom::model(|| {
        let board = Board::new();
        let worker = {
            let board = board.clone();
            thread::spawn(move || {
                board.work(LAST);
                board.work(LAST);
            })
        };
        board.run(10);
        board.run(20);
        worker.join().unwrap();
    });
}

#[test]
fn loom_the_last_to_finish_takes_the_task_down_once() {
    loom::model(|| {
        let board = Board::new();
        let worker = |board: Arc<Board>| {
            let mut landed = 0;
            while let Some(last) = board.work(LAST) {
                if last {
                    board.take_down(10);
                    board.slots.release(0);
                    landed += 1;
                }
            }
            landed
        };
        board.publish(10, 0);
        let other = {
            let board = board.clone();
            thread::spawn(move || worker(board))
        };
        let landed = worker(board.clone()) + other.join().unwrap();
        assert_eq!(landed, 1);
        assert_eq!(board.slots.taken(), 0);
    });
}

#[test]
fn loom_a_piece_given_back_is_done_by_another() {
    loom::model(|| {
        let board = Board::new();
        let dying = {
            let board = board.clone();
            thread::spawn(move || {
                if let Some(piece) = board.pieces.claim(LAST) {
                    board.pieces.give_back(piece);
                }
            })
        };
        board.run(10);
        dying.join().unwrap();
    });
}

#[test]
fn loom_one_slot_is_taken_by_one() {
    loom::model(|| {
        let board = Board::new();
        let taker = |board: Arc<Board>| {
            if let Some(slot) = board.slots.take(1) {
                board.open(5, 0);
                while board.work(FIRST).is_some() {}
                board.take_down(5);
                board.slots.release(slot);
            }
        };
        let other = {
            let board = board.clone();
            thread::spawn(move || taker(board))
        };
        taker(board.clone());
        other.join().unwrap();
    });
}

#[test]
fn loom_no_wake_up_is_lost() {
    loom::model(|| {
        let sleepers = Arc::new(Sleepers::new(1));
        let work = Arc::new(AtomicBool::new(false));
        let sleeper = {
            let (sleepers, work) = (sleepers.clone(), work.clone());
            thread::spawn(move || {
                // Ends only if it is woken or sees the work; loom reports a deadlock else.
                sleepers.sleep(0, || work.load(Ordering::Relaxed));
                assert!(work.load(Ordering::Relaxed));
            })
        };
        work.store(true, Ordering::Relaxed);
        sleepers.publish();
        sleepers.wake(1, 0);
        sleeper.join().unwrap();
    });
}

#[test]
fn loom_two_callers_wake_one_sleeper_twice() {
    let mut model = loom::model::Builder::new();
    // Three threads and two sleeps: every order would take hours.
    model.preemption_bound = Some(2);
    model.check(|| {
        let sleepers = Arc::new(Sleepers::new(1));
        let slots = Arc::new(Slots::new());
        let publisher = |sleepers: Arc<Sleepers>, slots: Arc<Slots>| {
            slots.take(2).expect("two slots");
            sleepers.publish();
            sleepers.wake(1, 0);
        };
        let other = {
            let (sleepers, slots) = (sleepers.clone(), slots.clone());
            thread::spawn(move || publisher(sleepers, slots))
        };
        let sleeper = {
            let (sleepers, slots) = (sleepers.clone(), slots.clone());
            thread::spawn(move || {
                for done in 0..2 {
                    sleepers.sleep(0, || slots.taken().count_ones() > done);
                }
            })
        };
        publisher(sleepers, slots);
        other.join().unwrap();
        sleeper.join().unwrap();
    });
}
