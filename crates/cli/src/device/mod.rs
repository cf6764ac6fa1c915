//! `cipherlane device`: accelerators for virtual machines, and for programs that open
//! `/dev/crypto`.
//!
//! | file | what it holds |
//! |---|---|
//! | `cuse` | `cuse`: `/dev/crypto` for programs that open it |
//! | `pci` | `pci`: a PCI device with descriptor rings, over QEMU's ivshmem-doorbell |
//! | `status` | `status`: what a device that runs has done |
//! | `vhost_user` | `vhost-user`: the back-end of QEMU's virtio-crypto |

mod cuse;
mod pci;
mod status;
mod vhost_user;

use std::process::ExitCode;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use cipherlane_device::Error;
use clap::{Args, Subcommand};

use crate::failure::Failure;
use crate::options::Options;
use crate::secret;
use crate::service::notify;

/// Give virtual machines an accelerator, or programs a /dev/crypto
///
/// docs/device.md leads from nothing to a guest that uses it.
#[derive(Args, Debug)]
pub(crate) struct DeviceArgs {
    #[command(subcommand)]
    command: DeviceCommand,
}

#[derive(Subcommand, Debug)]
enum DeviceCommand {
    Cuse(cuse::CuseArgs),
    Pci(pci::PciArgs),
    VhostUser(vhost_user::VhostUserArgs),
    Status(status::StatusArgs),
}

/// Does what the arguments say.
pub(crate) fn run(args: &DeviceArgs, options: &Options) -> Result<ExitCode, Failure> {
    match &args.command {
        DeviceCommand::Cuse(args) => cuse::run(args, options.settings()?)?,
        DeviceCommand::Pci(args) => pci::run(args)?,
        DeviceCommand::VhostUser(args) => vhost_user::run(args, options.settings()?)?,
        DeviceCommand::Status(args) => status::run(args)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Says that it is ready, and stays until SIGTERM, SIGINT, or the end of one of its threads.
fn stay(signals: &Receiver<i32>, is_broken: impl Fn() -> bool) {
    /// How often it looks whether its threads are well.
    const LOOK: Duration = Duration::from_secs(1);

    if let Some(note) = secret::note() {
        tracing::warn!("{note}");
    }
    notify("READY=1");
    loop {
        match signals.recv_timeout(LOOK) {
            Ok(signal_hook::consts::SIGHUP) => {}
            Err(RecvTimeoutError::Timeout) if !is_broken() => {}
            _ => break,
        }
    }
    notify("STOPPING=1");
}

/// Into the log, line by line.
fn say(text: &str) {
    for line in text.lines() {
        tracing::info!("{line}");
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let message = format!("device: {error}");
        match error {
            Error::Limit { .. } => Failure::Usage(message),
            _ => Failure::Runtime(message),
        }
    }
}
