//! What a device can reach: the arena, and regions of memory mapped for it one by one.
//!
//! An address of a mapped region says which entry of the table it is and in which turn of
//! that entry, so that one that was unmapped is a fault for ever, and not another's memory.
//!
//! A device behind a bus of another machine reaches that machine's memory too ([`Bus`]).

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use super::arena::Arena;
use super::wire::BUS;

/// Marks addresses of mapped regions; others are offsets in the arena.
const MAPPED: u64 = 1 << 62;
const OFFSET_BITS: u32 = 32;
const INDEX_BITS: u32 = 16;

/// A region of memory.
#[derive(Clone, Copy, Debug)]
pub struct Region {
    /// Its first byte.
    pub start: *mut u8,
    /// Bytes.
    pub len: u32,
    /// Whether the device may write it; otherwise it may read it.
    pub writable: bool,
}

// SAFETY: an address; whoever maps it vouches for what is there.
unsafe impl Send for Region {}

/// Why the device cannot have what it asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DmaFault;

/// Memory of another machine, by the addresses of its bus. Whoever is on that machine may
/// write it at any time.
pub trait Bus: fmt::Debug + Send + Sync {
    /// Copies bytes out; none if not all of them are memory.
    fn read(&self, address: u64, to: &mut [u8]) -> Result<(), DmaFault>;

    /// Copies bytes in; none if not all of them are memory.
    fn write(&self, address: u64, from: &[u8]) -> Result<(), DmaFault>;
}

/// The table of what is mapped.
#[derive(Debug)]
pub struct Iommu {
    arena: Arc<Arena>,
    bus: Option<Arc<dyn Bus>>,
    entries: Box<[Mutex<TableEntry>]>,
    free: Mutex<Vec<u16>>,
    /// Whether the device reaches anything at all. Held for reading during each access.
    attached: RwLock<bool>,
    faults: AtomicU64,
}

/// Where the bytes of an address are.
enum Place<'a> {
    /// By their offset.
    Arena(usize),
    /// In a mapped region.
    Mapped(*mut u8),
    /// In another machine's memory, by its address there.
    Bus(&'a dyn Bus, u64),
}

#[derive(Debug, Default)]
struct TableEntry {
    turn: u16,
    region: Option<Region>,
}

impl Iommu {
    /// A table with room for this number of regions.
    pub fn new(arena: Arc<Arena>, regions: u16) -> Self {
        Iommu {
            arena,
            bus: None,
            entries: (0..regions).map(|_| Mutex::default()).collect(),
            free: Mutex::new((0..regions).rev().collect()),
            attached: RwLock::new(true),
            faults: AtomicU64::new(0),
        }
    }

    /// The same for a device behind a bus, which has no mapped regions: addresses with
    /// [`BUS`] are that machine's.
    pub fn on_bus(arena: Arc<Arena>, bus: Arc<dyn Bus>) -> Self {
        Iommu {
            bus: Some(bus),
            ..Iommu::new(arena, 0)
        }
    }

    /// The address at which the device reaches a region; `None` if the table is full.
    ///
    /// # Safety
    /// Until it is unmapped or the device is cut off, the region must stay readable, or
    /// writable if it says so, and nobody else may write it, or use it if it is writable.
    pub unsafe fn map(&self, region: Region) -> Option<u64> {
        let index = lock(&self.free).pop()?;
        let mut entry = lock(&self.entries[usize::from(index)]);
        entry.region = Some(region);
        Some(
            MAPPED
                | u64::from(entry.turn) << (OFFSET_BITS + INDEX_BITS) & (MAPPED - 1)
                | u64::from(index) << OFFSET_BITS,
        )
    }

    /// Ends a mapping; when it returns the device is not in there and will not be.
    pub fn unmap(&self, address: u64) {
        let Some(index) = self.index(address) else {
            return;
        };
        let mut entry = lock(&self.entries[usize::from(index)]);
        if entry.turn & TURN_MASK == turn(address) && entry.region.take().is_some() {
            entry.turn = entry.turn.wrapping_add(1);
            drop(entry);
            lock(&self.free).push(index);
        }
    }

    /// Cuts the device off from everything, or lets it back to the arena. When it returns no
    /// access is under way.
    pub fn attach(&self, attached: bool) {
        *self
            .attached
            .write()
            .unwrap_or_else(PoisonError::into_inner) = attached;
    }

    /// Accesses refused so far.
    pub fn faults(&self) -> u64 {
        self.faults.load(Ordering::Relaxed)
    }

    /// For the device: reads memory.
    pub fn read(&self, address: u64, to: &mut [u8]) -> Result<(), DmaFault> {
        self.access(address, to.len(), false, |place| match place {
            Place::Arena(offset) => {
                self.arena.read(offset, to);
                true
            }
            Place::Mapped(from) => {
                // SAFETY: `access` found that many readable bytes there, and nobody writes
                // them while they are mapped.
                unsafe { std::ptr::copy_nonoverlapping(from, to.as_mut_ptr(), to.len()) };
                true
            }
            Place::Bus(bus, address) => bus.read(address, to).is_ok(),
        })
    }

    /// For the device: writes memory.
    pub fn write(&self, address: u64, from: &[u8]) -> Result<(), DmaFault> {
        self.access(address, from.len(), true, |place| match place {
            Place::Arena(offset) => {
                self.arena.write(offset, from);
                true
            }
            Place::Mapped(to) => {
                // SAFETY: `access` found that many writable bytes there, which nobody else
                // uses while they are mapped; other accesses of the device wait for this one.
                unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to, from.len()) };
                true
            }
            Place::Bus(bus, address) => bus.write(address, from).is_ok(),
        })
    }

    /// Finds the bytes and keeps them mapped during `copy`.
    fn access(
        &self,
        address: u64,
        len: usize,
        write: bool,
        copy: impl FnOnce(Place<'_>) -> bool,
    ) -> Result<(), DmaFault> {
        if len == 0 {
            // Nothing is accessed, wherever that is.
            return Ok(());
        }
        let attached = self.attached.read().unwrap_or_else(PoisonError::into_inner);
        let found = *attached && self.find(address, len, write, copy);
        match found {
            true => Ok(()),
            false => {
                self.faults.fetch_add(1, Ordering::Relaxed);
                Err(DmaFault)
            }
        }
    }

    fn find(
        &self,
        address: u64,
        len: usize,
        write: bool,
        copy: impl FnOnce(Place<'_>) -> bool,
    ) -> bool {
        if address & BUS != 0 {
            let bus = self.bus.as_deref();
            return bus.is_some_and(|bus| copy(Place::Bus(bus, address & !BUS)));
        }
        if address & MAPPED == 0 {
            let layout = self.arena.layout();
            // Not the registers and rings: they are no memory for data.
            let start = usize::try_from(address).unwrap_or(usize::MAX);
            let inside = start >= layout.slot(0)
                && start
                    .checked_add(len)
                    .is_some_and(|end| end <= layout.total());
            return inside && copy(Place::Arena(start));
        }
        let Some(index) = self.index(address) else {
            return false;
        };
        let entry = lock(&self.entries[usize::from(index)]);
        let offset = address as u32 as usize;
        let region = entry.region.filter(|region| {
            entry.turn & TURN_MASK == turn(address)
                && len <= (region.len as usize).saturating_sub(offset)
                && write == region.writable
        });
        // SAFETY: within the region (checked).
        region.is_some_and(|region| copy(Place::Mapped(unsafe { region.start.add(offset) })))
    }

    fn index(&self, address: u64) -> Option<u16> {
        let index = (address >> OFFSET_BITS) as u16;
        (address & MAPPED != 0 && usize::from(index) < self.entries.len()).then_some(index)
    }
}

/// What is left of a turn between the index and the mark.
const TURN_MASK: u16 = (1 << (62 - OFFSET_BITS - INDEX_BITS)) - 1;

fn turn(address: u64) -> u16 {
    (address >> (OFFSET_BITS + INDEX_BITS)) as u16 & TURN_MASK
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::super::wire::Layout;
    use super::*;

    fn iommu(regions: u16) -> Iommu {
        let layout = Layout {
            ring: 8,
            pool: 4096,
        };
        Iommu::new(Arc::new(Arena::new(layout).unwrap()), regions)
    }

    #[test]
    fn a_device_reaches_what_is_mapped_and_nothing_else() {
        let iommu = iommu(2);
        let mut memory = [1u8; 64];
        let region = |memory: &mut [u8], writable| Region {
            start: memory.as_mut_ptr(),
            len: memory.len() as u32,
            writable,
        };
        let (input, output) = memory.split_at_mut(32);
        // SAFETY: the memory outlives the mappings and is not used meanwhile.
        let (read, write) = unsafe {
            (
                iommu.map(region(input, false)).unwrap(),
                iommu.map(region(output, true)).unwrap(),
            )
        };
        // SAFETY: as above.
        assert!(unsafe { iommu.map(region(output, true)) }.is_none());
        let mut buffer = [0; 32];
        iommu.read(read, &mut buffer).unwrap();
        assert_eq!(buffer, [1; 32]);
        iommu.read(read + 31, &mut buffer[..1]).unwrap();
        iommu.write(write + 16, &[7; 16]).unwrap();
        let mut refused = 0;
        for address in [
            read + 1,
            read + 32,
            write,
            read ^ 1 << 32,
            read ^ 1 << 48,
            0,
            u64::MAX,
        ] {
            assert_eq!(
                iommu.read(address, &mut buffer),
                Err(DmaFault),
                "{address:x}"
            );
            refused += 1;
        }
        assert_eq!(iommu.write(read, &[0; 1]), Err(DmaFault));
        assert_eq!(iommu.faults(), refused + 1);
        iommu.unmap(write);
        iommu.unmap(write);
        assert_eq!(iommu.write(write, &[9; 1]), Err(DmaFault));
        // SAFETY: as above.
        let again = unsafe { iommu.map(region(output, true)) }.unwrap();
        assert_eq!(iommu.write(write, &[9; 1]), Err(DmaFault));
        iommu.attach(false);
        assert_eq!(iommu.write(again, &[9; 1]), Err(DmaFault));
        iommu.attach(true);
        iommu.write(again, &[8; 1]).unwrap();
        assert_eq!((memory[32], memory[48]), (8, 7));
    }

    #[test]
    fn registers_and_rings_are_out_of_reach() {
        let iommu = iommu(1);
        let layout = *iommu.arena.layout();
        let mut byte = [0];
        assert_eq!(iommu.write(0x40, &byte), Err(DmaFault));
        assert_eq!(
            iommu.read(layout.slot(0) as u64 - 1, &mut byte),
            Err(DmaFault)
        );
        iommu.write(layout.slot(0) as u64, &byte).unwrap();
        iommu.read(layout.total() as u64 - 1, &mut byte).unwrap();
        assert_eq!(iommu.read(layout.total() as u64, &mut byte), Err(DmaFault));
    }
}
