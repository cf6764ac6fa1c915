//! `cipherlane device`: accelerators for virtual machines.
//!
//! | file | what it holds |
//! |---|---|
//! | `pci` | `pci`: a PCI device with descriptor rings, over QEMU's ivshmem-doorbell |
//! | `vhost_user` | `vhost-user`, `status`: the back-end of QEMU's virtio-crypto |

mod pci;
mod vhost_user;

use std::process::ExitCode;

use cipherlane_device::Error;
use clap::{Args, Subcommand};

use crate::failure::Failure;
use crate::options::Options;

/// Give virtual machines an accelerator
///
/// docs/device.md leads from nothing to a guest that uses it.
#[derive(Args, Debug)]
pub(crate) struct DeviceArgs {
    #[command(subcommand)]
    command: DeviceCommand,
}

#[derive(Subcommand, Debug)]
enum DeviceCommand {
    Pci(pci::PciArgs),
    VhostUser(vhost_user::VhostUserArgs),
    Status(vhost_user::StatusArgs),
}

/// Does what the arguments say.
pub(crate) fn run(args: &DeviceArgs, options: &Options) -> Result<ExitCode, Failure> {
    match &args.command {
        DeviceCommand::Pci(args) => pci::run(args)?,
        DeviceCommand::VhostUser(args) => vhost_user::run(args, options.settings()?)?,
        DeviceCommand::Status(args) => vhost_user::status(args)?,
    }
    Ok(ExitCode::SUCCESS)
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
