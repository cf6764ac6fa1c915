//! Overwriting what is secret.

use core::mem::MaybeUninit;

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

/// Overwrites `BYTES` of stack below the caller, where a function that has returned kept what
/// it had no registers for.
#[inline(never)]
pub(crate) fn dead_stack<const BYTES: usize>() {
    let dead = [0u8; BYTES];
    optimization_barrier(&dead);
}

/// Overwrites `len` bytes of stack below the caller, at most `ROOM`. The registers of the
/// caller that this function saves stay there.
// Each piece is too short for `rep stosb`, which takes long to begin.
#[inline(never)]
pub(crate) fn dead_part<const ROOM: usize>(len: usize) {
    let mut dead = [MaybeUninit::<u8>::uninit(); ROOM];
    // The end of it is next to the caller.
    for piece in dead[ROOM - len.min(ROOM)..].rchunks_mut(1 << 10) {
        for byte in &mut *piece {
            byte.write(0);
        }
        optimization_barrier(piece);
    }
}
