//! The program's allocator: what is allocated within a [`scope`] lies in memory of its own, which
//! is locked, so that it is not swapped out, left out of core dumps, and wiped when it is freed.
//!
//! A scope around the making of a session has the key schedules there as well, whichever crate
//! allocates them, and at no cost where they are used. Everything else goes to the system's
//! allocator; freeing costs two compares more.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr::{null_mut, write_volatile};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, compiler_fence};
use std::sync::{Mutex, PoisonError};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mlock, mmap_anonymous};

/// Bytes of the memory: keys, schedules, and what else is allocated beside them.
const LEN: usize = 256 << 10;
/// Bytes of an allocation that is not expected here: keys and schedules are smaller, tables of
/// costs and the buffers of self-tests are larger.
const LARGE: usize = 16 << 10;
/// Bytes of a unit; no allocation has a stricter alignment there.
const UNIT: usize = 64;
/// Units of a word of the map.
const BITS: usize = u64::BITS as usize;

/// The allocator.
pub(crate) struct Arena;

/// Where the memory begins; 0 before it is needed, 1 where there is none to be had.
static START: AtomicUsize = AtomicUsize::new(0);
const NONE: usize = 1;

/// Bytes from the start that are locked.
static LOCKED: AtomicUsize = AtomicUsize::new(0);

/// Whether something had to be allocated elsewhere.
static FULL: AtomicBool = AtomicBool::new(false);

/// Which units are taken.
static TAKEN: Mutex<Taken> = Mutex::new(Taken {
    map: [0; LEN / UNIT / BITS],
    too_many: usize::MAX,
});

struct Taken {
    /// A bit a unit.
    map: [u64; LEN / UNIT / BITS],
    /// This number of free units in a row was looked for in vain, and no unit has become free
    /// since: ten thousand tunnels allocate a million times where everything is taken.
    too_many: usize,
}

thread_local! {
    /// Scopes that this thread is in.
    static SCOPES: Cell<usize> = const { Cell::new(0) };
}

/// Does `work`; what it allocates in this thread is secret.
pub(crate) fn scope<T>(work: impl FnOnce() -> T) -> T {
    struct Scope;
    impl Drop for Scope {
        fn drop(&mut self) {
            SCOPES.set(SCOPES.get() - 1);
        }
    }
    prepare();
    SCOPES.set(SCOPES.get() + 1);
    let _scope = Scope;
    work()
}

/// What is not as it should be, in words.
pub(super) fn note() -> Option<&'static str> {
    let locked = LOCKED.load(Ordering::Relaxed);
    match () {
        () if START.load(Ordering::Relaxed) == NONE => {
            Some("keys are in ordinary memory, which may be swapped out: there is no other")
        }
        () if locked < LEN => Some(
            "keys are in memory that may be swapped out: the limit on locked memory is too low \
             (raise it by 'ulimit -l 512')",
        ),
        () if FULL.load(Ordering::Relaxed) => {
            Some("some of what belongs to keys is in ordinary memory, which may be swapped out")
        }
        () => None,
    }
}

/// Maps the memory, once.
fn prepare() {
    let _one = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
    if START.load(Ordering::Relaxed) != 0 {
        return;
    }
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: new memory, which is never unmapped; locking and advice change nothing that is
    // seen of it.
    let start = unsafe {
        match mmap_anonymous(null_mut(), LEN, access, MapFlags::PRIVATE) {
            Ok(memory) => {
                let _ = madvise(memory, LEN, Advice::LinuxDontDump);
                // As much as the limit allows: allocations begin at the start.
                let lengths = std::iter::successors(Some(LEN), |len| Some(len / 2));
                let mut lengths = lengths.take_while(|&len| len >= 4096);
                let locked = lengths.find(|&len| mlock(memory, len).is_ok());
                LOCKED.store(locked.unwrap_or(0), Ordering::Relaxed);
                memory.expose_provenance()
            }
            Err(_) => NONE,
        }
    };
    START.store(start, Ordering::Release);
}

/// Where an address lies in the memory.
fn offset(address: usize) -> Option<usize> {
    let start = START.load(Ordering::Acquire);
    let offset = address.wrapping_sub(start);
    (start > NONE && offset < LEN).then_some(offset)
}

/// The first of `units` free ones in a row, which are then taken.
fn take(units: usize) -> Option<usize> {
    let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
    if units >= taken.too_many {
        return None;
    }
    let mut free = 0;
    for unit in 0..LEN / UNIT {
        let is_taken = taken.map[unit / BITS] >> (unit % BITS) & 1 == 1;
        free = if is_taken { 0 } else { free + 1 };
        if free == units {
            let first = unit + 1 - units;
            mark(&mut taken.map, first, units, true);
            return Some(first);
        }
    }
    taken.too_many = units;
    None
}

fn mark(map: &mut [u64], first: usize, units: usize, taken: bool) {
    for unit in first..first + units {
        let bit = 1 << (unit % BITS);
        match taken {
            true => map[unit / BITS] |= bit,
            false => map[unit / BITS] &= !bit,
        }
    }
}

/// Room in the memory.
fn place(layout: Layout) -> Option<*mut u8> {
    let start = START.load(Ordering::Acquire);
    let small = layout.size() <= LARGE && layout.align() <= UNIT;
    let fits = start > NONE && small;
    let first = fits.then(|| take(units(layout))).flatten();
    if first.is_none() && small {
        FULL.store(true, Ordering::Relaxed);
    }
    Some(std::ptr::with_exposed_provenance_mut(start + first? * UNIT))
}

/// Units for an allocation.
fn units(layout: Layout) -> usize {
    layout.size().div_ceil(UNIT).max(1)
}

// SAFETY: what is not in a scope is the system allocator's. The memory's units are given to one
// allocation at a time, are aligned to `UNIT`, and go back by the same layout.
unsafe impl GlobalAlloc for Arena {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // A thread that ends has no scopes any more.
        let secret = SCOPES.try_with(|scopes| scopes.get() > 0).unwrap_or(false);
        match secret.then(|| place(layout)).flatten() {
            Some(pointer) => pointer,
            // SAFETY: the caller's promise.
            None => unsafe { System.alloc(layout) },
        }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        let Some(offset) = offset(pointer.addr()) else {
            // SAFETY: not ours, so the system allocator's; the rest is the caller's promise.
            return unsafe { System.dealloc(pointer, layout) };
        };
        for byte in 0..layout.size() {
            // SAFETY: within the allocation, which nobody else uses any more.
            unsafe { write_volatile(pointer.add(byte), 0) };
        }
        compiler_fence(Ordering::SeqCst);
        let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        mark(&mut taken.map, offset / UNIT, units(layout), false);
        taken.too_many = usize::MAX;
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if SCOPES.try_with(|scopes| scopes.get() > 0).unwrap_or(false) {
            // SAFETY: the caller's promise; the memory has the layout's size.
            unsafe {
                let pointer = self.alloc(layout);
                if !pointer.is_null() {
                    pointer.write_bytes(0, layout.size());
                }
                return pointer;
            }
        }
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if offset(pointer.addr()).is_none() {
            // Begun outside of a scope: it stays outside.
            // SAFETY: the system allocator's; the rest is the caller's promise.
            return unsafe { System.realloc(pointer, layout, size) };
        }
        // It stays there where there is room, also after its scope.
        // SAFETY: the caller promises a size that is no overflow; both allocations are as long
        // as what is copied, and are two.
        unsafe {
            let larger = Layout::from_size_align_unchecked(size, layout.align());
            let fresh = place(larger).unwrap_or_else(|| System.alloc(larger));
            if !fresh.is_null() {
                pointer.copy_to_nonoverlapping(fresh, layout.size().min(size));
                self.dealloc(pointer, layout);
            }
            fresh
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_secret<T: ?Sized>(value: &T) -> bool {
        offset(std::ptr::from_ref(value).addr()).is_some()
    }

    #[test]
    fn what_is_allocated_in_a_scope_is_apart_and_wiped() {
        let outside = Box::new(7u8);
        let (inside, mut text) = scope(|| (Box::new([7u64; 100]), String::from("key")));
        assert!(is_secret(&*inside) && is_secret(text.as_str()));
        assert!(!is_secret(&*outside));
        let address = inside.as_ptr().addr();
        assert_eq!(address % UNIT, 0);
        // Grown after the scope, it stays there.
        text.push_str(&"x".repeat(1000));
        assert!(is_secret(text.as_str()) && text.starts_with("keyx"));
        assert!(scope(|| is_secret(&*vec![0u8; 64])));
        let large = scope(|| vec![1u8; LARGE + 1]);
        assert!(!is_secret(&large[..]), "it is no key");
    }

    #[test]
    fn threads_have_scopes_of_their_own_and_units_are_not_given_twice() {
        std::thread::scope(|threads| {
            for number in 0..4u8 {
                threads.spawn(move || {
                    for round in 1..200usize {
                        let len = round * 7 % 500 + 1;
                        let secret = scope(|| vec![number; len]);
                        let plain = vec![number; len];
                        assert!(is_secret(&secret[..]) && !is_secret(&plain[..]));
                        std::thread::yield_now();
                        assert!(secret.iter().all(|&byte| byte == number));
                    }
                });
            }
        });
    }
}
