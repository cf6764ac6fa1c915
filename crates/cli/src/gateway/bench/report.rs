//! Medians, the table, JSON, the page and the sentence.

use std::path::Path;

use cipherlane_measure::report::{self, escape};
use serde::Serialize;

use super::BenchArgs;
use super::measure::{Found, Sample, Test};
use super::peers::Peer;
use crate::failure::Failure;
use crate::output;
use crate::profile::reasons::Reasons;
use crate::speed::outputs::{is_stdout, write_whole};

/// Rounds that differ by more than this part of their median make a cell noisy.
const NOISY: f64 = 0.25;

/// Heads of the columns.
const COLUMNS: [&str; 10] = [
    "peer",
    "transform",
    "threads",
    "test",
    "Gbit/s",
    "packets/s",
    "CPU s/GB",
    "p50 us",
    "p99 us",
    "",
];

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
    transform: String,
    /// Threads of the gateway at each end.
    #[serde(skip_serializing_if = "Option::is_none")]
    threads: Option<u16>,
    #[serde(skip)]
    title: String,
    /// tcp, tcp-both, udp or ping.
    test: &'static str,
    /// Pairs of iperf3 that send at once.
    flows: u16,
    /// Streams of TCP of each of them; for ping, those that load the tunnel.
    streams: u32,
    /// Bytes of a datagram; 0 for tests that choose it themselves.
    size: u32,
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
            let is_same = |other: &&Sample| (&other.of, other.test) == (&sample.of, sample.test);
            if samples[..place].iter().any(|other| is_same(&other)) {
                continue;
            }
            let all: Vec<Found> = samples.iter().filter(is_same).map(|s| s.found).collect();
            cells.push(cell(sample, &all, rounds, args.flows));
        }
        Report {
            machine: machine(args),
            cells,
            profile,
        }
    }

    /// Shows it, and writes what is asked for.
    pub(crate) fn show(
        &self,
        args: &BenchArgs,
        absent: &[String],
        failed: &[(Peer, String)],
    ) -> Result<(), Failure> {
        let mut left_out = Vec::new();
        if !absent.is_empty() {
            left_out.push(format!("Absent: {}.", absent.join(", ")));
        }
        for (peer, why) in failed {
            left_out.push(format!("Failed: {}: {why}", peer.name()));
        }
        let mut text = format!("{}\n\n{}\n", self.machine, self.table());
        for line in &left_out {
            text += &format!("{line}\n");
        }
        text += &output::wrap("", &self.sentence());
        text += &self.profile.as_ref().map(Reasons::text).unwrap_or_default();
        if let Some(path) = &args.html {
            write_whole(path, self.page(&left_out).as_bytes())?;
        }
        let is_taken = args.html.as_deref().is_some_and(is_stdout);
        deliver("gateway-bench", self, &text, args.json.as_deref(), is_taken)
    }

    fn table(&self) -> String {
        let mut table = output::table(&COLUMNS, &[2, 4, 5, 6, 7, 8]);
        for cell in &self.cells {
            table.add_row(cell.figures());
        }
        table.to_string()
    }

    /// The page: the figures, and why some are slower where that was asked for.
    fn page(&self, left_out: &[String]) -> String {
        let why = self.profile.as_ref().map(Reasons::html).unwrap_or_default();
        let head: String = COLUMNS
            .iter()
            .map(|head| format!("<th scope=col>{head}"))
            .collect();
        let mut rows = String::new();
        for cell in &self.cells {
            let [peer, transform, figures @ ..] = cell.figures().map(|text| escape(&text));
            let figures: String = figures.iter().map(|text| format!("<td>{text}")).collect();
            rows += &format!("<tr><th>{peer}<th>{transform}{figures}\n");
        }
        let left_out: String = left_out
            .iter()
            .map(|line| format!("<p class=\"note\">{}</p>\n", escape(line)))
            .collect();
        let main = format!(
            "<section><h2>In short</h2>\n<p>{}</p>\n<div class=\"scroll\"><table class=\"overview\">\
             <thead><tr>{head}</thead>\n<tbody>\n{rows}</tbody></table></div>\n\
             <p class=\"note\">{}. Processor time is that of both ends and of iperf3.</p>\n{left_out}\
             </section>\n{}{}",
            escape(&self.sentence()),
            escape(&self.machine),
            why.short,
            why.long
        );
        report::page("The gateway beside other VPNs", &output::machine(), &main)
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
        let streams = match ours.flows {
            1 => "One TCP stream through the gateway carries".to_owned(),
            flows => format!("{flows} TCP streams through the gateway carry"),
        };
        let mut parts = vec![format!(
            "{streams} {:.2} Gbit/s at {:.2} processor seconds a GB",
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
                match (other.peer, other.threads) {
                    ("bare", _) => "the bare veth pair".to_owned(),
                    ("cipherlane", Some(threads)) if other.threads != ours.threads =>
                        format!("{} with {threads} threads at each end", other.transform),
                    ("cipherlane", _) => other.transform.clone(),
                    (peer, _) => peer.to_owned(),
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

/// Shows the text of a report and writes its JSON; where that goes to standard output, or something
/// else has taken it, the text goes to standard error.
pub(super) fn deliver(
    schema: &str,
    report: &impl Serialize,
    text: &str,
    json: Option<&Path>,
    is_taken: bool,
) -> Result<(), Failure> {
    if let Some(path) = json.filter(|path| !is_stdout(path)) {
        let json = output::to_json(schema, report);
        write_whole(path, json.as_bytes())?;
    }
    let is_json = json.is_some_and(is_stdout);
    match is_json || is_taken {
        true => anstream::eprintln!("{text}"),
        false => output::show(text)?,
    }
    match is_json {
        true => output::json(schema, report),
        false => Ok(()),
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

impl Cell {
    /// As the table has it.
    fn figures(&self) -> [String; COLUMNS.len()] {
        let number = |value: f64, digits: usize| match value {
            0.0 => String::new(),
            value => format!("{value:.digits$}"),
        };
        [
            self.peer.to_owned(),
            self.transform.clone(),
            self.threads.map(|n| n.to_string()).unwrap_or_default(),
            self.title.clone(),
            number(self.bits_per_second / 1e9, 2),
            match self.test {
                "udp" => number(self.packets_per_second, 0),
                _ => String::new(),
            },
            number(self.cpu_seconds_per_gb, 2),
            number(self.p50_us, 0),
            number(self.p99_us, 0),
            if self.noisy { "noisy" } else { "" }.to_owned(),
        ]
    }
}

fn cell(sample: &Sample, all: &[Found], rounds: usize, flows: u16) -> Cell {
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
        peer: sample.of.peer,
        transform: sample.of.transform.clone(),
        threads: sample.of.threads,
        title: match flows {
            1 => title(sample.test),
            _ => format!("{flows} × {}", title(sample.test)),
        },
        test,
        flows,
        streams,
        size,
        bits_per_second: of(|found| found.bits_per_second),
        packets_per_second: of(|found| found.packets_per_second),
        cpu_seconds_per_gb: of(|found| found.cpu_seconds_per_gb),
        p50_us: of(|found| found.p50_us),
        p99_us: of(|found| found.p99_us),
        lost: of(|found| found.lost),
        noisy: all.len() < rounds.min(3) || most - least > NOISY * of(main),
    }
}

/// Processor, how many, kernel and TCP's congestion control; and what of it the VPNs may use.
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
    // With one that paces, as bbr does, a stream without a VPN has half of the rate.
    let path = "/proc/sys/net/ipv4/tcp_congestion_control";
    if let Ok(congestion_control) = std::fs::read_to_string(path) {
        text += &format!(", TCP by {}", congestion_control.trim());
    }
    if let Some(percent) = args.quota {
        text += &format!(", {percent} % of one processor for the VPN of each end");
    }
    if args.old_processor {
        text += ", without AVX";
    }
    text
}
