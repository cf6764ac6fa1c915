//! What the options, the definition file and the defaults come to.

use std::time::Duration;

use cipherlane_core::{Algorithm, Direction};
use cipherlane_measure::interleave::MOST_THREADS;

use super::arguments::{Definition, SpeedArgs};
use super::instruction_sets;
pub(super) use super::unit::Unit;
use crate::algorithms::{self, Choice};
use crate::failure::Failure;

/// Measured when no algorithm is named.
const ALGORITHMS: [&str; 6] = [
    "gcm(aes)",
    "ctr(aes)",
    "cbc(aes)",
    "xts(aes)",
    "rfc7539(chacha20,poly1305)",
    "hmac(sha256)",
];
/// Measured when no driver is named, as far as they are there.
const DRIVERS: [&str; 4] = [BASE, "cores", "openssl", AUTO];
const SIZES: [usize; 9] = [16, 64, 256, 1024, 1400, 8192, 16384, 65536, 1 << 20];
const BATCHES: [usize; 2] = [1, 16];
const SECONDS: f64 = 0.25;
/// The short answer: what is measured, and seconds for all of it.
const SHORT: [&str; 5] = [
    "gcm(aes)",
    "ctr(aes)",
    "xts(aes)",
    "rfc7539(chacha20,poly1305)",
    "hmac(sha256)",
];
const SHORT_DRIVERS: [&str; 3] = [BASE, "cores", "openssl"];
const SHORT_SIZES: [usize; 3] = [64, 1400, 16384];
const SHORT_SECONDS: f64 = 6.0;
/// The same while drivers are recorded: enough for samples of each.
const PROFILED_SHORT_SECONDS: f64 = 24.0;
const PROFILED_SECONDS: f64 = 1.0;
/// Short enough that others leave some blocks alone on a busy machine.
const SHORT_BLOCK: Duration = Duration::from_millis(2);
/// Blocks into which the time of a cell and driver is cut, unless that makes them too long.
const BLOCKS: f64 = 12.0;
/// The longest block, unless the user says otherwise.
const BLOCK: Duration = Duration::from_millis(30);

/// The dispatcher's choice, among the drivers.
pub(super) const AUTO: &str = "auto";
/// The driver that others are compared with.
pub(super) const BASE: &str = "software";

/// The most of each, so that a slip of the finger is an error and not a day's wait.
const MOST_SIZE: usize = 1 << 30;
const MOST_BATCH: usize = 1 << 16;
const MOST_DEPTH: usize = 1024;
/// Microseconds.
const MOST_PAUSE: usize = 1_000_000;

/// What to measure.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) title: String,
    pub(super) choices: Vec<Choice>,
    pub(super) drivers: Vec<String>,
    /// Whether the user named the drivers, and so wants to hear of those that do not exist.
    pub(super) drivers_named: bool,
    pub(super) sizes: Vec<usize>,
    pub(super) batches: Vec<usize>,
    pub(super) threads: Vec<usize>,
    /// Batches under way; `None` for a caller that waits.
    pub(super) depths: Vec<Option<usize>>,
    /// Microseconds between calls; `None` for a caller that calls again at once.
    pub(super) pauses: Vec<Option<u64>>,
    pub(super) direction: Direction,
    /// For each cell and driver.
    pub(super) seconds: f64,
    /// Of one block of a driver.
    pub(super) block: Duration,
    pub(super) verbose: bool,
    pub(super) unit: Unit,
    /// Only the short answer is wanted.
    pub(super) short: bool,
}

impl Asked {
    pub(super) fn new(args: &SpeedArgs, forced: Option<&str>) -> Result<Asked, Failure> {
        let definition = match &args.definition {
            Some(path) => Definition::read(path)?,
            None => Definition::default(),
        };
        let short = forced.is_none() && args.is_bare();
        let keybits = args.keybits.or(definition.keybits);
        let named = first_given([&args.algorithms, &definition.algorithms]);
        let choices = match named {
            Some(named) => {
                let found = named.iter().map(|name| algorithms::find(name, keybits));
                found.collect::<Result<Vec<_>, _>>()?
            }
            None if short => default_choices(&SHORT, keybits)?,
            None => default_choices(&ALGORITHMS, keybits)?,
        };
        let mut drivers = match (first_given([&args.drivers, &definition.drivers]), forced) {
            (Some(named), _) => named.to_vec(),
            (None, None) if args.instruction_sets => vec![BASE.to_owned()],
            (None, Some(forced)) => vec![BASE.to_owned(), forced.to_owned()],
            (None, None) if short => SHORT_DRIVERS.map(str::to_owned).to_vec(),
            (None, None) => DRIVERS.map(str::to_owned).to_vec(),
        };
        let drivers_named = first_given([&args.drivers, &definition.drivers]).is_some();
        let depths = numbers(
            "--submit",
            [&args.submit, &definition.submit],
            &[0],
            0..=MOST_DEPTH,
        )?;
        let pauses = numbers(
            "--pause",
            [&args.pause, &definition.pause],
            &[0],
            0..=MOST_PAUSE,
        )?;
        if pauses.iter().any(|&pause| pause > 0) && !depths.contains(&0) {
            return Err(Failure::Usage(
                "--pause is for callers that wait: give --submit 0, alone or among others"
                    .to_owned(),
            ));
        }
        let threads = 1..=MOST_THREADS;
        let short_seconds = || {
            let each = match args.instruction_sets {
                true => instruction_sets::count(),
                false => drivers.len(),
            };
            let cells = choices.len() * each * SHORT_SIZES.len();
            let seconds = match args.profile {
                true => PROFILED_SHORT_SECONDS,
                false => SHORT_SECONDS,
            };
            seconds / cells.max(1) as f64
        };
        let seconds = args.seconds.or(definition.seconds);
        let seconds = seconds.unwrap_or_else(|| match (short, args.profile) {
            (true, _) => short_seconds(),
            (false, true) => PROFILED_SECONDS,
            (false, false) => SECONDS,
        });
        if !(0.001..=3600.0).contains(&seconds) {
            return Err(Failure::Usage(format!(
                "--seconds {seconds}: give 0.001 to 3600 seconds for each cell and driver"
            )));
        }
        let block = match args.block.or(definition.block) {
            None if short => SHORT_BLOCK,
            None => Duration::from_secs_f64(seconds / BLOCKS).min(BLOCK),
            Some(block) if (0.1..=1000.0).contains(&block) => Duration::from_secs_f64(block / 1e3),
            Some(block) => {
                return Err(Failure::Usage(format!(
                    "--block {block}: give 0.1 to 1000 milliseconds"
                )));
            }
        };
        dedup(&mut drivers);
        let asked = Asked {
            title: definition
                .title
                .unwrap_or_else(|| "Cipherlane speed".to_owned()),
            choices,
            drivers,
            drivers_named,
            sizes: numbers(
                "--sizes",
                [&args.sizes, &definition.sizes],
                if short { &SHORT_SIZES } else { &SIZES },
                1..=MOST_SIZE,
            )?,
            batches: numbers(
                "--batch",
                [&args.batch, &definition.batch],
                if short { &[1] } else { &BATCHES },
                1..=MOST_BATCH,
            )?,
            threads: numbers(
                "--threads",
                [&args.threads, &definition.threads],
                &[1],
                threads,
            )?,
            depths: depths
                .into_iter()
                .map(|depth| (depth > 0).then_some(depth))
                .collect(),
            pauses: pauses
                .into_iter()
                .map(|pause| (pause > 0).then_some(pause as u64))
                .collect(),
            direction: match args.decrypt || definition.decrypt {
                true => Direction::Decrypt,
                false => Direction::Encrypt,
            },
            seconds,
            block,
            verbose: args.verbose,
            unit: args.unit,
            short,
        };
        if args.instruction_sets {
            instruction_sets::check(&asked, forced)?;
        }
        Ok(asked)
    }
}

/// The default algorithms that take a key of that length.
fn default_choices(names: &[&str], keybits: Option<u32>) -> Result<Vec<Choice>, Failure> {
    let all = names.iter().map(|name| Algorithm::find(name));
    let all = all.collect::<Result<Vec<_>, _>>()?;
    let taken: Vec<_> = all
        .into_iter()
        .filter_map(|algorithm| algorithms::with_bits(algorithm, keybits))
        .collect();
    match (taken.is_empty(), keybits) {
        (true, Some(bits)) => Err(Failure::Usage(format!(
            "--keybits {bits}: no algorithm takes such a key; use 128, 192 or 256"
        ))),
        _ => Ok(taken),
    }
}

/// The first list that is not empty.
fn first_given<T>(lists: [&Vec<T>; 2]) -> Option<&[T]> {
    lists
        .into_iter()
        .map(Vec::as_slice)
        .find(|list| !list.is_empty())
}

/// Numbers within limits, each once, in the order given.
fn numbers(
    option: &str,
    lists: [&Vec<usize>; 2],
    default: &[usize],
    limits: std::ops::RangeInclusive<usize>,
) -> Result<Vec<usize>, Failure> {
    let mut numbers = first_given(lists).unwrap_or(default).to_vec();
    if let Some(wrong) = numbers.iter().find(|number| !limits.contains(number)) {
        return Err(Failure::Usage(format!(
            "{option} {wrong}: give numbers from {} to {}",
            limits.start(),
            limits.end()
        )));
    }
    dedup(&mut numbers);
    Ok(numbers)
}

fn dedup<T: PartialEq + Clone>(list: &mut Vec<T>) {
    let mut seen: Vec<T> = Vec::with_capacity(list.len());
    list.retain(|item| {
        let fresh = !seen.contains(item);
        if fresh {
            seen.push(item.clone());
        }
        fresh
    });
}
