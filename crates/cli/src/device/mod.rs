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

use cipherlane_device::Error;
use clap::{Args, Subcommand};

use crate::failure::Failure;
use crate::options::Options;

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

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let message = format!("device: {error}");
        match error {
            Error::Limit { .. } => Failure::Usage(message),
            _ => Failure::Runtime(message),
        }
    }
}
