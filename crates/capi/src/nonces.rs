//! Nonces that never come twice.

use std::ffi::c_int;

use cipherlane::NonceCounter;

use crate::memory::{bytes, bytes_mut, free, give, handle, place};
use crate::status::{Refusal, answer};

/// `cipherlane_nonces_new`.
///
/// # Safety
/// `fixed` leads to 4 bytes, `nonces` has a place; each may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cipherlane_nonces_new(
    fixed: *const u8,
    first: u64,
    nonces: *mut *mut NonceCounter,
) -> c_int {
    answer(|| {
        // SAFETY: as promised.
        let (nonces, fixed) = unsafe { (place("nonces", nonces)?, bytes("fixed", fixed, 4)?) };
        let fixed = fixed
            .try_into()
            .map_err(|_| Refusal::Argument("fixed takes 4 bytes".to_owned()))?;
        give(nonces, NonceCounter::beginning_at(fixed, first));
        Ok(())
    })
}

/// `cipherlane_nonces_next`.
///
/// # Safety
/// `nonces` is a handle, `nonce` leads to 12 bytes; each may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cipherlane_nonces_next(
    nonces: *const NonceCounter,
    nonce: *mut u8,
) -> c_int {
    answer(|| {
        // SAFETY: as promised.
        let (nonces, nonce) =
            unsafe { (handle("nonces", nonces)?, bytes_mut("nonce", nonce, 12)?) };
        nonce.copy_from_slice(&nonces.next()?);
        Ok(())
    })
}

/// `cipherlane_nonces_free`.
///
/// # Safety
/// `nonces` is a handle that is not used again, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cipherlane_nonces_free(nonces: *mut NonceCounter) {
    // SAFETY: as promised.
    unsafe { free(nonces) }
}
