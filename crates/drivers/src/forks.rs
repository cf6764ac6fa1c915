//! Forks of this process: a child has its parent's memory but not its threads.

use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

/// Forks between the first process and this one, counted by the C library's handler, so
/// that noticing a fork costs a load.
static FORKS: AtomicU32 = AtomicU32::new(0);

extern "C" fn in_child() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// From now on forks are counted.
pub(crate) fn watch() {
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| {
        // SAFETY: the handler only adds to an atomic.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
}

/// Forks so far: another number than before means another process.
#[inline]
pub(crate) fn count() -> u32 {
    FORKS.load(Ordering::Relaxed)
}
