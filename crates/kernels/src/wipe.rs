//! Overwriting what is secret.

use zeroize::optimization_barrier;

/// Overwrites `secret` with `zeros`, in stores as wide as the compiler likes, which it
/// must keep. Byte by byte, wiping a key would take longer than expanding it.
#[inline(always)]
pub(crate) fn wipe<T>(secret: &mut T, zeros: T) {
    *secret = zeros;
    optimization_barrier(secret);
}
