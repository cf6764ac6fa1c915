//! Which process this is. A forked child has its parent's memory but not its threads, and
//! what must not be used twice, like a counter of nonces, it must not use at all.
//!
//! The mark of a process is a number in a page of its own that the kernel wipes in a child
//! (`MADV_WIPEONFORK`, Linux 4.14), whichever call made the child. Where the kernel does not
//! know that, the C library's handler of `fork` wipes the mark. So noticing a fork costs a
//! load; nothing is called, and nothing is written.
//!
//! A virtual machine that is copied, or taken back to a snapshot, is not noticed: its keys
//! have to be negotiated again.

use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

/// Bytes of the mapping; at least a page.
const MAPPING: usize = 64 << 10;

/// The mark of this process; null until somebody asks.
static MARK: AtomicPtr<AtomicU64> = AtomicPtr::new(std::ptr::null_mut());

/// Serves where there is no memory for a page.
static UNWIPED: AtomicU64 = AtomicU64::new(0);

/// Marks given by this process and those before it.
static GIVEN: AtomicU64 = AtomicU64::new(0);

/// The process that something belongs to.
///
/// ```
/// let owner = cipherlane_core::Process::current();
/// assert!(owner.is_current());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Process {
    mark: &'static AtomicU64,
    value: u64,
}

impl Process {
    /// The process that asks. Waits for nothing, so that a child may ask, whatever its
    /// parent's threads did at the fork.
    pub fn current() -> Self {
        let mark = mark();
        let mut value = mark.load(Ordering::Relaxed);
        if value == 0 {
            // Of several threads that find no mark one writes its own.
            let next = GIVEN.fetch_add(1, Ordering::Relaxed) + 1;
            let written = mark.compare_exchange(0, next, Ordering::Relaxed, Ordering::Relaxed);
            value = written.map_or_else(|other| other, |_| next);
        }
        Process { mark, value }
    }

    /// Whether this is it, and not a child of it.
    #[inline]
    pub fn is_current(&self) -> bool {
        self.mark.load(Ordering::Relaxed) == self.value
    }
}

fn mark() -> &'static AtomicU64 {
    let mut mark = MARK.load(Ordering::Acquire);
    if mark.is_null() {
        mark = make();
    }
    // SAFETY: `make` publishes pointers to an atomic that is never unmapped.
    unsafe { &*mark }
}

#[cold]
fn make() -> *mut AtomicU64 {
    // Miri neither maps nor forks.
    if cfg!(miri) {
        return (&raw const UNWIPED).cast_mut();
    }
    // Before the mark is there to be wiped. Twice does no harm.
    // SAFETY: the handler only loads and stores atomics, which a child may do at once.
    unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    let page = page();
    let own = page.unwrap_or((&raw const UNWIPED).cast_mut());
    let null = std::ptr::null_mut();
    match MARK.compare_exchange(null, own, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => own,
        Err(other) => {
            if let Some(page) = page {
                // SAFETY: nobody else has seen this mapping.
                let _ = unsafe { munmap(page.cast(), MAPPING) };
            }
            other
        }
    }
}

/// Zeros that are zeros again in a child.
fn page() -> Option<*mut AtomicU64> {
    let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
    // SAFETY: a new mapping at an address of the kernel's choice.
    let page = unsafe { mmap_anonymous(std::ptr::null_mut(), MAPPING, protection, flags) };
    let page = page.ok()?;
    // An older kernel refuses; then there is the handler.
    // SAFETY: the whole of that mapping, which nobody else knows.
    let _ = unsafe { madvise(page, MAPPING, Advice::LinuxWipeOnFork) };
    Some(page.cast())
}

extern "C" fn in_child() {
    // SAFETY: null, or published by `make`.
    if let Some(mark) = unsafe { MARK.load(Ordering::Acquire).as_ref() } {
        mark.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The exit status of a child that does `work`, made past the C library's handlers too.
    fn in_child(raw: bool, work: impl FnOnce() -> bool) -> i32 {
        // SAFETY: the child only uses atomics and leaves by `_exit`.
        let child = unsafe {
            match raw {
                false => libc::fork(),
                // SIGCHLD alone: a fork.
                true => {
                    let (flags, none) = (libc::c_long::from(libc::SIGCHLD), 0 as libc::c_long);
                    libc::syscall(libc::SYS_clone, flags, none, none, none, none) as i32
                }
            }
        };
        assert!(child >= 0);
        if child == 0 {
            let status = if work() { 0 } else { 1 };
            // SAFETY: ends the child.
            unsafe { libc::_exit(status) };
        }
        let mut status = 0;
        // SAFETY: waits for the child made above.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        status
    }

    #[test]
    #[cfg_attr(miri, ignore = "forks")]
    fn a_child_is_another_process_and_the_parent_stays_itself() {
        let parent = Process::current();
        // Elsewhere the call has other arguments, and an emulator may not wipe pages.
        let ways = [false, true];
        for &raw in &ways[..if cfg!(target_arch = "x86_64") { 2 } else { 1 }] {
            let status = in_child(raw, || {
                let child = Process::current();
                let grandchild = in_child(raw, || {
                    !parent.is_current() && !child.is_current() && Process::current().is_current()
                });
                !parent.is_current()
                    && child.is_current()
                    && Process::current().value == child.value
                    && grandchild == 0
            });
            assert_eq!(status, 0, "by the system call itself: {raw}");
            assert!(parent.is_current());
        }
    }

    #[test]
    fn threads_are_one_process() {
        let here = Process::current();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| assert_eq!(Process::current().value, here.value));
            }
        });
    }
}
