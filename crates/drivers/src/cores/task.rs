//! A task: requests of one call in pieces that threads do in any order.

use std::cell::UnsafeCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrayvec::ArrayVec;
use cipherlane_core::{Direction, Flight, PieceState, Request, Status, Transform};
use inout::InOutBuf;

use super::claim::BITS;
use super::lines::fetch;

/// The software kernel of a session. In a box inside the `Arc`, because moving the value
/// itself into an `Arc` would leave a copy of the key behind.
pub(super) type Kernel = Arc<Box<dyn Transform>>;

/// Requests and their pieces. Shared by the threads that work on it through `&self`;
/// each touches only its piece.
///
/// What a worker reads comes from the caller's core, a cache line at a time. So it is in few
/// lines, of which none leads to another: the head, the piece, and the state of the piece.
#[repr(C, align(64))]
pub(super) struct Task {
    pub(super) kernel: *const dyn Transform,
    pub(super) requests: *mut Request<'static>,
    /// A bit for each piece whose thread died in the kernel.
    failed: AtomicU64,
    pub(super) direction: Direction,
    pub(super) pieces: ArrayVec<Piece, BITS>,
    /// For each piece what it carries to the end; groups have no use for theirs.
    pub(super) states: ArrayVec<UnsafeCell<PieceState>, BITS>,
    pub(super) cuts: ArrayVec<Cut, BITS>,
    /// Where nobody waits, what keeps kernel and requests alive. The kernel is dropped
    /// first: when the flight has landed the session may close, and our copy of the key
    /// must not be the last.
    cargo: Option<(Kernel, Flight)>,
}

/// What is claimed at once.
#[repr(align(64))]
pub(super) enum Piece {
    /// Consecutive whole requests.
    Group { first: usize, count: usize },
    /// A range of one request that begins at byte `start` of its payload.
    Part {
        input: *const u8,
        output: *mut u8,
        len: usize,
        start: usize,
        iv: [u8; 16],
    },
}

/// A request that is cut.
pub(super) struct Cut {
    pub(super) request: usize,
    pub(super) first_piece: usize,
    pub(super) pieces: usize,
}

// SAFETY: what the pointers lead to is Send and Sync, and is kept alive by the caller
// that waits or by `cargo`; pieces touch disjoint parts of it.
unsafe impl Send for Task {}
// SAFETY: as above; `states` are used by the holder of the piece alone, then by the one
// that concludes.
unsafe impl Sync for Task {}

impl Task {
    /// An empty task; [`plan`](Self::plan) fills it in place, since it is some kilobytes.
    #[inline]
    pub(super) fn new(direction: Direction, kernel: &(dyn Transform + 'static)) -> Self {
        Task {
            kernel,
            requests: std::ptr::null_mut(),
            failed: AtomicU64::new(0),
            direction,
            pieces: ArrayVec::new(),
            states: ArrayVec::new(),
            cuts: ArrayVec::new(),
            cargo: None,
        }
    }

    /// Makes an empty task of one that is over.
    pub(super) fn begin_anew(&mut self, direction: Direction, kernel: &(dyn Transform + 'static)) {
        self.kernel = kernel;
        self.requests = std::ptr::null_mut();
        *self.failed.get_mut() = 0;
        self.direction = direction;
        self.pieces.clear();
        self.states.clear();
        self.cuts.clear();
    }

    /// Gives the task what keeps it alive where nobody waits. `flight` owns the requests.
    pub(super) fn load(&mut self, flight: Flight, kernel: Kernel) {
        self.cargo = Some((kernel, flight));
    }

    /// What kept the task alive.
    pub(super) fn unload(&mut self) -> Option<(Kernel, Flight)> {
        self.cargo.take()
    }

    /// Wipes what pieces have found: a part of a GCM tag, with the ciphertext, gives away its key.
    pub(super) fn wipe(&mut self) {
        for state in &mut self.states {
            // SAFETY: a valid value of a type without a destructor.
            unsafe { std::ptr::write_volatile(state.get_mut(), PieceState::default()) };
        }
        std::sync::atomic::compiler_fence(Ordering::SeqCst);
    }

    /// Does a piece.
    ///
    /// # Safety
    /// Each piece is done at most once, and before [`conclude`](Self::conclude).
    #[inline]
    pub(super) unsafe fn run_piece(&self, piece: u32) {
        // SAFETY: the kernel outlives the task (promised to `plan`).
        let kernel = unsafe { &*self.kernel };
        let at = piece as usize;
        debug_assert!(at < self.pieces.len());
        // SAFETY: a piece that can be claimed is one of the task. The lengths of the arrays lie in
        // further cache lines, and so are not looked at.
        let (piece, state) = unsafe {
            (
                &*self.pieces.as_ptr().add(at),
                (*self.states.as_ptr().add(at)).get(),
            )
        };
        match *piece {
            Piece::Group { first, count } => {
                // SAFETY: groups are disjoint ranges of the requests, which nobody else
                // touches while the piece is ours.
                let group =
                    unsafe { std::slice::from_raw_parts_mut(self.requests.add(first), count) };
                fetch(group);
                kernel.run(self.direction, group);
            }
            Piece::Part {
                input,
                output,
                len,
                start,
                ref iv,
            } => {
                let split = kernel.split().expect("it was split");
                // SAFETY: the regions are those of a part of a request, which outlives the task,
                // and the part is used once.
                let data = unsafe { InOutBuf::from_raw(input, output, len) };
                // SAFETY: only the holder of the piece uses its state. Written back as it is, its
                // cache line comes from the caller's core while the kernel works, not after it.
                unsafe { state.write_volatile(state.read()) };
                // SAFETY: as above.
                let state = unsafe { &mut *state };
                split.piece(self.direction, iv, start, data, state);
            }
        }
    }

    /// Notes that a piece was begun and will not end.
    #[cold]
    pub(super) fn fail(&self, piece: u32) {
        self.failed.fetch_or(1 << piece, Ordering::Relaxed);
    }

    /// After all pieces: joins those of each request that was cut, and gives up those
    /// whose thread died.
    pub(super) fn conclude(&mut self) {
        let failed = *self.failed.get_mut();
        for cut in &self.cuts {
            // SAFETY: all pieces are finished and `self` is exclusive, so the requests
            // and the states are ours; the kernel outlives the task.
            let (request, kernel) =
                unsafe { (&mut *self.requests.add(cut.request), &*self.kernel) };
            let mask = (u64::MAX >> (BITS - cut.pieces)) << cut.first_piece;
            if failed & mask != 0 {
                give_up(request);
                continue;
            }
            let states = self.states[cut.first_piece..].as_ptr().cast();
            // SAFETY: as above; `UnsafeCell<T>` has the layout of `T`.
            let states = unsafe { std::slice::from_raw_parts(states, cut.pieces) };
            let split = kernel.split().expect("it was split");
            split.join(self.direction, request, states);
        }
        if failed != 0 {
            self.give_up_groups(failed);
        }
    }

    #[cold]
    fn give_up_groups(&mut self, failed: u64) {
        for (i, piece) in self.pieces.iter().enumerate() {
            if let Piece::Group { first, count } = *piece
                && failed & 1 << i != 0
            {
                // SAFETY: as in `conclude`.
                let group =
                    unsafe { std::slice::from_raw_parts_mut(self.requests.add(first), count) };
                group
                    .iter_mut()
                    .filter(|r| r.status() == Status::Pending)
                    .for_each(give_up);
            }
        }
    }
}

/// A request whose worker died in the kernel: it may be half written, so only one with its
/// input elsewhere can be run again.
fn give_up(request: &mut Request<'_>) {
    request.set_status(match request.is_in_place() {
        true => Status::Failed,
        false => Status::Untouched,
    });
}
