//! The guest's memory, by the addresses that its kernel knows.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use cipherlane_dma_model::transport::{Bus, DmaFault};
use vm_memory::{Bytes, FileOffset, GuestAddress, GuestMemoryMmap};

use super::Error;

/// From this size on QEMU's machine q35 puts a part of the memory above 4 GiB...
const SPLIT_FROM: u64 = 0xb000_0000;
/// ...and leaves this much below.
const LOW: u64 = 0x8000_0000;
/// Where the rest begins.
const HIGH: u64 = 1 << 32;

/// The memory of a guest on QEMU's machine q35: a file that QEMU maps too
/// (`memory-backend-file,share=on`).
///
/// Whoever may write the file can make it shorter, and an access beyond its end would end this
/// process by a signal. The guest cannot; so the file should belong to the user who runs
/// both programs.
#[derive(Debug)]
pub struct Ram {
    memory: GuestMemoryMmap,
    /// To be removed at the end, if it was made here.
    made: Option<PathBuf>,
}

impl Ram {
    /// Maps a file of that many bytes. Where there is none it is made, for this user alone,
    /// and removed when this value is dropped.
    pub fn new(path: &Path, bytes: u64) -> Result<Ram, Error> {
        let fail = |problem: String| Error::Memory {
            file: path.to_owned(),
            problem,
        };
        if bytes == 0 || !bytes.is_multiple_of(1 << 20) || bytes > 1 << 42 {
            return Err(fail(format!(
                "cannot have {bytes} bytes; give what QEMU's -m says, in MiB"
            )));
        }
        let (file, made) = open(path).map_err(|error| {
            fail(format!(
                "cannot be opened: {error}; name a file in /dev/shm that is yours"
            ))
        })?;
        // From here on it is removed whatever happens.
        let mut ram = Ram {
            memory: GuestMemoryMmap::new(),
            made: made.then(|| path.to_owned()),
        };
        if made {
            file.set_len(bytes)
                .map_err(|error| fail(format!("cannot get {bytes} bytes: {error}")))?;
        }
        let len = file.metadata().map_err(Error::System)?.len();
        if len != bytes {
            return Err(fail(format!(
                "has {len} bytes, and the guest's memory has {bytes}; give --size as QEMU's -m, \
                 or remove the file"
            )));
        }
        let ranges = ranges(bytes).into_iter().map(|(address, len, offset)| {
            let file = file.try_clone()?;
            let part = FileOffset::new(file, offset);
            Ok((GuestAddress(address), len as usize, Some(part)))
        });
        let ranges = ranges.collect::<io::Result<Vec<_>>>()?;
        ram.memory = GuestMemoryMmap::from_ranges_with_files(ranges)
            .map_err(|error| fail(format!("cannot be mapped: {error}")))?;
        Ok(ram)
    }
}

impl Drop for Ram {
    fn drop(&mut self) {
        if let Some(path) = &self.made {
            // It may be gone, which is as well.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// The file, and whether it was made.
fn open(path: &Path) -> io::Result<(File, bool)> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    match options.clone().create_new(true).open(path) {
        Ok(file) => Ok((file, true)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Ok((options.open(path)?, false))
        }
        Err(error) => Err(error),
    }
}

/// Address in the guest, bytes, and offset in the file of each part (QEMU, `hw/i386/pc_q35.c`).
fn ranges(bytes: u64) -> Vec<(u64, u64, u64)> {
    match bytes < SPLIT_FROM {
        true => vec![(0, bytes, 0)],
        false => vec![(0, LOW, 0), (HIGH, bytes - LOW, LOW)],
    }
}

impl Bus for Ram {
    fn read(&self, address: u64, to: &mut [u8]) -> Result<(), DmaFault> {
        let address = self.check(address, to.len())?;
        self.memory.read_slice(to, address).or(Err(DmaFault))
    }

    fn write(&self, address: u64, from: &[u8]) -> Result<(), DmaFault> {
        let address = self.check(address, from.len())?;
        self.memory.write_slice(from, address).or(Err(DmaFault))
    }
}

impl Ram {
    /// All of it or nothing: the copies would begin with what is there.
    fn check(&self, address: u64, len: usize) -> Result<GuestAddress, DmaFault> {
        use vm_memory::GuestMemoryBackend;
        let address = GuestAddress(address);
        match self.memory.check_range(address, len) {
            true => Ok(address),
            false => Err(DmaFault),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_guests_memory_is_reached_and_all_of_it_or_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ram");
        let ram = Ram::new(&path, 1 << 20).unwrap();
        ram.write((1 << 20) - 4, &[1, 2, 3, 4]).unwrap();
        let mut back = [0; 4];
        ram.read((1 << 20) - 4, &mut back).unwrap();
        assert_eq!(back, [1, 2, 3, 4]);
        for address in [(1 << 20) - 3, 1 << 20, 1 << 32, u64::MAX - 1, u64::MAX >> 1] {
            assert_eq!(ram.write(address, &[9; 4]), Err(DmaFault), "{address:x}");
            assert_eq!(ram.read(address, &mut back), Err(DmaFault), "{address:x}");
        }
        ram.read((1 << 20) - 4, &mut back).unwrap();
        assert_eq!(back, [1, 2, 3, 4]);
        drop(ram);
        assert!(!path.exists());
    }

    #[test]
    fn a_file_of_another_length_is_refused_and_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ram");
        std::fs::write(&path, [0; 4096]).unwrap();
        let error = Ram::new(&path, 1 << 20).unwrap_err().to_string();
        assert!(
            error.contains("4096") && error.contains("--size"),
            "{error}"
        );
        assert!(path.exists());
        assert!(Ram::new(&path, 4096).is_err());
    }

    #[test]
    fn memory_beyond_the_hole_stands_above_four_gibibytes() {
        assert_eq!(ranges(512 << 20), [(0, 512 << 20, 0)]);
        assert_eq!(ranges(4 << 30), [(0, LOW, 0), (HIGH, 2 << 30, LOW)]);
    }
}
