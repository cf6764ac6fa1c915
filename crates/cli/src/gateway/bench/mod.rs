//! `cipherlane gateway bench`: two ends in namespaces of this machine, beside other VPNs.
//!
//! | file | what it holds |
//! |---|---|
//! | `rig` | two network namespaces joined by a veth pair, and the programs started in them |
//! | `peers` | which VPNs there are, and how the simple ones are set up between them |
//! | `openvpn` | OpenVPN, with this project's OpenSSL provider and without |
//! | `strongswan` | strongSwan with its own ESP in user space |
//! | `measure` | one test: iperf3 or ping, and the processor time of all processes concerned |
//! | `report` | medians, the table, JSON, the page and the sentence |
//! | `reasoning` | `--profile`: why the gateway or another VPN is slower |
//! | `limit` | a small router: a part of a processor, and an old one |
//! | `many` | `--tunnels`: start, memory and speed with many tunnels |
//!
//! The VPNs take turns, each with all tests, in another order in each round: what disturbs the
//! machine for a while disturbs all of them.

mod limit;
mod many;
mod measure;
mod openvpn;
mod peers;
mod reasoning;
mod report;
mod rig;
mod strongswan;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use clap::builder::PossibleValuesParser;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::failure::Failure;
use crate::speed::outputs::is_stdout;
use measure::{Flow, Sample, Test};
use peers::{Peer, Subject};
use reasoning::Reasoning;
use rig::Rig;

/// In two namespaces of this machine
#[derive(Args, Debug)]
pub(crate) struct BenchArgs {
    /// How long each test takes
    #[arg(long, value_name = "SECONDS", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=3600))]
    seconds: u32,
    /// How often each VPN has its turn; the medians are shown
    #[arg(long, value_name = "NUMBER", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Only these
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = PossibleValuesParser::new(peers::NAMES))]
    peers: Vec<String>,
    /// Only these tests: tcp, tcp4, both, udp1400, udp64, ping, loaded
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    tests: Vec<String>,
    /// The gateway's ciphers with their integrity, each measured in its turn
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "aes-gcm-16"
    )]
    transform: Vec<String>,
    /// Threads of the gateway at each end, each number measured in its turn, such as 1,2,4,8
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1", value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: Vec<u16>,
    /// How many pairs of iperf3 send at once, each with the streams of the test; one iperf3 is one
    /// thread, and fills no more than one processor
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    flows: u16,
    /// A small router: the VPN of each end has this part of one processor
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u32).range(1..=100))]
    quota: Option<u32>,
    /// A small router: VPNs are denied AVX and what is built on it, as far as they obey
    #[arg(long)]
    old_processor: bool,
    /// Instead of other VPNs, the gateway by itself with these numbers of tunnels, such as
    /// 1,100,10000
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=100_000), conflicts_with_all = ["peers", "tests", "transform", "threads", "flows"])]
    tunnels: Vec<u32>,
    /// This program as wireguard-go, instead of the one that is installed
    #[arg(long, value_name = "FILE")]
    wireguard_go: Option<PathBuf>,
    /// Record the processes of each VPN, and those that send, while TCP and UDP are sent; and say
    /// by phase of the work why the gateway or another VPN is slower; docs/profile.md explains
    /// the phases
    #[arg(long, conflicts_with = "tunnels")]
    profile: bool,
    /// Write JSON to this file, or to standard output, and the table then to standard error
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    json: Option<PathBuf>,
    /// Write a page with the figures, which needs no network; with --profile it tells why, too, with
    /// flame graphs
    #[arg(long, value_name = "FILE", conflicts_with = "tunnels")]
    html: Option<PathBuf>,
}

/// Ends the measurement when the user does, so that everything is cleaned up.
#[derive(Clone)]
pub(crate) struct Stop(Arc<AtomicBool>);

impl Stop {
    fn new() -> Result<Stop, Failure> {
        let flag = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register(signal, flag.clone())
                .map_err(|error| Failure::io("catch", "signals", &error))?;
        }
        Ok(Stop(flag))
    }

    /// An error once the user has asked for the end.
    fn check(&self) -> Result<(), Failure> {
        match self.0.load(Ordering::Relaxed) {
            true => Err(Failure::Runtime("gateway bench: interrupted".to_owned())),
            false => Ok(()),
        }
    }
}

/// Measures, and shows the result.
pub(crate) fn run(args: &BenchArgs) -> Result<ExitCode, Failure> {
    if !rustix::process::geteuid().is_root() {
        return Err(Failure::Usage(
            "gateway bench: network namespaces and TUN devices need root; run it by sudo. Nothing \
             outside the namespaces is changed"
                .to_owned(),
        ));
    }
    rig::need("ip", "iproute2")?;
    rig::need("iperf3", "iperf3")?;
    rig::need("ping", "iputils-ping")?;
    if args.old_processor {
        limit::check_old()?;
    }
    if !args.tunnels.is_empty() {
        many::run(args, &args.tunnels, &Stop::new()?)?;
        return Ok(ExitCode::SUCCESS);
    }
    check_outputs(args)?;
    let tests = Test::chosen(&args.tests)?;
    let (present, absent) = peers::chosen(args);
    let stop = Stop::new()?;
    let mut reasoning = Reasoning::start(args.profile)?;
    let mut samples: Vec<Sample> = Vec::new();
    let mut failed: Vec<(Peer, String)> = Vec::new();
    for round in 0..args.rounds as usize {
        for turn in 0..present.len() {
            // Another order in each round.
            let peer = &present[(turn + round) % present.len()];
            stop.check()?;
            eprintln!(
                "round {} of {}: {}",
                round + 1,
                args.rounds,
                Subject::of(peer).name()
            );
            match turn_of(peer, args, &tests, &mut reasoning, &stop) {
                Ok(found) => samples.extend(found),
                Err(failure) => {
                    stop.check()?;
                    eprintln!("{}: {failure}", peer.name());
                    failed.retain(|(known, _)| known != peer);
                    failed.push((peer.clone(), failure.to_string()));
                }
            }
        }
    }
    let reasons = reasoning.finish(&samples)?;
    let report = report::Report::new(&samples, args, reasons);
    report.show(args, &absent, &failed)?;
    let ours_failed = failed
        .iter()
        .any(|(peer, _)| matches!(peer, Peer::Cipherlane(..)));
    Ok(ExitCode::from(u8::from(ours_failed)))
}

/// Finds out what cannot be written, before minutes are spent.
fn check_outputs(args: &BenchArgs) -> Result<(), Failure> {
    let paths: Vec<&PathBuf> = args.json.iter().chain(&args.html).collect();
    if paths.len() == 2 && paths.iter().all(|path| is_stdout(path)) {
        return Err(Failure::Usage(
            "only one of --json and --html can be '-'; name a file for the other".to_owned(),
        ));
    }
    for path in paths.into_iter().filter(|path| !is_stdout(path)) {
        cipherlane_files::check(path).map_err(|error| Failure::path("write", path, &error))?;
    }
    Ok(())
}

/// One VPN is set up, measured by all tests, and taken down again.
fn turn_of(
    peer: &Peer,
    args: &BenchArgs,
    tests: &[Test],
    reasoning: &mut Reasoning,
    stop: &Stop,
) -> Result<Vec<Sample>, Failure> {
    let mut rig = Rig::up(args)?;
    let started = peers::start(peer, &mut rig, stop)?;
    let flow = Flow {
        from: None,
        to: started.target,
        pairs: args.flows,
    };
    measure::wait_until_reachable(&rig, &flow, stop)?;
    let mut samples = Vec::new();
    for test in tests {
        stop.check()?;
        let found = reasoning.record(peer, *test, |turn| {
            measure::run(test, &rig, &flow, args.seconds, turn, stop)
        })?;
        samples.push(Sample {
            of: Subject::of(peer),
            test: *test,
            found,
        });
    }
    if let Some(evidence) = started.evidence {
        rig.end_programs();
        let carried = samples.iter().map(|sample| sample.found.bytes).sum();
        evidence.check(carried)?;
    }
    Ok(samples)
}
