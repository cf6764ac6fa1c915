//! A key in use, and the calls of one message.

use std::ffi::{c_char, c_int};

use cipherlane::{Framework, Goal, Session};

use crate::memory::{
    apart, bytes, bytes_mut, check, free, give, handle, place, region, sized, text,
};
use crate::status::{Refusal, answer};

/// `struct cipherlane_options`.
#[derive(Debug)]
#[repr(C)]
pub struct Options {
    size: usize,
    tag_len: usize,
    driver: *const c_char,
    goal: c_int,
}

impl Options {
    /// A copy of the caller's, whose structure may be of a later version: what is unknown here
    /// must be 0 there.
    ///
    /// # Safety
    /// `pointer` is null or leads to as many bytes as its first word says.
    unsafe fn read(pointer: *const Options) -> Result<Options, Refusal> {
        let mut options = Options {
            size: size_of::<Options>(),
            tag_len: 0,
            driver: std::ptr::null(),
            goal: 0,
        };
        if pointer.is_null() {
            return Ok(options);
        }
        // SAFETY: as promised; every pattern of bytes is a value of these fields.
        unsafe { sized("cipherlane_options", pointer, &mut options) }?;
        Ok(options)
    }
}

/// `cipherlane_session_open`.
///
/// # Safety
/// `framework` is a handle, `algorithm` a string, `key` leads to `key_len` bytes, `options` to
/// as many as it says, and `session` has a place; each may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cipherlane_session_open(
    framework: *const Framework,
    algorithm: *const c_char,
    key: *const u8,
    key_len: usize,
    options: *const Options,
    session: *mut *mut Session,
) -> c_int {
    answer(|| {
        // SAFETY: as promised.
        let session = unsafe { place("session", session) }?;
        // SAFETY: as promised.
        let (framework, algorithm, key, options) = unsafe {
            (
                handle("framework", framework)?,
                text("algorithm", algorithm)?,
                bytes("key", key, key_len)?,
                Options::read(options)?,
            )
        };
        let mut builder = framework.session(algorithm, key)?;
        if options.tag_len != 0 {
            builder = builder.tag_len(options.tag_len);
        }
        if !options.driver.is_null() {
            // SAFETY: as promised.
            builder = builder.driver(unsafe { text("driver", options.driver) }?);
        }
        builder = match options.goal {
            0 => builder,
            1 => builder.goal(Goal::Latency),
            2 => builder.goal(Goal::Throughput),
            3 => builder.goal(Goal::Cpu),
            unknown => {
                return Err(Refusal::Argument(format!(
                    "goal {unknown}: use one of CIPHERLANE_GOAL_*"
                )));
            }
        };
        give(session, builder.open()?);
        Ok(())
    })
}

/// `cipherlane_session_free`.
///
/// # Safety
/// `session` is a handle that is not used again, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cipherlane_session_free(session: *mut Session) {
    // SAFETY: as promised.
    unsafe { free(session) }
}

/// `cipherlane_seal`.
///
/// # Safety
/// `session` is a handle, and each pointer leads to as many bytes as its length says; each may
/// be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cipherlane_seal(
    session: *const Session,
    nonce: *const u8,
    nonce_len: usize,
    aad: *const u8,
    aad_len: usize,
    data: *mut u8,
    len: usize,
    tag: *mut u8,
    tag_len: usize,
) -> c_int {
    answer(|| {
        // SAFETY: as promised.
        let message = unsafe {
            Message::read(
                session,
                (nonce, nonce_len),
                (aad, aad_len),
                (data, len),
                (tag, tag_len),
            )
        }?;
        // SAFETY: as promised, and the tag is apart from the rest.
        let tag = unsafe { bytes_mut("tag", tag, tag_len) }?;
        let Message {
            session,
            nonce,
            aad,
            data,
        } = message;
        Ok(session.seal(nonce.bytes(), aad, data, tag)?)
    })
}

/// `cipherlane_open`.
///
/// # Safety
/// As [`cipherlane_seal`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cipherlane_open(
    session: *const Session,
    nonce: *const u8,
    nonce_len: usize,
    aad: *const u8,
    aad_len: usize,
    data: *mut u8,
    len: usize,
    tag: *const u8,
    tag_len: usize,
) -> c_int {
    answer(|| {
        // SAFETY: as promised.
        let message = unsafe {
            Message::read(
                session,
                (nonce, nonce_len),
                (aad, aad_len),
                (data, len),
                (tag, tag_len),
            )
        }?;
        // SAFETY: as promised, and the tag is apart from the rest.
        let tag = unsafe { bytes("tag", tag, tag_len) }?;
        let Message {
            session,
            nonce,
            aad,
            data,
        } = message;
        Ok(session.open(nonce.bytes(), aad, data, tag)?)
    })
}

/// What both calls of an AEAD are given besides the tag, which one writes and the other reads.
struct Message<'a> {
    session: &'a Session,
    nonce: Iv,
    aad: &'a [u8],
    data: &'a mut [u8],
}

impl<'a> Message<'a> {
    /// Refuses what is null where it may not be, and memory that is not apart.
    ///
    /// # Safety
    /// As [`cipherlane_seal`].
    #[inline]
    unsafe fn read(
        session: *const Session,
        (nonce, nonce_len): (*const u8, usize),
        (aad, aad_len): (*const u8, usize),
        (data, len): (*mut u8, usize),
        tag: (*const u8, usize),
    ) -> Result<Self, Refusal> {
        // SAFETY: as promised. The nonce is copied before anything is written.
        let (session, nonce) = unsafe {
            (
                handle("session", session)?,
                copied(bytes("nonce", nonce, nonce_len)?),
            )
        };
        authenticated((aad, aad_len), (data, len), tag)?;
        // SAFETY: as promised, and the regions are apart.
        let (aad, data) = unsafe { (bytes("aad", aad, aad_len)?, bytes_mut("data", data, len)?) };
        Ok(Message {
            session,
            nonce,
            aad,
            data,
        })
    }
}

/// `cipherlane_encrypt`.
///
/// # Safety
/// `session` is a handle, and each pointer leads to as many bytes as its length says; each may
/// be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cipherlane_encrypt(
    session: *const Session,
    iv: *const u8,
    iv_len: usize,
    data: *mut u8,
    len: usize,
) -> c_int {
    answer(|| {
        // SAFETY: as promised.
        let (session, iv, data) = unsafe { payload(session, (iv, iv_len), (data, len)) }?;
        Ok(session.encrypt(iv.bytes(), data)?)
    })
}

/// `cipherlane_decrypt`.
///
/// # Safety
/// As [`cipherlane_encrypt`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cipherlane_decrypt(
    session: *const Session,
    iv: *const u8,
    iv_len: usize,
    data: *mut u8,
    len: usize,
) -> c_int {
    answer(|| {
        // SAFETY: as promised.
        let (session, iv, data) = unsafe { payload(session, (iv, iv_len), (data, len)) }?;
        Ok(session.decrypt(iv.bytes(), data)?)
    })
}

/// What both calls of a cipher are given.
///
/// # Safety
/// As [`cipherlane_encrypt`].
#[inline]
unsafe fn payload<'a>(
    session: *const Session,
    (iv, iv_len): (*const u8, usize),
    (data, len): (*mut u8, usize),
) -> Result<(&'a Session, Iv, &'a mut [u8]), Refusal> {
    // SAFETY: as promised. The IV is copied before anything is written.
    unsafe {
        Ok((
            handle("session", session)?,
            copied(bytes("iv", iv, iv_len)?),
            bytes_mut("data", data, len)?,
        ))
    }
}

/// `cipherlane_mac`.
///
/// # Safety
/// `session` is a handle, and each pointer leads to as many bytes as its length says; each may
/// be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cipherlane_mac(
    session: *const Session,
    message: *const u8,
    len: usize,
    tag: *mut u8,
    tag_len: usize,
) -> c_int {
    answer(|| {
        // SAFETY: as promised.
        let session = unsafe { handle("session", session) }?;
        // SAFETY: as promised, and the regions are apart.
        let (message, tag) = unsafe {
            let read = bytes("message", message, len)?;
            check("tag", tag, tag_len)?;
            apart(
                ("tag", region(tag, tag_len)),
                ("message", region(message, len)),
            )?;
            (read, bytes_mut("tag", tag, tag_len)?)
        };
        Ok(session.mac(message, tag)?)
    })
}

/// `cipherlane_verify`.
///
/// # Safety
/// As [`cipherlane_mac`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cipherlane_verify(
    session: *const Session,
    message: *const u8,
    len: usize,
    tag: *const u8,
    tag_len: usize,
) -> c_int {
    answer(|| {
        // SAFETY: as promised; nothing is written.
        let (session, message, tag) = unsafe {
            (
                handle("session", session)?,
                bytes("message", message, len)?,
                bytes("tag", tag, tag_len)?,
            )
        };
        Ok(session.verify(message, tag)?)
    })
}

/// An IV, apart from all other memory. One longer than any that an algorithm takes keeps its
/// length only, for which it is refused.
struct Iv {
    bytes: [u8; LONGEST_IV],
    len: usize,
}

/// More than any algorithm takes.
const LONGEST_IV: usize = 32;

impl Iv {
    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

#[inline]
fn copied(iv: &[u8]) -> Iv {
    let len = iv.len().min(LONGEST_IV);
    let mut bytes = [0; LONGEST_IV];
    bytes[..len].copy_from_slice(&iv[..len]);
    Iv { bytes, len }
}

/// Refuses memory of an AEAD's call that is not apart.
#[inline]
fn authenticated(
    (aad, aad_len): (*const u8, usize),
    (data, len): (*mut u8, usize),
    (tag, tag_len): (*const u8, usize),
) -> Result<(), Refusal> {
    check("aad", aad, aad_len)?;
    check("data", data, len)?;
    check("tag", tag, tag_len)?;
    let data = || ("data", region(data, len));
    let (aad, tag) = (
        || ("aad", region(aad, aad_len)),
        || ("tag", region(tag, tag_len)),
    );
    apart(data(), aad())?;
    apart(data(), tag())?;
    apart(tag(), aad())
}
