//! Wiping what kernels leave on the stack: round keys, powers of H and parts of keys for which the
//! compiler had no registers.
//!
//! For whoever lets go of a key, or will not use the kernels for a while. Kernels do not do it
//! themselves after each call, since that would take longer than to encrypt a short message. The
//! other threads that have used the key keep such remains until their stacks are used again.

use crate::wipe::{dead_part, dead_stack};

/// Bytes below their caller to which kernels may leave keys, more than tests find on every set of
/// instructions: `left_behind` of this crate finds how deep release builds go, that of the provider how
/// deep keys are left where there are debug assertions, whose checks make frames larger.
pub mod depth {
    /// Any kernel.
    pub const ANY: usize = 24 << 10;
    /// A key or one message in ECB, CBC or CTR.
    pub const BLOCKS: usize = by_build(640, 1 << 10);
    /// A key or one message in XTS.
    pub const XTS: usize = by_build(1 << 10, 8 << 10);
    /// A key or one message in GCM.
    pub const GCM: usize = by_build(3 << 10, 4 << 10);
    /// A key or one message in any mode.
    pub const ONE: usize = 10 << 10;

    const fn by_build(release: usize, with_assertions: usize) -> usize {
        match cfg!(debug_assertions) {
            true => with_assertions,
            false => release,
        }
    }
}

/// Bytes of a piece of a message in ECB, CBC or CTR, all of them whole blocks, of which kernels leave
/// nothing on the stack if it is no longer than this.
pub const CLEAN: usize = 240;

/// Overwrites as much of the calling thread's stack as any kernel may have used.
pub fn wipe_stack() {
    dead_stack::<{ depth::ANY }>();
}

/// How far down the stack the kernels have been under one key, so that the rest of the stack needs no
/// wiping: to wipe what any kernel may have used takes as long as a short message does.
#[derive(Clone, Copy, Debug)]
pub struct StackUse {
    /// The lowest address.
    lowest: usize,
}

impl StackUse {
    /// No kernel was called.
    pub const NONE: StackUse = StackUse { lowest: usize::MAX };

    /// Notes that kernels may use `bytes` of the stack below the caller.
    // Most calls go as deep as the last one: without a store, the next load waits for nothing.
    #[inline(always)]
    pub fn note(&mut self, bytes: usize) {
        let lowest = here().saturating_sub(bytes);
        if lowest < self.lowest {
            self.lowest = lowest;
        }
    }

    /// Overwrites the stack from the caller on down to the lowest address that was noted, or
    /// as much as [`wipe_stack`] does if that is less. The stack of another thread, where it was used
    /// there, keeps what it has.
    #[inline(always)]
    pub fn wipe(self) {
        let Some(used) = here().checked_sub(self.lowest) else {
            return;
        };
        match used {
            ..=0x1000 => dead_part::<0x1000>(used),
            0x1001..=0x2000 => dead_part::<0x2000>(used),
            0x2001..=0x4000 => dead_part::<0x4000>(used),
            _ => dead_part::<{ depth::ANY }>(depth::ANY),
        }
    }
}

/// An address in the frame of the caller.
#[inline(always)]
fn here() -> usize {
    let here = 0u8;
    (&raw const here).addr()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_noted_is_kept_to_the_lowest() {
        let mut used = StackUse::NONE;
        assert!(here() < used.lowest);
        used.note(5000);
        let lowest = used.lowest;
        used.note(100);
        assert_eq!(used.lowest, lowest);
        used.note(9000);
        assert!(lowest - used.lowest > 3000);
    }
}
