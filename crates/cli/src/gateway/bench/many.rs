//! `--tunnels`: how a gateway bears many tunnels: its start, its memory, and how fast one of them
//! is among the others.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use cipherlane_gateway::pair::{inner_of_many, write_many};
use cipherlane_gateway::status;
use serde::Serialize;

use super::measure::{self, Test};
use super::reasoning::Turn;
use super::rig::{OUTER, Rig, ip};
use super::{BenchArgs, Stop};
use crate::failure::Failure;
use crate::output;

/// How long a gateway may take to start.
const PATIENCE: Duration = Duration::from_secs(300);

/// What was measured.
#[derive(Serialize)]
struct Report {
    machine: String,
    cells: Vec<Cell>,
}

/// A number of tunnels.
#[derive(Serialize)]
struct Cell {
    tunnels: u32,
    /// From the start of the program until it answers.
    start_seconds: f64,
    /// Resident memory of one gateway.
    memory_bytes: u64,
    /// What a tunnel adds to it, by comparison with the smallest number of tunnels.
    bytes_per_tunnel: f64,
    /// From the question to the whole status.
    status_seconds: f64,
    /// One TCP stream through the last tunnel.
    bits_per_second: f64,
    cpu_seconds_per_gb: f64,
}

/// Measures each number of tunnels in its turn.
pub(crate) fn run(args: &BenchArgs, counts: &[u32], stop: &Stop) -> Result<(), Failure> {
    let mut cells: Vec<Cell> = Vec::new();
    for &count in counts {
        stop.check()?;
        eprintln!("{count} tunnels");
        let mut cell = measure(args, count, stop)?;
        if let Some(first) = cells.first().filter(|first| first.tunnels < count) {
            let more = cell.memory_bytes.saturating_sub(first.memory_bytes);
            cell.bytes_per_tunnel = more as f64 / f64::from(count - first.tunnels);
        }
        cells.push(cell);
    }
    let report = Report {
        machine: super::report::machine(args),
        cells,
    };
    super::report::deliver(
        "gateway-tunnels",
        &report,
        &report.text(),
        args.json.as_deref(),
        false,
    )
}

fn measure(args: &BenchArgs, count: u32, stop: &Stop) -> Result<Cell, Failure> {
    let mut rig = Rig::up(args)?;
    let outer = OUTER.map(|text| text.parse().expect("an address of this program"));
    write_many(rig.directory(), outer, count)?;
    for (end, network) in [(0, "10.64.0.0/12"), (1, "10.128.0.0/12")] {
        let namespace = rig.namespace(end);
        ip(&format!("-n {namespace} route add local {network} dev lo"))?;
    }
    let program = std::env::current_exe();
    let program = program.map_err(|error| Failure::io("find", "this program", &error))?;
    let mut started = [0.0; 2];
    for (end, name) in [(0, "a"), (1, "b")] {
        let config = rig.directory().join(name).join("gateway.toml");
        let mut command = rig.command(end, &program);
        command.args(["gateway", "run", "--config"]).arg(&config);
        let begin = Instant::now();
        rig.start(end, command, &format!("cipherlane-{name}.log"))?;
        wait_until_up(&rig, &status_socket(&rig, end), begin, stop)?;
        started[end] = begin.elapsed().as_secs_f64();
    }
    let [own, target] = inner_of_many(count - 1).map(|address| address.to_string());
    let flow = measure::Flow {
        from: Some(own),
        to: target,
        pairs: 1,
    };
    measure::wait_until_reachable(&rig, &flow, stop)?;
    let begin = Instant::now();
    let status = status::ask(&status_socket(&rig, 0))?;
    let status_seconds = begin.elapsed().as_secs_f64();
    let found = measure::run(&Test::Tcp(1), &rig, &flow, args.seconds, Turn::NONE, stop)?;
    Ok(Cell {
        tunnels: count,
        start_seconds: started[0],
        memory_bytes: memory(status.pid),
        bytes_per_tunnel: 0.0,
        status_seconds,
        bits_per_second: found.bits_per_second,
        cpu_seconds_per_gb: found.cpu_seconds_per_gb,
    })
}

fn status_socket(rig: &Rig, end: usize) -> PathBuf {
    rig.directory().join(["a", "b"][end]).join("status")
}

fn wait_until_up(rig: &Rig, socket: &Path, begin: Instant, stop: &Stop) -> Result<(), Failure> {
    while begin.elapsed() < PATIENCE {
        stop.check()?;
        // It answers when it carries packets.
        if socket.exists() && status::ask(socket).is_ok() {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Err(Failure::Runtime(format!(
        "gateway bench: the gateway has not started; it said: {}",
        rig.said()
    )))
}

/// Resident bytes of a process.
fn memory(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024
}

impl Report {
    fn text(&self) -> String {
        let header = [
            "tunnels",
            "start s",
            "memory MB",
            "KB a tunnel",
            "status s",
            "TCP Gbit/s",
            "CPU s/GB",
        ];
        let mut table = output::table(&header, &[0, 1, 2, 3, 4, 5, 6]);
        for cell in &self.cells {
            table.add_row([
                cell.tunnels.to_string(),
                format!("{:.2}", cell.start_seconds),
                format!("{:.1}", cell.memory_bytes as f64 / 1e6),
                match cell.bytes_per_tunnel {
                    0.0 => String::new(),
                    bytes => format!("{:.1}", bytes / 1e3),
                },
                format!("{:.3}", cell.status_seconds),
                format!("{:.2}", cell.bits_per_second / 1e9),
                format!("{:.2}", cell.cpu_seconds_per_gb),
            ]);
        }
        format!("{}\n\n{table}\n", self.machine)
    }
}
