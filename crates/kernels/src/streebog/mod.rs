//! Streebog (GOST R 34.11-2012, RFC 6986) with 256 and 512 bits, and its HMAC (RFC 7836 section
//! 4.1), in constant time: the S-box is Kuznyechik's, by bit planes, and the matrix is applied
//! bit by bit under masks. That is slower than tables that hold both, at some microseconds per
//! block of 64 bytes, and a key is derived for thousands of packets.

mod tables;

use zeroize::{Zeroize, ZeroizeOnDrop};

use self::tables::{MATRIX, ROUNDS};
use crate::portable::kuznyechik::substitute_64;

/// Bytes of a block.
const BLOCK: usize = 64;

/// A state of 512 bits; the byte with the lowest address has the lowest weight.
type State = [u64; 8];

/// A digest that is being computed.
#[derive(Clone, ZeroizeOnDrop)]
pub struct Streebog {
    hash: State,
    /// Bits so far, and the sum of all blocks so far.
    bits: State,
    sum: State,
    buffer: [u8; BLOCK],
    filled: usize,
}

impl Streebog {
    /// With a digest of 32 bytes.
    pub fn new_256() -> Self {
        Self::new(0x0101_0101_0101_0101)
    }

    /// With a digest of 64 bytes.
    pub fn new_512() -> Self {
        Self::new(0)
    }

    fn new(iv: u64) -> Self {
        Streebog {
            hash: [iv; 8],
            bits: [0; 8],
            sum: [0; 8],
            buffer: [0; BLOCK],
            filled: 0,
        }
    }

    /// Takes a part of the message.
    pub fn update(&mut self, mut data: &[u8]) {
        while !data.is_empty() {
            let (now, rest) = data.split_at(data.len().min(BLOCK - self.filled));
            self.buffer[self.filled..][..now.len()].copy_from_slice(now);
            self.filled += now.len();
            data = rest;
            if self.filled == BLOCK {
                self.block(BLOCK);
            }
        }
    }

    /// The digest. One of 32 bytes stands at the end.
    pub fn finish(mut self) -> [u8; 64] {
        let filled = self.filled;
        self.buffer[filled] = 1;
        self.buffer[filled + 1..].fill(0);
        self.block(filled);
        compress(&mut self.hash, &[0; 8], &self.bits);
        compress(&mut self.hash, &[0; 8], &self.sum);
        let mut digest = [0; 64];
        for (bytes, word) in digest.chunks_mut(8).zip(self.hash) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        digest
    }

    /// The buffer, of which `len` bytes are the message's.
    fn block(&mut self, len: usize) {
        let mut words = [0; 8];
        for (word, bytes) in words.iter_mut().zip(self.buffer.chunks(8)) {
            *word = u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
        }
        compress(&mut self.hash, &self.bits, &words);
        add(&mut self.bits, &[8 * len as u64, 0, 0, 0, 0, 0, 0, 0]);
        add(&mut self.sum, &words);
        words.zeroize();
        self.filled = 0;
    }
}

/// HMAC with Streebog-256 of `parts`, one after the other.
pub fn hmac_256(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    let mut digest = hmac(Streebog::new_256, 32, key, parts);
    let mac = *digest.last_chunk().expect("half of it");
    digest.zeroize();
    mac
}

/// HMAC with Streebog-512 of `parts`, one after the other.
pub fn hmac_512(key: &[u8], parts: &[&[u8]]) -> [u8; 64] {
    hmac(Streebog::new_512, 64, key, parts)
}

fn hmac(new: fn() -> Streebog, len: usize, key: &[u8], parts: &[&[u8]]) -> [u8; 64] {
    let mut block = [0; BLOCK];
    if key.len() <= BLOCK {
        block[..key.len()].copy_from_slice(key);
    } else {
        let mut hash = new();
        hash.update(key);
        block[..len].copy_from_slice(&hash.finish()[64 - len..]);
    }
    block.iter_mut().for_each(|byte| *byte ^= 0x36);
    let mut inner = new();
    inner.update(&block);
    parts.iter().for_each(|part| inner.update(part));
    block.iter_mut().for_each(|byte| *byte ^= 0x36 ^ 0x5c);
    let mut outer = new();
    outer.update(&block);
    block.zeroize();
    let mut digest = inner.finish();
    outer.update(&digest[64 - len..]);
    digest.zeroize();
    outer.finish()
}

/// Addition modulo 2^512.
fn add(sum: &mut State, other: &State) {
    let mut carry = 0;
    for (a, b) in sum.iter_mut().zip(other) {
        let wide = u128::from(*a) + u128::from(*b) + carry;
        *a = wide as u64;
        carry = wide >> 64;
    }
}

fn xor(state: &mut State, other: &State) {
    state.iter_mut().zip(other).for_each(|(a, b)| *a ^= b);
}

/// g of RFC 6986 section 8. All is done in place, so that no copy of a state is left behind:
/// the first one gives away the block, which is the key in HMAC.
fn compress(hash: &mut State, number: &State, block: &State) {
    let mut key = *hash;
    xor(&mut key, number);
    lps(&mut key);
    let mut state = *block;
    for constant in &ROUNDS {
        xor(&mut state, &key);
        lps(&mut state);
        xor(&mut key, constant);
        lps(&mut key);
    }
    xor(&mut state, &key);
    xor(&mut state, block);
    xor(hash, &state);
    key.zeroize();
    state.zeroize();
}

/// L, P and S, one after the other: byte `j` of word `i` comes from byte `i` of word `j`.
fn lps(state: &mut State) {
    let mut bytes = [0; BLOCK];
    for (j, word) in state.iter().enumerate() {
        for (i, byte) in word.to_le_bytes().into_iter().enumerate() {
            bytes[8 * i + j] = byte;
        }
    }
    substitute_64(&mut bytes);
    let mut words = [0; 8];
    for (word, bytes) in words.iter_mut().zip(bytes.chunks(8)) {
        *word = u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
    }
    bytes.zeroize();
    *state = [0; 8];
    for (bit, row) in MATRIX.iter().enumerate() {
        for (out, word) in state.iter_mut().zip(&words) {
            *out ^= row & 0u64.wrapping_sub(word >> bit & 1);
        }
    }
    words.zeroize();
}

#[cfg(test)]
mod tests {
    use super::*;
    use hmac::{KeyInit, Mac};
    use proptest::prelude::*;
    use serde_json::Value;
    use streebog::Digest;

    fn bytes(value: &Value) -> Vec<u8> {
        hex::decode(value.as_str().unwrap()).unwrap()
    }

    /// The published digests.
    #[test]
    fn rfc_6986_and_7836() {
        let text = include_str!("../../../../vectors/gost/gost28147-kernel.json");
        let file: Value = serde_json::from_str(text).unwrap();
        let mut seen = 0;
        for vector in file["vectors"].as_array().unwrap() {
            let name = vector["name"].as_str().unwrap();
            if !name.contains("streebog") {
                continue;
            }
            let (text, digest) = (bytes(&vector["plaintext"]), bytes(&vector["digest"]));
            let hash = |mut hash: Streebog| {
                hash.update(&text);
                hash.finish().to_vec()
            };
            let computed = match name {
                "streebog_256" => hash(Streebog::new_256())[32..].to_vec(),
                "streebog_512" => hash(Streebog::new_512()),
                "hmac_streebog256" => hmac_256(&bytes(&vector["key"]), &[&text]).to_vec(),
                "hmac_streebog512" => hmac_512(&bytes(&vector["key"]), &[&text]).to_vec(),
                _ => panic!("{name}"),
            };
            assert_eq!(computed, digest, "{vector}");
            seen += 1;
        }
        assert_eq!(seen, 8);
    }

    proptest! {
        /// RustCrypto's is the judge.
        #[test]
        fn any_message_in_any_pieces(
            key in prop::collection::vec(any::<u8>(), 0..200),
            parts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..150), 0..5),
        ) {
            let message = parts.concat();
            let pieces: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
            for (new, expected) in [
                (Streebog::new_256 as fn() -> Streebog, streebog::Streebog256::digest(&message).to_vec()),
                (Streebog::new_512, streebog::Streebog512::digest(&message).to_vec()),
            ] {
                let mut hash = new();
                pieces.iter().for_each(|piece| hash.update(piece));
                let digest = hash.finish();
                prop_assert_eq!(&digest[64 - expected.len()..], &expected[..]);
            }
            let mut mac = hmac::Hmac::<streebog::Streebog256>::new_from_slice(&key).unwrap();
            mac.update(&message);
            prop_assert_eq!(hmac_256(&key, &pieces).to_vec(), mac.finalize().into_bytes().to_vec());
            let mut mac = hmac::Hmac::<streebog::Streebog512>::new_from_slice(&key).unwrap();
            mac.update(&message);
            prop_assert_eq!(hmac_512(&key, &pieces).to_vec(), mac.finalize().into_bytes().to_vec());
        }
    }
}
