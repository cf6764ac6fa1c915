//! Medians, the table, JSON and the sentence.

use std::path::Path;

use serde::Serialize;

use super::BenchArgs;
use super::measure::{Found, Sample, Test};
use super::peers::Peer;
use crate::failure::Failure;
use crate::output;
use crate::profile::reasons::Reasons;

/// Rounds that differ by more than this part of their median make a cell noisy.
const NOISY: f64 = 0.25;

/// What was measured.
#[derive(Serialize)]
pub(crate) struct Report {
    machine: String,
    cells: Vec<Cell>,
    /// Why some are slower than others, where that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    profile: Option<Reasons>,
}

/// One VPN in one test.
#[derive(Serialize)]
struct Cell {
    peer: &'static str,
    #[serde(skip)]
    title: String,
    /// tcp, tcp-both, udp or ping.
    test: &'static str,
    /// Streams of TCP; for ping, those that load the tunnel.
    streams: u32,
    /// Bytes of a datagram; 0 for tests that choose it themselves.
    size: u32,
    transform: String,
    bits_per_second: f64,
    packets_per_second: f64,
    cpu_seconds_per_gb: f64,
    p50_us: f64,
    p99_us: f64,
    /// Part of the packets that did not arrive.
    lost: f64,
    /// The rounds differ much, or there were fewer than three.
    noisy: bool,
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => 0.0,
        len => (values[(len - 1) / 2] + values[len / 2]) / 2.0,
    }
}

impl Report {
    pub(crate) fn new(samples: &[Sample], args: &BenchArgs, profile: Option<Reasons>) -> Report {
        let rounds = args.rounds as usize;
        let mut cells: Vec<Cell> = Vec::new();
        for (place, sample) in samples.iter().enumerate() {
            let is_same = |other: &&Sample| {
                (other.peer, other.test, &other.transform)
                    == (sample.peer, sample.test, &sample.transform)
            };
            if samples[..place].iter().any(|other| is_same(&other)) {
                continue;
            }
            let all: Vec<Found> = samples.iter().filter(is_same).map(|s| s.found).collect();
            cells.push(cell(sample, &all, rounds));
        }
        Report {
            machine: machine(args),
            cells,
            profile,
        }
    }

    /// Shows it.
    pub(crate) fn show(
        &self,
        json: Option<&Path>,
        absent: &[String],
        failed: &[(Peer, String)],
    ) -> Result<(), Failure> {
        let mut text = format!("{}\n\n{}\n", self.machine, self.table());
        if !absent.is_empty() {
            text += &format!("Absent: {}.\n", absent.join(", "));
        }
        for (peer, why) in failed {
            text += &format!("Failed: {}: {why}\n", peer.name());
        }
        text += &output::wrap("", &self.sentence());
        text += &self.profile.as_ref().map(Reasons::text).unwrap_or_default();
        deliver("gateway-bench", self, &text, json)
    }

    fn table(&self) -> String {
        let header = [
            "peer",
            "transform",
            "test",
            "Gbit/s",
            "packets/s",
            "CPU s/GB",
            "p50 us",
            "p99 us",
            "",
        ];
        let mut table = output::table(&header, &[3, 4, 5, 6, 7]);
        let number = |value: f64, digits: usize| match value {
            0.0 => String::new(),
            value => format!("{value:.digits$}"),
        };
        for cell in &self.cells {
            table.add_row([
                cell.peer.to_owned(),
                cell.transform.clone(),
                cell.title.clone(),
                number(cell.bits_per_second / 1e9, 2),
                match cell.test {
                    "udp" => number(cell.packets_per_second, 0),
                    _ => String::new(),
                },
                number(cell.cpu_seconds_per_gb, 2),
                number(cell.p50_us, 0),
                number(cell.p99_us, 0),
                if cell.noisy { "noisy" } else { "" }.to_owned(),
            ]);
        }
        table.to_string()
    }

    fn find(&self, peer: &str, test: &str, streams: u32) -> Option<&Cell> {
        let mut cells = self.cells.iter();
        cells.find(|cell| (cell.peer, cell.test, cell.streams) == (peer, test, streams))
    }

    /// What it comes to.
    fn sentence(&self) -> String {
        let Some(ours) = self.find("cipherlane", "tcp", 1) else {
            return "The gateway was not measured with TCP, so there is nothing to compare.\n"
                .to_owned();
        };
        let mut parts = vec![format!(
            "One TCP stream through the gateway carries {:.2} Gbit/s at {:.2} processor seconds a \
             GB",
            ours.bits_per_second / 1e9,
            ours.cpu_seconds_per_gb
        )];
        let others = self
            .cells
            .iter()
            .filter(|cell| (cell.test, cell.streams) == ("tcp", 1) && !std::ptr::eq(*cell, ours));
        for other in others {
            let speed = ours.bits_per_second / other.bits_per_second.max(1.0);
            let cost = ours.cpu_seconds_per_gb / other.cpu_seconds_per_gb.max(1e-9);
            parts.push(format!(
                "{speed:.2} times {} at {cost:.2} of its processor time",
                match other.peer {
                    "bare" => "the bare veth pair",
                    "cipherlane" => other.transform.as_str(),
                    peer => peer,
                }
            ));
        }
        let noisy = match self.cells.iter().any(|cell| cell.noisy) {
            true => " (some cells are noisy: more rounds tell more)",
            false => "",
        };
        format!("{}{noisy}.\n", parts.join(", "))
    }
}

/// Shows the text of a report and writes its JSON; where that goes to standard output, the text
/// goes to standard error.
pub(super) fn deliver(
    schema: &str,
    report: &impl Serialize,
    text: &str,
    json: Option<&Path>,
) -> Result<(), Failure> {
    match json {
        Some(path) if path == Path::new("-") => {
            anstream::eprintln!("{text}");
            output::json(schema, report)
        }
        Some(path) => {
            let json = output::to_json(schema, report);
            let written = cipherlane_files::write(path, json.as_bytes());
            written.map_err(|error| Failure::path("write", path, &error))?;
            output::show(text)
        }
        None => output::show(text),
    }
}

/// A test in words.
pub(super) fn title(test: Test) -> String {
    match test {
        Test::Tcp(1) => "TCP, 1 stream".to_owned(),
        Test::Tcp(streams) => format!("TCP, {streams} streams"),
        Test::Both => "TCP, both ways".to_owned(),
        Test::Udp(size) => format!("UDP, {size} B, no loss"),
        Test::Ping(false) => "ping, idle".to_owned(),
        Test::Ping(true) => "ping, loaded".to_owned(),
    }
}

fn cell(sample: &Sample, all: &[Found], rounds: usize) -> Cell {
    let of = |value: fn(&Found) -> f64| median(all.iter().map(value));
    let (test, streams, size) = match sample.test {
        Test::Tcp(streams) => ("tcp", streams, 0),
        Test::Both => ("tcp-both", 2, 0),
        Test::Udp(size) => ("udp", 1, size),
        Test::Ping(is_loaded) => ("ping", u32::from(is_loaded), 56),
    };
    let main: fn(&Found) -> f64 = match sample.test {
        Test::Tcp(_) | Test::Both => |found| found.bits_per_second,
        Test::Udp(_) => |found| found.packets_per_second,
        Test::Ping(_) => |found| found.p50_us,
    };
    let (least, most) = all.iter().map(main).fold((f64::MAX, 0.0), |(a, b), v| {
        (f64::min(a, v), f64::max(b, v))
    });
    Cell {
        peer: sample.peer,
        title: title(sample.test),
        test,
        streams,
        size,
        transform: sample.transform.clone(),
        bits_per_second: of(|found| found.bits_per_second),
        packets_per_second: of(|found| found.packets_per_second),
        cpu_seconds_per_gb: of(|found| found.cpu_seconds_per_gb),
        p50_us: of(|found| found.p50_us),
        p99_us: of(|found| found.p99_us),
        lost: of(|found| found.lost),
        noisy: all.len() < rounds.min(3) || most - least > NOISY * of(main),
    }
}

/// Processor, how many, and kernel; and what of it the VPNs may use.
pub(super) fn machine(args: &BenchArgs) -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info
        .lines()
        .find_map(|line| line.strip_prefix("model name"));
    let model = model.and_then(|rest| rest.split(':').nth(1));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let system = rustix::system::uname();
    let mut text = format!(
        "{}, {cores} processors, Linux {}",
        model.unwrap_or("unknown processor").trim(),
        system.release().to_string_lossy()
    );
    if let Some(percent) = args.quota {
        text += &format!(", {percent} % of one processor for the VPN of each end");
    }
    if args.old_processor {
        text += ", without AVX";
    }
    text
}
