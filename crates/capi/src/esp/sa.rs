//! SAs: made, used, freed.

use std::ffi::c_int;

use arrayvec::ArrayVec;
use cipherlane::Framework;
use cipherlane_esp::{Error, InboundSa, OutboundSa, SaParameters, Verdict};

use super::{Packet, Parameters};
use crate::memory::{array, free, give, handle, place};
use crate::status::{Refusal, answer};

/// The most packets that are on the stack; more are allocated.
const MAX_ON_STACK: usize = 32;

/// `cipherlane_outbound_sa_new`.
///
/// # Safety
/// `framework` is a handle, `parameters` leads to as many bytes as it says, and their pointers to
/// as many as their lengths say; `sa` has a place; each may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cipherlane_outbound_sa_new(
    framework: *const Framework,
    parameters: *const Parameters,
    sa: *mut *mut OutboundSa,
) -> c_int {
    // SAFETY: as promised.
    unsafe {
        new_sa(framework, parameters, sa, |framework, parameters| {
            OutboundSa::new(framework, parameters)
        })
    }
}

/// `cipherlane_inbound_sa_new`.
///
/// # Safety
/// As [`cipherlane_outbound_sa_new`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cipherlane_inbound_sa_new(
    framework: *const Framework,
    parameters: *const Parameters,
    sa: *mut *mut InboundSa,
) -> c_int {
    // SAFETY: as promised.
    unsafe {
        new_sa(framework, parameters, sa, |framework, parameters| {
            InboundSa::new(framework, parameters)
        })
    }
}

/// Makes an SA of either direction.
///
/// # Safety
/// As [`cipherlane_outbound_sa_new`].
unsafe fn new_sa<T>(
    framework: *const Framework,
    parameters: *const Parameters,
    sa: *mut *mut T,
    new: impl FnOnce(&Framework, SaParameters) -> Result<T, Error>,
) -> c_int {
    answer(|| {
        // SAFETY: as promised.
        let sa = unsafe { place("sa", sa) }?;
        // SAFETY: as promised.
        let (framework, parameters) = unsafe {
            (
                handle("framework", framework)?,
                Parameters::read(parameters)?,
            )
        };
        give(sa, new(framework, parameters)?);
        Ok(())
    })
}

/// `cipherlane_outbound_sa_free`.
///
/// # Safety
/// `sa` is a handle that is not used again, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cipherlane_outbound_sa_free(sa: *mut OutboundSa) {
    // SAFETY: as promised.
    unsafe { free(sa) }
}

/// `cipherlane_inbound_sa_free`.
///
/// # Safety
/// `sa` is a handle that is not used again, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cipherlane_inbound_sa_free(sa: *mut InboundSa) {
    // SAFETY: as promised.
    unsafe { free(sa) }
}

/// `cipherlane_outbound_sa_head_room`.
///
/// # Safety
/// `sa` is a handle, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cipherlane_outbound_sa_head_room(sa: *const OutboundSa) -> usize {
    // SAFETY: as promised.
    unsafe { sa.as_ref() }.map_or(0, OutboundSa::head_room)
}

/// `cipherlane_outbound_sa_tail_room`.
///
/// # Safety
/// `sa` is a handle, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cipherlane_outbound_sa_tail_room(sa: *const OutboundSa) -> usize {
    // SAFETY: as promised.
    unsafe { sa.as_ref() }.map_or(0, OutboundSa::tail_room)
}

/// `cipherlane_outbound_sa_seal`.
///
/// # Safety
/// `sa` is a handle, `packets` leads to `count` packets, whose buffers lead to as many bytes as
/// their lengths say, and `done` has a place; each may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cipherlane_outbound_sa_seal(
    sa: *const OutboundSa,
    packets: *mut Packet,
    count: usize,
    done: *mut usize,
) -> c_int {
    answer(|| {
        // SAFETY: as promised.
        let sa = unsafe { handle("sa", sa) }?;
        // SAFETY: as promised.
        unsafe { each(packets, count, done, |packets| sa.seal(packets)) }
    })
}

/// `cipherlane_inbound_sa_open`.
///
/// # Safety
/// As [`cipherlane_outbound_sa_seal`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cipherlane_inbound_sa_open(
    sa: *const InboundSa,
    packets: *mut Packet,
    count: usize,
    done: *mut usize,
) -> c_int {
    answer(|| {
        // SAFETY: as promised.
        let sa = unsafe { handle("sa", sa) }?;
        // SAFETY: as promised.
        unsafe { each(packets, count, done, |packets| sa.open(packets)) }
    })
}

/// Runs a batch, and writes what became of each packet.
///
/// # Safety
/// As [`cipherlane_outbound_sa_seal`].
unsafe fn each(
    packets: *mut Packet,
    count: usize,
    done: *mut usize,
    work: impl FnOnce(&mut [cipherlane_esp::Packet<'_>]),
) -> Result<(), Refusal> {
    // SAFETY: as promised.
    let packets = unsafe { array("packets", packets, count) }?;
    packets.iter_mut().for_each(Packet::begin);
    let good = if packets.len() <= MAX_ON_STACK {
        let mut few = ArrayVec::<cipherlane_esp::Packet<'_>, MAX_ON_STACK>::new();
        for packet in packets.iter() {
            // SAFETY: as promised.
            few.push(unsafe { packet.borrowed() }?);
        }
        work(&mut few);
        write_back(packets, &few)
    } else {
        let mut many = Vec::with_capacity(packets.len());
        for packet in packets.iter() {
            // SAFETY: as promised.
            many.push(unsafe { packet.borrowed() }?);
        }
        work(&mut many);
        write_back(packets, &many)
    };
    // SAFETY: as promised.
    if let Some(done) = unsafe { done.as_mut() } {
        *done = good;
    }
    Ok(())
}

fn write_back(packets: &mut [Packet], worked: &[cipherlane_esp::Packet<'_>]) -> usize {
    let mut good = 0;
    for (packet, worked) in packets.iter_mut().zip(worked) {
        packet.end(worked);
        good += usize::from(matches!(
            worked.verdict(),
            Verdict::Sealed | Verdict::Accepted
        ));
    }
    good
}

/// `struct cipherlane_esp_statistics`.
#[derive(Debug)]
#[repr(C)]
pub struct Statistics {
    packets: u64,
    bytes: u64,
    lost: u64,
    refused: u64,
}

impl From<cipherlane_esp::statistics::Statistics> for Statistics {
    fn from(counted: cipherlane_esp::statistics::Statistics) -> Self {
        Statistics {
            packets: counted.packets,
            bytes: counted.bytes,
            lost: counted.lost,
            refused: counted
                .refused
                .iter()
                .fold(0, |sum, n| sum.wrapping_add(*n)),
        }
    }
}

/// `cipherlane_outbound_sa_statistics`.
///
/// # Safety
/// `sa` is a handle, and `statistics` has a place; each may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cipherlane_outbound_sa_statistics(
    sa: *const OutboundSa,
    statistics: *mut Statistics,
) -> c_int {
    answer(|| {
        // SAFETY: as promised.
        unsafe { tell(handle("sa", sa)?.statistics().into(), statistics) }
    })
}

/// `cipherlane_inbound_sa_statistics`.
///
/// # Safety
/// As [`cipherlane_outbound_sa_statistics`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cipherlane_inbound_sa_statistics(
    sa: *const InboundSa,
    statistics: *mut Statistics,
) -> c_int {
    answer(|| {
        // SAFETY: as promised.
        unsafe { tell(handle("sa", sa)?.statistics().into(), statistics) }
    })
}

/// # Safety
/// `place` has a place, or is null.
unsafe fn tell(counted: Statistics, place: *mut Statistics) -> Result<(), Refusal> {
    if place.is_null() {
        return Err(Refusal::Argument("statistics is NULL".to_owned()));
    }
    // SAFETY: as promised; what was there is overwritten without being read.
    unsafe { place.write(counted) };
    Ok(())
}
