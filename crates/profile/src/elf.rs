//! Sections and loaded segments of an ELF file of 64 bits and this machine's order of bytes
//! (elf(5)). Files may be anybody's: whatever is wrong with them, there is no panic.

/// Without contents in the file.
const NOBITS: u32 = 8;
/// A segment that is loaded.
const LOAD: u32 = 1;

/// A file.
pub(crate) struct Elf<'b> {
    bytes: &'b [u8],
    sections: Vec<Section>,
    segments: Vec<Segment>,
    /// The names of sections begin here.
    names: u64,
}

/// What a section header says.
pub(crate) struct Section {
    name: u32,
    kind: u32,
    pub(crate) address: u64,
    offset: u64,
    size: u64,
}

/// A part of the file that is loaded.
struct Segment {
    offset: u64,
    address: u64,
    size: u64,
}

impl<'b> Elf<'b> {
    /// `None` where it is no such file.
    pub(crate) fn parse(bytes: &'b [u8]) -> Option<Self> {
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
        Some(Elf {
            bytes,
            sections,
            segments: segments.into_iter().flatten().collect(),
            names: section(half(62)?)?.offset,
        })
    }

    /// The section of that name.
    pub(crate) fn section(&self, wanted: &[u8]) -> Option<&Section> {
        self.sections.iter().find(|section| {
            let at = (self.names as usize).checked_add(section.name as usize);
            let name = at.and_then(|at| self.bytes.get(at..));
            name.is_some_and(|name| name.starts_with(wanted) && name.get(wanted.len()) == Some(&0))
        })
    }

    /// What a section has in the file.
    pub(crate) fn contents(&self, section: &Section) -> Option<&'b [u8]> {
        let end = section.offset.checked_add(section.size)?;
        let is_there = section.kind != NOBITS;
        is_there.then(|| self.bytes.get(section.offset as usize..end as usize))?
    }

    /// Where in the file an address is.
    pub(crate) fn offset(&self, address: u64) -> Option<u64> {
        let mut segments = self.segments.iter();
        let segment = segments.find(|segment| {
            address >= segment.address && address - segment.address < segment.size
        })?;
        segment.offset.checked_add(address - segment.address)
    }
}
