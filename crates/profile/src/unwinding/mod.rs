//! Where functions begin that have no name: the unwinding tables (`.eh_frame`) list them all.

#[allow(unsafe_code)]
mod chosen;

use std::fs;
use std::path::Path;

use gimli::{BaseAddresses, CieOrFde, EhFrame, EndianSlice, NativeEndian, UnwindSection};

pub(crate) use self::chosen::chosen;
use crate::elf::Elf;

/// Starts and ends of the functions of a file, as offsets in the file, in order.
#[derive(Debug, Default)]
pub(crate) struct Starts(Vec<(u64, u64)>);

impl Starts {
    /// Reads a file; nothing where it is not an ELF file of this kind of machine.
    pub(crate) fn read(path: &Path) -> Self {
        let Ok(bytes) = fs::read(path) else {
            return Self::default();
        };
        let mut starts = functions(&bytes).unwrap_or_default();
        starts.sort_unstable();
        Self(starts)
    }

    /// The start of the function that has `offset`.
    pub(crate) fn before(&self, offset: u64) -> Option<u64> {
        let at = self.0.partition_point(|(start, _)| *start <= offset);
        let &(start, end) = self.0.get(at.checked_sub(1)?)?;
        (offset < end).then_some(start)
    }
}

/// Starts and ends of all functions in the unwinding tables.
fn functions(bytes: &[u8]) -> Option<Vec<(u64, u64)>> {
    let elf = Elf::parse(bytes)?;
    let table = elf.section(b".eh_frame")?;
    let data = elf.contents(table)?;
    let mut bases = BaseAddresses::default().set_eh_frame(table.address);
    if let Some(text) = elf.section(b".text") {
        bases = bases.set_text(text.address);
    }
    let frames = EhFrame::from(EndianSlice::new(data, NativeEndian));
    let mut entries = frames.entries(&bases);
    let mut found = Vec::new();
    while let Ok(Some(entry)) = entries.next() {
        let CieOrFde::Fde(partial) = entry else {
            continue;
        };
        let Ok(entry) = partial.parse(EhFrame::cie_from_offset) else {
            continue;
        };
        if let Some(start) = elf.offset(entry.initial_address()) {
            found.push((start, start.saturating_add(entry.len())));
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_damaged_have_no_functions() {
        let mut bytes = fs::read("/proc/self/exe").unwrap();
        assert!(!functions(&bytes).unwrap().is_empty());
        bytes.truncate(4096);
        assert!(functions(&bytes).is_none());
        for at in 0..64 {
            for value in [0, 0x7f, 0xff] {
                let mut damaged = bytes.clone();
                damaged[at] = value;
                let _ = functions(&damaged);
            }
        }
    }
}
