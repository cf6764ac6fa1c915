//! Encrypt-then-MAC as in the Linux CryptoAPI templates `authenc` and `authencesn`,
//! which ESP is made of (RFC 4303, RFC 4868).
//!
//! The key is that of the HMAC, as long as its digest (RFC 4868 section 2.1.1), then
//! that of the cipher. The MAC covers additional data and ciphertext. ESP puts SPI,
//! sequence number and the IV as it stands in the packet into the additional data.
//!
//! In `authencesn` the additional data is SPI, the 64-bit sequence number and the IV,
//! and the MAC covers SPI, lower half, IV, ciphertext, upper half: the upper half is
//! not in the packet, and stands at its end where the MAC is concerned (RFC 4303
//! section 2.2.1).

mod entries;

use cipherlane_kernels::authenc::{self, AuthencKey, CbcAes, CipherNull, CtrAes};
use cipherlane_kernels::hmac::{HmacSha256Key, HmacSha512Key};
use cipherlane_kernels::job::AuthencJob;
use cipherlane_kernels::naive;
use zeroize::Zeroizing;

pub(super) use self::entries::*;
use super::lanes::{self, Kernel};
use super::{AadLengths, Algorithm, KeyLengths, Kind, KnownAnswer, Sample, every_key};
use crate::{Direction, Request, Transform};

/// Bytes of SPI and half of a sequence number, and of the longest IV behind them.
const LONGEST_HEAD: usize = 8 + 16;

/// The HMAC of a combination.
trait Mac: 'static {
    type Key: authenc::Mac + Send + Sync;
    /// Bytes of the key.
    const KEY: usize;
    /// Lengths of the tag: truncated to a half (RFC 4868 section 2.3) and whole.
    const TAGS: &'static [usize];

    fn naive(key: &[u8], message: &[u8]) -> Vec<u8>;
}

/// HMAC-SHA-256; ICVs of 12 bytes were in use before RFC 4868.
struct Sha256;

impl Mac for Sha256 {
    type Key = HmacSha256Key;
    const KEY: usize = 32;
    const TAGS: &'static [usize] = &[12, 16, 32];

    fn naive(key: &[u8], message: &[u8]) -> Vec<u8> {
        naive::hmac_sha256(key, message).to_vec()
    }
}

/// HMAC-SHA-512.
struct Sha512;

impl Mac for Sha512 {
    type Key = HmacSha512Key;
    const KEY: usize = 64;
    const TAGS: &'static [usize] = &[32, 64];

    fn naive(key: &[u8], message: &[u8]) -> Vec<u8> {
        naive::hmac_sha512(key, message).to_vec()
    }
}

/// The cipher of a combination.
trait Cipher: 'static {
    type Kernel: authenc::Cipher<Key: Send + Sync>;
    /// Bytes of the nonce at the end of the key.
    const NONCE: usize;
    /// Bytes of the IV in each request and, for ESP, in the packet.
    const IV: usize;
    const BLOCK: usize;
    /// The most payload in bytes under one IV.
    const MAX_LEN: u64;

    /// What the kernel takes for an IV. The nonce is padded with zeros.
    fn iv(nonce: &[u8; 4], iv: &[u8; 16]) -> [u8; 16];

    fn naive(direction: Direction, key: &[u8], iv: &[u8; 16], data: &[u8]) -> Vec<u8>;
}

/// AES-CBC (RFC 3602).
struct Cbc;

impl Cipher for Cbc {
    type Kernel = CbcAes;
    const NONCE: usize = 0;
    const IV: usize = 16;
    const BLOCK: usize = 16;
    const MAX_LEN: u64 = u64::MAX >> 4;

    fn iv(_: &[u8; 4], iv: &[u8; 16]) -> [u8; 16] {
        *iv
    }

    fn naive(direction: Direction, key: &[u8], iv: &[u8; 16], data: &[u8]) -> Vec<u8> {
        match direction {
            Direction::Encrypt => naive::cbc_encrypt(key, iv, data),
            Direction::Decrypt => naive::cbc_decrypt(key, iv, data),
        }
    }
}

/// AES in counter mode as in RFC 3686: the key ends with 4 bytes of nonce, the IV has
/// 8, and behind both the counter begins with 1.
struct Rfc3686;

impl Cipher for Rfc3686 {
    type Kernel = CtrAes;
    const NONCE: usize = 4;
    const IV: usize = 8;
    const BLOCK: usize = 1;
    /// What 32 bits count, from 1 on.
    const MAX_LEN: u64 = ((1 << 32) - 1) * 16;

    fn iv(nonce: &[u8; 4], iv: &[u8; 16]) -> [u8; 16] {
        let mut counter = [0; 16];
        counter[..4].copy_from_slice(nonce);
        counter[4..12].copy_from_slice(&iv[..8]);
        counter[15] = 1;
        counter
    }

    fn naive(_: Direction, key: &[u8], iv: &[u8; 16], data: &[u8]) -> Vec<u8> {
        naive::ctr_apply(key, iv, data)
    }
}

/// No encryption (RFC 2410): for ESP that only authenticates, with the sequence number
/// and its upper half where `hmac` alone could not have them. In place nothing is
/// written but the tag.
struct Null;

impl Cipher for Null {
    type Kernel = CipherNull;
    const NONCE: usize = 0;
    const IV: usize = 0;
    const BLOCK: usize = 1;
    const MAX_LEN: u64 = u64::MAX >> 4;

    fn iv(_: &[u8; 4], iv: &[u8; 16]) -> [u8; 16] {
        *iv
    }

    fn naive(_: Direction, _: &[u8], _: &[u8; 16], data: &[u8]) -> Vec<u8> {
        data.to_vec()
    }
}

/// The entry of a combination; `ESN`: `authencesn`.
const fn entry<M: Mac, C: Cipher, const ESN: bool>(
    name: &'static str,
    keys: &'static [(usize, u32)],
    known_answers: &'static [KnownAnswer],
) -> Algorithm {
    Algorithm {
        name,
        kind: Kind::Aead,
        keys: KeyLengths::OneOf(keys),
        check_key: every_key,
        iv_len: C::IV,
        iv_mask: 0xff,
        block: C::BLOCK,
        min_len: 0,
        max_len: C::MAX_LEN,
        tags: M::TAGS,
        aad: if ESN {
            AadLengths::Exactly(12 + C::IV)
        } else {
            AadLengths::Any
        },
        software: |key| Box::new(Authenc::<M, C, ESN>::new(key)),
        reference: reference::<M, C, ESN>,
        known_answers,
    }
}

/// The key of the MAC, that of the cipher, and the nonce, padded with zeros.
fn split_key<M: Mac, C: Cipher>(key: &[u8]) -> (&[u8], &[u8], [u8; 4]) {
    let (mac, rest) = key.split_at(M::KEY);
    let (cipher, end) = rest.split_at(rest.len() - C::NONCE);
    let mut nonce = [0; 4];
    nonce[..C::NONCE].copy_from_slice(end);
    (mac, cipher, nonce)
}

fn reference<M: Mac, C: Cipher, const ESN: bool>(s: Sample<'_>) -> (Vec<u8>, Vec<u8>) {
    let (mac, cipher, nonce) = split_key::<M, C>(s.key);
    let mut iv = [0; 16];
    iv[..C::IV].copy_from_slice(s.iv);
    let iv = C::iv(&nonce, &iv);
    let (aad, suffix) = match ESN {
        true => ([&s.aad[..4], &s.aad[8..]].concat(), &s.aad[4..8]),
        false => (s.aad.to_vec(), &[][..]),
    };
    naive::authenc(
        s.direction,
        |data| C::naive(s.direction, cipher, &iv, data),
        |message| M::naive(mac, message),
        &aad,
        s.data,
        suffix,
    )
}

struct Authenc<M: Mac, C: Cipher, const ESN: bool> {
    key: AuthencKey<M::Key, C::Kernel>,
    nonce: Zeroizing<[u8; 4]>,
}

impl<M: Mac, C: Cipher, const ESN: bool> Authenc<M, C, ESN> {
    fn new(key: &[u8]) -> Self {
        let (mac, cipher, nonce) = split_key::<M, C>(key);
        Authenc {
            key: AuthencKey::new(mac, cipher).expect("the key's length was checked"),
            nonce: Zeroizing::new(nonce),
        }
    }
}

type Job<'j, M, C> = AuthencJob<'j, AuthencKey<<M as Mac>::Key, <C as Cipher>::Kernel>>;

/// The keys, one way.
struct OneWay<'k, M: Mac, C: Cipher, const ESN: bool> {
    keys: &'k Authenc<M, C, ESN>,
    direction: Direction,
}

/// What a job borrows beside its request.
#[derive(Default)]
struct Room {
    head: [u8; LONGEST_HEAD],
    /// Opening: whether the tag is right.
    right: bool,
}

impl<M: Mac, C: Cipher, const ESN: bool> Kernel for OneWay<'_, M, C, ESN> {
    type Job<'j>
        = Job<'j, M, C>
    where
        Self: 'j;
    type Room = Room;

    #[inline(always)]
    fn job<'j>(&'j self, request: &'j mut Request<'_>, room: &'j mut Room) -> Job<'j, M, C> {
        let iv = C::iv(&self.keys.nonce, request.iv_ref());
        let (aad, suffix) = if ESN {
            packet_order(request.aad_bytes(), &mut room.head)
        } else {
            (request.aad_bytes(), &[][..])
        };
        let (data, tag) = request.data_and_tag();
        AuthencJob {
            key: &self.keys.key,
            iv,
            aad,
            data,
            suffix,
            tag,
            right: &mut room.right,
        }
    }

    #[inline(always)]
    fn run(&self, jobs: &mut [Job<'_, M, C>]) {
        match self.direction {
            Direction::Encrypt => authenc::seal(jobs),
            Direction::Decrypt => authenc::open(jobs),
        }
    }

    #[inline(always)]
    fn finish(&self, request: &mut Request<'_>, room: &Room) {
        request.finish(self.direction == Direction::Encrypt || room.right);
    }
}

impl<M: Mac, C: Cipher, const ESN: bool> Transform for Authenc<M, C, ESN> {
    fn run(&self, direction: Direction, requests: &mut [Request<'_>]) {
        let keys = self;
        lanes::run(&OneWay { keys, direction }, requests);
    }
}

/// What the MAC covers before the ciphertext and behind it, from SPI, 64-bit sequence
/// number and IV.
fn packet_order<'h, 'a: 'h>(
    aad: &'a [u8],
    head: &'h mut [u8; LONGEST_HEAD],
) -> (&'h [u8], &'h [u8]) {
    let (spi, rest) = aad.split_at(4);
    let (upper_half, rest) = rest.split_at(4);
    let head = &mut head[..4 + rest.len()];
    head[..4].copy_from_slice(spi);
    head[4..].copy_from_slice(rest);
    (head, upper_half)
}
