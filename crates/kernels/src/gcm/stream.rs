//! GCM over data that comes in pieces.

use inout::InOutBuf;

use super::block::{padded, xor};
use super::counter::{counter_from, first_counter};
use super::key::GcmKey;
use super::rest::{Begun, Rest, lengths};
use super::{Part, crypt, encrypt, fold, hash, hash_block, multiply, tag};
use crate::aes::key::Block;
use crate::job::Direction;
use crate::wipe::wipe;

/// One message of AES-GCM in pieces of any length: the additional data first, then
/// the data, then the tag.
pub struct GcmStream<'k> {
    key: &'k GcmKey,
    state: GcmState,
}

impl<'k> GcmStream<'k> {
    /// Begins a message, as [`GcmState::new`].
    pub fn new(dir: Direction, key: &'k GcmKey, iv: &[u8]) -> GcmStream<'k> {
        let state = GcmState::new(dir, key, iv);
        GcmStream { key, state }
    }

    /// The next piece of additional data.
    ///
    /// # Panics
    /// If data has been given already.
    pub fn aad(&mut self, aad: &[u8]) {
        self.state.aad(self.key, aad);
    }

    /// Encrypts or decrypts the next piece of data.
    pub fn update(&mut self, data: InOutBuf<'_, '_, u8>) {
        self.state.update(self.key, data);
    }

    /// The tag: of the data encrypted, or the one that the data decrypted should
    /// have. Comparing it in constant time is the caller's duty.
    pub fn finish(mut self) -> [u8; 16] {
        self.state.finish(self.key)
    }

    #[cfg(test)]
    pub(super) fn first_counter(&self) -> Block {
        counter_from(&self.state.counter, u32::MAX)
    }
}

/// A [`GcmStream`] without its key, for those who keep both in one place: every call must
/// be given the key of the first. What is not yet a whole block waits here; it is wiped on
/// drop.
#[derive(Clone)]
pub struct GcmState {
    dir: Direction,
    /// E(J0), which the tag is combined with. It is made when the message begins, while the program
    /// still prepares its data.
    pad: Block,
    /// The counter of the next block of data.
    counter: Block,
    /// GHASH over all whole blocks.
    y: Block,
    /// The block begun, of additional data or of data.
    begun: Begun,
    aad_len: u64,
    data_len: u64,
    /// Additional data has ended.
    in_data: bool,
}

impl GcmState {
    /// The state of no message, to be [begun](Self::begin).
    pub const fn idle() -> GcmState {
        GcmState {
            dir: Direction::Encrypt,
            pad: [0; 16],
            counter: [0; 16],
            y: [0; 16],
            begun: Begun::none(),
            aad_len: 0,
            data_len: 0,
            in_data: false,
        }
    }

    /// Begins a message. The IV has any length from one byte on; with other lengths
    /// than 12 bytes it is hashed (section 7.1, step 2). An empty one, which the
    /// standard does not know, gives the counter block of zeros.
    pub fn new(dir: Direction, key: &GcmKey, iv: &[u8]) -> GcmState {
        let mut state = GcmState::idle();
        state.begin(dir, key, iv);
        state
    }

    /// Begins a message in the place of the one before, as [`new`](Self::new).
    // A state that is made elsewhere and moved here is copied as vectors, which wait for the
    // words just written.
    pub fn begin(&mut self, dir: Direction, key: &GcmKey, iv: &[u8]) {
        self.dir = dir;
        self.forget();
        let j0 = match iv.try_into() {
            Ok(nonce) => first_counter(nonce),
            Err(_) => {
                let mut y = [0; 16];
                hash(key, &mut y, iv);
                hash(key, &mut y, &lengths(0, iv.len() as u64));
                y
            }
        };
        self.counter = counter_from(&j0, 1);
        self.pad = encrypt(key, &j0);
        (self.aad_len, self.data_len) = (0, 0);
        (self.in_data, self.begun.is_aad) = (false, false);
    }

    /// The next piece of additional data.
    ///
    /// # Panics
    /// If data has been given already.
    pub fn aad(&mut self, key: &GcmKey, mut aad: &[u8]) {
        assert!(!self.in_data, "additional data comes before the data");
        let used = (self.aad_len % 16) as usize;
        self.aad_len = self.aad_len.wrapping_add(aad.len() as u64);
        if used > 0 {
            let taken = aad.len().min(16 - used);
            self.begun.block[used..used + taken].copy_from_slice(&aad[..taken]);
            aad = &aad[taken..];
            if used + taken < 16 {
                return;
            }
            self.hash_block(key);
        }
        let (blocks, rest) = aad.split_at(aad.len() & !15);
        if !blocks.is_empty() {
            hash(key, &mut self.y, blocks);
        }
        if !rest.is_empty() {
            self.begun.block = padded(rest);
        }
    }

    /// Encrypts or decrypts the next piece of data.
    pub fn update(&mut self, key: &GcmKey, mut data: InOutBuf<'_, '_, u8>) {
        if !self.in_data {
            self.in_data = true;
            self.begun.is_aad = !self.aad_len.is_multiple_of(16);
            if self.begun.is_aad && data.is_empty() {
                self.hash_block(key);
            }
        }
        let used = (self.data_len % 16) as usize;
        self.data_len = self.data_len.wrapping_add(data.len() as u64);
        if used > 0 {
            let taken = data.len().min(16 - used);
            let (head, tail) = data.split_at(taken);
            self.crypt_bytes(used, head);
            if used + taken < 16 {
                return;
            }
            self.hash_block(key);
            data = tail;
        }
        if data.len() >= 16 {
            let begun = Some(&mut self.begun);
            crypt(self.dir, key, &mut self.counter, &mut self.y, begun, data);
        } else if !data.is_empty() {
            if self.begun.is_aad {
                self.hash_block(key);
            }
            self.begun.stream = encrypt(key, &self.counter);
            self.counter = counter_from(&self.counter, 1);
            self.crypt_bytes(0, data);
        }
    }

    /// The tag: of the data encrypted, or the one that the data decrypted should
    /// have. Comparing it in constant time is the caller's duty. The state is good for
    /// [`begin`](Self::begin) alone after that.
    pub fn finish(&mut self, key: &GcmKey) -> [u8; 16] {
        let open = if self.in_data {
            self.data_len
        } else {
            self.aad_len
        };
        let rest = Rest {
            block: (!open.is_multiple_of(16)).then_some(&self.begun.block),
            aad_len: self.aad_len,
            data_len: self.data_len,
        };
        let tag = tag(key, &self.y, &rest, &self.pad);
        self.forget();
        tag
    }

    /// A piece of the data that comes next, from block `first_block` of that on, for threads
    /// that share it: each does one, and then [`join`](Self::join) is told of all. All
    /// pieces but the last are multiples of 16 bytes.
    ///
    /// # Panics
    /// If data has not begun or stands inside a block: [`update`](Self::update) with what
    /// completes the block, or with nothing, first.
    pub fn part(&self, key: &GcmKey, first_block: u32, data: InOutBuf<'_, '_, u8>) -> Part {
        self.assert_between_blocks();
        let mut counter = counter_from(&self.counter, first_block);
        let len = data.len() as u64;
        let mut hash = [0; 16];
        crypt(self.dir, key, &mut counter, &mut hash, None, data);
        Part { hash, len }
    }

    /// After the [`part`](Self::part)s, which are given in order and are multiples of 16
    /// bytes: goes on behind them.
    ///
    /// # Panics
    /// As [`part`](Self::part), and where they are no multiples.
    pub fn join(&mut self, key: &GcmKey, parts: &[Part]) {
        self.assert_between_blocks();
        let len: u64 = parts.iter().map(|part| part.len).sum();
        assert!(len.is_multiple_of(16), "parts are whole blocks");
        self.y = fold(key, self.y, parts);
        self.counter = counter_from(&self.counter, (len / 16) as u32);
        self.data_len = self.data_len.wrapping_add(len);
    }

    fn assert_between_blocks(&self) {
        let between = self.in_data && self.data_len.is_multiple_of(16);
        assert!(between, "parts begin where a block does");
    }

    /// Goes on behind data that [`seal`](super::seal) or [`open`](super::open) did as if it
    /// were the whole message. A state that has just begun is told what was done, with the
    /// nonce of 12 bytes that it has itself.
    pub fn continue_message(
        mut self,
        key: &GcmKey,
        inverse: &InverseHashKey,
        done: &Done<'_>,
    ) -> GcmState {
        self.in_data = true;
        (self.aad_len, self.data_len) = (done.aad_len, done.data_len);
        // The last step of GHASH undone: the lengths, and the product that followed.
        let undone = |y: &Block, block: &Block| xor(&multiply(key, y, &inverse.0), block);
        let hashed = xor(done.tag, &self.pad);
        self.y = undone(&hashed, &lengths(done.aad_len, done.data_len));
        self.counter = counter_from(&self.counter, (done.data_len / 16) as u32);
        if !done.data_len.is_multiple_of(16) {
            // And so is the block that zeros filled. What stood in it would be added here,
            // and once more when the block is whole: it need not be known.
            self.y = undone(&self.y, &[0; 16]);
            self.begun.stream = encrypt(key, &self.counter);
            self.counter = counter_from(&self.counter, 1);
        }
        self
    }

    /// Some bytes of the block begun, from byte `used` of it.
    fn crypt_bytes(&mut self, used: usize, mut data: InOutBuf<'_, '_, u8>) {
        let Begun { block, stream, .. } = &mut self.begun;
        let mut hold = |bytes: &[u8]| match used {
            0 => *block = padded(bytes),
            _ => block[used..][..bytes.len()].copy_from_slice(bytes),
        };
        if self.dir == Direction::Decrypt {
            hold(data.get_in());
        }
        data.xor_in2out(&stream[used..][..data.len()]);
        if self.dir == Direction::Encrypt {
            hold(data.get_out());
        }
    }

    /// The block begun is whole, or the last of its kind.
    fn hash_block(&mut self, key: &GcmKey) {
        hash_block(key, &mut self.y, &self.begun.block);
        self.begun.block = [0; 16];
        self.begun.is_aad = false;
    }

    /// Wipes what is secret.
    fn forget(&mut self) {
        wipe(&mut self.pad, [0; 16]);
        wipe(&mut self.y, [0; 16]);
        wipe(&mut self.begun.block, [0; 16]);
        wipe(&mut self.begun.stream, [0; 16]);
    }
}

impl Drop for GcmState {
    fn drop(&mut self) {
        self.forget();
    }
}

/// What [`GcmState::continue_message`] is told.
#[derive(Clone, Copy, Debug)]
pub struct Done<'a> {
    /// Bytes of additional data.
    pub aad_len: u64,
    /// Bytes of data.
    pub data_len: u64,
    /// The tag that was computed.
    pub tag: &'a Block,
}

/// The inverse of H in the field of GHASH, with which a step of GHASH is undone. Wiped on
/// drop.
pub struct InverseHashKey(Block);

impl InverseHashKey {
    /// H^(2^128 - 2): some 250 products. For an H of zero, which has no inverse, it is
    /// zero, and that serves: all of GHASH is zero then.
    pub fn new(key: &GcmKey) -> InverseHashKey {
        let h = key.hash_key();
        let mut power = *h;
        for _ in 0..126 {
            power = multiply(key, &multiply(key, &power, &power), h);
        }
        let inverse = InverseHashKey(multiply(key, &power, &power));
        wipe(&mut power, [0; 16]);
        inverse
    }
}

impl Drop for InverseHashKey {
    fn drop(&mut self) {
        wipe(&mut self.0, [0; 16]);
    }
}
