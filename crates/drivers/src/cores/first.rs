//! How fast one core is with an algorithm before calls show it: measured once per process.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use cipherlane_core::{Algorithm, Direction, Kind, Request, Status};

use super::cutting::cost;
use super::pace::{SLOWEST, nanoseconds};

/// Femtoseconds per byte that many algorithms need: 10 GB/s.
const USUAL: u32 = 100_000;
/// Requests and their bytes of the batches that are measured: one alone, and as many as fill the lanes
/// of every kernel.
const BATCHES: [(usize, usize); 2] = [(1, 4096), (16, 1024)];
/// How often each runs: the first time finds nothing in the caches.
const RUNS: usize = 3;

/// Nanoseconds of one core at the usual pace, whatever is known of an algorithm.
#[inline]
pub(super) fn usual_ns(bytes: usize) -> u64 {
    nanoseconds(bytes, USUAL)
}

/// What one core needs for an algorithm, in femtoseconds per byte.
#[derive(Clone, Copy, Debug)]
pub(super) struct First {
    /// By direction, for each of [`BATCHES`].
    paces: [[u32; 2]; 2],
}

impl First {
    /// The same for every batch.
    #[cfg(test)]
    pub(super) fn of(pace: u32) -> First {
        First {
            paces: [[pace; 2]; 2],
        }
    }

    /// Of requests that fill the lanes.
    pub(super) fn pace(&self, direction: Direction) -> u32 {
        self.paces[direction as usize][1]
    }

    /// Estimated nanoseconds of a batch that costs `total`. Where requests share lanes, a few take no
    /// longer than one.
    #[inline]
    pub(super) fn alone_ns(&self, direction: Direction, requests: usize, total: usize) -> u64 {
        let [lone, lanes] = self.paces[direction as usize];
        let shared = lone / u32::try_from(requests).unwrap_or(u32::MAX).max(1);
        nanoseconds(total, shared.max(lanes))
    }
}

/// That of every algorithm, each measured when the first session asks for it.
pub(super) struct Firsts(Box<[[[AtomicU32; 2]; 2]]>);

impl Default for Firsts {
    fn default() -> Self {
        let unknown = |_| Default::default();
        Firsts(Algorithm::all().iter().map(unknown).collect())
    }
}

impl Firsts {
    /// Takes no lock, which another thread may have held at a fork: two threads may both measure.
    pub(super) fn of(&self, algorithm: &'static Algorithm) -> First {
        let is_it = |known: &&'static Algorithm| std::ptr::eq(*known, algorithm);
        let Some(place) = Algorithm::all().iter().position(is_it) else {
            return First {
                paces: [[USUAL; 2]; 2],
            };
        };
        let known = &self.0[place];
        let paces = (known.each_ref())
            .map(|paces| paces.each_ref().map(|pace| pace.load(Ordering::Relaxed)));
        if paces.iter().flatten().all(|&pace| pace > 0) {
            return First { paces };
        }
        let first = measure(algorithm);
        for (known, pace) in known.iter().flatten().zip(first.paces.iter().flatten()) {
            known.store(*pace, Ordering::Relaxed);
        }
        first
    }
}

/// Runs batches under a key that nobody has.
#[cold]
fn measure(algorithm: &'static Algorithm) -> First {
    let key: Vec<u8> = (0..algorithm.key_lengths()[0]).map(|i| i as u8).collect();
    let kernel = (algorithm.software)(&key);
    let iv = algorithm.fit_iv(vec![9; algorithm.iv_len]);
    let aad = vec![0; algorithm.aad.fit(8)];
    let mut paces = [[u32::MAX; 2]; 2];
    for (batch, (count, size)) in BATCHES.into_iter().enumerate() {
        let mut data = vec![0; count * size];
        let mut tags = vec![0; count * algorithm.tag_len()];
        let mut tags = tags.chunks_mut(algorithm.tag_len().max(1));
        let mut requests: Vec<_> = data
            .chunks_mut(size)
            .map(|data| {
                let request = match algorithm.kind {
                    Kind::Mac => Request::mac(data),
                    Kind::Cipher | Kind::Aead => Request::in_place(data),
                };
                let tag = tags.next().unwrap_or_default();
                request.iv(&iv).aad(&aad).tag(tag)
            })
            .collect();
        let bytes = cost(&requests) as u64;
        for _ in 0..RUNS {
            // What is encrypted is decrypted again, with tags that are right.
            for direction in [Direction::Encrypt, Direction::Decrypt] {
                requests
                    .iter_mut()
                    .for_each(|request| request.set_status(Status::Pending));
                let started = Instant::now();
                kernel.run(direction, &mut requests);
                let took = started.elapsed().as_nanos() as u64;
                let pace = (took.saturating_mul(1_000_000) / bytes).clamp(1, SLOWEST) as u32;
                let fastest = &mut paces[direction as usize][batch];
                *fastest = pace.min(*fastest);
            }
        }
    }
    First { paces }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn requests_share_lanes() {
        // A chain: one request at 1 GB/s, sixteen of them at 8.
        let first = First {
            paces: [[1_000_000, 125_000], [125_000; 2]],
        };
        let chain = |requests| first.alone_ns(Direction::Encrypt, requests, 16_000);
        assert_eq!([1, 2, 8, 16].map(chain), [16_000, 8_000, 2_000, 2_000]);
        assert_eq!(first.alone_ns(Direction::Decrypt, 1, 16_000), 2_000);
        assert_eq!(first.pace(Direction::Encrypt), 125_000);
    }

    #[test]
    #[cfg_attr(miri, ignore = "measures every algorithm")]
    fn every_algorithm_is_measured_once() {
        let firsts = Firsts::default();
        for algorithm in Algorithm::all() {
            let first = firsts.of(algorithm);
            // A terabyte per second, and the slowest pace that there is.
            let plausible = |pace: &u32| (1_000..SLOWEST as u32).contains(pace);
            assert!(
                first.paces.iter().flatten().all(plausible),
                "{}",
                algorithm.name
            );
            assert_eq!(
                firsts.of(algorithm).paces,
                first.paces,
                "{}",
                algorithm.name
            );
        }
    }
}
