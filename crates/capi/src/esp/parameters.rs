//! What a caller in C says of an SA.

use std::ffi::c_char;

use cipherlane_esp::{Encapsulation, Keys, Mode, SaParameters, Suite};

use crate::memory::{bytes, sized, text};
use crate::status::Refusal;

/// `struct cipherlane_sa_parameters`.
#[derive(Debug)]
#[repr(C)]
pub struct Parameters {
    size: usize,
    spi: u32,
    transform: *const c_char,
    encryption_key: *const u8,
    encryption_key_len: usize,
    integrity_key: *const u8,
    integrity_key_len: usize,
    replay_window: u32,
    without_replay_protection: u8,
    without_esn: u8,
    transport_mode: u8,
    udp: u8,
    last_sequence: u64,
}

impl Parameters {
    /// The same for the ESP crate.
    ///
    /// # Safety
    /// `pointer` is null or leads to as many bytes as its first word says; the pointers in it
    /// lead to as many bytes as their lengths say.
    pub(super) unsafe fn read(pointer: *const Parameters) -> Result<SaParameters, Refusal> {
        if pointer.is_null() {
            return Err(Refusal::Argument("parameters is NULL".to_owned()));
        }
        let mut given = Parameters {
            size: size_of::<Parameters>(),
            spi: 0,
            transform: std::ptr::null(),
            encryption_key: std::ptr::null(),
            encryption_key_len: 0,
            integrity_key: std::ptr::null(),
            integrity_key_len: 0,
            replay_window: 0,
            without_replay_protection: 0,
            without_esn: 0,
            transport_mode: 0,
            udp: 0,
            last_sequence: 0,
        };
        // SAFETY: as promised; every pattern of bytes is a value of these fields.
        let (name, encryption, integrity) = unsafe {
            sized("cipherlane_sa_parameters", pointer, &mut given)?;
            (
                text("transform", given.transform)?,
                bytes(
                    "encryption_key",
                    given.encryption_key,
                    given.encryption_key_len,
                )?,
                bytes(
                    "integrity_key",
                    given.integrity_key,
                    given.integrity_key_len,
                )?,
            )
        };
        let known = Suite::NAMED.iter().find(|(known, _)| *known == name);
        let &(_, transform) = known.ok_or_else(|| {
            let names = Suite::NAMED.map(|(name, _)| name).join(", ");
            Refusal::Argument(format!(
                "there is no transform '{name}'; those that there are: {names}"
            ))
        })?;
        let keys = Keys::pair(encryption, integrity);
        let mut parameters = SaParameters::new(given.spi, transform, keys);
        parameters.esn = given.without_esn == 0;
        if given.without_replay_protection != 0 {
            parameters.replay_window = None;
        } else if given.replay_window != 0 {
            parameters.replay_window = Some(given.replay_window);
        }
        if given.transport_mode != 0 {
            parameters.mode = Mode::Transport;
        }
        if given.udp != 0 {
            // Headers, and so ports, are the caller's.
            parameters.encapsulation = Encapsulation::Udp {
                source: 4500,
                destination: 4500,
            };
        }
        if given.last_sequence != 0 {
            parameters.resume_after(given.last_sequence);
        }
        Ok(parameters)
    }
}
