//! Room on the stack for states of AES that a long request keeps.
//!
//! Whoever takes a state for the last time leaves zeros in its place, beside work that the stores do
//! not delay: to overwrite all of them behind the request takes up to a twentieth of the time of one of
//! 16 KiB.

use core::mem::MaybeUninit;

use crate::aes::key::Block;

/// Blocks whose counters differ in the last byte alone.
pub(crate) const WINDOW: usize = 256;

/// Room for the states of a window.
#[repr(align(64))]
pub(crate) struct States(MaybeUninit<[Block; WINDOW]>);

impl States {
    #[inline(always)]
    pub(crate) fn new() -> States {
        States(MaybeUninit::uninit())
    }

    /// The place of the first states.
    #[inline(always)]
    pub(crate) fn start<V>(&mut self) -> *mut V {
        const { assert!(align_of::<V>() <= align_of::<States>()) };
        self.0.as_mut_ptr().cast()
    }
}

/// Keeps states from that place on.
///
/// # Safety
/// The place has room for them.
#[inline(always)]
pub(crate) unsafe fn keep<V: Copy, const W: usize>(states: &[V; W], place: *mut V) {
    // SAFETY: as for this function.
    unsafe { place.cast::<[V; W]>().write(*states) }
}

/// Overwrites states that were taken for the last time.
///
/// # Safety
/// As for [`keep`].
#[inline(always)]
pub(crate) unsafe fn forget<V: Copy, const W: usize>(zero: V, place: *mut V) {
    for i in 0..W {
        // SAFETY: as for this function. Volatile, or the compiler would leave out what nobody reads.
        unsafe { place.add(i).write_volatile(zero) }
    }
}
