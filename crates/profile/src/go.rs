//! Names of functions of programs in Go. The runtime has a table of them (`.gopclntab`) that
//! stripping leaves in place, since stack traces need it. Its form is that of `debug/gosym` and of
//! `runtime/symtab.go`: the header of Go 1.16, and that of 1.18 and later.

use crate::elf::Elf;

/// The first word of the table, by the version of Go that brought its form.
const GO_1_16: u32 = 0xffff_fffa;
const GO_1_18: u32 = 0xffff_fff0;
const GO_1_20: u32 = 0xffff_fff1;

/// Bytes of a name at most: names of generic functions are long.
const LONGEST: usize = 1024;

/// Functions of a program, in the order of their places.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Functions<'b> {
    /// Start and end in the file, and the name.
    functions: Vec<(u64, u64, &'b str)>,
}

/// The table and its parts.
struct Table<'b> {
    bytes: &'b [u8],
    /// Bytes of a number in the list of functions: 4 or 8.
    width: usize,
    /// What the numbers in the list are added to.
    text: u64,
    /// Where the names begin, and the list.
    names: usize,
    list: usize,
    count: usize,
}

impl<'b> Functions<'b> {
    /// The functions of an ELF file; `None` where it is no program in Go, or is damaged.
    pub fn parse(bytes: &'b [u8]) -> Option<Self> {
        let elf = Elf::parse(bytes)?;
        let section = elf
            .section(b".gopclntab")
            .or_else(|| elf.section(b".data.rel.ro.gopclntab"))?;
        let text = elf.section(b".text").map_or(0, |text| text.address);
        let table = Table::parse(elf.contents(section)?, text)?;
        let mut functions: Vec<(u64, u64, &'b str)> = (0..table.count)
            .filter_map(|number| {
                let (start, end) = (table.start(number)?, table.start(number + 1)?);
                let place = elf.offset(start)?;
                let name = table.name(number)?;
                (start < end).then(|| (place, place.saturating_add(end - start), name))
            })
            .collect();
        functions.sort_unstable();
        Some(Self { functions })
    }

    /// Start and name of the function that has `offset` of the file.
    pub fn at(&self, offset: u64) -> Option<(u64, &'b str)> {
        let behind = self
            .functions
            .partition_point(|(start, ..)| *start <= offset);
        let &(start, end, name) = self.functions.get(behind.checked_sub(1)?)?;
        (offset < end).then_some((start, name))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.functions.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }
}

impl<'b> Table<'b> {
    /// `text` is where the program's code begins.
    fn parse(bytes: &'b [u8], text: u64) -> Option<Self> {
        let magic = u32::from_ne_bytes(*bytes.first_chunk()?);
        // Two zeros, the least length of an instruction, and bytes of an address.
        if bytes.get(4..6)? != [0, 0] || bytes.get(7)? != &8 {
            return None;
        }
        let field = |number: usize| -> Option<u64> {
            Some(u64::from_ne_bytes(
                *bytes.get(8 + 8 * number..)?.first_chunk()?,
            ))
        };
        let place = |number: usize| usize::try_from(field(number)?).ok();
        let table = match magic {
            GO_1_16 => Self {
                bytes,
                width: 8,
                text: 0,
                names: place(2)?,
                list: place(6)?,
                count: place(0)?,
            },
            GO_1_18 | GO_1_20 => Self {
                bytes,
                width: 4,
                // A program that can lie anywhere gets this number from its loader.
                text: Some(field(2)?).filter(|text| *text > 0).unwrap_or(text),
                names: place(3)?,
                list: place(7)?,
                count: place(0)?,
            },
            _ => return None,
        };
        // Each function has two numbers in the list.
        (table.count <= bytes.len() / (2 * table.width)).then_some(table)
    }

    /// A number of `width` bytes.
    fn number(&self, at: usize) -> Option<u64> {
        let bytes = self.bytes.get(at..)?;
        Some(match self.width {
            4 => u64::from(u32::from_ne_bytes(*bytes.first_chunk()?)),
            _ => u64::from_ne_bytes(*bytes.first_chunk()?),
        })
    }

    /// Where a row of the list is, or a part of it.
    fn row(&self, number: usize, part: usize) -> Option<usize> {
        self.list.checked_add((2 * number + part) * self.width)
    }

    /// The address where a function begins; of the one behind the last, where that ends.
    fn start(&self, number: usize) -> Option<u64> {
        self.number(self.row(number, 0)?)?.checked_add(self.text)
    }

    fn name(&self, number: usize) -> Option<&'b str> {
        let about = usize::try_from(self.number(self.row(number, 1)?)?).ok()?;
        // Behind its start.
        let at = self.list.checked_add(about)?.checked_add(self.width)?;
        let name = u32::from_ne_bytes(*self.bytes.get(at..)?.first_chunk()?);
        let name = self.bytes.get(self.names.checked_add(name as usize)?..)?;
        let end = name.iter().take(LONGEST).position(|byte| *byte == 0)?;
        let name = str::from_utf8(&name[..end]).ok()?;
        (!name.is_empty()).then_some(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table of two functions, `main.main` and `main.seal`.
    fn table(magic: u32) -> Vec<u8> {
        let (width, fields) = match magic {
            GO_1_16 => (8, 7),
            _ => (4, 8),
        };
        let names = b"\0main.main\0main.seal\0";
        let begin = 8 + 8 * fields;
        let list = begin + names.len() as u64;
        let mut bytes = magic.to_ne_bytes().to_vec();
        bytes.extend([0, 0, 1, 8]);
        let places = match magic {
            GO_1_16 => vec![2, 0, begin, 0, 0, 0, list],
            _ => vec![2, 0, 0x1000, begin, 0, 0, 0, list],
        };
        bytes.extend(places.iter().flat_map(|place| place.to_ne_bytes()));
        bytes.extend(names);
        let mut put = |value: u64| bytes.extend(&value.to_ne_bytes()[..width]);
        let base = if width == 8 { 0x1000 } else { 0 };
        // Start of each, where it is described, and the end of the last.
        let about = 5 * width as u64;
        for (start, about) in [(0x10, about), (0x40, about + width as u64 + 4)] {
            put(base + start);
            put(about);
        }
        put(base + 0x90);
        for (start, name) in [(0x10, 1u32), (0x40, 11)] {
            bytes.extend(&(base + start).to_ne_bytes()[..width]);
            bytes.extend(name.to_ne_bytes());
        }
        bytes
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn functions_of_each_form_have_names_and_places() {
        for magic in [GO_1_16, GO_1_18, GO_1_20] {
            let bytes = table(magic);
            let table = Table::parse(&bytes, 0).unwrap();
            let starts: Vec<_> = (0..3).map(|number| table.start(number)).collect();
            assert_eq!(starts, [Some(0x1010), Some(0x1040), Some(0x1090)]);
            let names = [0, 1].map(|number| table.name(number));
            assert_eq!(names, [Some("main.main"), Some("main.seal")]);
        }
    }

    #[test]
    fn a_damaged_table_has_no_functions_or_others_and_nothing_worse() {
        for magic in [GO_1_16, GO_1_18, GO_1_20] {
            let bytes = table(magic);
            let all = |bytes: &[u8]| {
                if let Some(table) = Table::parse(bytes, u64::MAX) {
                    for number in 0..table.count {
                        let _ = (table.start(number + 1), table.name(number));
                    }
                }
            };
            for end in 0..bytes.len() {
                all(&bytes[..end]);
            }
            for at in 0..bytes.len() {
                for value in [0, 0x7f, 0xff] {
                    let mut damaged = bytes.clone();
                    damaged[at] = value;
                    all(&damaged);
                }
            }
        }
        assert!(Functions::parse(b"\x7fELF").is_none());
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn a_file_is_read_as_a_whole() {
        // An ELF file with nothing but the table of Go 1.18 above, and code at 0x200.
        let file = include_bytes!("../tests/programs/go");
        let functions = Functions::parse(file).unwrap();
        assert_eq!(functions.len(), 2);
        assert_eq!(functions.at(0x20f), None);
        assert_eq!(functions.at(0x210), Some((0x210, "main.main")));
        assert_eq!(functions.at(0x28f), Some((0x240, "main.seal")));
        assert_eq!(functions.at(0x290), None);
    }

    /// As Debian ships it: without symbols.
    #[test]
    fn a_stripped_program_has_its_names() {
        let Ok(bytes) = std::fs::read("/usr/bin/wireguard-go") else {
            eprintln!("SKIPPED: /usr/bin/wireguard-go is not installed");
            return;
        };
        let functions = Functions::parse(&bytes).unwrap();
        assert!(functions.len() > 1000, "{}", functions.len());
        let named = |name: &str| {
            let found = functions.functions.iter().find(|(.., of)| *of == name);
            *found.unwrap_or_else(|| panic!("{name}"))
        };
        for name in ["main.main", "runtime.mallocgc", "runtime.memmove"] {
            let (start, end, _) = named(name);
            assert_eq!(functions.at(start), Some((start, name)));
            assert_eq!(functions.at(end - 1), Some((start, name)));
        }
        assert_eq!(functions.at(0), None);
    }
}
