//! `cipherlane gateway`: a VPN gateway, its status, and what a first tunnel needs.
//!
//! | file | what it holds |
//! |---|---|
//! | `service` | `run`: signals, and what the service manager is told |
//! | `privileges` | what is given up after the start |
//! | `show` | `status` |
//! | `new` | `new`, `new-state` |
//! | `bench/` | `bench`: two ends in namespaces, beside other VPNs |

mod bench;
mod new;
mod privileges;
mod service;
mod show;

use std::path::PathBuf;
use std::process::ExitCode;

use cipherlane_gateway::{CONFIG, Error};
use clap::{Args, Subcommand};

use crate::failure::Failure;
use crate::options::Options;

/// Carry IP packets to other hosts in ESP: a VPN gateway
///
/// Its configuration is /etc/cipherlane/gateway.toml, or the file of --config. docs/gateway.md
/// leads from nothing to a tunnel.
#[derive(Args, Debug)]
pub(crate) struct GatewayArgs {
    #[command(subcommand)]
    command: GatewayCommand,
}

#[derive(Subcommand, Debug)]
enum GatewayCommand {
    /// Run in the foreground until SIGTERM; SIGHUP reads the configuration again
    Run,
    /// Show tunnels, counters and offloads of the gateway that runs
    Status(show::StatusArgs),
    /// Write two configurations that match, with new keys, for the two ends of a tunnel
    New(new::NewArgs),
    /// Make the file in which sequence numbers are reserved
    NewState,
    /// Measure the gateway beside other VPNs, in two namespaces of this machine; needs root
    Bench(bench::BenchArgs),
}

/// Does what the arguments say.
pub(crate) fn run(args: &GatewayArgs, mut options: Options) -> Result<ExitCode, Failure> {
    let config = options.take_config();
    let config = config.unwrap_or_else(|| PathBuf::from(CONFIG));
    match &args.command {
        GatewayCommand::Run => service::run(&config, options.settings()?)?,
        GatewayCommand::Status(args) => show::run(args, &config)?,
        GatewayCommand::New(args) => new::run(args)?,
        GatewayCommand::NewState => new::state(&config)?,
        GatewayCommand::Bench(args) => return bench::run(args),
    }
    Ok(ExitCode::SUCCESS)
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let message = format!("gateway: {error}");
        match error {
            Error::Config { .. } | Error::NoState { .. } | Error::InterfaceName { .. } => {
                Failure::Usage(message)
            }
            _ => Failure::Runtime(message),
        }
    }
}
