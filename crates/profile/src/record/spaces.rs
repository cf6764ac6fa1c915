//! Address spaces: which file, and where in it, an address of a program is.

use std::collections::{BTreeMap, HashMap};

use super::target::threads;

/// A place in a program, as it stays true when the program has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Place {
    /// An address of the kernel.
    Kernel(u64),
    /// A file (its index) and the offset in it.
    File(u32, u64),
    /// Code that is in no file.
    Nowhere,
}

/// Mappings of every process seen.
#[derive(Debug, Default)]
pub(crate) struct Spaces {
    /// By process: start of the mapping, its end, the file, and the offset in it.
    spaces: HashMap<u32, BTreeMap<u64, (u64, u32, u64)>>,
    /// Paths.
    pub(crate) files: Vec<String>,
    known: HashMap<String, u32>,
}

impl Spaces {
    /// A file is mapped from `start` on.
    pub(crate) fn map(&mut self, pid: u32, start: u64, length: u64, offset: u64, path: &str) {
        let next = self.files.len() as u32;
        let file = *self.known.entry(path.to_owned()).or_insert(next);
        if file == next {
            self.files.push(path.to_owned());
        }
        let space = self.spaces.entry(pid).or_default();
        let end = start.saturating_add(length);
        // What was there before is gone, and no record tells of unmapping: its two ends may stay.
        let below = space.range(..start).next_back();
        if let Some((&old, &(old_end, old_file, old_offset))) = below
            && old_end > start
        {
            space.insert(old, (start, old_file, old_offset));
            if old_end > end {
                space.insert(end, (old_end, old_file, old_offset.wrapping_add(end - old)));
            }
        }
        let covered: Vec<u64> = space.range(start..end).map(|(&old, _)| old).collect();
        for old in covered {
            let (old_end, old_file, old_offset) = space.remove(&old).expect("it was found");
            if old_end > end {
                space.insert(end, (old_end, old_file, old_offset.wrapping_add(end - old)));
            }
        }
        space.insert(start, (end, file, offset));
    }

    /// Another program took the process over.
    pub(crate) fn clear(&mut self, pid: u32) {
        self.spaces.remove(&pid);
    }

    /// A process is a copy of another one.
    pub(crate) fn fork(&mut self, parent: u32, child: u32) {
        if let Some(space) = self.spaces.get(&parent).filter(|_| parent != child) {
            let space = space.clone();
            self.spaces.insert(child, space);
        }
    }

    /// What a process that was there before us has mapped (proc_pid_maps(5)).
    pub(crate) fn read(&mut self, pid: u32) {
        let read = |of: String| std::fs::read_to_string(of).unwrap_or_default();
        let mut maps = read(format!("/proc/{pid}/maps"));
        if maps.is_empty() {
            // A first thread that has ended has no memory any more, and its process may go on.
            let threads = threads(pid).unwrap_or_default().into_iter();
            let mut of_each = threads.map(|tid| read(format!("/proc/{pid}/task/{tid}/maps")));
            maps = of_each.find(|maps| !maps.is_empty()).unwrap_or_default();
        }
        for (start, end, offset, path) in maps.lines().filter_map(line) {
            self.map(pid, start, end - start, offset, path);
        }
    }

    /// Whether anything is known of a process.
    pub(crate) fn knows(&self, pid: u32) -> bool {
        self.spaces.contains_key(&pid)
    }

    /// Where an address of a process is.
    pub(crate) fn place(&self, pid: u32, address: u64) -> Place {
        let space = self.spaces.get(&pid);
        let below = space.and_then(|space| space.range(..=address).next_back());
        match below {
            Some((start, &(end, file, offset))) if address < end => {
                Place::File(file, (address - start).wrapping_add(offset))
            }
            _ => Place::Nowhere,
        }
    }
}

/// Start, end, offset and path of a mapping with code.
fn line(line: &str) -> Option<(u64, u64, u64, &str)> {
    let mut words = line.splitn(6, char::is_whitespace);
    let (start, end) = words.next()?.split_once('-')?;
    let rights = words.next()?;
    let offset = u64::from_str_radix(words.next()?, 16).ok()?;
    let path = words.nth(2)?.trim_start();
    let (start, end) = (
        u64::from_str_radix(start, 16).ok()?,
        u64::from_str_radix(end, 16).ok()?,
    );
    (rights.contains('x') && start < end).then_some((start, end, offset, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_become_places_in_files() {
        let mut spaces = Spaces::default();
        spaces.map(1, 0x1000, 0x1000, 0x500, "/bin/a");
        spaces.map(1, 0x4000, 0x1000, 0, "/lib/b");
        assert_eq!(spaces.place(1, 0x1010), Place::File(0, 0x510));
        assert_eq!(spaces.place(1, 0x4fff), Place::File(1, 0xfff));
        assert_eq!(spaces.place(1, 0x2000), Place::Nowhere);
        assert_eq!(spaces.place(2, 0x1010), Place::Nowhere);
        spaces.fork(1, 2);
        assert_eq!(spaces.place(2, 0x1010), Place::File(0, 0x510));
        spaces.clear(1);
        assert_eq!(spaces.place(1, 0x1010), Place::Nowhere);
    }

    #[test]
    fn a_new_mapping_takes_the_place_of_old_ones() {
        let mut spaces = Spaces::default();
        spaces.map(1, 0x1000, 0x4000, 0, "/lib/large");
        spaces.map(1, 0x2000, 0x1000, 0, "/lib/inside");
        assert_eq!(spaces.place(1, 0x1800), Place::File(0, 0x800));
        assert_eq!(spaces.place(1, 0x2800), Place::File(1, 0x800));
        assert_eq!(spaces.place(1, 0x3800), Place::File(0, 0x2800));
        // It covers one and a half of those before.
        spaces.map(1, 0x1800, 0x2000, 0, "/lib/over");
        assert_eq!(spaces.place(1, 0x17ff), Place::File(0, 0x7ff));
        assert_eq!(spaces.place(1, 0x2800), Place::File(2, 0x1000));
        assert_eq!(spaces.place(1, 0x3800), Place::File(0, 0x2800));
        assert_eq!(spaces.place(1, 0x5000), Place::Nowhere);
    }

    #[test]
    fn lines_of_maps() {
        let found = line("7f00-8f00 r-xp 00001000 fd:01 123      /usr/lib/a b.so");
        assert_eq!(found, Some((0x7f00, 0x8f00, 0x1000, "/usr/lib/a b.so")));
        assert_eq!(line("7f00-8f00 rw-p 00001000 fd:01 123 /a"), None);
        assert_eq!(line("rubbish"), None);
    }

    #[test]
    fn this_process_is_known() {
        let mut spaces = Spaces::default();
        spaces.read(std::process::id());
        let here = this_process_is_known as *const () as u64;
        assert!(matches!(
            spaces.place(std::process::id(), here),
            Place::File(..)
        ));
    }
}
