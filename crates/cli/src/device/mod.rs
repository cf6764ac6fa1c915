//! `cipherlane device`: crypto devices for virtual machines.
//!
//! | file | what it holds |
//! |---|---|
//! | `pci` | a PCI device with descriptor rings, over QEMU's ivshmem-doorbell |

mod pci;

use std::process::ExitCode;

use clap::{Args, Subcommand};

use crate::failure::Failure;

/// Be a crypto device for a virtual machine
///
/// The process serves a socket that QEMU connects to, and runs in the foreground.
#[derive(Args, Debug)]
pub(crate) struct DeviceArgs {
    #[command(subcommand)]
    command: DeviceCommand,
}

#[derive(Subcommand, Debug)]
enum DeviceCommand {
    Pci(pci::PciArgs),
}

/// Does what the arguments say.
pub(crate) fn run(args: &DeviceArgs) -> Result<ExitCode, Failure> {
    match &args.command {
        DeviceCommand::Pci(args) => pci::run(args)?,
    }
    Ok(ExitCode::SUCCESS)
}
