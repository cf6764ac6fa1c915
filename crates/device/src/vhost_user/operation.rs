//! The header of a request on a data queue (VIRTIO 1.2, section 5.9.7.2).
//!
//! 72 bytes of little-endian numbers: 24 that all requests have, then the lengths of this one, and
//! behind them what sort of symmetric request it is. IV and payload follow, and what may be
//! written is the result and a byte for the status.

use cipherlane_core::Direction;

/// Bytes of the header.
pub(crate) const HEADER: usize = 72;

/// Bytes of a payload at most.
pub(crate) const MAX_LEN: usize = 4 << 20;

/// A cipher without a MAC.
const CIPHER_ALONE: u32 = 1;

/// How a request ended, in its last byte (VIRTIO 1.2, section 5.9.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Outcome {
    Ok = 0,
    Error = 1,
    BadMessage = 2,
    NotSupported = 3,
    UnknownSession = 4,
}

/// Why a request was refused, for the counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Descriptors in a loop, out of memory, in a wrong order, or shorter than they have to be.
    Malformed,
    /// A payload of more than [`MAX_LEN`] bytes.
    TooLong,
    /// An operation that is not served.
    Operation,
    /// A session that does not exist.
    Session,
    /// A session that is for the other direction.
    Direction,
    /// Lengths that the algorithm does not take, or a driver that failed.
    Failed,
    /// A tag that is not right.
    Tag,
}

impl Refusal {
    /// All of them, in the order of the counters.
    pub(crate) const ALL: [Refusal; 7] = [
        Refusal::Malformed,
        Refusal::TooLong,
        Refusal::Operation,
        Refusal::Session,
        Refusal::Direction,
        Refusal::Failed,
        Refusal::Tag,
    ];

    /// What `status` calls it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Refusal::Malformed => "malformed",
            Refusal::TooLong => "too long",
            Refusal::Operation => "unknown operation",
            Refusal::Session => "unknown session",
            Refusal::Direction => "other direction",
            Refusal::Failed => "failed",
            Refusal::Tag => "bad tag",
        }
    }

    /// What the guest is told.
    pub(crate) fn outcome(self) -> Outcome {
        match self {
            Refusal::Operation => Outcome::NotSupported,
            Refusal::Session => Outcome::UnknownSession,
            Refusal::Tag => Outcome::BadMessage,
            _ => Outcome::Error,
        }
    }
}

/// What a guest wants to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Operation {
    pub(crate) session: u64,
    pub(crate) direction: Direction,
    pub(crate) iv_len: usize,
    pub(crate) len: usize,
}

impl Operation {
    /// Reads a header.
    pub(crate) fn read(header: &[u8; HEADER]) -> Result<Operation, Refusal> {
        let direction = match number(header, 0) {
            0 => Direction::Encrypt,
            1 => Direction::Decrypt,
            _ => return Err(Refusal::Operation),
        };
        if number(header, 64) != CIPHER_ALONE {
            return Err(Refusal::Operation);
        }
        let [iv_len, len, result_len] = [24, 28, 32].map(|at| number(header, at) as usize);
        if len > MAX_LEN {
            return Err(Refusal::TooLong);
        }
        // No IV of any cipher is longer than a block.
        if iv_len > 16 || result_len < len {
            return Err(Refusal::Malformed);
        }
        let halves = [8, 12].map(|at| u64::from(number(header, at)));
        Ok(Operation {
            session: halves[0] | halves[1] << 32,
            direction,
            iv_len,
            len,
        })
    }

    /// The header, as a guest's driver writes it.
    pub(crate) fn write(&self) -> [u8; HEADER] {
        let mut header = [0; HEADER];
        let code = match self.direction {
            Direction::Encrypt => 0,
            Direction::Decrypt => 1,
        };
        let fields = [
            (0, code),
            (8, self.session as u32),
            (12, (self.session >> 32) as u32),
            (24, self.iv_len as u32),
            (28, self.len as u32),
            (32, self.len as u32),
            (64, CIPHER_ALONE),
        ];
        for (at, value) in fields {
            header[at..at + 4].copy_from_slice(&value.to_le_bytes());
        }
        header
    }
}

fn number(header: &[u8; HEADER], at: usize) -> u32 {
    let bytes = [0, 1, 2, 3].map(|byte| header[at + byte]);
    u32::from_le_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_as_it_was_written() {
        let operation = Operation {
            session: 0x1234_5678_9abc_def0,
            direction: Direction::Decrypt,
            iv_len: 16,
            len: 4096,
        };
        assert_eq!(Operation::read(&operation.write()), Ok(operation));
        let change = |at: usize, byte: u8| {
            let mut header = operation.write();
            header[at] = byte;
            Operation::read(&header).unwrap_err()
        };
        assert_eq!(change(0, 2), Refusal::Operation);
        assert_eq!(change(1, 1), Refusal::Operation);
        assert_eq!(change(64, 2), Refusal::Operation);
        assert_eq!(change(31, 1), Refusal::TooLong);
        assert_eq!(change(33, 0), Refusal::Malformed);
        assert_eq!(change(24, 17), Refusal::Malformed);
    }
}
