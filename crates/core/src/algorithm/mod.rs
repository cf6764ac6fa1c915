//! The algorithms, by their Linux CryptoAPI names. Adding one is one entry in one
//! file here and one kernel in `cipherlane-kernels`; everything else follows the entry.

mod authenc;
mod cbc;
mod chacha;
mod ctr;
mod ecb;
mod gcm;
mod gost28147;
mod gost34;
mod hmac;
mod lanes;
mod xts;

use crate::request::{Request, Status};
use crate::{Direction, Error, Transform};

/// How many algorithms there are.
pub(crate) const COUNT: usize = 32;

/// Every algorithm, in the order of lists and tables.
static TABLE: [&Algorithm; COUNT] = [
    &ecb::ECB_AES,
    &cbc::CBC_AES,
    &ctr::CTR_AES,
    &xts::XTS_AES,
    &gcm::GCM_AES,
    &gcm::RFC4106_GCM_AES,
    &gcm::RFC4543_GCM_AES,
    &chacha::RFC7539,
    &hmac::HMAC_SHA256,
    &hmac::HMAC_SHA512,
    &authenc::AUTHENC_SHA256_CBC_AES,
    &authenc::AUTHENCESN_SHA256_CBC_AES,
    &authenc::AUTHENC_SHA256_RFC3686,
    &authenc::AUTHENCESN_SHA256_RFC3686,
    &authenc::AUTHENC_SHA256_NULL,
    &authenc::AUTHENCESN_SHA256_NULL,
    &authenc::AUTHENC_SHA512_CBC_AES,
    &authenc::AUTHENCESN_SHA512_CBC_AES,
    &authenc::AUTHENC_SHA512_RFC3686,
    &authenc::AUTHENCESN_SHA512_RFC3686,
    &authenc::AUTHENC_SHA512_NULL,
    &authenc::AUTHENCESN_SHA512_NULL,
    &gost28147::CNT_PARAM_Z,
    &gost28147::CNT_CRYPTOPRO_A,
    &gost28147::IMIT_PARAM_Z,
    &gost28147::IMIT_CRYPTOPRO_A,
    &gost34::ECB_KUZNYECHIK,
    &gost34::CTR_KUZNYECHIK,
    &gost34::MGM_KUZNYECHIK,
    &gost34::ECB_MAGMA,
    &gost34::CTR_MAGMA,
    &gost34::MGM_MAGMA,
];

/// What an algorithm takes, and the software that does it.
#[derive(Debug)]
pub struct Algorithm {
    /// Linux CryptoAPI name.
    pub name: &'static str,
    /// Cipher, AEAD or MAC.
    pub kind: Kind,
    /// Key lengths.
    pub keys: KeyLengths,
    /// Refuses weak keys, among those of a right length.
    pub check_key: fn(&Algorithm, &[u8]) -> Result<(), Error>,
    /// Bytes of the IV in each request.
    pub iv_len: usize,
    /// Bits that may be set in the first byte of the IV. A nonce of MGM has no first bit
    /// (RFC 9058 section 4.1).
    pub iv_mask: u8,
    /// The payload is a multiple of this many bytes.
    pub block: usize,
    /// The shortest payload in bytes.
    pub min_len: usize,
    /// The longest payload in bytes under one IV.
    pub max_len: u64,
    /// Tag lengths in bytes, ascending; the last is the default. Empty: no tag.
    pub tags: &'static [usize],
    /// Lengths of the additional data.
    pub aad: AadLengths,
    /// The kernel on the caller's core. The key has a length that `keys` takes.
    pub software: fn(key: &[u8]) -> Box<dyn Transform>,
    /// The naive reference, for self-tests.
    pub reference: fn(Sample<'_>) -> (Vec<u8>, Vec<u8>),
    /// Published known answers, for self-tests.
    pub known_answers: &'static [KnownAnswer],
}

/// Cipher, AEAD or MAC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// No tag.
    Cipher,
    /// Payload and tag. `authenc` templates too.
    Aead,
    /// A tag over the payload; no output. Encrypting computes it, decrypting compares it.
    Mac,
}

/// The key lengths an algorithm takes, in bytes.
#[derive(Clone, Copy, Debug)]
pub enum KeyLengths {
    /// `(bytes of the key, key bits of the cipher)`: salts, second halves and MAC keys count
    /// towards the bytes only.
    OneOf(&'static [(usize, u32)]),
    /// Any length from 1 byte; the usual one is given.
    Any {
        /// Bytes, for tests and benchmarks.
        usual: usize,
    },
}

/// The lengths of additional data an algorithm takes.
#[derive(Clone, Copy, Debug)]
pub enum AadLengths {
    /// None at all.
    None,
    /// Any length.
    Any,
    /// Any length, if additional data and payload together have at most this many bytes.
    Together(u64),
    /// 8 or 12 bytes: SPI and sequence number of ESP (RFC 4106 section 5).
    Esp,
    /// This many bytes: SPI, 64-bit sequence number and the IV of an ESP packet
    /// (`authencesn`).
    Exactly(usize),
}

impl AadLengths {
    /// A length that the algorithm takes: `wished` where any will do, and of two
    /// lengths the one that it is a number of.
    pub fn fit(self, wished: usize) -> usize {
        match self {
            AadLengths::None => 0,
            AadLengths::Any | AadLengths::Together(_) => wished,
            AadLengths::Esp => 8 + wished % 2 * 4,
            AadLengths::Exactly(len) => len,
        }
    }

    /// Whether the algorithm takes `len` bytes.
    pub fn takes(self, len: usize) -> bool {
        match self {
            AadLengths::None => len == 0,
            AadLengths::Any | AadLengths::Together(_) => true,
            AadLengths::Esp => len == 8 || len == 12,
            AadLengths::Exactly(exactly) => len == exactly,
        }
    }
}

/// The check of an algorithm without weak keys.
fn every_key(_: &Algorithm, _: &[u8]) -> Result<(), Error> {
    Ok(())
}

/// Input of a reference computation; `data` is plaintext, or ciphertext when decrypting.
#[derive(Clone, Copy, Debug)]
pub struct Sample<'a> {
    /// Which way.
    pub direction: Direction,
    /// The key.
    pub key: &'a [u8],
    /// The IV.
    pub iv: &'a [u8],
    /// Additional data.
    pub aad: &'a [u8],
    /// Payload.
    pub data: &'a [u8],
}

/// A published test vector, in hexadecimal.
#[derive(Debug)]
pub struct KnownAnswer {
    /// Where it is published.
    pub source: &'static str,
    /// Key.
    pub key: &'static str,
    /// IV.
    pub iv: &'static str,
    /// Additional data.
    pub aad: &'static str,
    /// Plaintext, or the message of a MAC.
    pub plaintext: &'static str,
    /// Ciphertext; empty for a MAC.
    pub ciphertext: &'static str,
    /// Tag; empty for a cipher.
    pub tag: &'static str,
}

impl Algorithm {
    /// All of them, in the order of tables.
    pub fn all() -> &'static [&'static Algorithm] {
        &TABLE
    }

    /// Their names.
    pub fn names() -> Vec<&'static str> {
        TABLE.iter().map(|a| a.name).collect()
    }

    /// By CryptoAPI name.
    pub fn find(name: &str) -> Result<&'static Algorithm, Error> {
        TABLE
            .iter()
            .find(|a| a.name == name)
            .copied()
            .ok_or_else(|| Error::UnknownAlgorithm {
                name: name.to_owned(),
            })
    }

    /// Position in [`all`](Self::all).
    pub fn index(&self) -> usize {
        TABLE
            .iter()
            .position(|a| a.name == self.name)
            .expect("every algorithm is in the table")
    }

    /// An IV made of arbitrary bytes: those bits that the algorithm does not have are cleared.
    pub fn fit_iv(&self, mut iv: Vec<u8>) -> Vec<u8> {
        if let Some(first) = iv.first_mut() {
            *first &= self.iv_mask;
        }
        iv
    }

    /// The key lengths in bytes that tables and tests go through.
    pub fn key_lengths(&self) -> Vec<usize> {
        match self.keys {
            KeyLengths::OneOf(list) => list.iter().map(|&(bytes, _)| bytes).collect(),
            KeyLengths::Any { usual } => vec![usual],
        }
    }

    /// Key bits as users know them (the cipher's, for AES with a salt or two halves).
    pub fn key_bits(&self, key_len: usize) -> u32 {
        match self.keys {
            KeyLengths::OneOf(list) => list
                .iter()
                .find(|&&(bytes, _)| bytes == key_len)
                .map_or(0, |&(_, bits)| bits),
            KeyLengths::Any { .. } => u32::try_from(key_len * 8).unwrap_or(u32::MAX),
        }
    }

    /// The key length in bytes for a number of key bits, if the algorithm has such keys.
    pub fn key_len(&self, bits: u32) -> Option<usize> {
        match self.keys {
            KeyLengths::OneOf(list) => list
                .iter()
                .find(|&&(_, b)| b == bits)
                .map(|&(bytes, _)| bytes),
            KeyLengths::Any { .. } => {
                (bits > 0 && bits.is_multiple_of(8)).then_some(bits as usize / 8)
            }
        }
    }

    /// Whether it is a cipher that adds a key stream to payload of any length, so that both
    /// directions are one: counter modes.
    pub fn is_key_stream(&self) -> bool {
        self.kind == Kind::Cipher && self.block == 1 && self.min_len == 0
    }

    /// The default tag length in bytes; 0 for a cipher.
    pub fn tag_len(&self) -> usize {
        self.tags.last().copied().unwrap_or(0)
    }

    /// Refuses a key of a wrong length, and a weak key.
    pub(crate) fn accept_key(&self, key: &[u8]) -> Result<(), Error> {
        let taken = match self.keys {
            KeyLengths::OneOf(list) => list.iter().any(|&(bytes, _)| bytes == key.len()),
            KeyLengths::Any { .. } => !key.is_empty(),
        };
        if !taken {
            let expected = match self.keys {
                KeyLengths::OneOf(list) => {
                    let lengths: Vec<_> = list.iter().map(|(bytes, _)| bytes.to_string()).collect();
                    format!("{} bytes", lengths.join(", "))
                }
                KeyLengths::Any { .. } => "1 byte or more".to_owned(),
            };
            return Err(Error::KeyLength {
                algorithm: self.name,
                given: key.len(),
                expected,
            });
        }
        (self.check_key)(self, key)
    }

    pub(crate) fn check_tag_len(&self, len: usize) -> Result<(), Error> {
        if len == 0 && self.tags.is_empty() || self.tags.contains(&len) {
            return Ok(());
        }
        let lengths: Vec<_> = self.tags.iter().map(usize::to_string).collect();
        let expected = if lengths.is_empty() {
            "it has no tag".to_owned()
        } else {
            format!("it takes {}", lengths.join(", "))
        };
        Err(Error::TagLength {
            algorithm: self.name,
            given: len,
            expected,
        })
    }
}

/// The rules of one session as plain numbers, so that checking a request is a few compares.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    iv_len: u8,
    iv_mask: u8,
    tag_len: u8,
    aad: AadLengths,
    writes: bool,
    block_mask: usize,
    min_len: usize,
    max_len: u64,
}

impl Rules {
    pub(crate) fn new(algorithm: &Algorithm, tag_len: usize) -> Self {
        assert!(algorithm.block.is_power_of_two());
        Rules {
            iv_len: algorithm.iv_len as u8,
            iv_mask: algorithm.iv_mask,
            tag_len: tag_len as u8,
            aad: algorithm.aad,
            writes: algorithm.kind != Kind::Mac,
            block_mask: algorithm.block - 1,
            min_len: algorithm.min_len,
            max_len: algorithm.max_len,
        }
    }

    /// `Pending` if the request may go to a driver.
    #[inline]
    pub(crate) fn check(&self, request: &Request<'_>) -> Status {
        let len = request.len();
        if self.writes && request.output_len() != len || !self.writes && request.has_output() {
            Status::OutputLength
        } else if request.iv_len() != usize::from(self.iv_len) {
            Status::IvLength
        } else if request.tag_len() != usize::from(self.tag_len) {
            Status::TagLength
        } else if len & self.block_mask != 0 {
            Status::NotBlockMultiple
        } else if len < self.min_len {
            Status::TooShort
        } else if len as u64 > self.max_len {
            Status::TooLong
        } else if request.aad_len() != 0 && matches!(self.aad, AadLengths::None)
            || matches!(self.aad, AadLengths::Esp) && !matches!(request.aad_len(), 8 | 12)
            || matches!(self.aad, AadLengths::Exactly(len) if request.aad_len() != len)
        {
            Status::AadLength
        } else if matches!(self.aad, AadLengths::Together(most) if self.exceeds(request, most)) {
            self.excess(request)
        } else if self.writes && !request.is_scattered() && request.overlaps() {
            Status::Overlap
        } else {
            Status::Pending
        }
    }

    /// What MGM alone asks: whether the nonce has a bit too many, or the message is too long.
    fn exceeds(&self, request: &Request<'_>, most: u64) -> bool {
        let together = (request.len() as u64).saturating_add(request.aad_len() as u64);
        together > most || self.has_wrong_bit(request)
    }

    #[cold]
    fn excess(&self, request: &Request<'_>) -> Status {
        match self.has_wrong_bit(request) {
            true => Status::IvBits,
            false => Status::TooLong,
        }
    }

    fn has_wrong_bit(&self, request: &Request<'_>) -> bool {
        request.iv_ref()[0] & !self.iv_mask != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_streams_are_the_counter_modes() {
        let streams = TABLE.iter().filter(|a| a.is_key_stream()).map(|a| a.name);
        let counters = TABLE.iter().map(|a| a.name);
        let counters = counters.filter(|n| n.starts_with("ctr(") || n.starts_with("cnt("));
        assert!(streams.eq(counters));
    }
}
