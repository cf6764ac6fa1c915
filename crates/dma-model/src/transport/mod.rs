//! What a driver and a device share, and how each reaches the other.
//!
//! | file | idea |
//! |---|---|
//! | `wire` | registers, descriptors, operations, completions: the protocol |
//! | `arena` | the memory that holds them |
//! | `words` | copies into and out of memory that others may write at any time |
//! | `iommu` | which of a caller's memory the device reaches, and until when |
//! | `shared` | the device on a thread of its own, in real time: doorbell and interrupt are eventfds |
//! | `simulated` | the device inline, in virtual time: one thread, the same every time |
//!
//! The driver knows only [`Transport`]; the device knows only its [`Port`]. A third form has the
//! driver in a virtual machine's kernel and the device on its PCI bus: `cipherlane-device`
//! serves it, by a [`Port`] that reaches that machine's memory ([`Port::on_bus`]). Either side takes what the other wrote for hostile: every index, address,
//! length and number is read once and checked.

mod arena;
mod iommu;
mod shared;
mod simulated;
pub mod wire;
mod words;

use std::sync::Arc;

pub use self::arena::Arena;
pub use self::iommu::{Bus, DmaFault, Iommu, Region};
pub use self::shared::Shared;
pub use self::simulated::Simulated;

/// The driver's end.
pub trait Transport: Send + Sync {
    /// The shared memory.
    fn arena(&self) -> &Arena;

    /// Tells the device to look at the registers and the submission ring.
    fn ring_doorbell(&self);

    /// Makes visible what the device has done until now, where it has no life of its own.
    fn catch_up(&self) {}

    /// Nanoseconds on the clock of timeouts.
    fn now_ns(&self) -> u64;

    /// Sleeps until the interrupt or that moment; says whether it was the interrupt. One
    /// thread at a time sleeps here.
    fn sleep(&self, until_ns: u64) -> bool;

    /// Lets a moment pass for a caller that polls, but not beyond that moment.
    fn pause(&self, until_ns: u64);

    /// The host's processor did work from `since_ns` on that takes `cost_ns` or more.
    fn spend(&self, since_ns: u64, cost_ns: u64);

    /// Lets the device reach a region; `None` where it cannot.
    ///
    /// # Safety
    /// As for [`Iommu::map`].
    unsafe fn map(&self, region: Region) -> Option<u64>;

    /// Ends that; when it returns the device does not use the region any more.
    fn unmap(&self, address: u64);

    /// Cuts the device off from all memory, or lets it back. `false` where that cannot be
    /// done, and so nothing is known of what the device still does.
    fn attach(&self, attached: bool) -> bool;

    /// Accesses to memory that were refused to the device, where that is known.
    fn dma_faults(&self) -> u64 {
        0
    }

    /// Whether completions arrive only while somebody waits, so that no thread shall wait
    /// for them in the background.
    fn is_inline(&self) -> bool {
        false
    }
}

/// The device's end, for those that have no hardware under them.
pub trait Device: Send {
    /// The doorbell rang.
    fn doorbell(&mut self, now_ns: u64);

    /// When it will do something by itself.
    fn next_event(&self) -> Option<u64>;

    /// Does what is due; says whether it raised its interrupt.
    fn advance(&mut self, now_ns: u64) -> bool;
}

/// What a device in this process is made over.
#[derive(Clone, Debug)]
pub struct Port {
    /// The shared memory.
    pub arena: Arc<Arena>,
    /// What it reaches.
    pub iommu: Arc<Iommu>,
    /// Whether it can be cut off.
    pub revocable: bool,
}

impl Port {
    /// Memory for a device, and a table for this number of mapped regions.
    pub fn new(layout: wire::Layout, revocable: bool) -> std::io::Result<Port> {
        let arena = Arc::new(Arena::new(layout)?);
        let regions = (2 * layout.ring).min(u32::from(u16::MAX)) as u16;
        let iommu = Arc::new(Iommu::new(arena.clone(), regions));
        Ok(Port {
            arena,
            iommu,
            revocable,
        })
    }

    /// Memory for a device on a bus of another machine, which reaches that machine's memory.
    /// It is cut off by that machine.
    pub fn on_bus(layout: wire::Layout, bus: Arc<dyn Bus>) -> std::io::Result<Port> {
        let arena = Arc::new(Arena::new(layout)?);
        let iommu = Arc::new(Iommu::on_bus(arena.clone(), bus));
        Ok(Port {
            arena,
            iommu,
            revocable: false,
        })
    }

    /// [`Transport::map`] for a device in this process: one that cannot be cut off never
    /// gets a caller's memory.
    ///
    /// # Safety
    /// As for [`Iommu::map`].
    unsafe fn map(&self, region: Region) -> Option<u64> {
        match self.revocable {
            // SAFETY: promised by the caller.
            true => unsafe { self.iommu.map(region) },
            false => None,
        }
    }

    fn attach(&self, attached: bool) -> bool {
        if self.revocable {
            self.iommu.attach(attached);
        }
        self.revocable
    }
}
