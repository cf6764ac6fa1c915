//! Loads and stores of whole vectors at any address.
//!
//! Those of `core::arch` copy bytes, and ask in debug builds whether the vector on the stack and the
//! memory overlap: a third of the code of such a build, and a quarter of the compiler's time.
//!
//! Stores are left to `core::arch`, but for those that have to be one: the compiler merges stores to the same
//! place, and may make two of its halves, for which a load behind them waits.

use core::arch::x86_64::{__m128i, __m256i, __m512i};

/// A vector, which any bytes are.
pub(crate) trait Vector: Copy {}
impl Vector for __m128i {}
impl Vector for __m256i {}
impl Vector for __m512i {}

#[repr(C, packed)]
struct Anywhere<V>(V);

/// Loads a vector.
///
/// # Safety
/// A vector's bytes are readable from there on.
#[inline(always)]
pub(crate) unsafe fn load<V: Vector>(from: *const u8) -> V {
    // SAFETY: the caller's contract; what is packed may be at any address.
    unsafe { (*from.cast::<Anywhere<V>>()).0 }
}

/// Stores a vector in one piece.
///
/// # Safety
/// A vector's bytes are writable from there on.
#[inline(always)]
pub(crate) unsafe fn store_whole<V: Vector>(to: *mut u8, vector: V) {
    // SAFETY: the caller's contract; what is packed may be at any address. Volatile stores are not merged.
    unsafe { to.cast::<Anywhere<V>>().write_volatile(Anywhere(vector)) }
}
