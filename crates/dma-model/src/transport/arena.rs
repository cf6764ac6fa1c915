//! The memory that driver and device share: one mapping, never moved, never shrunk.
//!
//! A device may write all of it at any time, whatever the protocol says. So nothing here
//! gives a reference to plain bytes: what is in the arena is reached through atomics, and read
//! once, into memory of one's own. The file is sealed: nobody who has it can cut the memory off
//! under the mapping, which would end the process by SIGBUS.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, compiler_fence};

use cipherlane_core::Process;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use super::wire::{ENTRY, Layout, OPERATION, REGISTERS, WIDE_REGISTERS};
use super::words::{self, WORD};

/// Shared memory of a [`Layout`].
#[derive(Debug)]
pub struct Arena {
    base: NonNull<u8>,
    layout: Layout,
    /// Bytes of the mapping.
    total: usize,
    file: OwnedFd,
    /// Of the process that made it.
    process: Process,
}

// SAFETY: the mapping belongs to the arena and lives as long; it is reached through atomics.
unsafe impl Send for Arena {}
// SAFETY: as above.
unsafe impl Sync for Arena {}

impl Arena {
    /// Zeroed memory in a file of its own (memfd), which another process could map too.
    ///
    /// # Errors
    /// What the system says; and `InvalidInput` for a layout that cannot be.
    pub fn new(layout: Layout) -> io::Result<Arena> {
        let total = layout.check().map_err(|problem| {
            io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("{problem}: {layout:?}"),
            )
        })?;
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = memfd_create("cipherlane-dma", flags)?;
        ftruncate(&file, total as u64)?;
        // Before anybody else can have the file, and for good.
        fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let base = unsafe {
            mmap(
                std::ptr::null_mut(),
                total,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                &file,
                0,
            )?
        };
        let base = NonNull::new(base.cast()).expect("mmap gives no null");
        Ok(Arena {
            base,
            layout,
            total,
            file,
            process: Process::current(),
        })
    }

    /// Whether this is a forked child: memory and device are the parent's.
    pub fn is_orphaned(&self) -> bool {
        !self.process.is_current()
    }

    /// Where things stand in it.
    #[inline]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The file, for a device in another process. Its length is sealed.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// A register of 32 bits.
    ///
    /// # Panics
    /// If there is none; so do the functions below.
    #[inline]
    pub fn register(&self, offset: usize) -> &AtomicU32 {
        assert!((WIDE_REGISTERS..REGISTERS).contains(&offset));
        // SAFETY: in the part of the arena that is reached as 32-bit atomics (checked).
        unsafe { self.at::<AtomicU32>(offset) }
    }

    /// A register of 64 bits.
    #[inline]
    pub fn wide_register(&self, offset: usize) -> &AtomicU64 {
        assert!(offset < WIDE_REGISTERS);
        // SAFETY: in the part of the arena that is reached as 64-bit atomics (checked).
        unsafe { self.at::<AtomicU64>(offset) }
    }

    /// A descriptor or a completion.
    #[inline]
    pub fn entry(&self, offset: usize) -> &[AtomicU64; 2] {
        const { assert!(ENTRY == 16) };
        assert!(offset >= REGISTERS);
        // SAFETY: as in `wide_register`.
        unsafe { self.at::<[AtomicU64; 2]>(offset) }
    }

    /// An operation.
    #[inline]
    pub fn operation(&self, offset: usize) -> &[AtomicU64; 7] {
        const { assert!(OPERATION >= 56) };
        assert!(offset >= REGISTERS);
        // SAFETY: as in `wide_register`.
        unsafe { self.at::<[AtomicU64; 7]>(offset) }
    }

    /// Copies bytes of slots or pool out.
    pub fn read(&self, offset: usize, to: &mut [u8]) {
        let (words, skip) = self.words(offset, to.len());
        words::read(words, skip, to);
    }

    /// Copies bytes into slots or pool.
    pub fn write(&self, offset: usize, from: &[u8]) {
        let (words, skip) = self.words(offset, from.len());
        words::write(words, skip, from);
    }

    /// Overwrites bytes of slots or pool with zeros.
    pub fn wipe(&self, offset: usize, len: usize) {
        let (words, skip) = self.words(offset, len);
        words::wipe(words, skip, len);
        // Others can see this memory, so that the writes cannot be left out.
        compiler_fence(Ordering::SeqCst);
    }

    /// The words that have these bytes, and how far in the first word they begin.
    fn words(&self, offset: usize, len: usize) -> (&[AtomicU64], usize) {
        let end = offset.checked_add(len).filter(|&end| end <= self.total);
        assert!(
            offset >= REGISTERS && end.is_some(),
            "{len} bytes at {offset} are not in the arena's slots and pool"
        );
        let skip = offset % WORD;
        let count = (skip + len).div_ceil(WORD);
        // SAFETY: in range (checked; the mapping is of whole words), aligned since pages
        // are, and in the part that is reached as 64-bit atomics.
        let words = unsafe {
            let first = self.base.as_ptr().add(offset - skip);
            std::slice::from_raw_parts(first.cast::<AtomicU64>(), count)
        };
        (words, skip)
    }

    /// # Safety
    /// `T` is made of the atomics by which that part of the arena is reached.
    unsafe fn at<T>(&self, offset: usize) -> &T {
        assert!(
            offset.is_multiple_of(align_of::<T>())
                && offset
                    .checked_add(size_of::<T>())
                    .is_some_and(|end| end <= self.total),
            "there is nothing at {offset} in the arena"
        );
        // SAFETY: in range and aligned (checked), any bits are valid (promised).
        unsafe { &*self.base.as_ptr().add(offset).cast::<T>() }
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        if !self.is_orphaned() {
            self.wipe(REGISTERS, self.total - REGISTERS);
        }
        // SAFETY: nobody borrows from an arena that is dropped. It cannot fail for a mapping
        // that is ours.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.total) };
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use rustix::fs::fcntl_get_seals;

    use super::*;

    const LAYOUT: Layout = Layout {
        ring: 8,
        pool: 4096,
    };

    #[test]
    fn a_device_cannot_take_the_memory_away() {
        let arena = Arena::new(LAYOUT).unwrap();
        let seals = fcntl_get_seals(arena.file()).unwrap();
        assert!(seals.contains(SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL));
        // What a device in another process would have.
        let file = File::from(arena.file().try_clone_to_owned().unwrap());
        for len in [
            0,
            1,
            LAYOUT.total() as u64 - 1,
            LAYOUT.total() as u64 + 4096,
        ] {
            let refused = file.set_len(len).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied, "{len}");
        }
        // Nor can it seal the driver's writing.
        let refused = fcntl_add_seals(&file, SealFlags::FUTURE_WRITE);
        assert_eq!(refused, Err(rustix::io::Errno::PERM));
        let last = LAYOUT.total() - 1;
        arena.write(last, &[7]);
        let mut byte = [0];
        arena.read(last, &mut byte);
        assert_eq!(byte, [7]);
    }

    #[test]
    fn what_is_not_there_is_not_reached() {
        let arena = Arena::new(LAYOUT).unwrap();
        let total = LAYOUT.total();
        fn refused<R>(f: impl Fn() -> R) {
            let f = std::panic::AssertUnwindSafe(f);
            assert!(std::panic::catch_unwind(f).is_err());
        }
        for offset in [0, 12, REGISTERS - 2, REGISTERS, total, usize::MAX - 3] {
            refused(|| arena.register(offset).load(Ordering::Relaxed));
        }
        for offset in [4, WIDE_REGISTERS, REGISTERS, total, usize::MAX - 7] {
            refused(|| arena.wide_register(offset).load(Ordering::Relaxed));
        }
        for offset in [0, REGISTERS + 4, total - 8, usize::MAX - 15] {
            refused(|| arena.entry(offset).len());
            refused(|| arena.operation(offset).len());
        }
        for offset in [0, REGISTERS - 1, total - 1, total, usize::MAX - 1] {
            refused(|| arena.read(offset, &mut [0; 2]));
            refused(|| arena.write(offset, &[0; 2]));
            refused(|| arena.wipe(offset, 2));
        }
        arena.read(total, &mut []);
    }

    #[test]
    fn a_layout_that_cannot_be_is_refused() {
        for (ring, pool) in [
            (0, 0),
            (6, 4096),
            (1 << 31, 0),
            (8, usize::MAX),
            (8, 1 << 62),
        ] {
            let error = Arena::new(Layout { ring, pool }).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{ring} {pool}");
        }
    }
}
