//! What happens to one chunk: its IV, the cipher, and the padding of the last one.

use cipherlane_core::{Direction, Request};

use super::buffer::Buffer;
use super::cipher::{BLOCK, Cipher, Mode, padded, padding};
use super::driver::Driver;
use super::source::Chunk;
use super::turn::Turn;
use crate::failure::Failure;

/// Encrypts or decrypts chunks, from any number of threads.
#[derive(Debug)]
pub(super) struct Coder {
    driver: Driver,
    cipher: Cipher,
    direction: Direction,
    iv: [u8; BLOCK],
    pads: bool,
    /// CBC encryption is a chain: the last block of ciphertext goes from chunk to chunk.
    chain: Option<Turn<[u8; BLOCK]>>,
}

impl Coder {
    pub(super) fn new(
        driver: Driver,
        cipher: Cipher,
        direction: Direction,
        iv: [u8; BLOCK],
        nopad: bool,
    ) -> Coder {
        let chained = cipher.mode == Mode::Cbc && direction == Direction::Encrypt;
        Coder {
            driver,
            cipher,
            direction,
            iv,
            pads: !nopad && cipher.mode != Mode::Ctr,
            chain: chained.then(|| Turn::new(iv)),
        }
    }

    /// Whether chunks can be worked on in any order.
    pub(super) fn any_order(&self) -> bool {
        self.chain.is_none()
    }

    /// Whether the last chunk has padding to take off.
    pub(super) fn unpads(&self) -> bool {
        self.pads && self.direction == Direction::Decrypt
    }

    /// Works on a chunk in place; returns the bytes of the result. `name` is the input's.
    pub(super) fn run(
        &self,
        chunk: &Chunk,
        buffer: &mut Buffer,
        name: &str,
    ) -> Result<usize, Failure> {
        let mut len = chunk.len;
        if chunk.last && self.pads && self.direction == Direction::Encrypt {
            let count = padding(len);
            buffer.payload(len + count)[len..].fill(count as u8);
            len += count;
        }
        if chunk.last && self.cipher.mode != Mode::Ctr {
            self.check_length(chunk.offset + len as u64, name)?;
        }
        let data = buffer.payload(len);
        match &self.chain {
            Some(turn) => {
                let mut chain = turn.enter(chunk.index);
                self.process(data, &chain)?;
                if let Some(newest) = data.last_chunk() {
                    *chain = *newest;
                }
                chain.leave();
            }
            None => self.process(data, &self.iv_at(chunk))?,
        }
        if chunk.last && self.unpads() {
            let last = data.last_chunk().expect("the length was checked");
            let count = padded(last).ok_or_else(|| {
                Failure::Runtime(format!(
                    "bad decrypt: wrong key or damaged file (the padding at the end of {name} is \
                     not there; if it was encrypted with -nopad, decrypt it so)"
                ))
            })?;
            len -= count;
        }
        Ok(len)
    }

    fn process(&self, data: &mut [u8], iv: &[u8; BLOCK]) -> Result<(), Failure> {
        let iv = &iv[..self.cipher.iv_len()];
        let request = Request::in_place(data).iv(iv);
        Ok(self
            .driver
            .session()?
            .process(self.direction, &mut [request])?)
    }

    /// Waits until what is to be verified is. An error if the driver was wrong.
    pub(super) fn verify(&self) -> Result<(), Failure> {
        self.driver.verify()
    }

    /// The IV of a chunk that needs no other chunk's result.
    fn iv_at(&self, chunk: &Chunk) -> [u8; BLOCK] {
        match self.cipher.mode {
            Mode::Ctr => {
                let blocks = u128::from(chunk.offset / BLOCK as u64);
                u128::from_be_bytes(self.iv)
                    .wrapping_add(blocks)
                    .to_be_bytes()
            }
            Mode::Cbc if chunk.index > 0 => chunk.before,
            Mode::Cbc | Mode::Ecb => self.iv,
        }
    }

    /// Of the whole input, padding included.
    fn check_length(&self, total: u64, name: &str) -> Result<(), Failure> {
        if total.is_multiple_of(BLOCK as u64) && (total > 0 || !self.unpads()) {
            return Ok(());
        }
        Err(Failure::Runtime(match self.direction {
            Direction::Encrypt => format!(
                "bad encrypt: {name} has {total} bytes, not a multiple of {BLOCK}; leave out \
                 -nopad, or pad it yourself"
            ),
            Direction::Decrypt => format!(
                "bad decrypt: {name} has {total} bytes, and {} makes a multiple of {BLOCK}; it \
                 was cut off, or encrypted with another cipher",
                self.cipher
            ),
        }))
    }
}
