//! Sockets of `AF_ALG`, safe to call: `linux/if_alg.h`, and "User Space Interface" in the
//! kernel's documentation of its crypto API.

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::null_mut;

use cipherlane_core::Direction;
use libc::{
    ALG_OP_DECRYPT, ALG_OP_ENCRYPT, ALG_SET_AEAD_ASSOCLEN, ALG_SET_AEAD_AUTHSIZE, ALG_SET_IV,
    ALG_SET_KEY, ALG_SET_OP, SOL_ALG, c_int,
};

/// What a call returned: -1 is an error.
fn success(returned: isize) -> io::Result<usize> {
    usize::try_from(returned).map_err(|_| io::Error::last_os_error())
}

/// An implementation, and then its key: what the kernel calls a transformation.
#[derive(Debug)]
pub(super) struct Transformation(OwnedFd);

impl Transformation {
    /// A socket of the family, which belongs to no implementation yet.
    pub(super) fn unbound() -> io::Result<Self> {
        let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
        // SAFETY: the call takes numbers.
        let fd = success(unsafe { libc::socket(libc::AF_ALG, kind, 0) } as isize)?;
        // SAFETY: the kernel has just given this descriptor to nobody else.
        Ok(Transformation(unsafe { OwnedFd::from_raw_fd(fd as c_int) }))
    }

    /// The implementation `name`; or, for the name of an algorithm, the one that the kernel
    /// prefers, for which it may load modules.
    pub(super) fn bind(socket_type: &str, name: &str) -> io::Result<Self> {
        let socket = Transformation::unbound()?;
        let mut address = libc::sockaddr_alg {
            salg_family: libc::AF_ALG as u16,
            salg_type: [0; 14],
            salg_feat: 0,
            salg_mask: 0,
            salg_name: [0; 64],
        };
        // Each is a string that ends with a zero.
        let fits = |text: &str, room: usize| !text.contains('\0') && text.len() < room;
        if !fits(name, address.salg_name.len()) || !fits(socket_type, address.salg_type.len()) {
            return Err(io::Error::from_raw_os_error(libc::ENOENT));
        }
        address.salg_type[..socket_type.len()].copy_from_slice(socket_type.as_bytes());
        address.salg_name[..name.len()].copy_from_slice(name.as_bytes());
        // SAFETY: an address of the length given, which is only read.
        success(unsafe {
            libc::bind(
                socket.0.as_raw_fd(),
                (&raw const address).cast(),
                size_of_val(&address) as u32,
            )
        } as isize)?;
        Ok(socket)
    }

    pub(super) fn set_key(&self, key: &[u8]) -> io::Result<()> {
        // SAFETY: a key of the length given, which is only read.
        success(unsafe {
            libc::setsockopt(
                self.0.as_raw_fd(),
                SOL_ALG,
                ALG_SET_KEY,
                key.as_ptr().cast(),
                key.len() as u32,
            )
        } as isize)
        .map(drop)
    }

    /// Of an AEAD. The length of the option is the value.
    pub(super) fn set_tag_len(&self, len: usize) -> io::Result<()> {
        // SAFETY: the option has no bytes that would be read.
        success(unsafe {
            libc::setsockopt(
                self.0.as_raw_fd(),
                SOL_ALG,
                ALG_SET_AEAD_AUTHSIZE,
                null_mut(),
                len as u32,
            )
        } as isize)
        .map(drop)
    }

    pub(super) fn operation(&self) -> io::Result<Operation> {
        let flags = libc::SOCK_CLOEXEC;
        // SAFETY: no address is asked for.
        let fd = success(
            unsafe { libc::accept4(self.0.as_raw_fd(), null_mut(), null_mut(), flags) } as isize,
        )?;
        // SAFETY: the kernel has just given this descriptor to nobody else.
        Ok(Operation(unsafe { OwnedFd::from_raw_fd(fd as c_int) }))
    }
}

/// A socket that takes one request at a time: what is sent comes back encrypted.
#[derive(Debug)]
pub(super) struct Operation(OwnedFd);

impl Operation {
    /// The most bytes that can be sent before something is received, and the same the other way.
    pub(super) fn most(&self) -> io::Result<usize> {
        let page = rustix::param::page_size();
        let room = |option| -> io::Result<usize> {
            let (mut value, mut len): (c_int, u32) = (0, size_of::<c_int>() as u32);
            // SAFETY: both are written, and are of the lengths that the call is told.
            success(unsafe {
                libc::getsockopt(
                    self.0.as_raw_fd(),
                    libc::SOL_SOCKET,
                    option,
                    (&raw mut value).cast(),
                    &raw mut len,
                )
            } as isize)?;
            Ok(usize::try_from(value).unwrap_or_default() & !(page - 1))
        };
        // What is received may begin and end within a page, which counts whole.
        Ok(room(libc::SO_SNDBUF)?
            .min(room(libc::SO_RCVBUF)?)
            .saturating_sub(2 * page))
    }

    /// Sends a request whole, without waiting for room.
    pub(super) fn send(&self, head: &Head, parts: &[IoSlice<'_>]) -> io::Result<()> {
        let wanted: usize = parts.iter().map(|part| part.len()).sum();
        let message = libc::msghdr {
            msg_name: null_mut(),
            msg_namelen: 0,
            msg_iov: parts.as_ptr().cast_mut().cast(),
            msg_iovlen: parts.len() as _,
            msg_control: head.bytes.as_ptr().cast_mut().cast(),
            msg_controllen: head.len as _,
            msg_flags: 0,
        };
        // SAFETY: `IoSlice` has the layout of `iovec`; all that the message names is alive and
        // only read.
        let sent = success(unsafe {
            libc::sendmsg(self.0.as_raw_fd(), &raw const message, libc::MSG_DONTWAIT)
        })?;
        match sent == wanted {
            true => Ok(()),
            false => Err(io::ErrorKind::WriteZero.into()),
        }
    }

    /// Receives the result, which must have this length; the parts may have more room.
    /// Waits in the kernel until the implementation has finished, and cannot be interrupted.
    pub(super) fn receive(&self, wanted: usize, parts: &mut [IoSliceMut<'_>]) -> io::Result<()> {
        // SAFETY: `IoSliceMut` has the layout of `iovec`; the parts are alive and exclusive.
        let got = success(unsafe {
            libc::readv(
                self.0.as_raw_fd(),
                parts.as_mut_ptr().cast_const().cast(),
                parts.len() as c_int,
            )
        })?;
        match got == wanted {
            true => Ok(()),
            false => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

#[cfg(test)]
impl From<OwnedFd> for Operation {
    fn from(fd: OwnedFd) -> Self {
        Operation(fd)
    }
}

/// What is said beside the bytes of a request: direction, IV, and how much is not encrypted.
#[derive(Debug)]
#[repr(C, align(8))]
pub(super) struct Head {
    /// Control messages: `struct cmsghdr` and data each, on boundaries of words.
    bytes: [u8; 96],
    len: usize,
}

impl Head {
    /// A request of a hash has nothing to say.
    pub(super) fn none() -> Self {
        Head {
            bytes: [0; 96],
            len: 0,
        }
    }

    /// `aad_len` is for AEADs, with an IV that counts as additional data.
    pub(super) fn new(direction: Direction, iv: &[u8], aad_len: Option<usize>) -> Self {
        let mut head = Head::none();
        let operation = match direction {
            Direction::Encrypt => ALG_OP_ENCRYPT,
            Direction::Decrypt => ALG_OP_DECRYPT,
        };
        head.add(ALG_SET_OP, &[&(operation as u32).to_ne_bytes()]);
        if !iv.is_empty() {
            // `struct af_alg_iv`: a length, then the bytes.
            head.add(ALG_SET_IV, &[&(iv.len() as u32).to_ne_bytes(), iv]);
        }
        if let Some(len) = aad_len {
            head.add(ALG_SET_AEAD_ASSOCLEN, &[&(len as u32).to_ne_bytes()]);
        }
        head
    }

    fn add(&mut self, kind: c_int, data: &[&[u8]]) {
        let data_len: usize = data.iter().map(|part| part.len()).sum();
        // SAFETY: both only compute.
        let (len, space) = unsafe {
            (
                libc::CMSG_LEN(data_len as u32) as usize,
                libc::CMSG_SPACE(data_len as u32) as usize,
            )
        };
        let parts = [
            &len.to_ne_bytes() as &[u8],
            &SOL_ALG.to_ne_bytes(),
            &kind.to_ne_bytes(),
        ];
        let mut at = self.len;
        for part in parts.iter().chain(data) {
            self.bytes[at..][..part.len()].copy_from_slice(part);
            at += part.len();
        }
        self.len += space;
    }
}
