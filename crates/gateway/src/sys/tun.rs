//! A queue of a TUN device, and which offloads it takes.
//!
//! The crates for TUN devices cut and join packets by copying them; here the packets are read to
//! where they are sealed and written from where they were opened, so the device is opened
//! directly.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags};

use super::steering::Steering;
use crate::Error;

/// Offloads of the device, as TUNSETOFFLOAD has them (linux/if_tun.h).
mod offload {
    pub(super) const CHECKSUM: libc::c_ulong = 0x01;
    pub(super) const TSO4: libc::c_ulong = 0x02;
    pub(super) const TSO6: libc::c_ulong = 0x04;
    pub(super) const USO4: libc::c_ulong = 0x20;
    pub(super) const USO6: libc::c_ulong = 0x40;
}

/// What the kernel hands over and takes in one piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TunOffloads {
    /// Partial checksums.
    pub(crate) checksum: bool,
    /// TCP super-packets.
    pub(crate) tso: bool,
    /// UDP super-packets.
    pub(crate) uso: bool,
}

/// One queue of a TUN device; with each packet comes a virtio network header.
pub(crate) struct TunQueue {
    file: OwnedFd,
}

impl TunQueue {
    /// Attaches a queue to the device `name`, which is made if it is not there.
    pub(crate) fn open(name: &str, is_multi_queue: bool) -> Result<Self, Error> {
        let failed = |source: io::Error| Error::Tun {
            name: name.to_owned(),
            source,
        };
        let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = rustix::fs::open("/dev/net/tun", flags, Mode::empty())
            .map_err(|error| failed(error.into()))?;
        // SAFETY: zeros are a valid ifreq.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        if name.is_empty() || name.len() >= request.ifr_name.len() {
            return Err(Error::InterfaceName {
                name: name.to_owned(),
            });
        }
        for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
            *to = from as libc::c_char;
        }
        let mut kind = libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_VNET_HDR;
        if is_multi_queue {
            kind |= libc::IFF_MULTI_QUEUE;
        }
        request.ifr_ifru.ifru_flags = kind as libc::c_short;
        // SAFETY: TUNSETIFF reads and writes an ifreq, which lives until the call returns.
        let done = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF as _, &mut request) };
        if done != 0 {
            return Err(failed(io::Error::last_os_error()));
        }
        Ok(TunQueue { file })
    }

    /// Asks for every offload, then for fewer, until the kernel agrees.
    pub(crate) fn negotiate(&self) -> TunOffloads {
        let tso = offload::CHECKSUM | offload::TSO4 | offload::TSO6;
        let uso = tso | offload::USO4 | offload::USO6;
        let taken = [uso, tso, offload::CHECKSUM]
            .into_iter()
            .find(|&flags| self.set_offloads(flags));
        let flags = taken.unwrap_or(0);
        TunOffloads {
            checksum: flags & offload::CHECKSUM != 0,
            tso: flags & offload::TSO4 != 0,
            uso: flags & offload::USO4 != 0,
        }
    }

    /// All queues of the device are chosen by this program from now on.
    pub(crate) fn steer(&self, steering: &Steering) -> io::Result<()> {
        let program = steering.as_fd().as_raw_fd();
        // SAFETY: TUNSETSTEERINGEBPF reads a number, which lives until the call returns.
        let done = unsafe {
            libc::ioctl(
                self.file.as_raw_fd(),
                libc::TUNSETSTEERINGEBPF,
                &raw const program,
            )
        };
        match done {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn set_offloads(&self, flags: libc::c_ulong) -> bool {
        // SAFETY: TUNSETOFFLOAD takes a number.
        unsafe { libc::ioctl(self.file.as_raw_fd(), libc::TUNSETOFFLOAD as _, flags) == 0 }
    }
}

impl AsFd for TunQueue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
