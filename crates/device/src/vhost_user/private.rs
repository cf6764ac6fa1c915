//! Operations on a data queue that virtio does not have, for the project's own driver
//! (`linux/cipherlane-virtio-crypto`): keys in-band, more algorithms, several requests per chain.
//!
//! QEMU does not look into data queues of a vhost-user back-end, so these go through any QEMU.
//! All numbers are little-endian. A chain's readable bytes begin with a header of 72 bytes, as long
//! as that of virtio, so that a back-end without these operations answers that it does not
//! support them:
//!
//! | bytes | header |
//! |---|---|
//! | 0 to 4 | operation, see [`Ask`] |
//! | 4 to 8 | [`VERSION`] |
//! | 8 to 16 | [`MAGIC`] |
//! | 16 to 20 | open, close: number of the session, which the guest chooses |
//! | 20 to 24 | open: algorithm, by its number in [`ALGORITHMS`] |
//! | 24 to 28 | open: bytes of the key, which follows the header |
//! | 28 to 32 | open: bytes of a tag |
//! | 32 to 36 | run: number of requests |
//! | 36 to 40 | hello: 1 where the driver says in the ring when it wants an interrupt (`VIRTIO_F_EVENT_IDX`) |
//! | 40 to 72 | zero |
//!
//! Behind the header of a run there are 32 bytes per request, then for each request in turn its
//! additional data, bytes that are skipped, its payload, and, when a tag is compared, the tag:
//!
//! | bytes | request |
//! |---|---|
//! | 0 to 4 | session |
//! | 4 | 0: encrypt, 1: decrypt |
//! | 5, 6 | bytes of the IV, and of the tag |
//! | 7 | bytes that are skipped between additional data and payload |
//! | 8 to 12 | bytes of additional data |
//! | 12 to 16 | bytes of payload |
//! | 16 to 32 | IV |
//!
//! Writable bytes of a run are, for each request in turn, the payload and, when a tag is made, the
//! tag; then a status byte per request; then the status of the chain. Those of a hello are the
//! 40 bytes of [`hello`] and the status. Statuses are those of virtio. What a request that
//! failed would have written is left as it was.
//!
//! A hello closes all sessions of these operations: the driver begins anew with it. Numbers of
//! sessions have nothing to do with those of virtio's control queue.

use cipherlane_core::Direction;

use super::operation::{HEADER, MAX_LEN, Refusal};

/// "clvcrypt".
pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"clvcrypt");

/// The version of all of this.
pub(crate) const VERSION: u32 = 1;

/// Requests of a chain at most.
pub(crate) const MAX_COUNT: usize = 64;

/// Bytes that describe a request of a run.
pub(crate) const ENTRY: usize = 32;

/// Bytes of the answer to a hello.
pub(crate) const HELLO: usize = 40;

/// The longest key: two of AES for XTS, or that of HMAC-SHA-256 and one of AES.
pub(crate) const MAX_KEY: usize = 64;

/// The first operation; no service of virtio has numbers like this one.
const FIRST: u32 = 0x434c_0000;

/// Algorithms by their numbers, which are those of the PCI engine.
pub(crate) const ALGORITHMS: [(u32, &str); 7] = [
    (0, "ecb(aes)"),
    (1, "cbc(aes)"),
    (2, "ctr(aes)"),
    (3, "xts(aes)"),
    (4, "gcm(aes)"),
    (5, "rfc4106(gcm(aes))"),
    (9, "authenc(hmac(sha256),cbc(aes))"),
];

/// What a header asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    /// 0x434c0001: whether these operations are known; all sessions are closed.
    Hello {
        /// The ring's `used_event` is to be obeyed. QEMU negotiates it and does not tell.
        says_when: bool,
    },
    /// 0x434c0002: a session.
    Open(Open),
    /// 0x434c0003: a session is not used any more.
    Close(u32),
    /// 0x434c0004: this number of requests.
    Run(usize),
}

/// A session to be made; the key stands behind the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Open {
    pub(crate) number: u32,
    pub(crate) algorithm: &'static str,
    pub(crate) key_len: usize,
    pub(crate) tag_len: usize,
}

/// Whether a header is one of these operations: `None` where it is virtio's.
pub(crate) fn read(header: &[u8; HEADER]) -> Option<Result<Ask, Refusal>> {
    let opcode = word(header, 0);
    (opcode & 0xffff_0000 == FIRST).then(|| ask(header, opcode - FIRST))
}

fn ask(header: &[u8; HEADER], opcode: u32) -> Result<Ask, Refusal> {
    let magic = u64::from(word(header, 8)) | u64::from(word(header, 12)) << 32;
    if magic != MAGIC || word(header, 4) != VERSION {
        return Err(Refusal::Operation);
    }
    let number = word(header, 16);
    match opcode {
        1 => Ok(Ask::Hello {
            says_when: word(header, 36) & 1 == 1,
        }),
        2 => {
            let known = ALGORITHMS
                .iter()
                .find(|(known, _)| *known == word(header, 20));
            let (key_len, tag_len) = (word(header, 24) as usize, word(header, 28) as usize);
            if key_len > MAX_KEY || tag_len > MAX_KEY {
                return Err(Refusal::Malformed);
            }
            Ok(Ask::Open(Open {
                number,
                algorithm: known.ok_or(Refusal::Operation)?.1,
                key_len,
                tag_len,
            }))
        }
        3 => Ok(Ask::Close(number)),
        4 => match word(header, 32) as usize {
            count @ 1..=MAX_COUNT => Ok(Ask::Run(count)),
            _ => Err(Refusal::Malformed),
        },
        _ => Err(Refusal::Operation),
    }
}

/// A request of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) session: u32,
    pub(crate) direction: Direction,
    pub(crate) iv: [u8; 16],
    pub(crate) iv_len: usize,
    pub(crate) tag_len: usize,
    pub(crate) skip: usize,
    pub(crate) aad_len: usize,
    pub(crate) len: usize,
}

impl Entry {
    /// Reads one.
    pub(crate) fn read(bytes: &[u8; ENTRY]) -> Result<Entry, Refusal> {
        let direction = match bytes[4] {
            0 => Direction::Encrypt,
            1 => Direction::Decrypt,
            _ => return Err(Refusal::Operation),
        };
        let entry = Entry {
            session: word(bytes, 0),
            direction,
            iv: *bytes.last_chunk().ok_or(Refusal::Malformed)?,
            iv_len: bytes[5].into(),
            tag_len: bytes[6].into(),
            skip: bytes[7].into(),
            aad_len: word(bytes, 8) as usize,
            len: word(bytes, 12) as usize,
        };
        if entry.iv_len > 16 || entry.tag_len > MAX_KEY {
            return Err(Refusal::Malformed);
        }
        // Each is below 2^32, so that no sum overflows 64 bits.
        if entry.aad_len > MAX_LEN || entry.len > MAX_LEN || entry.room() > MAX_LEN {
            return Err(Refusal::TooLong);
        }
        Ok(entry)
    }

    /// Bytes of additional data, payload and tag.
    pub(crate) fn room(&self) -> usize {
        self.aad_len + self.len + self.tag_len
    }

    /// Bytes that are written.
    pub(crate) fn written(&self) -> usize {
        match self.direction {
            Direction::Encrypt => self.len + self.tag_len,
            Direction::Decrypt => self.len,
        }
    }
}

/// The answer to a hello: magic, version, requests of a chain, bytes of a request, sessions, and a
/// bit per algorithm; the rest is zero.
pub(crate) fn hello(sessions: usize) -> [u8; HELLO] {
    let mut answer = [0; HELLO];
    answer[..8].copy_from_slice(&MAGIC.to_le_bytes());
    let sessions = u32::try_from(sessions).unwrap_or(u32::MAX);
    for (at, value) in [
        (8, VERSION),
        (12, MAX_COUNT as u32),
        (16, MAX_LEN as u32),
        (20, sessions),
        (24, ALGORITHMS.iter().map(|(number, _)| 1 << number).sum()),
    ] {
        answer[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }
    answer
}

fn word(bytes: &[u8], at: usize) -> u32 {
    let bytes = [0, 1, 2, 3].map(|byte| bytes[at + byte]);
    u32::from_le_bytes(bytes)
}

/// For tests and the fuzz target: a header with the operation 1 to 4, and what follows it. The words
/// are those at 16 to 40.
pub fn write(operation: u32, words: &[u32], rest: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; HEADER];
    bytes[..4].copy_from_slice(&(FIRST + operation).to_le_bytes());
    bytes[4..8].copy_from_slice(&VERSION.to_le_bytes());
    bytes[8..16].copy_from_slice(&MAGIC.to_le_bytes());
    for (place, word) in bytes[16..40].chunks_exact_mut(4).zip(words) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    bytes.extend_from_slice(rest);
    bytes
}

/// For tests and the fuzz target: the bytes that describe a request of a run.
pub fn describe(session: u32, lens: [u8; 4], aad_len: u32, len: u32, iv: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; ENTRY];
    bytes[..4].copy_from_slice(&session.to_le_bytes());
    bytes[4..8].copy_from_slice(&lens);
    bytes[8..12].copy_from_slice(&aad_len.to_le_bytes());
    bytes[12..16].copy_from_slice(&len.to_le_bytes());
    let iv = &iv[..iv.len().min(16)];
    bytes[16..16 + iv.len()].copy_from_slice(iv);
    bytes
}
