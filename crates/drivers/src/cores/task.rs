//! A task: requests of one call, cut into pieces that threads do in any order.

use std::cell::UnsafeCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrayvec::ArrayVec;
use cipherlane_core::{Direction, Flight, PieceState, Request, Split, Status, Transform};

use super::claim::BITS;

/// The software kernel of a session. In a box inside the `Arc`, because moving the value
/// itself into an `Arc` would leave a copy of the key behind.
pub(super) type Kernel = Arc<Box<dyn Transform>>;

/// What a request costs beside its bytes, in bytes.
const PER_REQUEST: usize = 128;
/// Pieces for each thread, so that all end at about the same time.
const PER_THREAD: usize = 4;
/// Pieces are no larger than this where the task may have enough of them.
const MAX_PIECE: usize = 256 << 10;
/// Cuts are at multiples of this many bytes: whole cache lines, whole vectors.
const ALIGNMENT: usize = 512;
/// Kernels fill their lanes with this number of requests of a batch...
const LANES: usize = 8;
/// ...and where each request is a chain, so that only lanes help, with this number.
const CHAIN_LANES: usize = 16;
/// Requests that are longer than this keep a core busy without lanes.
const LANES_UP_TO: usize = 4 << 10;

/// What requests cost, as bytes.
#[inline]
pub(super) fn cost(requests: &[Request<'_>]) -> usize {
    requests.iter().map(request_cost).sum()
}

#[inline]
fn request_cost(request: &Request<'_>) -> usize {
    request.len() + request.aad_len() + PER_REQUEST
}

/// Requests and their pieces. Shared by the threads that work on it through `&self`;
/// each touches only its piece.
pub(super) struct Task {
    direction: Direction,
    kernel: *const dyn Transform,
    requests: *mut Request<'static>,
    pieces: ArrayVec<Piece, BITS>,
    /// For each piece what it carries to the end; groups have no use for theirs.
    states: ArrayVec<UnsafeCell<PieceState>, BITS>,
    cuts: ArrayVec<Cut, BITS>,
    /// A bit for each piece whose thread died in the kernel.
    failed: AtomicU64,
    /// Where nobody waits, what keeps kernel and requests alive. The kernel is dropped
    /// first: when the flight has landed the session may close, and our copy of the key
    /// must not be the last.
    cargo: Option<(Kernel, Flight)>,
}

/// What is claimed at once.
enum Piece {
    /// Consecutive whole requests.
    Group { first: usize, count: usize },
    /// A range of one request.
    Part {
        cut: usize,
        start: usize,
        len: usize,
    },
}

/// A request that is cut.
struct Cut {
    request: usize,
    first_piece: usize,
    pieces: usize,
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
            direction,
            kernel,
            requests: std::ptr::null_mut(),
            pieces: ArrayVec::new(),
            states: ArrayVec::new(),
            cuts: ArrayVec::new(),
            failed: AtomicU64::new(0),
            cargo: None,
        }
    }

    /// Cuts `requests`, which cost `total`, for `threads` threads, into pieces that cost
    /// `least` or more. Returns the number of pieces.
    ///
    /// # Safety
    /// Requests and kernel must outlive the task, or at least its last piece and
    /// [`conclude`](Self::conclude), and nobody may touch the requests meanwhile.
    pub(super) unsafe fn plan(
        &mut self,
        requests: &mut [Request<'_>],
        total: usize,
        threads: usize,
        least: usize,
    ) -> usize {
        // SAFETY: the caller keeps the kernel alive.
        let split = unsafe { &*self.kernel }.split();
        let granule = split.and_then(|s| Some((s, s.granule(self.direction)?)));
        let lanes = match (split.is_some(), granule.is_some()) {
            (true, false) => CHAIN_LANES,
            _ => LANES,
        };
        let target = piece_cost(total, threads, least, requests.len());
        let (mut first, mut group) = (0, 0);
        for (i, request) in requests.iter().enumerate() {
            let least_part = granule.map_or(ALIGNMENT, |(_, granule)| granule.max(ALIGNMENT));
            let parts = (request_cost(request) / target).min(request.len() / least_part);
            let room = BITS - self.pieces.len();
            if let Some((split, granule)) = granule
                && parts >= 2
                && parts + 2 <= room
            {
                self.close_group(first, i);
                self.cut(split, granule, i, request, parts);
                (first, group) = (i + 1, 0);
                continue;
            }
            group += request_cost(request);
            let count = i + 1 - first;
            let mean = group / count;
            let full = match granule {
                Some(_) if mean > LANES_UP_TO => true,
                _ => count.is_multiple_of(lanes),
            };
            if group >= target && full && room > 2 {
                self.close_group(first, i + 1);
                (first, group) = (i + 1, 0);
            }
        }
        self.close_group(first, requests.len());
        self.requests = requests.as_mut_ptr().cast();
        self.pieces.len()
    }

    fn close_group(&mut self, first: usize, end: usize) {
        if first < end {
            let count = end - first;
            self.pieces.push(Piece::Group { first, count });
            self.states.push(UnsafeCell::default());
        }
    }

    /// Cuts one request in `parts` parts; the last takes what is left over.
    fn cut(
        &mut self,
        split: &dyn Split,
        granule: usize,
        index: usize,
        request: &Request<'_>,
        parts: usize,
    ) {
        let unit = match ALIGNMENT % granule {
            0 => ALIGNMENT,
            _ => granule,
        };
        let step = (request.len() / parts / unit * unit).max(granule);
        let parts = parts.min(request.len() / step);
        let first_piece = self.pieces.len();
        let cut = self.cuts.len();
        for i in 0..parts {
            let start = i * step;
            let len = match i + 1 == parts {
                true => request.len() - start,
                false => step,
            };
            self.pieces.push(Piece::Part { cut, start, len });
            self.states.push(UnsafeCell::default());
        }
        let states = self.states[first_piece..].as_mut_ptr().cast();
        // SAFETY: `UnsafeCell<T>` has the layout of `T`; we hold them exclusively.
        let states = unsafe { std::slice::from_raw_parts_mut(states, parts) };
        split.prepare(self.direction, request, &|i| i * step, states);
        self.cuts.push(Cut {
            request: index,
            first_piece,
            pieces: parts,
        });
    }

    /// Gives the task what keeps it alive where nobody waits. `flight` owns the requests.
    pub(super) fn load(&mut self, flight: Flight, kernel: Kernel) {
        self.cargo = Some((kernel, flight));
    }

    /// The flight of a task that no pool had room for.
    pub(super) fn unload(self: Box<Self>) -> Flight {
        let (_, flight) = self.cargo.expect("the task was loaded");
        flight
    }

    /// Does a piece.
    ///
    /// # Safety
    /// Each piece is done at most once, and before [`conclude`](Self::conclude).
    #[inline]
    pub(super) unsafe fn run_piece(&self, piece: u32) {
        // SAFETY: the kernel outlives the task (promised to `plan`).
        let kernel = unsafe { &*self.kernel };
        match self.pieces[piece as usize] {
            Piece::Group { first, count } => {
                // SAFETY: groups are disjoint ranges of the requests, which nobody else
                // touches while the piece is ours.
                let group =
                    unsafe { std::slice::from_raw_parts_mut(self.requests.add(first), count) };
                kernel.run(self.direction, group);
            }
            Piece::Part { cut, start, len } => {
                let request = self.cuts[cut].request;
                // SAFETY: the requests outlive the task, and from `plan` to `conclude` one that
                // is cut is only read, but for its parts.
                let request = unsafe { &*self.requests.add(request) };
                let split = kernel.split().expect("it was split");
                // SAFETY: parts are disjoint ranges of the payload, each used once, and a
                // piece is shown no more of the request.
                let data = unsafe { request.part(start..start + len) };
                // SAFETY: only the holder of the piece uses its state.
                let state = unsafe { &mut *self.states[piece as usize].get() };
                split.piece(self.direction, &request.iv_block(), start, data, state);
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

    /// Concludes and hands the results to whoever has the ticket.
    pub(super) fn land(mut self: Box<Self>) {
        self.conclude();
        if let Some((kernel, flight)) = self.cargo.take() {
            drop(kernel);
            flight.finish();
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

/// What one piece should cost.
fn piece_cost(total: usize, threads: usize, least: usize, requests: usize) -> usize {
    let usual = (total / (PER_THREAD * threads)).min(MAX_PIECE).max(least);
    // With fewer than two for each thread, one each is more even.
    let usual = match total / usual {
        few if few < 2 * threads => total / few.clamp(1, threads),
        _ => usual,
    };
    // Groups before and between cut requests are short at times: room for them.
    let most_pieces = if requests == 1 { BITS - 2 } else { 40 };
    usual.max(total.div_ceil(most_pieces)).max(1)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use cipherlane_core::Algorithm;

    use super::*;

    /// Runs lengths as one batch in pieces, last piece first, and as a whole.
    fn compare(algorithm: &Algorithm, lengths: &[usize], threads: usize, least: usize) -> usize {
        let key: Vec<u8> = (0..algorithm.key_lengths()[0]).map(|i| i as u8).collect();
        let kernel = (algorithm.software)(&key);
        let iv = &[9; 16][..algorithm.iv_len];
        let mut most = 0;
        for direction in [Direction::Encrypt, Direction::Decrypt] {
            let messages = || -> Vec<Vec<u8>> {
                let byte = |i: usize| (i ^ (i >> 7)) as u8;
                lengths
                    .iter()
                    .map(|&n| (0..n).map(byte).collect())
                    .collect()
            };
            let (mut whole, mut cut) = (messages(), messages());
            let request = |data| Request::in_place(data).iv(iv);
            let mut expected: Vec<_> = whole.iter_mut().map(|d| request(d)).collect();
            kernel.run(direction, &mut expected);
            drop(expected);
            let mut requests: Vec<_> = cut.iter_mut().map(|d| request(d)).collect();
            let mut task = Task::new(direction, &*kernel);
            let total = cost(&requests);
            // SAFETY: requests and kernel outlive the task and are not touched meanwhile.
            let count = unsafe { task.plan(&mut requests, total, threads, least) };
            for piece in (0..count as u32).rev() {
                // SAFETY: once each.
                unsafe { task.run_piece(piece) };
            }
            task.conclude();
            drop(task);
            assert!(requests.iter().all(|r| r.status() == Status::Done));
            drop(requests);
            let what = format!("{} {lengths:?} {threads} {least}", algorithm.name);
            assert!(cut == whole, "{what}");
            most = most.max(count);
        }
        most
    }

    #[test]
    fn any_cut_gives_what_the_whole_gives() {
        for name in ["ctr(aes)", "ecb(aes)", "cbc(aes)", "xts(aes)"] {
            let algorithm = Algorithm::find(name).unwrap();
            let (bases, offs): (&[_], &[_]) = match cfg!(miri) {
                true => (&[ALIGNMENT * 2], &[17]),
                false => (
                    &[1024, 4096, 20_000, 65_536],
                    &[0, 1, 15, 16, 17, 31, 33, 511],
                ),
            };
            for &base in bases {
                for &off in offs {
                    let length = (base + off) / algorithm.block * algorithm.block;
                    let cuts = [(2, 16), (2, 600), (3, 4096), (9, 512)];
                    for (threads, least) in cuts.into_iter().take(if cfg!(miri) { 1 } else { 4 }) {
                        let count = compare(algorithm, &[length], threads, least);
                        assert!(count > 1 || length < 2 * least, "{name} {length} {least}");
                    }
                }
            }
        }
    }

    #[test]
    fn no_batch_has_more_pieces_than_bits() {
        let algorithm = Algorithm::find("ctr(aes)").unwrap();
        let mut lengths = Vec::new();
        for i in 0..300 {
            lengths.push([0, 7, 1 << 16, 64, 3000, 1 << 18][i % 6] >> (i / 60));
        }
        for threads in [1, 2, 8, 65] {
            for least in [1, 100, 4096, 1 << 30] {
                for end in [1, 2, 5, 31, 300] {
                    let count = compare(algorithm, &lengths[..end], threads, least);
                    assert!((1..=BITS).contains(&count));
                }
            }
        }
    }
}
