//! Overwriting what is secret.

use zeroize::optimization_barrier;

/// Overwrites `secret` with `zeros`, in stores as wide as the compiler likes, which it
/// must keep. Byte by byte, wiping a key would take longer than expanding it.
#[inline(always)]
pub(crate) fn wipe<T>(secret: &mut T, zeros: T) {
    *secret = zeros;
    optimization_barrier(secret);
}

/// Overwrites a slice of secrets with zeros.
#[inline(always)]
pub(crate) fn wipe_slice<T: Copy + Default>(secrets: &mut [T]) {
    secrets.fill(T::default());
    optimization_barrier(secrets);
}

/// Runs `run`, and wipes `BYTES` of the stack that it has used.
#[inline(always)]
pub(crate) fn and_stack<const BYTES: usize, R>(run: impl FnOnce() -> R) -> R {
    /// With a frame of its own, below that of the caller.
    #[inline(never)]
    fn below<R>(run: impl FnOnce() -> R) -> R {
        run()
    }
    let result = below(run);
    dead_stack::<BYTES>();
    result
}

/// Runs an implementation that stands on other crates, which move keys about on the stack, and
/// wipes what it has left there.
#[inline(always)]
pub(crate) fn on_portable<R>(run: impl FnOnce() -> R) -> R {
    and_stack::<{ 12 << 10 }, R>(run)
}

/// Bytes below their caller to which kernels use the stack.
const DEPTH: usize = 24 << 10;

/// Overwrites what kernels have left on the calling thread's stack: round keys, powers of H and
/// parts of keys for which the compiler had no registers.
///
/// For whoever lets go of a key, or will not use the kernels for a while. Kernels do not do it
/// themselves after each call, since that would take longer than to encrypt a short message. The
/// other threads that have used the key keep such remains until their stacks are used again.
pub fn wipe_stack() {
    dead_stack::<DEPTH>();
}

/// Overwrites `BYTES` of stack below the caller, where a function that has returned kept what
/// it had no registers for.
#[inline(never)]
pub(crate) fn dead_stack<const BYTES: usize>() {
    let dead = [0u8; BYTES];
    optimization_barrier(&dead);
}
