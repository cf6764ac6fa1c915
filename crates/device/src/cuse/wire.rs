//! The messages of CUSE, read from bytes and written to bytes: `linux/fuse.h`, protocol 7.
//!
//! A read of `/dev/cuse` gives one message, a write takes the reply to one. Numbers are in the
//! machine's own order.

use std::ops::Range;

use rustix::io::Errno;

/// The protocol, and its newest version that this program knows of. `struct fuse_ioctl_iovec` is
/// there from 7.16 on.
const MAJOR: u32 = 7;
const MINOR: u32 = 31;
const OLDEST_MINOR: u32 = 16;

/// Bytes of the header of each message, and of each reply.
pub(crate) const HEADER: usize = 40;
const REPLY: usize = 16;

/// Bytes of the fixed part of an ioctl's message.
const IOCTL: usize = 32;

/// Bytes that an ioctl may have read, and as many that it may have written: Linux transfers no
/// more pages than `FUSE_DEFAULT_MAX_PAGES_PER_REQ`.
pub(crate) const MAX_DATA: usize = 32 * 4096;

/// Bytes for the longest message.
pub(crate) const BUFFER: usize = HEADER + IOCTL + MAX_DATA + 4096;

/// Bytes of a read and of a write of the device, which it does not serve: the least that there
/// can be.
const MAX_TRANSFER: u32 = 4096;

const OPEN: u32 = 14;
const RELEASE: u32 = 18;
const INTERRUPT: u32 = 36;
const IOCTL_CODE: u32 = 39;
const POLL: u32 = 40;
const INIT: u32 = 4096;

/// `CUSE_UNRESTRICTED_IOCTL`: ioctls may have any memory of their callers read and written.
const UNRESTRICTED: u32 = 1;
/// `FUSE_IOCTL_COMPAT`, `FUSE_IOCTL_32BIT`, `FUSE_IOCTL_COMPAT_X32`.
const COMPAT: u32 = 1 << 0 | 1 << 3 | 1 << 5;
/// `FUSE_IOCTL_RETRY`
const RETRY: u32 = 1 << 2;

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    /// The number that the reply names.
    pub(crate) unique: u64,
    pub(crate) body: Body,
}

/// What the kernel wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Body {
    /// The first message: which protocol the kernel has.
    Init { major: u32, minor: u32 },
    /// Somebody opens the device.
    Open,
    /// The last descriptor of an open file was closed.
    Release { file: u64 },
    /// A request of a program.
    Ioctl(Ioctl),
    /// What an open file is ready for.
    Poll { events: u32 },
    /// The caller of a request was sent a signal. There is no reply.
    Interrupt,
    /// What the device does not do, such as to be read.
    Other,
    /// A message that is shorter than it has to be.
    Malformed,
}

/// A request of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ioctl {
    /// The open file.
    pub(crate) file: u64,
    pub(crate) command: u32,
    /// An address in the caller's memory.
    pub(crate) argument: u64,
    /// Whether the caller is a 32-bit program, whose structures have another layout.
    pub(crate) is_compat: bool,
    /// What was read of the caller's memory, as a part of the message.
    pub(crate) data: Range<usize>,
    /// Bytes that can be written to the caller's memory.
    pub(crate) room: usize,
}

/// A region of a caller's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Region {
    pub(crate) base: u64,
    pub(crate) len: u64,
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_ne_bytes(*bytes))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u64::from_ne_bytes(*bytes))
}

impl Message {
    /// Reads a message; `None`: there is not even a header.
    pub(crate) fn read(bytes: &[u8]) -> Option<Message> {
        if bytes.len() < HEADER || u32_at(bytes, 0)? as usize != bytes.len() {
            return None;
        }
        Some(Message {
            unique: u64_at(bytes, 8)?,
            body: body(u32_at(bytes, 4)?, bytes).unwrap_or(Body::Malformed),
        })
    }
}

fn body(code: u32, bytes: &[u8]) -> Option<Body> {
    Some(match code {
        INIT => Body::Init {
            major: u32_at(bytes, HEADER)?,
            minor: u32_at(bytes, HEADER + 4)?,
        },
        OPEN => Body::Open,
        RELEASE => Body::Release {
            file: u64_at(bytes, HEADER)?,
        },
        POLL => Body::Poll {
            events: u32_at(bytes, HEADER + 20)?,
        },
        IOCTL_CODE => {
            let len = u32_at(bytes, HEADER + 24)? as usize;
            let data = HEADER + IOCTL..bytes.len();
            if data.len() != len {
                return None;
            }
            Body::Ioctl(Ioctl {
                file: u64_at(bytes, HEADER)?,
                command: u32_at(bytes, HEADER + 12)?,
                argument: u64_at(bytes, HEADER + 16)?,
                is_compat: u32_at(bytes, HEADER + 8)? & COMPAT != 0,
                data,
                room: u32_at(bytes, HEADER + 28)? as usize,
            })
        }
        INTERRUPT => Body::Interrupt,
        _ => Body::Other,
    })
}

/// What is written for a message: the head, a part of the message's own memory, and what comes
/// behind it.
#[derive(Debug)]
pub(crate) struct Reply {
    head: Vec<u8>,
    payload: Range<usize>,
    tail: Vec<u8>,
}

impl Reply {
    fn new(unique: u64, error: i32) -> Reply {
        let mut head = Vec::with_capacity(2 * REPLY);
        head.extend(0u32.to_ne_bytes());
        head.extend(error.to_ne_bytes());
        head.extend(unique.to_ne_bytes());
        Reply {
            head,
            payload: 0..0,
            tail: Vec::new(),
        }
    }

    fn words(unique: u64, words: &[u32]) -> Reply {
        let mut reply = Reply::new(unique, 0);
        reply
            .head
            .extend(words.iter().flat_map(|word| word.to_ne_bytes()));
        reply
    }

    /// An error.
    pub(crate) fn error(unique: u64, errno: Errno) -> Reply {
        Reply::new(unique, -errno.raw_os_error())
    }

    /// Nothing but that it is done.
    pub(crate) fn done(unique: u64) -> Reply {
        Reply::new(unique, 0)
    }

    /// The device shall be made, under this name. `Err`: the kernel's protocol is another one.
    pub(crate) fn init(unique: u64, major: u32, minor: u32, name: &str) -> Result<Reply, String> {
        if major != MAJOR || minor < OLDEST_MINOR {
            return Err(format!(
                "the kernel's protocol is {major}.{minor}, and {MAJOR}.{OLDEST_MINOR} or a later \
                 version of {MAJOR} is needed"
            ));
        }
        let minor = minor.min(MINOR);
        let mut words = [0; 18];
        let known = [MAJOR, minor, 0, UNRESTRICTED, MAX_TRANSFER, MAX_TRANSFER];
        words[..known.len()].copy_from_slice(&known);
        let mut reply = Reply::words(unique, &words);
        reply.tail = format!("DEVNAME={name}\0").into_bytes();
        Ok(reply)
    }

    /// The number of a file that was opened.
    pub(crate) fn opened(unique: u64, file: u64) -> Reply {
        let mut reply = Reply::new(unique, 0);
        reply.head.extend(file.to_ne_bytes());
        reply.head.extend(0u64.to_ne_bytes());
        reply
    }

    /// What a file is ready for.
    pub(crate) fn polled(unique: u64, events: u32) -> Reply {
        Reply::words(unique, &[events, 0])
    }

    /// An ioctl was done: what is written to the caller's memory.
    pub(crate) fn ioctl(unique: u64, payload: Range<usize>, tail: Vec<u8>) -> Reply {
        Reply {
            payload,
            tail,
            ..Reply::words(unique, &[0; 4])
        }
    }

    /// An ioctl needs memory of its caller: the kernel asks once more with what it has read.
    pub(crate) fn again(unique: u64, input: &[Region], output: &[Region]) -> Reply {
        let counts = [input, output].map(|regions| regions.len() as u32);
        let mut reply = Reply::words(unique, &[0, RETRY, counts[0], counts[1]]);
        for region in input.iter().chain(output) {
            reply.tail.extend(region.base.to_ne_bytes());
            reply.tail.extend(region.len.to_ne_bytes());
        }
        reply
    }

    /// The parts to be written at once, after the message in whose memory the payload is.
    pub(crate) fn parts<'r>(&'r mut self, message: &'r [u8]) -> [&'r [u8]; 3] {
        let payload = message.get(self.payload.clone()).unwrap_or_default();
        let len = self.head.len() + payload.len() + self.tail.len();
        self.head[..4].copy_from_slice(&(len as u32).to_ne_bytes());
        [&self.head, payload, &self.tail]
    }
}

/// For tests and the fuzz target: messages as the kernel writes them.
pub(crate) mod kernel {
    use super::*;

    /// A message with this body.
    pub(crate) fn message(code: u32, unique: u64, body: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER + body.len());
        bytes.extend(((HEADER + body.len()) as u32).to_ne_bytes());
        bytes.extend(code.to_ne_bytes());
        bytes.extend(unique.to_ne_bytes());
        bytes.extend([0; 24]);
        bytes.extend(body);
        bytes
    }

    /// Somebody opens the device.
    pub(crate) fn open() -> Vec<u8> {
        message(OPEN, 2, &[0; 8])
    }

    /// An open file is closed.
    pub(crate) fn release(file: u64) -> Vec<u8> {
        let mut body = [0; 24];
        body[..8].copy_from_slice(&file.to_ne_bytes());
        message(RELEASE, 4, &body)
    }

    /// A request with what was read for it.
    pub(crate) fn ioctl(file: u64, command: u32, argument: u64, data: &[u8], room: u32) -> Vec<u8> {
        let mut body = Vec::with_capacity(IOCTL + data.len());
        body.extend(file.to_ne_bytes());
        body.extend(2u32.to_ne_bytes());
        body.extend(command.to_ne_bytes());
        body.extend(argument.to_ne_bytes());
        body.extend((data.len() as u32).to_ne_bytes());
        body.extend(room.to_ne_bytes());
        body.extend(data);
        message(IOCTL_CODE, 6, &body)
    }

    /// What a program gets for an ioctl, as the kernel reads the reply.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub(crate) enum Answer {
        Error(i32),
        Done(Vec<u8>),
        Again(Vec<Region>, Vec<Region>),
    }

    /// Reads a reply's number of the file.
    pub(crate) fn opened(reply: &[u8]) -> Option<u64> {
        u64_at(reply, REPLY).filter(|_| u32_at(reply, 4) == Some(0))
    }

    /// Reads an ioctl's reply. `None`: the kernel would take it for none.
    pub(crate) fn answer(reply: &[u8]) -> Option<Answer> {
        if u32_at(reply, 0)? as usize != reply.len() {
            return None;
        }
        let error = u32_at(reply, 4)? as i32;
        if error != 0 {
            return (reply.len() == REPLY && (-999..0).contains(&error))
                .then_some(Answer::Error(-error));
        }
        let rest = reply.get(2 * REPLY..)?;
        if u32_at(reply, REPLY + 4)? & RETRY == 0 {
            return Some(Answer::Done(rest.to_vec()));
        }
        let regions = rest.chunks_exact(16).map(|chunk| Region {
            base: u64_at(chunk, 0).unwrap_or_default(),
            len: u64_at(chunk, 8).unwrap_or_default(),
        });
        let mut input: Vec<Region> = regions.collect();
        let count = u32_at(reply, REPLY + 8)? as usize;
        let outputs = u32_at(reply, REPLY + 12)? as usize;
        if count + outputs != input.len() || rest.len() % 16 != 0 {
            return None;
        }
        let output = input.split_off(count);
        Some(Answer::Again(input, output))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_and_short_ones_noticed() {
        let bytes = kernel::ioctl(3, 4, 5, b"abc", 7);
        let message = Message::read(&bytes).unwrap();
        let Body::Ioctl(ioctl) = message.body else {
            panic!("{message:?}");
        };
        assert_eq!((ioctl.file, ioctl.command, ioctl.argument), (3, 4, 5));
        assert_eq!((&bytes[ioctl.data], ioctl.room), (&b"abc"[..], 7));
        assert_eq!(Message::read(&bytes[..bytes.len() - 1]), None);
        let short = kernel::message(IOCTL_CODE, 1, &[0; 31]);
        assert_eq!(Message::read(&short).unwrap().body, Body::Malformed);
        let mut lies = kernel::ioctl(3, 4, 5, b"abc", 7);
        lies[HEADER + 24] = 2;
        assert_eq!(Message::read(&lies).unwrap().body, Body::Malformed);
    }

    #[test]
    fn a_kernel_of_another_protocol_is_refused() {
        assert!(Reply::init(1, 8, 1, "crypto").is_err());
        assert!(Reply::init(1, 7, 15, "crypto").is_err());
        let mut reply = Reply::init(1, 7, 99, "crypto").unwrap();
        let bytes = reply.parts(&[]).concat();
        assert_eq!(bytes.len(), REPLY + 72 + "DEVNAME=crypto\0".len());
        assert_eq!(u32_at(&bytes, REPLY + 4), Some(MINOR));
    }
}
