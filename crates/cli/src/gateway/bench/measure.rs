//! One test: iperf3 or ping, and the processor time of all processes concerned.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use super::Stop;
use super::peers::Subject;
use super::reasoning::Turn;
use super::rig::{Call, Rig, call};
use crate::failure::Failure;

/// iperf3's own port, which the first pair has; the others have those behind it.
const FIRST_PORT: u16 = 5201;

/// How often it is asked whether a VPN is up.
const TRIES: usize = 100;

/// The most loss that is called none: iperf3 counts what is still on its way at the end.
const NO_LOSS: f64 = 0.001;

/// A test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Test {
    /// TCP, by this number of streams.
    Tcp(u32),
    /// TCP, by a stream in each direction at once.
    Both,
    /// UDP, by datagrams of this size: the highest rate without loss.
    Udp(u32),
    /// Round trips of an idle tunnel, or under a TCP stream.
    Ping(bool),
}

const TESTS: [(&str, Test); 7] = [
    ("tcp", Test::Tcp(1)),
    ("tcp4", Test::Tcp(4)),
    ("both", Test::Both),
    ("udp1400", Test::Udp(1400)),
    ("udp64", Test::Udp(64)),
    ("ping", Test::Ping(false)),
    ("loaded", Test::Ping(true)),
];

impl Test {
    /// Those that were asked for; all, if none was.
    pub(crate) fn chosen(names: &[String]) -> Result<Vec<Test>, Failure> {
        let find = |name: &String| {
            let found = TESTS.iter().find(|(known, _)| known == name);
            found.map(|(_, test)| *test).ok_or_else(|| {
                Failure::Usage(format!(
                    "gateway bench: there is no test '{name}'; those that there are: {}",
                    TESTS.map(|(name, _)| name).join(", ")
                ))
            })
        };
        match names {
            [] => Ok(TESTS.map(|(_, test)| test).to_vec()),
            names => names.iter().map(find).collect(),
        }
    }
}

/// What a test found; 0 where it does not apply.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Found {
    pub(crate) bits_per_second: f64,
    pub(crate) packets_per_second: f64,
    pub(crate) cpu_seconds_per_gb: f64,
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
    pub(crate) lost: f64,
    /// That arrived altogether.
    pub(crate) bytes: f64,
}

/// A test of a VPN in one round.
pub(crate) struct Sample {
    pub(crate) of: Subject,
    pub(crate) test: Test,
    pub(crate) found: Found,
}

/// From where to where a test sends: the first address is of end a, the second one of end b.
pub(crate) struct Flow {
    /// `None`: the system chooses.
    pub(crate) from: Option<String>,
    pub(crate) to: String,
    /// How many pairs of iperf3 send at once, each of two processes.
    pub(crate) pairs: u16,
}

impl Flow {
    /// What ping needs to be told.
    fn of_ping<'a>(&'a self, command: &'a mut Command) -> &'a mut Command {
        if let Some(from) = &self.from {
            command.args(["-I", from]);
        }
        command.arg(&self.to)
    }
}

/// Until the far end answers.
pub(crate) fn wait_until_reachable(rig: &Rig, flow: &Flow, stop: &Stop) -> Result<(), Failure> {
    for _ in 0..TRIES {
        stop.check()?;
        let mut ping = rig.command(0, "ping");
        ping.args(["-n", "-q", "-c", "1", "-W", "1"]);
        if call(flow.of_ping(&mut ping)).is_ok() {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    Err(Failure::Runtime(format!(
        "gateway bench: the far end does not answer; the programs said: {}",
        rig.said()
    )))
}

/// Runs a test.
pub(crate) fn run(
    test: &Test,
    rig: &Rig,
    flow: &Flow,
    seconds: u32,
    turn: Turn<'_>,
    stop: &Stop,
) -> Result<Found, Failure> {
    match test {
        Test::Tcp(streams) => {
            let streams = streams.to_string();
            iperf(rig, flow, seconds, &["-P", &streams], 1448.0, turn)
        }
        Test::Both => iperf(rig, flow, seconds, &["--bidir"], 1448.0, turn),
        Test::Udp(size) => udp(rig, flow, seconds, *size, turn, stop),
        Test::Ping(false) => ping(rig, flow, seconds),
        Test::Ping(true) => {
            let servers = servers(rig, flow)?;
            let loads = (0..flow.pairs)
                .map(|pair| Running::start(&mut client(rig, flow, pair, seconds + 2, &[])));
            let loads = loads.collect::<Result<Vec<_>, _>>()?;
            std::thread::sleep(Duration::from_secs(1));
            let found = ping(rig, flow, seconds);
            drop(loads);
            drop(servers);
            found
        }
    }
}

/// A program that ends with its scope, and that nobody reads.
struct Running(Child);

impl Running {
    fn start(iperf: &mut Command) -> Result<Running, Failure> {
        let child = iperf.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let child = child.map_err(|error| Failure::io("start", "iperf3", &error))?;
        Ok(Running(child))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn servers(rig: &Rig, flow: &Flow) -> Result<Vec<Running>, Failure> {
    let servers = (0..flow.pairs).map(|pair| {
        let mut server = rig.command(1, "iperf3");
        server.args(["-s", "-1", "-B", &flow.to, "--idle-timeout", "20"]);
        Running::start(server.args(["-p", &port(pair)]))
    });
    let servers = servers.collect::<Result<Vec<_>, _>>()?;
    // A server says when it listens only where nobody reads it.
    std::thread::sleep(Duration::from_millis(250));
    Ok(servers)
}

/// The port by which a pair meets.
fn port(pair: u16) -> String {
    (FIRST_PORT + pair).to_string()
}

fn client(rig: &Rig, flow: &Flow, pair: u16, seconds: u32, more: &[&str]) -> Command {
    let mut client = rig.command(0, "iperf3");
    client.args(["-c", &flow.to, "-p", &port(pair), "-J"]);
    client.args(["--connect-timeout", "3000"]);
    client.args(["-t", &seconds.to_string()]).args(more);
    if let Some(from) = &flow.from {
        client.args(["-B", from]);
    }
    client
}

/// All pairs of iperf3 once. `size`: bytes of a packet.
fn iperf(
    rig: &Rig,
    flow: &Flow,
    seconds: u32,
    more: &[&str],
    size: f64,
    turn: Turn<'_>,
) -> Result<Found, Failure> {
    let servers = servers(rig, flow)?;
    let before = rig.processor_seconds();
    let texts = turn.of(|| {
        let clients =
            (0..flow.pairs).map(|pair| Call::begin(&mut client(rig, flow, pair, seconds, more)));
        let clients = clients.collect::<Result<Vec<_>, _>>()?;
        clients
            .into_iter()
            .map(Call::finish)
            .collect::<Result<Vec<_>, _>>()
    })?;
    let mut processor_seconds = rig.processor_seconds() - before;
    drop(servers);
    let mut found = Found::default();
    let (mut sent, mut lost) = (0.0, 0.0);
    for text in texts {
        let pair = Pair::read(&text)?;
        processor_seconds += pair.processor_seconds;
        found.bytes += pair.bytes;
        found.bits_per_second += pair.bytes * 8.0 / pair.seconds;
        found.packets_per_second += match pair.datagrams {
            0.0 => pair.bytes / size,
            datagrams => datagrams - pair.lost,
        } / pair.seconds;
        (sent, lost) = (sent + pair.datagrams, lost + pair.lost);
    }
    if found.bytes > 0.0 {
        found.cpu_seconds_per_gb = processor_seconds / (found.bytes / 1e9);
    }
    if sent > 0.0 {
        found.lost = lost / sent;
    }
    Ok(found)
}

/// What a pair of iperf3 reports.
struct Pair {
    /// That arrived, both ways.
    bytes: f64,
    seconds: f64,
    /// Of UDP, that were sent, and of these that did not arrive.
    datagrams: f64,
    lost: f64,
    /// Of both processes.
    processor_seconds: f64,
}

impl Pair {
    fn read(text: &str) -> Result<Pair, Failure> {
        let report: Value = serde_json::from_str(text).map_err(|error| {
            Failure::Runtime(format!("gateway bench: iperf3 wrote no JSON: {error}"))
        })?;
        let end = &report["end"];
        let number = |value: &Value| value.as_f64().unwrap_or(0.0);
        let received = match &end["sum_received"] {
            Value::Null => &end["sum"],
            received => received,
        };
        // What came the other way, where both ends send.
        let reverse = &end["sum_received_bidir_reverse"];
        let seconds = number(&received["seconds"]).max(0.001);
        let usage = &end["cpu_utilization_percent"];
        let percent = number(&usage["host_total"]) + number(&usage["remote_total"]);
        Ok(Pair {
            bytes: number(&received["bytes"]) + number(&reverse["bytes"]),
            seconds,
            datagrams: number(&received["packets"]),
            lost: number(&received["lost_packets"]),
            processor_seconds: percent / 100.0 * seconds,
        })
    }
}

/// The highest rate at which nothing is lost: doubled until there is loss, and then approached.
fn udp(
    rig: &Rig,
    flow: &Flow,
    seconds: u32,
    size: u32,
    turn: Turn<'_>,
    stop: &Stop,
) -> Result<Found, Failure> {
    let len = size.to_string();
    let pairs = f64::from(flow.pairs);
    let try_rate = |rate: f64| {
        stop.check()?;
        let bits = format!("{:.0}", rate / pairs * f64::from(size) * 8.0);
        let more = ["-u", "-l", &len, "-b", &bits, "-w", "4M"];
        iperf(rig, flow, seconds.min(2), &more, f64::from(size), turn)
    };
    let (mut best, mut bytes) = (Found::default(), 0.0);
    let (mut low, mut high) = (0.0, None);
    let mut rate = 20_000.0 * pairs;
    for _ in 0..9 {
        let found = try_rate(rate)?;
        bytes += found.bytes;
        let is_reached = found.packets_per_second > 0.9 * rate;
        if found.lost <= NO_LOSS && found.packets_per_second > best.packets_per_second {
            best = found;
        }
        match found.lost <= NO_LOSS && is_reached {
            true => low = rate,
            false => high = Some(rate),
        }
        rate = match high {
            None => 2.0 * rate,
            Some(high) if high < 1.1 * low => break,
            Some(high) => (low.max(high / 4.0) + high) / 2.0,
        };
    }
    Ok(Found { bytes, ..best })
}

fn ping(rig: &Rig, flow: &Flow, seconds: u32) -> Result<Found, Failure> {
    let count = (seconds * 200).to_string();
    let mut ping = rig.command(0, "ping");
    ping.args(["-n", "-i", "0.005", "-c", &count, "-W", "1"]);
    let text = call(flow.of_ping(&mut ping))?;
    let mut times: Vec<f64> = text
        .lines()
        .filter_map(|line| line.split_once("time="))
        .filter_map(|(_, rest)| rest.split(' ').next()?.parse().ok())
        .collect();
    times.sort_by(f64::total_cmp);
    let at = |part: f64| {
        let place = (part * times.len() as f64) as usize;
        times.get(place.min(times.len().saturating_sub(1))).copied()
    };
    let (Some(p50), Some(p99)) = (at(0.5), at(0.99)) else {
        return Err(Failure::Runtime(
            "gateway bench: no ping was answered".to_owned(),
        ));
    };
    Ok(Found {
        p50_us: p50 * 1000.0,
        p99_us: p99 * 1000.0,
        lost: 1.0 - times.len() as f64 / f64::from(seconds * 200),
        ..Found::default()
    })
}
