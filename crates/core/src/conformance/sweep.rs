//! Requests of callers that wait: every short length and those around the usual limits, in
//! batches of mixed lengths, by two keys and by several threads.

use super::case::{self, Case, Draw};
use crate::algorithm::Algorithm;
use crate::selftest::Random;
use crate::{Direction, Driver, Transform};

/// Every length up to this one...
const SHORT: usize = 288;
/// ... and these: around lanes, packets, pages and buffers.
const LONGER: [usize; 16] = [
    384, 511, 512, 513, 1008, 1023, 1024, 1025, 1400, 1500, 1504, 2048, 4095, 4096, 4112, 9000,
];
/// Requests of a batch, over and over.
const BATCHES: [usize; 9] = [1, 2, 3, 5, 8, 16, 31, 33, 64];
/// Threads that use one key at once.
const THREADS: u64 = 3;

/// How many requests were run; `Err` names the first that went wrong.
pub(super) fn run(
    driver: &dyn Driver,
    algorithm: &'static Algorithm,
    key_len: usize,
) -> Result<usize, String> {
    let mut random = Random(0xc0f0 + key_len as u64);
    let keys = [random.bytes(key_len), random.bytes(key_len)];
    let open = |key: &[u8]| driver.transform(algorithm, key);
    let mut transforms = Vec::new();
    for key in &keys {
        match open(key) {
            Ok(transform) => transforms.push(transform),
            // The first must be had; a device may hold one key at a time.
            Err(_) if !transforms.is_empty() => {}
            Err(reason) => return Err(format!("it takes such keys, but refused one: {reason}")),
        }
    }
    let mut requests = 0;
    for direction in [Direction::Encrypt, Direction::Decrypt] {
        requests += lengths(&*transforms[0], algorithm, &keys[0], direction, &mut random)?;
        for (key, transform) in keys.iter().zip(&transforms) {
            requests += mixed(&**transform, algorithm, key, direction, &mut random)
                .map_err(|problem| format!("with two keys in use: {problem}"))?;
        }
    }
    requests += together(&*transforms[0], algorithm, &keys[0])?;
    Ok(requests)
}

/// The lengths that an algorithm and a driver take.
fn taken(algorithm: &Algorithm, most: usize) -> Vec<usize> {
    let taken = |len: &usize| {
        len.is_multiple_of(algorithm.block) && *len >= algorithm.min_len && *len <= most
    };
    (0..=SHORT).chain(LONGER).filter(taken).collect()
}

/// Every length, in batches of every length.
fn lengths(
    transform: &dyn Transform,
    algorithm: &Algorithm,
    key: &[u8],
    direction: Direction,
    random: &mut Random,
) -> Result<usize, String> {
    let mut left = taken(algorithm, transform.max_len());
    for at in (1..left.len()).rev() {
        left.swap(at, random.next() as usize % (at + 1));
    }
    let (mut done, all) = (0, left.len());
    for batch in BATCHES.into_iter().cycle() {
        if left.is_empty() {
            break;
        }
        let lengths = left.split_off(left.len().saturating_sub(batch));
        let scatters = transform.scatters();
        let mut cases: Vec<Case> = lengths
            .into_iter()
            .map(|len| {
                let scattered = scatters && random.next().is_multiple_of(3);
                let draw = Draw {
                    direction,
                    len,
                    scattered,
                };
                Case::new(algorithm, key, draw, random)
            })
            .collect();
        done += case::run(|requests| transform.run(direction, requests), &mut cases)?;
    }
    match done {
        0 => Err("it gave every request up as untouched".to_owned()),
        _ => Ok(all),
    }
}

/// A few batches of random lengths.
fn mixed(
    transform: &dyn Transform,
    algorithm: &Algorithm,
    key: &[u8],
    direction: Direction,
    random: &mut Random,
) -> Result<usize, String> {
    let lengths = taken(algorithm, transform.max_len().min(1600));
    let mut requests = 0;
    for batch in [1, 7, 64] {
        let mut cases: Vec<Case> = (0..batch)
            .map(|_| {
                let len = lengths[random.next() as usize % lengths.len()];
                let draw = Draw {
                    direction,
                    len,
                    scattered: false,
                };
                Case::new(algorithm, key, draw, random)
            })
            .collect();
        case::run(|requests| transform.run(direction, requests), &mut cases)?;
        requests += batch;
    }
    Ok(requests)
}

/// Several threads use one key at once.
fn together(transform: &dyn Transform, algorithm: &Algorithm, key: &[u8]) -> Result<usize, String> {
    let one = |thread: u64| {
        let mut random = Random(thread);
        let directions = [Direction::Encrypt, Direction::Decrypt];
        directions.into_iter().try_fold(0, |requests, direction| {
            Ok(requests + mixed(transform, algorithm, key, direction, &mut random)?)
        })
    };
    let found: Vec<Result<usize, String>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|n| scope.spawn(move || one(n))).collect();
        let joined = threads.into_iter().map(|thread| thread.join());
        joined
            .map(|found| found.unwrap_or_else(|_| Err("it panicked".to_owned())))
            .collect()
    });
    let sum: Result<usize, String> = found.into_iter().sum();
    sum.map_err(|problem| format!("with {THREADS} threads at once: {problem}"))
}
