//! Options of `cipherlane esp-perf`, and what they come to.

use std::path::PathBuf;
use std::time::Duration;

use cipherlane_esp::headers::Fields;
use clap::{Args, ValueEnum};

use super::lane::{MOST_THREADS, RUN};
use super::traffic::Traffic;
use super::transforms::{self, Entry};
use crate::capture;
use crate::failure::Failure;

/// Measure ESP: one security association on any number of threads
///
/// All threads seal or open packets of one SA at the same time, in tunnel mode, with extended
/// sequence numbers and, opening, a replay window of 65536. For every transform, direction and
/// size all numbers of threads and of packets per call take turns in short blocks. Packets lie in
/// 256 KiB a thread. Before each pass over them they are put back as they were, which is not
/// timed: to be sealed as plain packets, to be opened as packets sealed beforehand, whose
/// numbers rise across the threads in steps of 64; and the inbound SA is made anew with the same
/// keys, so that its window accepts every number once in each pass. The first 64 packets of a
/// thread bring the SA into its cache; then its calls of seal or open are timed, and nothing
/// else. Rates are of the packets carried, without what ESP adds. One thread, and one
/// packet per call, are always measured, as the others are compared with them.
#[derive(Args, Debug)]
#[command(name = "esp-perf")]
pub(crate) struct EspPerfArgs {
    /// Transforms, encryption and integrity
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        value_parser = transforms::parser(),
        default_value = transforms::ALL[0].name
    )]
    pub(super) transform: Vec<&'static Entry>,
    /// What to do with packets
    #[arg(long, value_enum, default_value_t = Way::Both)]
    pub(super) direction: Way,
    /// Threads that use the SA at once [default: 1, 2, 4, ... as far as there are processors]
    #[arg(long, value_name = "N", value_delimiter = ',')]
    pub(super) threads: Vec<usize>,
    /// Packets per call, 1 to 64
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [1, 2, 4, 8, 16, 32, 64])]
    pub(super) multipacket: Vec<usize>,
    /// Bytes of a packet, its IP header included; 'imix' is a mix of 40, 576 and 1500 bytes at
    /// 7 to 4 to 1
    #[arg(
        long,
        value_name = "BYTES",
        value_delimiter = ',',
        default_values_t = ["64", "512", "1400", "9000", "64000", "imix"].map(str::to_owned)
    )]
    pub(super) size: Vec<String>,
    /// Take the IP packets of this capture (pcap or pcapng) instead, over and over
    #[arg(long, value_name = "FILE", conflicts_with = "size")]
    pub(super) pcap: Option<PathBuf>,
    /// Also write packets sealed with the first transform as a capture, and print the line of Wireshark's ESP key table (esp_sa) that decrypts them
    #[arg(long, value_name = "FILE")]
    pub(super) write_pcap: Option<PathBuf>,
    /// Seconds of work for each number of threads and of packets per call [default: 0.25, with
    /// --profile 1]
    #[arg(long, value_name = "S")]
    pub(super) seconds: Option<f64>,
    /// Record the threads meanwhile, and say by phase of the work why few packets per call are
    /// slower than many, and why several threads do not do several times as much as one;
    /// docs/profile.md explains the phases
    #[arg(long)]
    pub(super) profile: bool,
    /// Print JSON instead of the table, or write it into a file: --json=FILE
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    pub(super) json: Option<PathBuf>,
    /// Write the cells as CSV
    #[arg(long, value_name = "FILE")]
    pub(super) csv: Option<PathBuf>,
    /// Write a page with charts, which needs no network; with --profile it tells why, too, with
    /// flame graphs
    #[arg(long, value_name = "FILE")]
    pub(super) html: Option<PathBuf>,
    /// Write the charts as SVG files into this directory
    #[arg(long, value_name = "DIR")]
    pub(super) svg: Option<PathBuf>,
}

/// Directions to be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Way {
    Seal,
    Open,
    Both,
}

/// What a packet is put through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Seal,
    Open,
}

impl Direction {
    pub(super) fn name(self) -> &'static str {
        match self {
            Direction::Seal => "seal",
            Direction::Open => "open",
        }
    }
}

const SECONDS: f64 = 0.25;
/// While threads are recorded: enough for samples of each.
const PROFILED_SECONDS: f64 = 1.0;
/// Blocks into which the time of a cell is cut, unless that makes them too long.
const BLOCKS: f64 = 12.0;
/// The longest block.
const BLOCK: Duration = Duration::from_millis(20);

/// What to measure.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) transforms: Vec<&'static Entry>,
    pub(super) directions: Vec<Direction>,
    /// 1 first.
    pub(super) threads: Vec<usize>,
    /// 1 first.
    pub(super) multipackets: Vec<usize>,
    pub(super) traffics: Vec<Traffic>,
    pub(super) time: Duration,
    pub(super) block: Duration,
}

impl Asked {
    pub(super) fn new(args: &EspPerfArgs) -> Result<Asked, Failure> {
        let threads = match args.threads.as_slice() {
            [] => powers_of_two(std::thread::available_parallelism().map_or(1, usize::from)),
            given => given.to_vec(),
        };
        let seconds = args.seconds.unwrap_or(match args.profile {
            true => PROFILED_SECONDS,
            false => SECONDS,
        });
        if !(0.001..=3600.0).contains(&seconds) {
            return Err(Failure::Usage(format!(
                "--seconds {seconds}: give 0.001 to 3600 seconds for each cell"
            )));
        }
        let traffics = match &args.pcap {
            Some(path) => {
                let mut packets = capture::read(path)?;
                packets.retain(|packet| Fields::of(packet).is_ok());
                vec![Traffic::captured(packets).ok_or_else(|| {
                    Failure::Usage(format!("'{}' holds no whole IP packet", path.display()))
                })?]
            }
            None => {
                let sizes = args.size.iter().map(|size| Traffic::parse(size));
                sizes.collect::<Result<_, _>>()?
            }
        };
        Ok(Asked {
            transforms: args.transform.clone(),
            directions: match args.direction {
                Way::Seal => vec![Direction::Seal],
                Way::Open => vec![Direction::Open],
                Way::Both => vec![Direction::Seal, Direction::Open],
            },
            threads: with_one("--threads", &threads, MOST_THREADS)?,
            multipackets: with_one("--multipacket", &args.multipacket, RUN)?,
            traffics,
            time: Duration::from_secs_f64(seconds),
            block: Duration::from_secs_f64(seconds / BLOCKS).min(BLOCK),
        })
    }
}

/// The numbers in order, each once, and 1 among them.
fn with_one(option: &str, numbers: &[usize], most: usize) -> Result<Vec<usize>, Failure> {
    if let Some(wrong) = numbers.iter().find(|n| !(1..=most).contains(*n)) {
        return Err(Failure::Usage(format!(
            "{option} {wrong}: give numbers from 1 to {most}"
        )));
    }
    let mut numbers = [&[1], numbers].concat();
    numbers.sort_unstable();
    numbers.dedup();
    Ok(numbers)
}

fn powers_of_two(most: usize) -> Vec<usize> {
    std::iter::successors(Some(1), |n| Some(2 * n))
        .take_while(|&n| n < most)
        .chain([most])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_always_among_the_numbers() {
        assert_eq!(with_one("--threads", &[4, 2, 4], 8).unwrap(), [1, 2, 4]);
        assert_eq!(with_one("--threads", &[], 8).unwrap(), [1]);
        for wrong in [0, 9] {
            let message = with_one("--threads", &[wrong], 8).unwrap_err().to_string();
            assert!(message.contains("--threads") && message.contains("1 to 8"));
        }
        assert_eq!(powers_of_two(1), [1]);
        assert_eq!(powers_of_two(6), [1, 2, 4, 6]);
        assert_eq!(powers_of_two(8), [1, 2, 4, 8]);
    }
}
