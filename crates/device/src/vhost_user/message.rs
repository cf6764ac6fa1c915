//! The messages of vhost-user that are understood, read from bytes of a front-end.

/// Bytes before the body of each message: request, flags, length of the body.
pub(crate) const HEADER: usize = 12;

/// Bytes of the longest body that is read. The longest of QEMU's is a session's, 1072.
pub(crate) const LONGEST: usize = 4096;

/// File descriptors of a message at most: one per region of memory.
pub(crate) const MAX_FILES: usize = 8;

/// The version of the protocol, in the lowest two bits of the flags.
const VERSION: u32 = 1;
const VERSION_MASK: u32 = 3;
const IS_REPLY: u32 = 1 << 2;
const WANTS_REPLY: u32 = 1 << 3;

/// In the number that comes with a kick or call: no file descriptor comes with it.
const NO_FILE: u64 = 1 << 8;

/// Numbers of requests, as `enum VhostUserRequest` has them.
pub(crate) mod request {
    pub(crate) const GET_FEATURES: u32 = 1;
    pub(crate) const SET_FEATURES: u32 = 2;
    pub(crate) const SET_OWNER: u32 = 3;
    pub(crate) const RESET_OWNER: u32 = 4;
    pub(crate) const SET_MEM_TABLE: u32 = 5;
    pub(crate) const SET_VRING_NUM: u32 = 8;
    pub(crate) const SET_VRING_ADDR: u32 = 9;
    pub(crate) const SET_VRING_BASE: u32 = 10;
    pub(crate) const GET_VRING_BASE: u32 = 11;
    pub(crate) const SET_VRING_KICK: u32 = 12;
    pub(crate) const SET_VRING_CALL: u32 = 13;
    pub(crate) const SET_VRING_ERR: u32 = 14;
    pub(crate) const GET_PROTOCOL_FEATURES: u32 = 15;
    pub(crate) const SET_PROTOCOL_FEATURES: u32 = 16;
    pub(crate) const GET_QUEUE_NUM: u32 = 17;
    pub(crate) const SET_VRING_ENABLE: u32 = 18;
    pub(crate) const CREATE_CRYPTO_SESSION: u32 = 26;
    pub(crate) const CLOSE_CRYPTO_SESSION: u32 = 27;
}

/// The first bytes of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// Its number.
    pub(crate) request: u32,
    flags: u32,
    /// Bytes of its body.
    pub(crate) len: usize,
}

impl Header {
    /// Reads it; `Err` says why the connection is of no use any more.
    pub(crate) fn read(bytes: &[u8; HEADER]) -> Result<Header, String> {
        let [request, flags, len] = [0, 4, 8].map(|at| u32_at(bytes, at).unwrap_or_default());
        if flags & VERSION_MASK != VERSION {
            return Err(format!("flags {flags:#x} are not those of version 1"));
        }
        let len = len as usize;
        if len > LONGEST {
            return Err(format!("a message of {len} bytes; {LONGEST} are the most"));
        }
        Ok(Header {
            request,
            flags,
            len,
        })
    }

    /// For a message that is made here.
    pub(crate) fn new(request: u32, wants_reply: bool, len: usize) -> Header {
        let flags = VERSION | if wants_reply { WANTS_REPLY } else { 0 };
        Header {
            request,
            flags,
            len,
        }
    }

    /// Whether the front-end waits to hear whether it was done.
    pub(crate) fn wants_reply(self) -> bool {
        self.flags & WANTS_REPLY != 0
    }

    /// The header of the reply, with a body of `len` bytes.
    pub(crate) fn reply(self, len: usize) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        for (field, value) in
            bytes
                .chunks_exact_mut(4)
                .zip([self.request, VERSION | IS_REPLY, len as u32])
        {
            field.copy_from_slice(&value.to_ne_bytes());
        }
        bytes
    }
}

/// A region of the guest's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Region {
    /// Where the guest sees it.
    pub(crate) guest: u64,
    /// Bytes.
    pub(crate) len: u64,
    /// Where QEMU sees it: addresses of rings are given so.
    pub(crate) user: u64,
    /// Where it begins in its file.
    pub(crate) offset: u64,
}

/// Regions, as many as there are file descriptors.
pub(crate) fn regions(body: &[u8], files: usize) -> Result<Vec<Region>, String> {
    let count = u32_at(body, 0)? as usize;
    if count != files || count > MAX_FILES {
        return Err(format!(
            "{count} regions of memory with {files} files; each needs one, and {MAX_FILES} are the \
             most"
        ));
    }
    let region = |index| {
        let at = 8 + 32 * index;
        Ok(Region {
            guest: u64_at(body, at)?,
            len: u64_at(body, at + 8)?,
            user: u64_at(body, at + 16)?,
            offset: u64_at(body, at + 24)?,
        })
    };
    (0..count).map(region).collect()
}

/// The number of a ring, and a value for it.
pub(crate) fn ring_and_value(body: &[u8]) -> Result<(u32, u32), String> {
    Ok((u32_at(body, 0)?, u32_at(body, 4)?))
}

/// Where a ring is, as QEMU sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Addresses {
    pub(crate) ring: u32,
    pub(crate) descriptors: u64,
    pub(crate) used: u64,
    pub(crate) available: u64,
}

/// The places of a ring's three parts.
pub(crate) fn addresses(body: &[u8]) -> Result<Addresses, String> {
    Ok(Addresses {
        ring: u32_at(body, 0)?,
        descriptors: u64_at(body, 8)?,
        used: u64_at(body, 16)?,
        available: u64_at(body, 24)?,
    })
}

/// The number of a ring, and whether a file descriptor comes with it.
pub(crate) fn ring_and_file(body: &[u8]) -> Result<(u32, bool), String> {
    let value = u64_at(body, 0)?;
    Ok(((value & 0xff) as u32, value & NO_FILE == 0))
}

/// A number in the body. Both ends are on one machine, and x86-64, aarch64 and s390x guests of
/// QEMU all have messages in the byte order of that machine.
pub(crate) fn u64_at(body: &[u8], at: usize) -> Result<u64, String> {
    bytes_at(body, at).map(u64::from_ne_bytes)
}

/// A smaller one.
pub(crate) fn u32_at(body: &[u8], at: usize) -> Result<u32, String> {
    bytes_at(body, at).map(u32::from_ne_bytes)
}

fn bytes_at<const N: usize>(body: &[u8], at: usize) -> Result<[u8; N], String> {
    let bytes = body.get(at..).and_then(|rest| rest.first_chunk());
    bytes
        .copied()
        .ok_or_else(|| format!("a body of {} bytes is too short", body.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(request: u32, flags: u32, len: u32) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        for (field, value) in bytes.chunks_exact_mut(4).zip([request, flags, len]) {
            field.copy_from_slice(&value.to_ne_bytes());
        }
        bytes
    }

    #[test]
    fn headers_of_other_versions_and_lengths_are_refused() {
        assert!(Header::read(&header(1, 9, 8)).unwrap().wants_reply());
        assert!(!Header::read(&header(1, 1, 8)).unwrap().wants_reply());
        for (flags, len) in [(0, 8), (2, 8), (3, 8), (1, 4097), (1, u32::MAX)] {
            assert!(Header::read(&header(1, flags, len)).is_err());
        }
    }

    #[test]
    fn regions_need_a_file_each() {
        let mut body = vec![0; 8 + 64];
        body[0] = 2;
        assert_eq!(regions(&body, 2).unwrap().len(), 2);
        assert!(regions(&body, 1).is_err());
        body[0] = 3;
        assert!(regions(&body, 3).is_err(), "the body is too short");
        body[0] = 9;
        assert!(regions(&[body, vec![0; 400]].concat(), 9).is_err());
    }
}
