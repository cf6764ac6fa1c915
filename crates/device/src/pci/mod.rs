//! A PCI device in a virtual machine, over QEMU's `ivshmem-doorbell`.
//!
//! | file | idea |
//! |---|---|
//! | `ram` | the guest's memory, by the addresses that its kernel knows |
//! | `server` | the ivshmem protocol: how QEMU is given memory, doorbell and interrupt |
//! | `serve` | the life of a device: doorbells in, work, interrupts out |
//!
//! QEMU gives the guest a PCI device whose BAR 2 is memory of this process, whose doorbell
//! (BAR 0) is an eventfd of this process, and whose MSI-X interrupt is another. The guest's memory
//! is a file that QEMU and this process share. So this process is a device with DMA: it
//! reads descriptors from the BAR, works at guest physical addresses, and raises an interrupt.
//! The device's registers, times and faults are those of the model that the `dma` driver uses too
//! ([`cipherlane_dma_model`]). `linux/cipherlane-engine` is the driver for it.
//!
//! There is no IOMMU between guest and device: the device reaches all memory of the guest, and
//! nothing else.

mod ram;
mod serve;
mod server;

use std::io;
use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;

use cipherlane_dma_model::transport::wire::Layout;
use cipherlane_dma_model::{Done, Settings};

pub use self::ram::Ram;
pub use self::server::Server;

/// Bytes of the BAR: a power of two, as PCI wants it, with room for the rings and slots of
/// the largest device.
const BAR: usize = 32 << 20;

/// Why a device cannot be.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file with the guest's memory.
    #[error("the guest's memory '{file}' {problem}")]
    Memory {
        /// The file.
        file: PathBuf,
        /// What is wrong, and what to do.
        problem: String,
    },
    /// The socket.
    #[error("the socket '{socket}' {problem}")]
    Socket {
        /// Its path.
        socket: PathBuf,
        /// What is wrong, and what to do.
        problem: String,
    },
    /// The rings have no room in the BAR.
    #[error(
        "a ring of {ring} descriptors is too long for a PCI device; give rules.ring = 32768 or less"
    )]
    Ring {
        /// Descriptors.
        ring: u32,
    },
    /// What the system says.
    #[error("the device cannot be made: {0}")]
    System(#[from] io::Error),
}

/// What a device did for one guest, in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Requests encrypted, and decrypted.
    pub requests: [u64; 2],
    /// Bytes of these.
    pub bytes: [u64; 2],
    /// Requests that ended with an error.
    pub failed: u64,
    /// Keys taken.
    pub keys: u64,
    /// Times that the doorbell was heard; it may have rung more often.
    pub doorbells: u64,
    /// Interrupts raised.
    pub interrupts: u64,
    /// Addresses that are no memory of the guest, or not for data.
    pub dma_faults: u64,
}

impl Summary {
    fn new(done: &Done, doorbells: u64, interrupts: u64, dma_faults: u64) -> Summary {
        let [encrypted, decrypted] = &done.requests;
        let [sealed, opened] = &done.bytes;
        Summary {
            requests: [encrypted.load(Relaxed), decrypted.load(Relaxed)],
            bytes: [sealed.load(Relaxed), opened.load(Relaxed)],
            failed: done.failed.load(Relaxed),
            keys: done.keys.load(Relaxed),
            doorbells,
            interrupts,
            dma_faults,
        }
    }
}

/// What stands where in the BAR of such a device.
fn layout(settings: &Settings) -> Result<Layout, Error> {
    let ring = settings.rules.ring;
    let empty = Layout { ring, pool: 0 };
    // The guest's bounce buffers are in its own memory; the rest of the BAR is not used.
    let total = empty.total().next_power_of_two();
    match total <= BAR {
        true => Ok(Layout {
            ring,
            pool: total - empty.pool_start(),
        }),
        false => Err(Error::Ring { ring }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_of_every_preset_is_a_power_of_two() {
        for name in Settings::presets() {
            let settings = Settings::preset(name).unwrap();
            let total = layout(&settings).unwrap().total();
            assert!(total.is_power_of_two() && total <= BAR, "{name}: {total}");
        }
    }

    #[test]
    fn the_longest_ring_has_room() {
        let mut settings = Settings::preset("pcie-modern").unwrap();
        settings.rules.ring = 1 << 15;
        settings.check().unwrap();
        layout(&settings).unwrap();
    }
}
