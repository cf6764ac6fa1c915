//! Where functions begin that have no name: the unwinding tables (`.eh_frame`) list them all.

#[allow(unsafe_code)]
mod chosen;

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use gimli::{BaseAddresses, CieOrFde, EhFrame, EndianSlice, NativeEndian, UnwindSection};

use crate::elf::Elf;

/// The C library's functions that were chosen for this processor, by file and offset, to their
/// names. Variants of a function share long parts, which the tables list as functions of their own:
/// a part that a chosen one jumps into has its name too.
pub(crate) fn chosen() -> HashMap<(String, u64), &'static str> {
    let mut chosen = chosen::chosen();
    // Only the jumps of these processors are known here.
    if !cfg!(target_arch = "x86_64") {
        return chosen;
    }
    let mut files = HashMap::new();
    let mut found: Vec<_> = chosen.clone().into_iter().collect();
    found.sort_unstable();
    for ((path, start), name) in found {
        let (bytes, starts) = files.entry(path.clone()).or_insert_with(|| {
            let bytes = fs::read(&path).unwrap_or_default();
            let starts = Starts::of(&bytes);
            (bytes, starts)
        });
        for target in starts.jumps(bytes, start) {
            chosen.entry((path.clone(), target)).or_insert(name);
        }
    }
    chosen
}

/// Starts and ends of the functions of a file, as offsets in the file, in order.
#[derive(Debug, Default)]
pub(crate) struct Starts(Vec<(u64, u64)>);

impl Starts {
    /// Reads a file; nothing where it is not an ELF file of this kind of machine.
    pub(crate) fn read(path: &Path) -> Self {
        fs::read(path).map_or_else(|_| Self::default(), |bytes| Self::of(&bytes))
    }

    /// Those of a file with these bytes.
    fn of(bytes: &[u8]) -> Self {
        let mut starts = functions(bytes).unwrap_or_default();
        starts.sort_unstable();
        Self(starts)
    }

    /// The start of the function that has `offset`.
    pub(crate) fn before(&self, offset: u64) -> Option<u64> {
        let at = self.0.partition_point(|(start, _)| *start <= offset);
        let &(start, end) = self.0.get(at.checked_sub(1)?)?;
        (offset < end).then_some(start)
    }

    /// Starts of the other functions that the one at `start` jumps into.
    fn jumps(&self, bytes: &[u8], start: u64) -> Vec<u64> {
        let Ok(at) = self.0.binary_search_by_key(&start, |&(start, _)| start) else {
            return Vec::new();
        };
        let code = bytes.get(start as usize..self.0[at].1 as usize);
        let targets = targets(code.unwrap_or_default());
        let absolute = targets.filter_map(|target| start.checked_add_signed(target));
        let others = absolute.filter_map(|target| self.before(target));
        others.filter(|&other| other != start).collect()
    }
}

/// Where the jumps of this code with distances of four bytes go, from its beginning. Bytes that only
/// look like such a jump mostly go to no function.
fn targets(code: &[u8]) -> impl Iterator<Item = i64> {
    (0..code.len()).filter_map(|at| {
        let distance = match code[at..] {
            // `jmp`, and the conditional jumps of x86-64.
            [0xe9, ref distance @ ..] | [0x0f, 0x80..=0x8f, ref distance @ ..] => distance,
            _ => return None,
        };
        let next = code.len() - distance.len() + 4;
        let distance = i32::from_le_bytes(*distance.first_chunk()?);
        Some(next as i64 + i64::from(distance))
    })
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
    fn a_part_that_variants_share_is_found_by_the_jump_to_it() {
        let mut bytes = vec![0x90; 64];
        // `ja` from 4 to 36, which is in the function at 32; `jmp` from 10 to 2, its own.
        bytes[4..10].copy_from_slice(&[0x0f, 0x87, 26, 0, 0, 0]);
        bytes[10..15].copy_from_slice(&[0xe9, 0xf3, 0xff, 0xff, 0xff]);
        let starts = Starts(vec![(0, 16), (16, 32), (32, 64)]);
        assert_eq!(starts.jumps(&bytes, 0), [32]);
        assert_eq!(starts.jumps(&bytes, 16), [0; 0]);
        // Nothing is there, a file that is shorter than its table says.
        assert_eq!(starts.jumps(&bytes, 8), [0; 0]);
        assert_eq!(starts.jumps(&bytes[..12], 0), [0; 0]);
    }

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
