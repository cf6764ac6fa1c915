//! The guest's memory, mapped from the files that QEMU has it in.

use std::fs::File;
use std::os::fd::OwnedFd;

use vm_memory::{FileOffset, GuestAddress, GuestMemoryMmap, GuestRegionMmap, MmapRegion};

use super::message::Region;

/// Guest memory as it was last told.
#[derive(Default)]
pub(crate) struct Memory {
    map: GuestMemoryMmap,
    regions: Vec<Region>,
}

impl Memory {
    /// Maps regions, each with its file; `Err` says what is wrong with them.
    pub(crate) fn map(regions: Vec<Region>, files: Vec<OwnedFd>) -> Result<Memory, String> {
        let mut mapped = Vec::with_capacity(regions.len());
        for (region, file) in regions.iter().zip(files) {
            let file = File::from(file);
            check(region, &file)?;
            let offset = FileOffset::new(file, region.offset);
            let map = MmapRegion::from_file(offset, region.len as usize)
                .map_err(|error| format!("a region of memory cannot be mapped: {error}"))?;
            let map = GuestRegionMmap::new(map, GuestAddress(region.guest))
                .ok_or("a region of memory ends behind the last address")?;
            mapped.push(map);
        }
        mapped.sort_by_key(|region| vm_memory::GuestMemoryRegion::start_addr(region).0);
        let map = match mapped.is_empty() {
            true => GuestMemoryMmap::default(),
            false => GuestMemoryMmap::from_regions(mapped)
                .map_err(|error| format!("regions of memory: {error}"))?,
        };
        Ok(Memory { map, regions })
    }

    /// The mapping.
    pub(crate) fn guest(&self) -> &GuestMemoryMmap {
        &self.map
    }

    /// Where the guest sees what QEMU sees at `user`.
    pub(crate) fn translate(&self, user: u64) -> Result<GuestAddress, String> {
        let found = self.regions.iter().find_map(|region| {
            let at = user.checked_sub(region.user)?;
            (at < region.len).then(|| region.guest + at)
        });
        found
            .map(GuestAddress)
            .ok_or_else(|| format!("address {user:#x} is in no region of memory"))
    }
}

/// A page of a mapping behind the end of its file would end the process at the first access.
fn check(region: &Region, file: &File) -> Result<(), String> {
    let found = file
        .metadata()
        .map_err(|error| format!("a region's file: {error}"))?;
    if !found.is_file() {
        return Err("a region of memory that is no file; use memory-backend-memfd".to_owned());
    }
    let end = region.offset.checked_add(region.len);
    if region.len == 0 || end.is_none_or(|end| end > found.len()) {
        return Err(format!(
            "a region of {} bytes at {} in a file of {}",
            region.len,
            region.offset,
            found.len()
        ));
    }
    // Addresses of the guest in it are added to without a check.
    match region.guest.checked_add(region.len) {
        Some(_) => Ok(()),
        None => Err("a region of memory ends behind the last address".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

    use super::*;

    fn file(len: u64) -> OwnedFd {
        let file = memfd_create("memory", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&file, len).unwrap();
        file
    }

    fn region(guest: u64, len: u64, user: u64, offset: u64) -> Region {
        Region {
            guest,
            len,
            user,
            offset,
        }
    }

    #[test]
    fn addresses_are_translated_within_regions_alone() {
        let regions = vec![
            region(1 << 32, 8192, 0x7000, 8192),
            region(0, 4096, 0x1000, 0),
        ];
        let memory = Memory::map(regions, vec![file(16384), file(4096)]).unwrap();
        assert_eq!(memory.translate(0x7010).unwrap().0, (1 << 32) + 0x10);
        assert_eq!(memory.translate(0x1fff).unwrap().0, 0xfff);
        for user in [0xfff, 0x2000, 0x9000, u64::MAX] {
            assert!(memory.translate(user).is_err(), "{user:#x}");
        }
    }

    #[test]
    fn a_region_beyond_its_file_and_one_that_overlaps_are_refused() {
        for (guest, len, offset) in [
            (0, 8193, 0),
            (0, 8192, 4096),
            (0, 0, 0),
            (0, u64::MAX, 1),
            (u64::MAX - 100, 4096, 0),
            (0, 4096, 77),
        ] {
            let regions = vec![region(guest, len, 0, offset)];
            assert!(Memory::map(regions, vec![file(8192)]).is_err());
        }
        let regions = vec![region(0, 8192, 0, 0), region(4096, 4096, 1 << 20, 0)];
        assert!(Memory::map(regions, vec![file(8192), file(8192)]).is_err());
        let null = File::open("/dev/zero").unwrap().into();
        assert!(Memory::map(vec![region(0, 4096, 0, 0)], vec![null]).is_err());
    }
}
