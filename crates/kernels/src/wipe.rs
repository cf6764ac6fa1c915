//! Overwriting what is secret.

use zeroize::optimization_barrier;

/// Overwrites `secret` with `zeros`, in stores as wide as the compiler likes, which it
/// must keep. Byte by byte, wiping a key would take longer than expanding it.
#[inline(always)]
pub(crate) fn wipe<T>(secret: &mut T, zeros: T) {
    *secret = zeros;
    optimization_barrier(secret);
}

/// Overwrites `BYTES` of stack below the caller, where a function that has returned kept what
/// it had no registers for.
#[cfg(target_arch = "x86_64")]
#[inline(never)]
pub(crate) fn dead_stack<const BYTES: usize>() {
    let dead = [0u8; BYTES];
    optimization_barrier(&dead);
}
