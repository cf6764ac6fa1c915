//! The cache lines that requests lie in, which the caller and the workers write in turn.

use cipherlane_core::Request;

/// Bytes of a cache line.
const LINE: usize = 64;

/// Brings the lines of requests to this core, to be written, all at the same time. Without it each comes
/// when it is needed, and the core waits for several of them one after another: on a Xeon a caller takes
/// 1.7 times as long to give 64 requests new IVs where a worker has written half of them.
#[inline]
pub(super) fn fetch(requests: &[Request<'_>]) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    for offset in (0..size_of_val(requests)).step_by(LINE) {
        let line = requests.as_ptr().cast::<u8>().wrapping_add(offset);
        // SAFETY: a hint. It changes nothing and cannot fail, whatever the address is, and processors
        // that do not know it do nothing.
        unsafe {
            std::arch::asm!("prefetchw [{}]", in(reg) line, options(nostack, preserves_flags));
        }
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = requests;
}
