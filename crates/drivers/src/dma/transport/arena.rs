//! The memory that driver and device share: one mapping, never moved, never shrunk.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, compiler_fence};

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use super::wire::{ENTRY, Layout, OPERATION};
use crate::forks;

/// Shared memory of a [`Layout`].
#[derive(Debug)]
pub struct Arena {
    base: NonNull<u8>,
    layout: Layout,
    file: OwnedFd,
    /// Of the process that made it.
    generation: u32,
}

// SAFETY: the mapping belongs to the arena and lives as long; it is reached through atomics,
// and through raw pointers whose users agree by the rings who may use which bytes.
unsafe impl Send for Arena {}
// SAFETY: as above.
unsafe impl Sync for Arena {}

impl Arena {
    /// Zeroed memory in a file of its own (memfd), which another process could map too.
    pub fn new(layout: Layout) -> io::Result<Arena> {
        forks::watch();
        let file = memfd_create("cipherlane-dma", MemfdFlags::CLOEXEC)?;
        ftruncate(&file, layout.total() as u64)?;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let base = unsafe {
            mmap(
                std::ptr::null_mut(),
                layout.total(),
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
            file,
            generation: forks::count(),
        })
    }

    /// Whether this is a forked child: memory and device are the parent's.
    pub fn is_orphaned(&self) -> bool {
        self.generation != forks::count()
    }

    /// Where things stand in it.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The file, for a device in another process.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// A register of 32 bits.
    pub fn register(&self, offset: usize) -> &AtomicU32 {
        // SAFETY: in range and aligned (checked); the mapping is only reached by atomics there.
        unsafe { self.at::<AtomicU32>(offset) }
    }

    /// A register of 64 bits.
    pub fn wide_register(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: as in `register`.
        unsafe { self.at::<AtomicU64>(offset) }
    }

    /// A descriptor or a completion.
    pub fn entry(&self, offset: usize) -> &[AtomicU64; 2] {
        const { assert!(ENTRY == 16) };
        // SAFETY: as in `register`.
        unsafe { self.at::<[AtomicU64; 2]>(offset) }
    }

    /// An operation.
    pub fn operation(&self, offset: usize) -> &[AtomicU64; 7] {
        const { assert!(OPERATION >= 56) };
        // SAFETY: as in `register`; slots are aligned.
        unsafe { self.at::<[AtomicU64; 7]>(offset) }
    }

    /// Bytes for copying in and out.
    ///
    /// # Panics
    /// If they are not all in the arena.
    pub fn bytes(&self, offset: usize, len: usize) -> *mut u8 {
        assert!(
            offset
                .checked_add(len)
                .is_some_and(|end| end <= self.layout.total()),
            "{len} bytes at {offset} are not in the arena"
        );
        // SAFETY: in range.
        unsafe { self.base.as_ptr().add(offset) }
    }

    /// Overwrites bytes with zeros.
    ///
    /// # Safety
    /// Nobody else may use them meanwhile, but for a device that has been given up.
    pub unsafe fn wipe(&self, offset: usize, len: usize) {
        let bytes = self.bytes(offset, len);
        // Not by volatile bytes, which are ten times slower: others can see this memory, so
        // that the writes cannot be left out.
        // SAFETY: in range (checked); ours alone (the caller's promise).
        unsafe { std::ptr::write_bytes(bytes, 0, len) };
        compiler_fence(Ordering::SeqCst);
    }

    /// # Safety
    /// `T` is made of atomics and valid for any bits.
    unsafe fn at<T>(&self, offset: usize) -> &T {
        assert!(offset.is_multiple_of(align_of::<T>()));
        // SAFETY: in range (`bytes` checks), aligned (checked), any bits are valid (promised).
        unsafe { &*self.bytes(offset, size_of::<T>()).cast::<T>() }
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: nobody borrows from an arena that is dropped.
        unsafe {
            if !self.is_orphaned() {
                self.wipe(0, self.layout.total());
            }
            // Cannot fail for a mapping that is ours.
            let _ = munmap(self.base.as_ptr().cast(), self.layout.total());
        }
    }
}
