//! What a session does with a message: its MAC, and its cipher, whose next request goes on where
//! the one before ended.

use std::sync::PoisonError;

use cipherlane_core::{Direction, Request};

use super::counters::Refusal;
use super::files::{Entry, Keyed};

impl Entry {
    /// Bytes of an IV at this address: none at none.
    pub(super) fn iv_len(&self, address: usize) -> usize {
        match &self.cipher {
            Some(cipher) if address != 0 => cipher.algorithm.iv_len,
            _ => 0,
        }
    }

    /// Appends the MAC of a message, if the session has one.
    pub(super) fn append_mac(&self, message: &[u8], tail: &mut Vec<u8>) -> Result<(), Refusal> {
        let Some(mac) = &self.mac else {
            return Ok(());
        };
        let tag_len = mac.tag_len(0)?;
        let at = tail.len();
        tail.resize(at + tag_len, 0);
        let request = Request::mac(message).tag(&mut tail[at..]);
        mac.run(Direction::Encrypt, tag_len, request)
    }

    /// Runs a cipher in place; the IV with which another request would go on, which counts if
    /// that one gives none.
    pub(super) fn encipher(
        &self,
        cipher: &Keyed,
        direction: Direction,
        given: &[u8],
        data: &mut [u8],
    ) -> Result<[u8; 16], Refusal> {
        let chain = || self.chain.lock().unwrap_or_else(PoisonError::into_inner);
        if given.is_empty() {
            // Requests that depend on each other are done one after the other.
            let mut chain = chain();
            *chain = encipher(cipher, direction, *chain, data)?;
            return Ok(*chain);
        }
        let mut iv = [0; 16];
        iv[..given.len()].copy_from_slice(given);
        let next = encipher(cipher, direction, iv, data)?;
        *chain() = next;
        Ok(next)
    }
}

/// Runs a cipher in place; the IV with which another request would go on.
fn encipher(
    cipher: &Keyed,
    direction: Direction,
    iv: [u8; 16],
    data: &mut [u8],
) -> Result<[u8; 16], Refusal> {
    if data.is_empty() {
        return Ok(iv);
    }
    let last = |data: &[u8]| data.last_chunk().copied().unwrap_or(iv);
    let before = last(data);
    let request = Request::in_place(data).iv(&iv[..cipher.algorithm.iv_len]);
    cipher.run(direction, 0, request)?;
    Ok(match (cipher.algorithm.name, direction) {
        ("cbc(aes)", Direction::Encrypt) => last(data),
        ("cbc(aes)", Direction::Decrypt) => before,
        ("ctr(aes)", _) => {
            let blocks = data.len().div_ceil(16) as u128;
            let counter = u128::from_be_bytes(iv).wrapping_add(blocks);
            counter.to_be_bytes()
        }
        _ => iv,
    })
}
