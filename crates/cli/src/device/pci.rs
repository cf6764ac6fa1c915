//! `cipherlane device pci`.

use std::path::PathBuf;

use cipherlane_device::pci::{Error, Ram, Server, Summary};
use cipherlane_drivers::dma::model::{Fault, Settings};
use clap::Args;

use crate::failure::Failure;
use crate::units;

/// A PCI device with descriptor rings, DMA and interrupts, for QEMU's ivshmem-doorbell
///
/// The device is a model of the dma driver, and linux/cipherlane-engine is the Linux driver for it.
/// Start this first, then QEMU with the same memory:
///
/// qemu-system-x86_64 -machine q35,memory-backend=m -m 512M
///   -object memory-backend-file,id=m,size=512M,mem-path=FILE,share=on
///   -chardev socket,id=c,path=SOCKET -device ivshmem-doorbell,chardev=c,vectors=1
///
/// When a guest is gone, a line tells what the device did for it.
#[derive(Args, Debug)]
pub(crate) struct PciArgs {
    /// The socket that QEMU connects to
    #[arg(long, value_name = "SOCKET")]
    socket: PathBuf,
    /// The file with the guest's memory; made and removed here if there is none
    #[arg(long, value_name = "FILE")]
    memory: PathBuf,
    /// Bytes of the guest's memory, as QEMU's -m
    #[arg(long, value_name = "SIZE", default_value = "512M", value_parser = memory_size)]
    size: u64,
    /// Which device: a preset or a TOML file, as for the dma driver
    #[arg(long, value_name = "DEVICE", default_value = "cyclone-v-soc-aes")]
    model: String,
    /// Something that goes wrong with the device, for tests: KIND, KIND:AFTER or
    /// KIND:AFTER:COUNT requests
    #[arg(long, value_name = "FAULT")]
    fault: Vec<String>,
    /// End with the first guest
    #[arg(long)]
    once: bool,
}

pub(super) fn run(args: &PciArgs) -> Result<(), Failure> {
    let usage = |option: &str, problem: String| Failure::Usage(format!("{option}: {problem}"));
    let mut settings = Settings::load(&args.model).map_err(|problem| usage("--model", problem))?;
    for text in &args.fault {
        let fault = parse_fault(text).map_err(|problem| usage("--fault", problem))?;
        settings.behaviour.faults.push(fault);
    }
    let ram = Ram::new(&args.memory, args.size)?;
    let server = Server::new(&args.socket, ram, settings)?;
    loop {
        println!("{}", line(&server.serve_next()?));
        if args.once {
            return Ok(());
        }
    }
}

/// One line of a guest that is gone.
fn line(summary: &Summary) -> String {
    let [encrypted, decrypted] = summary.requests;
    let [sealed, opened] = summary.bytes;
    format!(
        "guest gone: {encrypted} requests encrypted ({sealed} bytes), {decrypted} decrypted \
         ({opened} bytes), {} failed, {} keys, {} doorbells, {} interrupts, {} DMA faults",
        summary.failed, summary.keys, summary.doorbells, summary.interrupts, summary.dma_faults
    )
}

/// `KIND[:AFTER[:COUNT]]`.
fn parse_fault(text: &str) -> Result<Fault, String> {
    let mut parts = text.split(':');
    let kind = parts.next().unwrap_or_default();
    let mut number = |name: &str| match parts.next() {
        None => Ok(String::new()),
        Some(part) => match part.parse::<u64>() {
            Ok(number) => Ok(format!("{name} = {number}\n")),
            Err(_) => Err(format!("'{part}' in '{text}' is no number of requests")),
        },
    };
    let (after, count) = (number("after")?, number("count")?);
    if parts.next().is_some() {
        return Err(format!(
            "'{text}' has too many parts; give KIND:AFTER:COUNT"
        ));
    }
    toml::from_str(&format!("kind = {kind:?}\n{after}{count}"))
        .map_err(|error| format!("'{text}': {}", error.message()))
}

fn memory_size(text: &str) -> Result<u64, String> {
    units::parse_size(text).map(|bytes| bytes as u64)
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let message = format!("device pci: {error}");
        match error {
            Error::System(_) => Failure::Runtime(message),
            _ => Failure::Usage(message),
        }
    }
}

#[cfg(test)]
mod tests {
    use cipherlane_drivers::dma::model::FaultKind;

    use super::*;

    #[test]
    fn faults_are_read_and_nonsense_is_named() {
        let fault = parse_fault("hang").unwrap();
        assert_eq!(
            (fault.kind, fault.after, fault.count),
            (FaultKind::Hang, 0, 1)
        );
        let fault = parse_fault("lost-interrupt:10:3").unwrap();
        assert_eq!((fault.after, fault.count), (10, 3));
        for wrong in ["", "burn", "hang:x", "hang:1:2:3", "hang:-1"] {
            assert!(parse_fault(wrong).is_err(), "{wrong}");
        }
    }
}
