//! The measurement itself, which a process of its own makes: a provider that crashes or does
//! strange things takes only that process with it.
//!
//! For each cipher, direction and size both providers take turns of a quarter of a millisecond,
//! the first of a round being the second of the next, and each round goes through all of them:
//! what slows the machine for a while slows both, and touches one round of each. The processor
//! time of the thread is what counts, so that other programs' time does not.

use std::io::{Write, stdout};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use cipherlane_core::Direction;
use cipherlane_drivers::openssl::rivals::{self, Race, Rivals, Side};
use cipherlane_measure::clock;
use cipherlane_measure::stats::paired_ratio;
use clap::Args;
use serde::{Deserialize, Serialize};

use super::rule::{Cipher, Contexts, Figure, Way, columns};
use crate::failure::Failure;

/// One turn of a provider.
const TURN: Duration = Duration::from_micros(250);
/// Rounds of everything, and further rounds where the ratio is close to a limit.
const ROUNDS: usize = 16;
const MORE_ROUNDS: usize = 32;
/// Rounds that are made however long they take: fewer allow no verdict.
const FEWEST_ROUNDS: usize = 8;
/// After this time no further round begins.
const LIMIT: Duration = Duration::from_secs(15);
/// The least share of the work between two reports.
const STEP: f64 = 0.01;

/// Measure the provider in this process, for 'openssl env' and 'openssl install'
#[derive(Args, Debug)]
pub(crate) struct HereArgs {
    module: PathBuf,
}

/// A line of what this process tells.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Line {
    /// The share of the work that is done.
    Done(f64),
    /// All of it.
    Result(Outcome),
}

#[derive(Serialize, Deserialize)]
pub(super) struct Outcome {
    /// As libcrypto calls itself.
    pub(super) libcrypto: String,
    pub(super) ciphers: Vec<Cipher>,
}

pub(crate) fn run(args: &HereArgs) -> Result<(), Failure> {
    let mut told = 0.0;
    let outcome = measure(&args.module, |done| {
        if done >= told + STEP {
            told = done;
            tell(&Line::Done(done))?;
        }
        Ok(())
    })?;
    tell(&Line::Result(outcome))
}

fn tell(line: &Line) -> Result<(), Failure> {
    let text = serde_json::to_string(line).expect("figures are plain data");
    writeln!(stdout(), "{text}").map_err(|error| Failure::io("write", "to standard output", &error))
}

/// One cipher, direction, use of contexts, and size.
struct Cell {
    /// Its cipher's place.
    cipher: usize,
    way: Way,
    contexts: Contexts,
    bytes: usize,
    race: Race,
    /// Messages of a turn.
    count: u64,
    /// Seconds of each turn.
    default: Vec<f64>,
    other: Vec<f64>,
}

impl Cell {
    /// A turn of each side.
    fn round(&mut self, round: usize) -> Result<(), String> {
        let order = match round % 2 {
            0 => [Side::Default, Side::Other],
            _ => [Side::Other, Side::Default],
        };
        for side in order {
            let seconds = turn(&mut self.race, side, self.count)?;
            match side {
                Side::Default => self.default.push(seconds),
                Side::Other => self.other.push(seconds),
            }
        }
        Ok(())
    }

    fn figure(&self) -> Option<Figure> {
        // The ratio of speeds is the inverse of that of times.
        let ratio = paired_ratio(&self.default, &self.other)?;
        Some(Figure {
            way: self.way,
            contexts: self.contexts,
            bytes: self.bytes,
            ratio: ratio.median,
            low: ratio.low,
            high: ratio.high,
        })
    }
}

/// The seconds that `count` messages take, after one that warms memory and code up.
fn turn(race: &mut Race, side: Side, count: u64) -> Result<f64, String> {
    race.run(side, 1)?;
    let start = clock::thread_cpu();
    race.run(side, count)?;
    Ok((clock::thread_cpu() - start).as_secs_f64())
}

/// The number of messages with which a turn of the default provider is long enough.
fn count(race: &mut Race) -> Result<u64, String> {
    let mut count = 1;
    loop {
        let seconds = turn(race, Side::Default, count)?;
        if seconds >= TURN.as_secs_f64() / 4.0 {
            let one = seconds / count as f64;
            return Ok((TURN.as_secs_f64() / one).ceil() as u64);
        }
        count *= 2;
    }
}

fn measure(
    module: &Path,
    mut done: impl FnMut(f64) -> Result<(), Failure>,
) -> Result<Outcome, Failure> {
    let rivals = Rivals::open(module).map_err(Failure::Runtime)?;
    let start = Instant::now();
    let mut ciphers: Vec<Cipher> = rivals.ciphers().iter().map(|name| prepared(name)).collect();
    let mut cells = Vec::new();
    for (place, cipher) in ciphers.iter_mut().enumerate() {
        match begin(&rivals, place, &cipher.name) {
            Ok(begun) => cells.extend(begun),
            Err(problem) => cipher.problem = Some(problem),
        }
    }
    let mut rounds = |cells: &mut Vec<&mut Cell>, count: usize, from: f64, to: f64| {
        for round in 0..count {
            if start.elapsed() > LIMIT && cells.iter().all(|c| c.other.len() >= FEWEST_ROUNDS) {
                break;
            }
            for cell in cells.iter_mut() {
                if let Err(problem) = cell.round(round) {
                    ciphers[cell.cipher].problem = Some(problem);
                }
            }
            done(from + (to - from) * (round + 1) as f64 / count as f64)?;
        }
        Ok::<(), Failure>(())
    };
    rounds(&mut cells.iter_mut().collect(), ROUNDS, 0.0, 0.6)?;
    let close = |cell: &Cell| cell.figure().is_some_and(|figure| figure.is_close());
    let mut again: Vec<&mut Cell> = cells.iter_mut().filter(|cell| close(cell)).collect();
    rounds(&mut again, MORE_ROUNDS, 0.6, 1.0)?;
    for cell in &cells {
        ciphers[cell.cipher].figures.extend(cell.figure());
    }
    Ok(Outcome {
        libcrypto: rivals.version().to_owned(),
        ciphers,
    })
}

fn prepared(name: &str) -> Cipher {
    Cipher {
        name: name.to_owned(),
        figures: Vec::new(),
        problem: None,
    }
}

/// The cells of a cipher; none where the default provider does not have it.
fn begin(rivals: &Rivals, cipher: usize, name: &str) -> Result<Vec<Cell>, String> {
    let mut cells = Vec::new();
    for way in Way::BOTH {
        let direction = match way {
            Way::Encrypt => Direction::Encrypt,
            Way::Decrypt => Direction::Decrypt,
        };
        for (contexts, bytes) in columns() {
            let race_in = match contexts {
                Contexts::Kept => rivals::Contexts::Kept,
                Contexts::New => rivals::Contexts::New,
            };
            let Some(mut race) = rivals.race(name, direction, bytes, race_in)? else {
                return Ok(Vec::new());
            };
            cells.push(Cell {
                cipher,
                way,
                contexts,
                bytes,
                count: count(&mut race)?,
                race,
                default: Vec::new(),
                other: Vec::new(),
            });
        }
    }
    Ok(cells)
}
