//! `cipherlane gateway bench`: two ends in namespaces of this machine, beside other VPNs.
//!
//! | file | what it holds |
//! |---|---|
//! | `rig` | two network namespaces joined by a veth pair, and the programs started in them |
//! | `peers` | how each VPN is set up between them |
//! | `measure` | one test: iperf3 or ping, and the processor time of all processes concerned |
//! | `report` | medians, the table, JSON and the sentence |
//!
//! The VPNs take turns, each with all tests, in another order in each round: what disturbs the
//! machine for a while disturbs all of them.

mod measure;
mod peers;
mod report;
mod rig;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::failure::Failure;
use measure::{Sample, Test};
use peers::Peer;
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
    /// Only these: cipherlane, bare, wireguard-go, boringtun, openvpn
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    peers: Vec<String>,
    /// Only these tests: tcp, tcp4, udp1400, udp64, ping, loaded
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    tests: Vec<String>,
    /// The gateway's cipher and integrity
    #[arg(long, value_name = "NAME", default_value = "aes-gcm-16")]
    transform: String,
    /// This program as wireguard-go, instead of the one that is installed
    #[arg(long, value_name = "FILE")]
    wireguard_go: Option<PathBuf>,
    /// Write JSON to this file, or to standard output, and the table then to standard error
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    json: Option<PathBuf>,
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
    let tests = Test::chosen(&args.tests)?;
    let (present, absent) = peers::chosen(args)?;
    let stop = Stop::new()?;
    let mut samples: Vec<Sample> = Vec::new();
    let mut failed: Vec<(Peer, String)> = Vec::new();
    for round in 0..args.rounds as usize {
        for turn in 0..present.len() {
            // Another order in each round.
            let peer = &present[(turn + round) % present.len()];
            stop.check()?;
            eprintln!("round {} of {}: {}", round + 1, args.rounds, peer.name());
            match turn_of(peer, args, &tests, &stop) {
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
    let report = report::Report::new(&samples, args.rounds as usize);
    report.show(args.json.as_deref(), &absent, &failed)?;
    let ours_failed = failed.iter().any(|(peer, _)| *peer == Peer::Cipherlane);
    Ok(ExitCode::from(u8::from(ours_failed)))
}

/// One VPN is set up, measured by all tests, and taken down again.
fn turn_of(
    peer: &Peer,
    args: &BenchArgs,
    tests: &[Test],
    stop: &Stop,
) -> Result<Vec<Sample>, Failure> {
    let mut rig = Rig::up()?;
    let target = peers::start(peer, &mut rig, args)?;
    measure::wait_until_reachable(&rig, &target, stop)?;
    let mut samples = Vec::new();
    for test in tests {
        stop.check()?;
        let found = measure::run(test, &rig, &target, args.seconds, stop)?;
        samples.push(Sample {
            peer: peer.name(),
            transform: peers::transform(peer, &args.transform),
            test: *test,
            found,
        });
    }
    Ok(samples)
}
