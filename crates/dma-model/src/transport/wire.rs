//! What stands in the memory that driver and device share. All numbers are little-endian.
//!
//! ```text
//! 0x000  registers: who you are, reset, status; then an index a cache line
//! 0x200  submission ring: descriptors of 16 bytes, written by the driver
//!        completion ring: entries of 16 bytes, written by the device
//!        slots of 256 bytes: an operation (128), short additional data (64), tag (64)
//!        pool: bounce buffers and keys
//! ```
//!
//! A request is a chain of descriptors: its operation, then pieces that the device reads,
//! then pieces that it writes. Indices run freely and are taken modulo the ring.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use cipherlane_core::Direction;

/// At [`Register::MAGIC`]: what this is, and its version.
pub const MAGIC: u64 = u64::from_le_bytes(*b"clring\x01\x00");

/// Offsets of the registers in bytes.
#[derive(Debug)]
pub struct Register;

impl Register {
    /// u64, [`MAGIC`].
    pub const MAGIC: usize = 0x00;
    /// u64, a bit for each algorithm offered, by its place in [`ALGORITHMS`].
    pub const FEATURES: usize = 0x08;
    /// u32, [`READY`] and [`BROKEN`]; written by the device.
    pub const STATUS: usize = 0x10;
    /// u32, written by the driver: another number asks for a reset.
    pub const RESET: usize = 0x14;
    /// u32, written by the device: the number of the last reset that is over. From then on
    /// it does not touch memory that it was given before.
    pub const RESET_DONE: usize = 0x18;
    /// u32, written by the driver: whether it wants interrupts.
    pub const INTERRUPTS: usize = 0x1c;
    /// u32, written by the driver: descriptors made.
    pub const SUBMIT_TAIL: usize = 0x40;
    /// u32, written by the device: descriptors fetched.
    pub const SUBMIT_HEAD: usize = 0x80;
    /// u32, written by the device: completions made.
    pub const COMPLETE_TAIL: usize = 0xc0;
    /// u32, written by the driver: completions seen.
    pub const COMPLETE_HEAD: usize = 0x100;
    /// u32, descriptors in a ring. This and those below are written by the device, once, for
    /// a driver that does not know its settings.
    pub const RING: usize = 0x140;
    /// u32, pieces begin at multiples of this many bytes.
    pub const ALIGNMENT: usize = 0x144;
    /// u32, pieces are multiples of this many bytes, but for the last of a side.
    pub const BLOCK: usize = 0x148;
    /// u32, bytes of a piece at most.
    pub const MAX_SEGMENT: usize = 0x14c;
    /// u32, bytes of a request at most.
    pub const MAX_REQUEST: usize = 0x150;
    /// u32, keys that it holds at most.
    pub const SESSIONS: usize = 0x154;
    /// u32, lengths of keys that it takes: bit 0 for 128 bits, 1 for 192, 2 for 256; none
    /// for all that an algorithm has.
    pub const KEY_BITS: usize = 0x158;
}

/// Marks an address of the bus, which is the memory of the driver's machine; other addresses
/// are offsets in the shared memory.
pub const BUS: u64 = 1 << 63;

/// Status: it works.
pub const READY: u32 = 1;
/// Status: it found nonsense in the rings and stands still until a reset.
pub const BROKEN: u32 = 2;

/// Algorithms by their number in this protocol, which never changes.
pub const ALGORITHMS: [&str; 10] = [
    "ecb(aes)",
    "cbc(aes)",
    "ctr(aes)",
    "xts(aes)",
    "gcm(aes)",
    "rfc4106(gcm(aes))",
    "rfc7539(chacha20,poly1305)",
    "hmac(sha256)",
    "hmac(sha512)",
    "authenc(hmac(sha256),cbc(aes))",
];

/// The number of an algorithm, if the protocol has it.
pub fn algorithm_number(name: &str) -> Option<u8> {
    let position = ALGORITHMS.iter().position(|known| *known == name);
    position.map(|number| number as u8)
}

/// Bytes of the registers.
pub(super) const REGISTERS: usize = 0x200;
/// Bytes of those that are 64 bits wide: they come first.
pub(super) const WIDE_REGISTERS: usize = 0x10;
/// Bytes of a descriptor, and of a completion.
pub const ENTRY: usize = 16;
/// Bytes of a slot.
pub const SLOT: usize = 256;
/// Bytes of the operation in it.
pub const OPERATION: usize = 128;
/// Bytes for short additional data in it.
pub const SHORT_AAD: usize = 64;
/// Bytes for a tag in it.
pub const TAG: usize = 64;

const _: () = assert!(OPERATION + SHORT_AAD + TAG <= SLOT);

/// The layout for a ring and a pool of these sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Descriptors in the submission ring, entries of the completion ring: a power of two.
    pub ring: u32,
    /// Bytes of the pool.
    pub pool: usize,
}

impl Layout {
    /// Where the descriptor of that index stands.
    #[inline]
    pub fn descriptor(&self, index: u32) -> usize {
        REGISTERS + (index & (self.ring - 1)) as usize * ENTRY
    }

    /// Where the completion of that index stands.
    #[inline]
    pub fn completion(&self, index: u32) -> usize {
        self.descriptor(index) + self.ring as usize * ENTRY
    }

    /// Requests under way at most: each takes two descriptors or more, for the most part.
    #[inline]
    pub fn slots(&self) -> u16 {
        (self.ring / 2) as u16
    }

    /// Where a slot begins.
    #[inline]
    pub fn slot(&self, slot: u16) -> usize {
        REGISTERS + 2 * self.ring as usize * ENTRY + usize::from(slot) * SLOT
    }

    /// Where the pool begins.
    #[inline]
    pub fn pool_start(&self) -> usize {
        self.slot(self.slots()).next_multiple_of(4096)
    }

    /// The longest ring.
    const LONGEST: u32 = 1 << 16;

    /// Whether there can be such memory: its bytes, or why not.
    pub(super) fn check(&self) -> Result<usize, String> {
        if !self.ring.is_power_of_two() || self.ring > Self::LONGEST {
            return Err(format!(
                "a ring has a power of two of descriptors, {} at most",
                Self::LONGEST
            ));
        }
        let most = isize::MAX as usize / 2;
        match self.pool <= most {
            true => Ok(self.total()),
            false => Err(format!("a pool has {most} bytes at most")),
        }
    }

    /// Bytes of everything.
    pub fn total(&self) -> usize {
        (self.pool_start() + self.pool).next_multiple_of(4096)
    }
}

/// Flag of a descriptor: the request has more.
pub const MORE: u16 = 1;
/// Flag of a descriptor: the device writes there.
pub const WRITE: u16 = 2;
/// Flag of a descriptor: an operation stands there.
pub const HEADER: u16 = 4;
/// Flag of a descriptor: a copy in the driver's own memory. Only for those who watch.
pub const BOUNCE: u16 = 8;

/// A piece of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Descriptor {
    /// As the device sees it.
    pub address: u64,
    /// Bytes.
    pub len: u32,
    /// [`MORE`], [`WRITE`], [`HEADER`], [`BOUNCE`].
    pub flags: u16,
    /// The slot of the request.
    pub slot: u16,
}

impl Descriptor {
    /// Writes it to shared memory.
    #[inline]
    pub fn store(&self, to: &[AtomicU64; 2]) {
        to[0].store(self.address.to_le(), Relaxed);
        let rest = u64::from(self.len) | u64::from(self.flags) << 32 | u64::from(self.slot) << 48;
        to[1].store(rest.to_le(), Relaxed);
    }

    /// Reads it once: what is checked is what is used.
    #[inline]
    pub fn load(from: &[AtomicU64; 2]) -> Self {
        let rest = u64::from_le(from[1].load(Relaxed));
        Descriptor {
            address: u64::from_le(from[0].load(Relaxed)),
            len: rest as u32,
            flags: (rest >> 32) as u16,
            slot: (rest >> 48) as u16,
        }
    }
}

/// What came of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Its slot.
    pub slot: u16,
    /// Its turn in that slot, from its operation.
    pub turn: u16,
    /// [`DONE`] or why not.
    pub status: u32,
    /// Bytes of output written.
    pub written: u64,
}

/// Completion: the output is there, and the tag where one was asked for.
pub const DONE: u32 = 0;
/// Completion: authentication failed; nothing was written.
pub const BAD_TAG: u32 = 1;
/// Completion: no such key.
pub const NO_SESSION: u32 = 2;
/// Completion: the request breaks a rule of the device.
pub const REFUSED: u32 = 3;
/// Completion: an address that the device cannot reach.
pub const DMA_FAULT: u32 = 4;
/// Completion: the engine failed.
pub const ENGINE_ERROR: u32 = 5;

impl Completion {
    /// Writes it to shared memory.
    #[inline]
    pub fn store(&self, to: &[AtomicU64; 2]) {
        let first =
            u64::from(self.slot) | u64::from(self.turn) << 16 | u64::from(self.status) << 32;
        to[0].store(first.to_le(), Relaxed);
        to[1].store(self.written.to_le(), Relaxed);
    }

    /// Reads it once.
    #[inline]
    pub fn load(from: &[AtomicU64; 2]) -> Self {
        let first = u64::from_le(from[0].load(Relaxed));
        Completion {
            slot: first as u16,
            turn: (first >> 16) as u16,
            status: (first >> 32) as u32,
            written: u64::from_le(from[1].load(Relaxed)),
        }
    }
}

/// What the device shall do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opcode {
    /// Encrypt or decrypt.
    Run(Direction),
    /// Take a key.
    LoadKey,
    /// Wipe a key.
    WipeKey,
}

/// The head of a request, in its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// What to do.
    pub opcode: Opcode,
    /// By its number in [`ALGORITHMS`]; for `LoadKey`.
    pub algorithm: u8,
    /// Bytes of the tag: written when encrypting, compared when decrypting.
    pub tag_len: u8,
    /// Bytes of the IV.
    pub iv_len: u8,
    /// The request's turn in its slot, for the completion.
    pub turn: u16,
    /// The key.
    pub session: u32,
    /// Bytes of payload.
    pub len: u32,
    /// Bytes of additional data; for `LoadKey` of the key.
    pub aad_len: u32,
    /// Where the additional data is; for `LoadKey` the key.
    pub aad: u64,
    /// Where the tag is.
    pub tag: u64,
    /// The IV.
    pub iv: [u8; 16],
}

impl Operation {
    /// Writes it to shared memory.
    #[inline]
    pub fn store(&self, to: &[AtomicU64; 7]) {
        let opcode: u8 = match self.opcode {
            Opcode::Run(Direction::Encrypt) => 1,
            Opcode::Run(Direction::Decrypt) => 2,
            Opcode::LoadKey => 3,
            Opcode::WipeKey => 4,
        };
        let [low, high] = self.turn.to_le_bytes();
        let head = [
            opcode,
            self.algorithm,
            self.tag_len,
            self.iv_len,
            low,
            high,
            0,
            0,
        ];
        let (first, last) = self.iv.split_at(8);
        let iv = |half: &[u8]| u64::from_le_bytes(half.try_into().expect("8 of 16 bytes"));
        let words = [
            u64::from_le_bytes(head),
            u64::from(self.session) | u64::from(self.len) << 32,
            u64::from(self.aad_len),
            self.aad,
            self.tag,
            iv(first),
            iv(last),
        ];
        for (to, word) in to.iter().zip(words) {
            to.store(word.to_le(), Relaxed);
        }
    }

    /// Reads it once; `None` if it makes no sense.
    #[inline]
    pub fn load(from: &[AtomicU64; 7]) -> Option<Self> {
        let words: [u64; 7] = std::array::from_fn(|i| u64::from_le(from[i].load(Relaxed)));
        let head = words[0].to_le_bytes();
        let mut iv = [0; 16];
        iv[..8].copy_from_slice(&words[5].to_le_bytes());
        iv[8..].copy_from_slice(&words[6].to_le_bytes());
        Some(Operation {
            opcode: match head[0] {
                1 => Opcode::Run(Direction::Encrypt),
                2 => Opcode::Run(Direction::Decrypt),
                3 => Opcode::LoadKey,
                4 => Opcode::WipeKey,
                _ => return None,
            },
            algorithm: head[1],
            tag_len: head[2],
            iv_len: head[3],
            turn: u16::from_le_bytes([head[4], head[5]]),
            session: words[1] as u32,
            len: (words[1] >> 32) as u32,
            aad_len: words[2] as u32,
            aad: words[3],
            tag: words[4],
            iv,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stored_is_loaded() {
        let descriptor = Descriptor {
            address: 0x0123_4567_89ab_cdef,
            len: 0xfedc_ba98,
            flags: MORE | WRITE,
            slot: 0xabcd,
        };
        let words = [AtomicU64::new(0), AtomicU64::new(0)];
        descriptor.store(&words);
        assert_eq!(Descriptor::load(&words), descriptor);
        let completion = Completion {
            slot: 7,
            turn: 0xffff,
            status: BAD_TAG,
            written: 1 << 40,
        };
        completion.store(&words);
        assert_eq!(Completion::load(&words), completion);
        let operation = Operation {
            opcode: Opcode::Run(Direction::Decrypt),
            algorithm: 9,
            tag_len: 16,
            iv_len: 12,
            turn: 0x1234,
            session: 0x89ab_cdef,
            len: 450_000,
            aad_len: 13,
            aad: 1 << 62,
            tag: 77,
            iv: std::array::from_fn(|i| i as u8),
        };
        let words: [AtomicU64; 7] = Default::default();
        operation.store(&words);
        assert_eq!(Operation::load(&words), Some(operation));
        words[0].store(0xff, Relaxed);
        assert_eq!(Operation::load(&words), None);
    }

    #[test]
    fn the_parts_do_not_overlap() {
        let layout = Layout {
            ring: 64,
            pool: 10_000,
        };
        assert_eq!(layout.descriptor(64), layout.descriptor(0));
        assert_eq!(layout.descriptor(63) + ENTRY, layout.completion(0));
        assert_eq!(layout.completion(63) + ENTRY, layout.slot(0));
        assert!(layout.pool_start() >= layout.slot(31) + SLOT);
        assert!(layout.total() >= layout.pool_start() + 10_000);
        assert!(ALGORITHMS.len() <= 64 && REGISTERS <= layout.descriptor(0));
    }
}
