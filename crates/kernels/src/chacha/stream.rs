//! ChaCha20-Poly1305 over data that comes in pieces.

use inout::InOutBuf;

use super::implementation::{Implementation, Mac};
use super::key::ChaChaKey;
use crate::job::Direction;
use crate::key_stream::xor;
use crate::wipe::wipe;

/// Bytes of key stream that are made ahead: with the block that keys the MAC they fill the
/// lanes of the narrowest vectors.
const AHEAD: usize = 512;

/// Bytes from which on data is done without key stream made ahead.
const DIRECT: usize = AHEAD / 2;

/// Bytes from which on a piece goes through cipher and MAC side by side.
const TOGETHER: usize = 2 * AHEAD;

/// Bytes that go through the cipher and the MAC before the next ones, so that the second of
/// the two finds them in the first-level cache.
const PIECE: usize = 8192;

/// One message of ChaCha20-Poly1305 in pieces of any length: the additional data first,
/// then the data, then the tag. It is without its key: every call must be given the key of
/// the first. Wiped on drop.
// The key stream made ahead, which is first, is read and written by vectors: it begins a cache line.
#[derive(Clone)]
#[repr(C, align(64))]
pub struct ChaChaState {
    /// Key stream, and how much of it is used.
    ahead: [u8; AHEAD],
    mac: Mac,
    used: usize,
    implementation: Implementation,
    dir: Direction,
    nonce: [u8; 12],
    /// The number of the block behind it, and how much of that is used.
    next: u32,
    next_used: usize,
    aad_len: u64,
    data_len: u64,
    in_data: bool,
}

impl ChaChaState {
    /// The most data of a message, in bytes (RFC 8439, section 2.8).
    pub const LONGEST: u64 = ((1 << 32) - 1) * 64;

    /// Begins a message.
    pub fn new(dir: Direction, key: &ChaChaKey, nonce: &[u8; 12]) -> ChaChaState {
        ChaChaState::by(Implementation::best(), dir, key, nonce)
    }

    fn by(
        implementation: Implementation,
        dir: Direction,
        key: &ChaChaKey,
        nonce: &[u8; 12],
    ) -> ChaChaState {
        let mut ahead = [0; AHEAD];
        implementation.apply(&key.0, nonce, 0, (&mut ahead[..]).into());
        let (block, _) = ahead.split_first_chunk().expect("half of a block");
        ChaChaState {
            implementation,
            dir,
            nonce: *nonce,
            mac: Mac::new(implementation, block),
            ahead,
            used: 64,
            next: (AHEAD / 64) as u32,
            next_used: 0,
            aad_len: 0,
            data_len: 0,
            in_data: false,
        }
    }

    /// The next piece of additional data.
    ///
    /// # Panics
    /// If data has been given already.
    pub fn aad(&mut self, aad: &[u8]) {
        assert!(!self.in_data, "additional data comes before the data");
        self.aad_len = self.aad_len.wrapping_add(aad.len() as u64);
        self.mac.update(aad);
    }

    /// Encrypts or decrypts the next piece of data; of more than [`LONGEST`](Self::LONGEST)
    /// bytes in all the key stream would repeat.
    pub fn update(&mut self, key: &ChaChaKey, mut data: InOutBuf<'_, '_, u8>) {
        if !self.in_data {
            self.in_data = true;
            self.mac.pad();
        }
        self.data_len = self.data_len.wrapping_add(data.len() as u64);
        if data.len() >= TOGETHER && self.used.is_multiple_of(16) && self.next_used == 0 {
            let len = data.len();
            let left = &self.ahead[self.used..];
            let from = (&key.0, &self.nonce, self.next);
            if self.mac.crypt(self.dir, left, from, data.reborrow()) {
                let behind = len - left.len();
                self.used = AHEAD;
                self.next = self.next.wrapping_add((behind / 64) as u32);
                self.next_used = behind % 64;
                return;
            }
        }
        while !data.is_empty() {
            let len = data.len().min(PIECE);
            let (mut piece, rest) = data.split_at(len);
            if self.dir == Direction::Decrypt {
                self.mac.update(piece.get_in());
            }
            self.apply(key, piece.reborrow());
            if self.dir == Direction::Encrypt {
                self.mac.update(piece.get_out());
            }
            data = rest;
        }
    }

    /// The tag: of the data encrypted, or the one that the data decrypted should have.
    /// Comparing it in constant time is the caller's duty. The state is good for nothing
    /// after that.
    pub fn finish(&mut self) -> [u8; 16] {
        self.mac.finish(self.aad_len, self.data_len)
    }

    /// Adds the key stream that comes next.
    fn apply(&mut self, key: &ChaChaKey, mut data: InOutBuf<'_, '_, u8>) {
        while !data.is_empty() {
            if self.used == AHEAD && self.next_used == 0 && data.len() >= DIRECT {
                let len = data.len();
                self.implementation
                    .apply(&key.0, &self.nonce, self.next, data);
                self.next = self.next.wrapping_add((len / 64) as u32);
                self.next_used = len % 64;
                return;
            }
            if self.used == AHEAD {
                self.ahead = [0; AHEAD];
                let ahead = (&mut self.ahead[..]).into();
                self.implementation
                    .apply(&key.0, &self.nonce, self.next, ahead);
                self.next = self.next.wrapping_add((AHEAD / 64) as u32);
                self.used = core::mem::take(&mut self.next_used);
            }
            let len = data.len().min(AHEAD - self.used);
            let (now, rest) = data.split_at(len);
            xor(now, &self.ahead[self.used..][..len]);
            self.used += len;
            data = rest;
        }
    }
}

impl Drop for ChaChaState {
    fn drop(&mut self) {
        wipe(&mut self.ahead, [0; AHEAD]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::naive;
    use proptest::prelude::*;

    fn bytes(len: usize, seed: usize) -> Vec<u8> {
        (0..len).map(|i| (i * 31 + i / 253 + seed) as u8).collect()
    }

    /// A message in pieces of the given lengths: its other side and its tag.
    fn pieces(
        implementation: Implementation,
        dir: Direction,
        aads: &[Vec<u8>],
        pieces: &[Vec<u8>],
        in_place: bool,
    ) -> (Vec<u8>, [u8; 16]) {
        let key = ChaChaKey::new(&bytes(32, 7)).unwrap();
        let mut state = ChaChaState::by(implementation, dir, &key, &[5; 12]);
        for aad in aads {
            state.aad(aad);
        }
        let mut done = Vec::new();
        for (i, piece) in pieces.iter().enumerate() {
            // A copy goes on where the original was.
            if i % 3 == 1 {
                state = state.clone();
            }
            let mut output = piece.clone();
            match in_place {
                true => state.update(&key, (&mut output[..]).into()),
                false => state.update(&key, InOutBuf::new(piece, &mut output).unwrap()),
            }
            done.extend(output);
        }
        (done, state.finish())
    }

    proptest! {
        #[test]
        fn pieces_agree_with_the_reference(
            aads in prop::collection::vec(0..70usize, 0..4),
            lens in prop::collection::vec(
                prop_oneof![0..70usize, 440..520usize, 0..3000usize, 8000..20_000usize],
                0..6,
            ),
            in_place: bool,
        ) {
            let aads: Vec<_> = aads.into_iter().map(|len| bytes(len, 1)).collect();
            let data: Vec<_> = lens.into_iter().map(|len| bytes(len, 2)).collect();
            let key = bytes(32, 7).try_into().unwrap();
            let aad = aads.concat();
            let sealed = naive::chacha20poly1305_seal(&key, &[5; 12], &aad, &data.concat());
            let opened = naive::chacha20poly1305_open(&key, &[5; 12], &aad, &data.concat());
            for implementation in Implementation::all() {
                let result = pieces(implementation, Direction::Encrypt, &aads, &data, in_place);
                prop_assert_eq!(&result, &sealed);
                let result = pieces(implementation, Direction::Decrypt, &aads, &data, in_place);
                prop_assert_eq!(&result, &opened);
            }
        }
    }

    #[test]
    #[should_panic(expected = "before the data")]
    fn additional_data_behind_data_is_refused() {
        let key = ChaChaKey::new(&[1; 32]).unwrap();
        let mut state = ChaChaState::new(Direction::Encrypt, &key, &[0; 12]);
        state.update(&key, (&mut [0; 3][..]).into());
        state.aad(&[0; 3]);
    }
}
