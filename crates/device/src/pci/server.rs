//! The server's side of QEMU's ivshmem protocol (QEMU, `docs/specs/ivshmem-spec.rst`): messages of
//! eight bytes, some with a file descriptor.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cipherlane_dma_model::Settings;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

use super::{Error, Ram, Summary, serve};

/// Of the protocol.
const VERSION: i64 = 0;
/// Comes with the shared memory.
const MEMORY: i64 = -1;
/// The number of QEMU among the peers.
const QEMU: i64 = 0;
/// The number of the device: guests ring the doorbell of this peer.
const DEVICE: i64 = 1;

/// A socket at which virtual machines get a device, one after the other.
#[derive(Debug)]
pub struct Server {
    listener: UnixListener,
    socket: PathBuf,
    ram: Arc<Ram>,
    settings: Settings,
}

impl Server {
    /// Listens. A socket that nobody serves any more is replaced.
    pub fn new(socket: &Path, ram: Ram, settings: Settings) -> Result<Server, Error> {
        super::layout(&settings)?;
        let fail = |problem: String| Error::Socket {
            socket: socket.to_owned(),
            problem,
        };
        let listener = match UnixListener::bind(socket) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                if UnixStream::connect(socket).is_ok() {
                    return Err(fail("is served by another process; name another".into()));
                }
                std::fs::remove_file(socket).and_then(|()| UnixListener::bind(socket))
            }
            other => other,
        };
        let listener = listener
            .map_err(|error| fail(format!("cannot be made: {error}; name one elsewhere")))?;
        // Whoever connects is given what a guest reaches.
        std::fs::set_permissions(socket, PermissionsExt::from_mode(0o600))?;
        Ok(Server {
            listener,
            socket: socket.to_owned(),
            ram: Arc::new(ram),
            settings,
        })
    }

    /// Waits for a virtual machine and serves it until it is gone.
    pub fn serve_next(&self) -> Result<Summary, Error> {
        let (stream, _) = self.listener.accept()?;
        let wires = serve::Wires::new()?;
        let layout = super::layout(&self.settings)?;
        let device = serve::Attached::new(&self.settings, layout, self.ram.clone())?;
        let messages = [
            (VERSION, None),
            (QEMU, None),
            (MEMORY, Some(device.memory())),
            (DEVICE, Some(wires.doorbell.as_fd())),
            (QEMU, Some(wires.interrupt.as_fd())),
        ];
        for (number, file) in messages {
            if send(&stream, number, file).is_err() {
                // It went away already, which is its right.
                return Ok(device.summary());
            }
        }
        Ok(device.serve(&wires, stream.as_fd()))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may be gone, which is as well.
        let _ = std::fs::remove_file(&self.socket);
    }
}

fn send(stream: &UnixStream, number: i64, file: Option<BorrowedFd<'_>>) -> io::Result<()> {
    let bytes = number.to_le_bytes();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let files = file.as_slice();
    if !files.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(files));
    }
    let sent = sendmsg(
        stream,
        &[IoSlice::new(&bytes)],
        &mut control,
        SendFlags::NOSIGNAL,
    )?;
    match sent == bytes.len() {
        true => Ok(()),
        false => Err(io::ErrorKind::WriteZero.into()),
    }
}
