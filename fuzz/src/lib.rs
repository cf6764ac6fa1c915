//! What the fuzz targets share: a batch of messages made of the fuzzer's bytes, and its
//! comparison with the naive reference.
//!
//! A target is a file of `fuzz_targets/`, named in `Cargo.toml`. `scripts/fuzz` runs all
//! for a second each, kernels on every set of processor features; `cargo fuzz run TARGET` is
//! for long runs. [`Damaged`] is what the targets of parsers share.

mod damaged;

use arbitrary::Arbitrary;
use cipherlane_kernels::job::{AeadJob, CipherJob, Direction, MacJob};
use inout::InOutBuf;

pub use damaged::Damaged;

/// The longest data of a message, in bytes: many times what any kernel has in flight.
const LONGEST: u16 = 9000;

/// Data of a whole batch, in bytes. The reference is slow.
const BUDGET: usize = 24_000;

/// Bytes around every output, which have to stay as they are.
const MARGIN: usize = 64;
const UNTOUCHED: u8 = 0xa5;

/// Messages with some keys among them, all in one direction.
#[derive(Arbitrary, Debug)]
pub struct Batch {
    decrypt: bool,
    keys: [[u8; 64]; 3],
    shapes: Vec<Shape>,
}

/// A message as the fuzzer gives it.
#[derive(Arbitrary, Debug)]
struct Shape {
    key: u8,
    key_len: u8,
    iv: [u8; 16],
    aad: Bytes,
    data: Bytes,
    offset: u8,
    in_place: bool,
}

/// Bytes given one by one, for what depends on values; or many of them in little input.
#[derive(Arbitrary, Debug)]
enum Bytes {
    Given(Vec<u8>),
    Same { byte: u8, len: u16 },
    Mixed { seed: u8, len: u16 },
}

impl Bytes {
    fn make(&self, longest: u16) -> Vec<u8> {
        match self {
            Bytes::Given(bytes) => bytes[..bytes.len().min(longest.into())].to_vec(),
            Bytes::Same { byte, len } => vec![*byte; (len % (longest + 1)).into()],
            Bytes::Mixed { seed, len } => (0..len % (longest + 1))
                .map(|i| (i as u8).wrapping_mul(seed | 1) ^ (i >> 8) as u8)
                .collect(),
        }
    }
}

/// A message of a batch.
pub struct Message {
    key: [u8; 64],
    key_len: u8,
    /// For nonces of 12 bytes, those at the front.
    pub iv: [u8; 16],
    /// Additional data; the head of what a MAC is over.
    pub aad: Vec<u8>,
    /// Plaintext, or ciphertext if the batch is decrypted.
    pub data: Vec<u8>,
    offset: usize,
    in_place: bool,
}

impl Message {
    /// A key of 16, 24 or 32 bytes.
    pub fn aes_key(&self) -> &[u8] {
        &self.key[..[16, 24, 32][usize::from(self.key_len % 3)]]
    }

    /// The key of XTS: two of those.
    pub fn xts_key(&self) -> &[u8] {
        &self.key[..2 * self.aes_key().len()]
    }

    /// A key of 32 bytes.
    pub fn key_32(&self) -> &[u8; 32] {
        self.key.first_chunk().expect("32 of 64 bytes")
    }

    /// A key of any length up to 255 bytes, the end of which is not that of [`aes_key`](Self::aes_key).
    pub fn any_key(&self) -> Vec<u8> {
        let bytes = self.key.iter().rev().cycle();
        bytes.take(self.key_len.into()).copied().collect()
    }

    /// A number for what else a message has a choice of.
    pub fn choice(&self) -> usize {
        self.key_len.into()
    }

    /// What the place of its output holds before a kernel runs.
    pub fn before(&self) -> Vec<u8> {
        match self.in_place {
            true => self.data.clone(),
            false => vec![UNTOUCHED; self.data.len()],
        }
    }

    /// The nonce of 12 bytes.
    pub fn nonce(&self) -> &[u8; 12] {
        self.iv.first_chunk().expect("12 of 16 bytes")
    }
}

/// A message where a kernel works on it: its key expanded, and its data in memory of an
/// alignment of its own.
pub struct Place<'m, K> {
    /// The expanded key.
    pub key: K,
    /// The tag that a job of an AEAD has computed.
    pub tag: [u8; 16],
    message: &'m Message,
    memory: Vec<u8>,
}

impl<'m, K> Place<'m, K> {
    fn new(message: &'m Message, key: K) -> Self {
        let mut memory = vec![UNTOUCHED; message.offset + message.data.len() + 2 * MARGIN];
        if message.in_place {
            memory[message.offset + MARGIN..][..message.data.len()].copy_from_slice(&message.data);
        }
        Place {
            key,
            tag: [0xee; 16],
            message,
            memory,
        }
    }

    fn start(&self) -> usize {
        self.message.offset + MARGIN
    }

    /// As a job of a cipher.
    pub fn cipher(&mut self) -> CipherJob<'_, K> {
        let AeadJob { key, iv, data, .. } = self.aead();
        CipherJob { key, iv, data }
    }

    /// As a job of an AEAD.
    pub fn aead(&mut self) -> AeadJob<'_, K> {
        let start = self.start();
        let Message {
            iv,
            aad,
            data,
            in_place,
            ..
        } = self.message;
        let output = &mut self.memory[start..][..data.len()];
        AeadJob {
            key: &self.key,
            iv: *iv,
            aad,
            data: match in_place {
                true => output.into(),
                false => InOutBuf::new(data, output).expect("equal lengths"),
            },
            tag: &mut self.tag,
        }
    }

    /// The output, if nothing around it was written.
    fn output(&self) -> &[u8] {
        let (before, rest) = self.memory.split_at(self.start());
        let (output, behind) = rest.split_at(self.message.data.len());
        let mut around = before.iter().chain(behind);
        assert!(around.all(|&byte| byte == UNTOUCHED), "wrote outside");
        output
    }
}

impl Batch {
    /// Which way all messages go.
    pub fn direction(&self) -> Direction {
        match self.decrypt {
            false => Direction::Encrypt,
            true => Direction::Decrypt,
        }
    }

    /// The messages, with lengths that `fit` makes of any: no longer ones.
    pub fn messages(&self, fit: fn(usize) -> usize) -> Vec<Message> {
        let mut left = BUDGET;
        let message = |shape: &Shape| {
            let mut data = shape.data.make(LONGEST);
            data.truncate(left);
            left -= data.len();
            data.truncate(fit(data.len()));
            Message {
                key: self.keys[usize::from(shape.key) % self.keys.len()],
                key_len: shape.key_len,
                iv: shape.iv,
                aad: shape.aad.make(300),
                data,
                offset: (shape.offset % 64).into(),
                in_place: shape.in_place,
            }
        };
        self.shapes.iter().map(message).collect()
    }
}

/// Runs a kernel that writes outputs. `run` gives the tag of each message, or what else
/// there is to compare, to which `expected` has the reference: output and tag.
pub fn check<K>(
    messages: &[Message],
    key: impl Fn(&Message) -> K,
    run: impl FnOnce(&mut [Place<'_, K>]) -> Vec<Vec<u8>>,
    expected: impl Fn(&Message) -> (Vec<u8>, Vec<u8>),
) {
    let place = |message| Place::new(message, key(message));
    let mut places: Vec<_> = messages.iter().map(place).collect();
    let tags = run(&mut places);
    assert_eq!(tags.len(), messages.len());
    for (i, (place, tag)) in places.iter().zip(tags).enumerate() {
        let (output, expected_tag) = expected(place.message);
        let len = output.len();
        assert!(place.output() == output, "output {i}, {len} bytes");
        assert_eq!(tag, expected_tag, "tag {i}, {len} bytes");
    }
}

/// Runs a MAC of the additional data and the data of each message, and compares it with
/// `expected`, as long as that is.
pub fn check_macs<K>(
    messages: &[Message],
    key: impl Fn(&Message) -> K,
    run: fn(&mut [MacJob<'_, K>]),
    expected: impl Fn(&Message) -> Vec<u8>,
) {
    let keys: Vec<_> = messages.iter().map(key).collect();
    let expected: Vec<_> = messages.iter().map(expected).collect();
    let mut macs: Vec<_> = expected.iter().map(|mac| vec![0xee; mac.len()]).collect();
    let mut jobs: Vec<_> = messages
        .iter()
        .zip(&keys)
        .zip(&mut macs)
        .map(|((m, key), mac)| MacJob {
            key,
            head: &m.aad,
            data: &m.data,
            suffix: &[],
            mac,
        })
        .collect();
    run(&mut jobs);
    drop(jobs);
    for (i, ((mac, expected), m)) in macs.iter().zip(&expected).zip(messages).enumerate() {
        assert_eq!(mac, expected, "MAC {i}, {} bytes", m.data.len());
    }
}
