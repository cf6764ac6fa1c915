//! Where functions begin that have no name: the unwinding tables (`.eh_frame`) list them all.

#[allow(unsafe_code)]
mod chosen;

use std::fs;
use std::path::Path;

use gimli::{BaseAddresses, CieOrFde, EhFrame, EndianSlice, NativeEndian, UnwindSection};

pub(crate) use self::chosen::chosen;

/// Starts and ends of the functions of a file, as offsets in the file, in order.
#[derive(Debug, Default)]
pub(crate) struct Starts(Vec<(u64, u64)>);

/// What a section header says.
struct Section {
    name: u32,
    kind: u32,
    address: u64,
    offset: u64,
    size: u64,
}

/// A part of the file that is loaded.
struct Segment {
    offset: u64,
    address: u64,
    size: u64,
}

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
    let (sections, segments, names) = headers(bytes)?;
    let named = |wanted: &[u8]| {
        sections.iter().find(|section| {
            let name = bytes.get(names.offset as usize + section.name as usize..);
            name.is_some_and(|name| name.starts_with(wanted) && name.get(wanted.len()) == Some(&0))
        })
    };
    let table = named(b".eh_frame")?;
    // Without contents in the file.
    const NOBITS: u32 = 8;
    if table.kind == NOBITS {
        return None;
    }
    let end = table.offset.checked_add(table.size)?;
    let data = bytes.get(table.offset as usize..end as usize)?;
    let mut bases = BaseAddresses::default().set_eh_frame(table.address);
    if let Some(text) = named(b".text") {
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
        let address = entry.initial_address();
        let segment = segments
            .iter()
            .find(|segment| address >= segment.address && address - segment.address < segment.size);
        if let Some(segment) = segment {
            let start = address - segment.address + segment.offset;
            found.push((start, start.saturating_add(entry.len())));
        }
    }
    Some(found)
}

/// Section headers, loaded segments, and the section with the names of sections, of an ELF file
/// of 64 bits and this machine's order of bytes (elf(5)).
fn headers(bytes: &[u8]) -> Option<(Vec<Section>, Vec<Segment>, Section)> {
    const LOAD: u32 = 1;
    let order = if cfg!(target_endian = "little") { 1 } else { 2 };
    if !bytes.starts_with(&[0x7f, b'E', b'L', b'F', 2, order]) {
        return None;
    }
    let half = |at: usize| Some(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk()?));
    let word = |at: usize| Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?));
    let long = |at: usize| Some(u64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?));
    let row = |table: u64, size: u16, number: u16| {
        let at = (table as usize).checked_add(usize::from(size) * usize::from(number));
        // A row that begins in the file has at most 64 more bytes, which do not overflow.
        at.filter(|at| *at < bytes.len())
    };
    let section = |number: u16| -> Option<Section> {
        let at = row(long(40)?, half(58)?, number)?;
        Some(Section {
            name: word(at)?,
            kind: word(at + 4)?,
            address: long(at + 16)?,
            offset: long(at + 24)?,
            size: long(at + 32)?,
        })
    };
    let segment = |number: u16| -> Option<Option<Segment>> {
        let at = row(long(32)?, half(54)?, number)?;
        Some((word(at)? == LOAD).then_some(Segment {
            offset: long(at + 8)?,
            address: long(at + 16)?,
            size: long(at + 32)?,
        }))
    };
    let sections = (0..half(60)?).map(section).collect::<Option<Vec<_>>>()?;
    let segments = (0..half(56)?).map(segment).collect::<Option<Vec<_>>>()?;
    Some((
        sections,
        segments.into_iter().flatten().collect(),
        section(half(62)?)?,
    ))
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
