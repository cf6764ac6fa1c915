//! Where data comes from: a regular file, read at many places at once, or a stream, read in
//! order. Either way it comes in chunks that know their place and whether they are the last.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::buffer::Buffer;
use super::cipher::BLOCK;
use crate::failure::Failure;

/// A piece of the input. All but the last are a multiple of [`BLOCK`] bytes long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chunk {
    /// Counted from 0.
    pub(super) index: u64,
    /// Where its first byte is in the input.
    pub(super) offset: u64,
    /// Bytes.
    pub(super) len: usize,
    /// The block before it; zeros before the first.
    pub(super) before: [u8; BLOCK],
    /// Nothing comes after it.
    pub(super) last: bool,
}

/// The input.
#[derive(Debug)]
pub(super) struct Source {
    name: String,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Regular(Regular),
    Stream(Mutex<Stream>),
}

/// A file that can be read anywhere.
#[derive(Debug)]
struct Regular {
    file: File,
    len: u64,
    chunk: usize,
    /// The next chunk to hand out.
    next: AtomicU64,
    /// The chunk that met the end; `u64::MAX` before.
    last: AtomicU64,
    /// Chunks handed out with data, at most.
    used: AtomicU64,
}

/// A pipe, a terminal, a device, or a file without a length as in /proc.
#[derive(Debug)]
struct Stream {
    file: File,
    chunk: usize,
    index: u64,
    offset: u64,
    /// Read already, but for the next chunk.
    carried: Vec<u8>,
    before: [u8; BLOCK],
    /// Keep the newest block back until it is known whether it is the last.
    holds_back: bool,
    ended: bool,
}

impl Source {
    /// Opens `path`, or standard input without one. `holds_back` makes sure that the last chunk
    /// ends with a whole block if the input does.
    pub(super) fn open(
        path: Option<&Path>,
        chunk: usize,
        holds_back: bool,
    ) -> Result<Source, Failure> {
        let (name, file) = match path {
            Some(path) => (
                format!("'{}'", path.display()),
                File::open(path).map_err(|error| Failure::path("read", path, &error))?,
            ),
            None => {
                let name = "standard input".to_owned();
                let file = io::stdin().as_fd().try_clone_to_owned();
                let file = file.map_err(|error| Failure::io("read", &name, &error))?;
                (name, File::from(file))
            }
        };
        let metadata = file
            .metadata()
            .map_err(|error| Failure::io("read", &name, &error))?;
        if metadata.is_dir() {
            let error = io::Error::from(io::ErrorKind::IsADirectory);
            return Err(Failure::io("read", &name, &error));
        }
        // Standard input may stand in the middle of its file, which others share.
        let kind = if path.is_some() && metadata.is_file() && metadata.len() > 0 {
            let advice = rustix::fs::Advice::Sequential;
            let _ = rustix::fs::fadvise(&file, 0, None, advice);
            Kind::Regular(Regular {
                file,
                len: metadata.len(),
                chunk,
                next: AtomicU64::new(0),
                last: AtomicU64::new(u64::MAX),
                used: AtomicU64::new(0),
            })
        } else {
            // Fewer, larger reads where it is a pipe; else it has no effect.
            let _ = rustix::pipe::fcntl_setpipe_size(&file, 1 << 20);
            Kind::Stream(Mutex::new(Stream {
                file,
                chunk,
                index: 0,
                offset: 0,
                carried: Vec::with_capacity(2 * BLOCK),
                before: [0; BLOCK],
                holds_back,
                ended: false,
            }))
        };
        Ok(Source { name, kind })
    }

    /// What to call it in messages.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Bytes in all, where that is known beforehand.
    pub(super) fn len(&self) -> Option<u64> {
        match &self.kind {
            Kind::Regular(regular) => Some(regular.len),
            Kind::Stream(_) => None,
        }
    }

    /// The next chunk, in `buffer`; `None` after the last.
    pub(super) fn next(&self, buffer: &mut Buffer) -> Result<Option<Chunk>, Failure> {
        let chunk = match &self.kind {
            Kind::Regular(regular) => regular.next(buffer),
            Kind::Stream(stream) => stream
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .next(buffer),
        };
        chunk.map_err(|error| Failure::io("read", &self.name, &error))
    }

    /// After the last chunk: whether what was read is one state of the input.
    pub(super) fn check(&self) -> Result<(), Failure> {
        let Kind::Regular(regular) = &self.kind else {
            return Ok(());
        };
        let last = regular.last.load(Ordering::Relaxed);
        if last.checked_add(1) != Some(regular.used.load(Ordering::Relaxed)) {
            return Err(Failure::Runtime(format!(
                "{} was cut off or grew while it was read; try again when nobody writes to it",
                self.name
            )));
        }
        Ok(())
    }
}

impl Regular {
    fn next(&self, buffer: &mut Buffer) -> io::Result<Option<Chunk>> {
        let index = self.next.fetch_add(1, Ordering::Relaxed);
        if index > self.last.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let offset = index * self.chunk as u64;
        let lead = if index == 0 { 0 } else { BLOCK };
        // One byte more tells whether this is the end.
        let region = buffer.from_before(lead, self.chunk + 1);
        let mut filled = 0;
        while filled < region.len() {
            match self
                .file
                .read_at(&mut region[filled..], offset - lead as u64 + filled as u64)
            {
                Ok(0) => break,
                Ok(n) => filled += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let len = filled.saturating_sub(lead);
        let last = len <= self.chunk;
        if len == 0 && index > 0 {
            return Ok(None);
        }
        let mut before = [0; BLOCK];
        before[..lead].copy_from_slice(&region[..lead]);
        if last {
            self.last.fetch_min(index, Ordering::Relaxed);
        }
        self.used.fetch_max(index + 1, Ordering::Relaxed);
        Ok(Some(Chunk {
            index,
            offset,
            len: len.min(self.chunk),
            before,
            last,
        }))
    }
}

impl Stream {
    /// As much as is there now, up to a chunk: a slow writer's data goes on at once.
    fn next(&mut self, buffer: &mut Buffer) -> io::Result<Option<Chunk>> {
        if self.ended {
            return Ok(None);
        }
        let region = buffer.from_before(0, self.chunk + BLOCK);
        let mut filled = self.carried.len();
        region[..filled].copy_from_slice(&self.carried);
        self.carried.clear();
        while filled < region.len() {
            // More than a block, so that something is left when a block is kept back.
            if filled > BLOCK && !readable(&self.file) {
                break;
            }
            match self.file.read(&mut region[filled..]) {
                Ok(0) => {
                    self.ended = true;
                    break;
                }
                Ok(n) => filled += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if !self.ended {
            let kept = match filled % BLOCK {
                0 if self.holds_back => BLOCK,
                part => part,
            };
            self.carried
                .extend_from_slice(&region[filled - kept..filled]);
            filled -= kept;
        }
        let chunk = Chunk {
            index: self.index,
            offset: self.offset,
            len: filled,
            before: self.before,
            last: self.ended,
        };
        if filled >= BLOCK {
            self.before.copy_from_slice(&region[filled - BLOCK..filled]);
        }
        self.index += 1;
        self.offset += filled as u64;
        Ok(Some(chunk))
    }
}

/// Whether a read would return at once. Where that cannot be told, it is tried.
fn readable(file: &File) -> bool {
    let mut descriptors = [PollFd::new(file, PollFlags::IN)];
    poll(&mut descriptors, Some(&Timespec::default())).map_or(true, |ready| ready > 0)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// Chunks of 64 bytes until the end, and their bytes joined.
    fn read_all(source: &Source) -> (Vec<Chunk>, Vec<u8>) {
        let mut buffer = Buffer::new(64);
        let (mut chunks, mut bytes) = (Vec::new(), Vec::new());
        while let Some(chunk) = source.next(&mut buffer).unwrap() {
            assert_eq!(chunk.offset, bytes.len() as u64);
            if let Some(start) = bytes.len().checked_sub(BLOCK) {
                assert_eq!(chunk.before, bytes[start..]);
            }
            bytes.extend_from_slice(buffer.payload(chunk.len));
            chunks.push(chunk);
        }
        source.check().unwrap();
        (chunks, bytes)
    }

    fn stream(read: impl Into<std::os::fd::OwnedFd>, holds_back: bool) -> Source {
        Source {
            name: "a pipe".to_owned(),
            kind: Kind::Stream(Mutex::new(Stream {
                file: File::from(read.into()),
                chunk: 64,
                index: 0,
                offset: 0,
                carried: Vec::new(),
                before: [0; BLOCK],
                holds_back,
                ended: false,
            })),
        }
    }

    #[test]
    fn files_and_streams_come_whole_and_the_last_chunk_knows_it() {
        let data: Vec<u8> = (0..1000u32).map(|i| (i * 7) as u8).collect();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        for len in [0, 1, 15, 16, 17, 63, 64, 65, 127, 128, 129, 1000] {
            std::fs::write(&path, &data[..len]).unwrap();
            for holds_back in [false, true] {
                let (read, mut write) = io::pipe().unwrap();
                write.write_all(&data[..len]).unwrap();
                drop(write);
                let file = Source::open(Some(&path), 64, holds_back).unwrap();
                for source in [file, stream(read, holds_back)] {
                    let (chunks, bytes) = read_all(&source);
                    assert_eq!(bytes, data[..len]);
                    let lasts = chunks.iter().filter(|c| c.last).count();
                    assert!(lasts == 1 && chunks.last().unwrap().last, "{len}");
                    assert!(chunks.iter().rev().skip(1).all(|c| c.len % BLOCK == 0));
                    if holds_back && len > 0 && len % BLOCK == 0 {
                        assert!(chunks.last().unwrap().len >= BLOCK, "{len}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_slow_stream_is_handed_on_as_it_comes() {
        let (read, mut write) = io::pipe().unwrap();
        let source = stream(read, false);
        let mut buffer = Buffer::new(64);
        write.write_all(&[1; 35]).unwrap();
        assert_eq!(source.next(&mut buffer).unwrap().unwrap().len, 32);
        write.write_all(&[2; 29]).unwrap();
        assert_eq!(source.next(&mut buffer).unwrap().unwrap().len, 32);
        drop(write);
        let end = source.next(&mut buffer).unwrap().unwrap();
        assert!(end.last && end.len == 0);
    }

    #[test]
    fn a_file_cut_off_under_way_is_noticed() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(64 * 10).unwrap();
        let source = Source::open(Some(file.path()), 64, false).unwrap();
        let mut buffer = Buffer::new(64);
        for _ in 0..4 {
            source.next(&mut buffer).unwrap().unwrap();
        }
        file.as_file().set_len(64).unwrap();
        while source.next(&mut buffer).unwrap().is_some() {}
        assert!(source.check().is_err());
    }
}
