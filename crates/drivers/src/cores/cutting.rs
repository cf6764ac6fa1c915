//! How the requests of a task are cut into pieces: ranges of a long one where its algorithm can
//! be split, groups of consecutive ones otherwise.

use std::cell::UnsafeCell;

use cipherlane_core::{Direction, Request, Split, Transform};

use super::claim::BITS;
use super::task::{Cut, Piece, Task};

/// What a request costs beside its bytes, in bytes.
pub(super) const PER_REQUEST: usize = 128;
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

/// Whether requests stay one piece whatever they cost: only lanes help with them, and they are no
/// more than a group.
pub(super) fn is_whole(kernel: &dyn Transform, direction: Direction, requests: usize) -> bool {
    let split = kernel.split();
    match split.and_then(|split| split.granule(direction)) {
        Some(_) => false,
        None => requests <= lanes(split.is_some()),
    }
}

/// How many requests a group is filled with where none can be cut.
fn lanes(is_chain: bool) -> usize {
    match is_chain {
        true => CHAIN_LANES,
        false => LANES,
    }
}

impl Task {
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
        let lanes = lanes(split.is_some() && granule.is_none());
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
        self.states
            .extend((0..parts).map(|_| UnsafeCell::default()));
        let states = self.states[first_piece..].as_mut_ptr().cast();
        // SAFETY: `UnsafeCell<T>` has the layout of `T`; we hold them exclusively.
        let states = unsafe { std::slice::from_raw_parts_mut(states, parts) };
        split.prepare(self.direction, request, &|i| i * step, states);
        let iv = request.iv_block();
        for i in 0..parts {
            let start = i * step;
            let end = match i + 1 == parts {
                true => request.len(),
                false => start + step,
            };
            // SAFETY: parts are disjoint ranges of the payload, each used once, and from here to
            // `conclude` nobody else touches the payload of a request that is cut.
            let part = unsafe { request.part(start..end) };
            let (input, output) = part.into_raw();
            self.pieces.push(Piece::Part {
                input,
                output,
                len: end - start,
                start,
                iv,
            });
        }
        self.cuts.push(Cut {
            request: index,
            first_piece,
            pieces: parts,
        });
    }
}

/// What one piece should cost.
fn piece_cost(total: usize, threads: usize, least: usize, requests: usize) -> usize {
    let pieces = total / least.max(1);
    // As many for each thread as for the others, and one each where they are short: the beginning
    // of a piece costs, and what it has in its caches a thread would lose with its turn.
    let pieces = match pieces / threads {
        0 => pieces.max(1),
        1..PER_THREAD => threads,
        _ => PER_THREAD * threads,
    };
    let usual = (total / pieces).min(MAX_PIECE).max(least);
    // Groups before and between cut requests are short at times: room for them.
    let most_pieces = if requests == 1 { BITS - 2 } else { 40 };
    usual.max(total.div_ceil(most_pieces)).max(1)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use cipherlane_core::{Algorithm, Status};

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
    fn what_stays_whole_is_known_before_it_is_cut() {
        for (name, direction, whole) in [
            ("cbc(aes)", Direction::Encrypt, 16),
            ("cbc(aes)", Direction::Decrypt, 0),
            ("gcm(aes)", Direction::Encrypt, 0),
            ("hmac(sha256)", Direction::Encrypt, 8),
        ] {
            let algorithm = Algorithm::find(name).unwrap();
            let kernel = (algorithm.software)(&[1; 32]);
            for count in [1, 2, 8, 9, 16, 17, 64] {
                let is_whole = is_whole(&*kernel, direction, count);
                assert_eq!(is_whole, count <= whole, "{name} {direction:?} {count}");
                let mut data = vec![vec![0; 4096]; if is_whole { count } else { 0 }];
                let mut requests: Vec<_> = data
                    .iter_mut()
                    .map(|data| match algorithm.iv_len {
                        0 => Request::mac(data),
                        n => Request::in_place(data).iv(&[9; 16][..n]),
                    })
                    .collect();
                let mut task = Task::new(direction, &*kernel);
                let total = cost(&requests);
                // SAFETY: requests and kernel outlive the task, of which nothing is run.
                let pieces = unsafe { task.plan(&mut requests, total, 4, 512) };
                assert_eq!(pieces, usize::from(is_whole), "{name} {count}");
            }
        }
    }

    #[test]
    fn threads_have_equal_numbers_of_pieces() {
        // Bytes; threads; the least that a piece may cost; pieces.
        for (total, threads, least, expected) in [
            (100_000, 2, 60_000, 1),
            (200_000, 2, 60_000, 2),
            (400_000, 2, 60_000, 2),
            (480_000, 2, 60_000, 8),
            (600_000, 2, 60_000, 8),
            (900_000, 5, 60_000, 5),
            (600_000, 16, 60_000, 10),
            (64 << 20, 2, 60_000, 61),
        ] {
            let cost = piece_cost(total, threads, least, 1);
            assert_eq!(total / cost, expected, "{total} {threads} {least}");
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
