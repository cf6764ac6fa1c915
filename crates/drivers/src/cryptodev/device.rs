//! The device and its sessions, safe to call: `ioctl(2)` on `/dev/crypto`.
//!
//! The structures name memory by numbers. Each call names memory only that it borrows, so that
//! the kernel, or a program that serves the device by CUSE, reads and writes nothing else: both
//! transfer data within the call, and none later.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};

use cipherlane_core::{Direction, Process};
use rustix::fs::{Access, FileType, Mode, OFlags, access, open, stat};
use rustix::io::Errno;
use rustix::ioctl::{Opcode, Setter, Updater, ioctl};

use super::header::{
    CIOCAUTHCRYPT, CIOCCRYPT, CIOCFSESSION, CIOCGSESSINFO, CIOCGSESSION, COP_DECRYPT, COP_ENCRYPT,
    CryptAuthOp, CryptOp, SessionInfo, SessionOp,
};

/// Bytes of the longest digest.
pub(super) const LONGEST_DIGEST: usize = 64;

/// Whether the device may be there: it is looked at and not opened, since a program that serves
/// it by CUSE may keep its opener waiting.
pub(super) fn probe(path: &str) -> Result<(), String> {
    let found = stat(path).map_err(|error| match error {
        Errno::NOENT => format!(
            "there is no '{path}'; load the module cryptodev of cryptodev-linux, or serve the \
             device by 'cipherlane device cuse'"
        ),
        _ => format!("'{path}' cannot be looked at: {error}"),
    })?;
    if FileType::from_raw_mode(found.st_mode) != FileType::CharacterDevice {
        return Err(format!("'{path}' is no character device"));
    }
    access(path, Access::READ_OK | Access::WRITE_OK).map_err(|error| {
        format!("this user may not use '{path}' ({error}); change its owner or mode")
    })
}

/// Where devices come from: a process has one open file for all its sessions.
#[derive(Debug)]
pub(super) struct Source {
    path: String,
    open: Mutex<Option<(Process, Arc<Device>)>>,
}

impl Source {
    pub(super) fn new(path: String) -> Self {
        Source {
            path,
            open: Mutex::default(),
        }
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// The open file of this process.
    pub(super) fn device(&self) -> io::Result<Arc<Device>> {
        // In a child the lock may be held for ever by a thread that did not come along.
        let Ok(mut known) = self.open.try_lock() else {
            return Device::open(&self.path).map(Arc::new);
        };
        match &*known {
            Some((process, device)) if process.is_current() => Ok(device.clone()),
            _ => {
                let new = Arc::new(Device::open(&self.path)?);
                *known = Some((Process::current(), new.clone()));
                Ok(new)
            }
        }
    }

    /// Whoever served this open file is gone: the next session is on a new one.
    pub(super) fn lost(&self, device: &Arc<Device>) {
        let mut known = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if (known.as_ref()).is_some_and(|(_, current)| Arc::ptr_eq(current, device)) {
            *known = None;
        }
    }
}

/// An open file of the device.
#[derive(Debug)]
pub(super) struct Device(OwnedFd);

impl Device {
    fn open(path: &str) -> io::Result<Device> {
        let flags = OFlags::RDWR | OFlags::CLOEXEC;
        Ok(Device(open(path, flags, Mode::empty())?))
    }

    /// # Safety
    /// `T` belongs to `OPCODE`, and each pointer in it is that of memory which is alive, of the
    /// length given beside it, and borrowed exclusively if it is written.
    unsafe fn call<const OPCODE: Opcode, T>(&self, value: &mut T) -> io::Result<()> {
        loop {
            // SAFETY: as the caller promises.
            match unsafe { ioctl(&self.0, Updater::<OPCODE, T>::new(value)) } {
                // A signal came before the request was begun.
                Err(Errno::INTR) => {}
                done => return Ok(done?),
            }
        }
    }
}

/// A cipher or a MAC with its key.
#[derive(Clone, Copy, Default)]
pub(super) struct Keys<'k> {
    pub(super) cipher: u32,
    pub(super) key: &'k [u8],
    pub(super) mac: u32,
    pub(super) mac_key: &'k [u8],
}

/// A session of the device.
#[derive(Debug)]
pub(super) struct Session {
    device: Arc<Device>,
    number: u32,
    process: Process,
}

fn too_long<T>(_: T) -> io::Error {
    io::Error::from_raw_os_error(libc::EMSGSIZE)
}

fn operation(direction: Direction) -> u16 {
    match direction {
        Direction::Encrypt => COP_ENCRYPT,
        Direction::Decrypt => COP_DECRYPT,
    }
}

impl Session {
    pub(super) fn open(device: &Arc<Device>, keys: Keys<'_>) -> io::Result<Session> {
        let mut session = SessionOp {
            cipher: keys.cipher,
            mac: keys.mac,
            keylen: keys.key.len().try_into().map_err(too_long)?,
            key: keys.key.as_ptr().expose_provenance(),
            mackeylen: keys.mac_key.len().try_into().map_err(too_long)?,
            mackey: keys.mac_key.as_ptr().expose_provenance(),
            ..SessionOp::default()
        };
        // SAFETY: the keys are only read.
        unsafe { device.call::<CIOCGSESSION, _>(&mut session) }?;
        Ok(Session {
            device: device.clone(),
            number: session.ses,
            process: Process::current(),
        })
    }

    pub(super) fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// The names of the implementations that it uses.
    pub(super) fn info(&self) -> io::Result<SessionInfo> {
        let mut info = SessionInfo {
            ses: self.number,
            ..SessionInfo::default()
        };
        // SAFETY: the structure has no pointers.
        unsafe { self.device.call::<CIOCGSESSINFO, _>(&mut info) }?;
        Ok(info)
    }

    /// Runs a cipher in place.
    pub(super) fn crypt(
        &self,
        direction: Direction,
        iv: &mut [u8; 16],
        data: &mut [u8],
    ) -> io::Result<()> {
        let pointer = data.as_mut_ptr().expose_provenance();
        let mut request = CryptOp {
            ses: self.number,
            op: operation(direction),
            len: data.len().try_into().map_err(too_long)?,
            src: pointer,
            dst: pointer,
            iv: iv.as_mut_ptr().expose_provenance(),
            ..CryptOp::default()
        };
        // SAFETY: output and input are one exclusive slice of that length; no IV is longer.
        unsafe { self.device.call::<CIOCCRYPT, _>(&mut request) }
    }

    /// Computes a MAC, which fills the front of the result.
    pub(super) fn mac(&self, message: &[u8]) -> io::Result<[u8; LONGEST_DIGEST]> {
        let mut digest = [0; LONGEST_DIGEST];
        let mut request = CryptOp {
            ses: self.number,
            len: message.len().try_into().map_err(too_long)?,
            src: message.as_ptr().expose_provenance(),
            mac: digest.as_mut_ptr().expose_provenance(),
            ..CryptOp::default()
        };
        // SAFETY: the message is only read; no digest is longer.
        unsafe { self.device.call::<CIOCCRYPT, _>(&mut request) }?;
        Ok(digest)
    }

    /// Runs an AEAD in place. The tag is the end of `data`.
    pub(super) fn aead(
        &self,
        direction: Direction,
        iv: &mut [u8; 12],
        aad: &[u8],
        data: &mut [u8],
        tag_len: usize,
    ) -> io::Result<()> {
        let len = match direction {
            Direction::Encrypt => data.len().saturating_sub(tag_len),
            Direction::Decrypt => data.len(),
        };
        let pointer = data.as_mut_ptr().expose_provenance();
        let mut request = CryptAuthOp {
            ses: self.number,
            op: operation(direction),
            len: len.try_into().map_err(too_long)?,
            auth_len: aad.len().try_into().map_err(too_long)?,
            auth_src: aad.as_ptr().expose_provenance(),
            src: pointer,
            dst: pointer,
            tag_len: tag_len.try_into().map_err(too_long)?,
            iv: iv.as_mut_ptr().expose_provenance(),
            iv_len: 12,
            ..CryptAuthOp::default()
        };
        // SAFETY: the output is the input, and the tag behind it, all within an exclusive slice;
        // additional data are only read, and the IV has the length of this AEAD's.
        unsafe { self.device.call::<CIOCAUTHCRYPT, _>(&mut request) }
    }
}

impl Drop for Session {
    /// A child that closed it would take it from its parent: they share the open file.
    fn drop(&mut self) {
        if self.process.is_current() {
            // SAFETY: the request takes a number. An error says that the session is gone already.
            let _ = unsafe {
                ioctl(
                    &self.device.0,
                    Setter::<CIOCFSESSION, u32>::new(self.number),
                )
            };
        }
    }
}
