//! Messages from a front-end and replies to it. Nothing here waits: a front-end that sends half a
//! message, or reads no replies, holds up nobody but itself.

use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendFlags, recvmsg, send,
};
use zeroize::{Zeroize, Zeroizing};

use super::message::{HEADER, Header, LONGEST, MAX_FILES};

/// A message with what came with it. Its body may hold a key.
pub(crate) struct Message {
    pub(crate) header: Header,
    pub(crate) body: Zeroizing<Vec<u8>>,
    pub(crate) files: Vec<OwnedFd>,
}

/// What a look at a connection found.
pub(crate) enum Found {
    /// A whole message.
    Message(Message),
    /// No whole message yet.
    Nothing,
    /// The front-end has gone.
    End,
}

/// A front-end that is connected.
pub(crate) struct Connection {
    stream: OwnedFd,
    /// The message that comes, as far as it is there. Never larger than at first, so that no copy
    /// of a key is left behind.
    bytes: Zeroizing<Vec<u8>>,
    files: Vec<OwnedFd>,
}

impl Connection {
    /// Over a stream that was accepted.
    pub(crate) fn new(stream: OwnedFd) -> Connection {
        Connection {
            stream,
            bytes: Zeroizing::new(Vec::with_capacity(HEADER + LONGEST)),
            files: Vec::new(),
        }
    }

    /// What to wait for.
    pub(crate) fn stream(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    /// Looks for a message. An error says why the connection is of no use any more.
    pub(crate) fn read(&mut self) -> Result<Found, String> {
        loop {
            let header = match self.bytes.first_chunk() {
                Some(bytes) => Some(Header::read(bytes)?),
                None => None,
            };
            // Not a byte more than the message has: what comes with it belongs to its first byte.
            let wanted = HEADER + header.map_or(0, |header| header.len);
            if let Some(header) = header
                && self.bytes.len() == wanted
            {
                let body = Zeroizing::new(self.bytes[HEADER..].to_vec());
                // Wiped now, since the next message may be long in coming.
                self.bytes.zeroize();
                let files = std::mem::take(&mut self.files);
                return Ok(Found::Message(Message {
                    header,
                    body,
                    files,
                }));
            }
            match self.receive(wanted) {
                Ok(0) => return Ok(Found::End),
                Ok(_) => {}
                Err(Errno::AGAIN) => return Ok(Found::Nothing),
                Err(Errno::INTR) => {}
                Err(Errno::CONNRESET) => return Ok(Found::End),
                Err(Errno::MSGSIZE) => {
                    return Err(format!("more than {MAX_FILES} files with a message"));
                }
                Err(error) => return Err(error.to_string()),
            }
        }
    }

    /// Receives as far as `wanted` bytes of the message; how many came.
    fn receive(&mut self, wanted: usize) -> Result<usize, Errno> {
        let begin = self.bytes.len();
        self.bytes.resize(wanted, 0);
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FILES))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let received = recvmsg(
            &self.stream,
            &mut [IoSliceMut::new(&mut self.bytes[begin..])],
            &mut control,
            RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC,
        );
        let got = received.as_ref().map_or(0, |received| received.bytes);
        self.bytes.truncate(begin + got);
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(files) = message {
                self.files.extend(files);
            }
        }
        let received = received?;
        if received.flags.contains(ReturnFlags::CTRUNC) || self.files.len() > MAX_FILES {
            return Err(Errno::MSGSIZE);
        }
        Ok(got)
    }

    /// Sends a reply; an error says why it could not be.
    pub(crate) fn reply(&self, header: Header, body: &[u8]) -> Result<(), String> {
        let bytes = [&header.reply(body.len())[..], body].concat();
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        match send(&self.stream, &bytes, flags) {
            Ok(sent) if sent == bytes.len() => Ok(()),
            Ok(_) | Err(Errno::AGAIN) => Err("it reads no replies".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{IoSlice, Write};
    use std::os::unix::net::UnixStream;

    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, sendmsg};

    use super::*;

    fn pair() -> (UnixStream, Connection) {
        let (one, other) = UnixStream::pair().unwrap();
        (one, Connection::new(other.into()))
    }

    fn bytes(request: u32, body: &[u8]) -> Vec<u8> {
        let numbers = [request, 1, body.len() as u32];
        let header = numbers.iter().flat_map(|number| number.to_ne_bytes());
        header.chain(body.iter().copied()).collect()
    }

    #[test]
    fn a_message_in_pieces_is_one_and_two_at_once_are_two() {
        let (mut front, mut connection) = pair();
        let message = bytes(5, b"body");
        for piece in message[..15].chunks(4) {
            front.write_all(piece).unwrap();
            assert!(matches!(connection.read(), Ok(Found::Nothing)));
        }
        front.write_all(&message[15..]).unwrap();
        front.write_all(&bytes(6, b"")).unwrap();
        for (request, body) in [(5, &b"body"[..]), (6, b"")] {
            let Ok(Found::Message(found)) = connection.read() else {
                panic!("no message");
            };
            assert_eq!((found.header.request, &found.body[..]), (request, body));
        }
        drop(front);
        assert!(matches!(connection.read(), Ok(Found::End)));
    }

    #[test]
    fn files_come_with_their_message_and_too_many_end_the_connection() {
        let (front, mut connection) = pair();
        let send_with = |count: usize| {
            let files = vec![front.as_fd(); count];
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(20))];
            let mut control = SendAncillaryBuffer::new(&mut space);
            assert!(control.push(SendAncillaryMessage::ScmRights(&files)));
            let message = bytes(5, b"12345678");
            let slice = [IoSlice::new(&message)];
            sendmsg(&front, &slice, &mut control, SendFlags::empty()).unwrap();
        };
        for count in [1, 8] {
            send_with(count);
            let Ok(Found::Message(found)) = connection.read() else {
                panic!("no message");
            };
            assert_eq!(found.files.len(), count);
        }
        send_with(20);
        assert!(connection.read().is_err());
    }

    #[test]
    fn a_front_end_that_reads_nothing_is_given_up() {
        let (_front, connection) = pair();
        let header = Header::new(1, true, 0);
        let sent = (0..10_000).try_for_each(|_| connection.reply(header, &[0; 1072]));
        assert!(sent.unwrap_err().contains("no replies"));
    }
}
