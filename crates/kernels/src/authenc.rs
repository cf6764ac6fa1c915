//! `authenc(hmac(..),..)`: a cipher and an HMAC, encrypt then MAC.
//!
//! As the templates `authenc` and `authencesn` of the Linux CryptoAPI: the MAC is
//! over the associated data, the ciphertext and, for extended sequence numbers, a
//! suffix. Any [`Mac`] goes with any [`Cipher`].

use arrayvec::ArrayVec;

use crate::aes::AesKey;
use crate::hmac::{self, HmacSha256Key, HmacSha512Key};
use crate::job::{AuthencJob, CipherJob, MacJob};
use crate::same::is_same;
#[cfg(target_arch = "x86_64")]
use crate::x86_64::authenc as few;
use crate::{cbc, ctr};
#[cfg(target_arch = "x86_64")]
use crate::{hash_lanes, hash_lanes::message::Message, sha2::hash::Sha256};

/// Jobs that go through the cipher before the MAC of the first of them begins, or the
/// other way round: as many as a cipher has lanes, and few enough for what was written
/// to be still in a cache near by.
const GROUP: usize = 32;

/// The longest MAC, in bytes.
const LONGEST: usize = 64;

/// The MAC of a combination: a key of it.
pub trait Mac: Sized + 'static {
    /// Prepares a key of any length.
    fn new(key: &[u8]) -> Self;

    /// Computes the MAC of every job.
    fn run(jobs: &mut [MacJob<'_, Self>]);

    /// The key, where it is HMAC-SHA-256's: a lone message has a way of its own there.
    fn hmac_sha256(&self) -> Option<&HmacSha256Key> {
        None
    }
}

impl Mac for HmacSha256Key {
    fn new(key: &[u8]) -> Self {
        HmacSha256Key::new(key)
    }

    #[inline]
    fn run(jobs: &mut [MacJob<'_, Self>]) {
        hmac::sha256(jobs);
    }

    #[inline]
    fn hmac_sha256(&self) -> Option<&HmacSha256Key> {
        Some(self)
    }
}

impl Mac for HmacSha512Key {
    fn new(key: &[u8]) -> Self {
        HmacSha512Key::new(key)
    }

    #[inline]
    fn run(jobs: &mut [MacJob<'_, Self>]) {
        hmac::sha512(jobs);
    }
}

/// The cipher of a combination.
pub trait Cipher: 'static {
    /// The expanded key.
    type Key: 'static;

    /// Expands a key; `None` for a length that the cipher does not take.
    fn key(bytes: &[u8]) -> Option<Self::Key>;

    /// Encrypts every job.
    fn encrypt(jobs: &mut [CipherJob<'_, Self::Key>]);

    /// Decrypts every job.
    fn decrypt(jobs: &mut [CipherJob<'_, Self::Key>]);

    /// The key, where it is AES-CBC's: a lone message has a way of its own there.
    fn aes_cbc(_: &Self::Key) -> Option<&AesKey> {
        None
    }
}

/// AES-CBC over whole blocks; padding is the caller's.
#[derive(Debug)]
pub enum CbcAes {}

impl Cipher for CbcAes {
    type Key = AesKey;

    fn key(bytes: &[u8]) -> Option<AesKey> {
        AesKey::new(bytes)
    }

    #[inline]
    fn encrypt(jobs: &mut [CipherJob<'_, AesKey>]) {
        cbc::encrypt(jobs);
    }

    #[inline]
    fn decrypt(jobs: &mut [CipherJob<'_, AesKey>]) {
        cbc::decrypt(jobs);
    }

    #[inline]
    fn aes_cbc(key: &AesKey) -> Option<&AesKey> {
        Some(key)
    }
}

/// AES in counter mode; the job's IV is the first counter block.
#[derive(Debug)]
pub enum CtrAes {}

impl Cipher for CtrAes {
    type Key = AesKey;

    fn key(bytes: &[u8]) -> Option<AesKey> {
        AesKey::new(bytes)
    }

    #[inline]
    fn encrypt(jobs: &mut [CipherJob<'_, AesKey>]) {
        ctr::apply(jobs);
    }

    #[inline]
    fn decrypt(jobs: &mut [CipherJob<'_, AesKey>]) {
        ctr::apply(jobs);
    }
}

/// No encryption (RFC 2410): the output is the input. The key has no bytes.
#[derive(Debug)]
pub enum CipherNull {}

impl Cipher for CipherNull {
    type Key = ();

    fn key(bytes: &[u8]) -> Option<()> {
        bytes.is_empty().then_some(())
    }

    #[inline]
    fn encrypt(jobs: &mut [CipherJob<'_, ()>]) {
        for job in jobs {
            let _ = job.data.reborrow().into_out_with_copied_in();
        }
    }

    #[inline]
    fn decrypt(jobs: &mut [CipherJob<'_, ()>]) {
        Self::encrypt(jobs);
    }
}

/// The keys of both halves. Wiped on drop.
pub struct AuthencKey<M, C: Cipher> {
    mac: M,
    cipher: C::Key,
}

impl<M: Mac, C: Cipher> AuthencKey<M, C> {
    /// Prepares a MAC key of any length and a cipher key; `None` for a length that
    /// the cipher does not take.
    pub fn new(mac: &[u8], cipher: &[u8]) -> Option<Self> {
        Some(AuthencKey {
            cipher: C::key(cipher)?,
            mac: M::new(mac),
        })
    }
}

/// Encrypts every job and computes its MAC.
///
/// # Panics
/// If data is not a whole number of blocks as the cipher has them, a suffix longer
/// than [`SUFFIX`](crate::job::SUFFIX), or a tag longer than the MAC.
#[inline]
pub fn seal<M: Mac, C: Cipher>(jobs: &mut [AuthencJob<'_, AuthencKey<M, C>>]) {
    #[cfg(target_arch = "x86_64")]
    if jobs.len() <= few::MAX_MESSAGES && together(jobs) {
        return;
    }
    for group in jobs.chunks_mut(GROUP) {
        ciphers::<M, C>(group.iter_mut(), C::encrypt);
        let mut macs = ArrayVec::<_, GROUP>::new();
        for job in group {
            macs.push(MacJob {
                key: &job.key.mac,
                head: job.aad,
                data: job.data.get_out(),
                suffix: job.suffix,
                mac: job.tag,
            });
        }
        M::run(&mut macs);
    }
}

/// Seals jobs with cipher and MAC in the same loop, if there is one for both and it pays
/// for all of them; says whether.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn together<M: Mac, C: Cipher>(jobs: &mut [AuthencJob<'_, AuthencKey<M, C>>]) -> bool {
    let Some(tokens) = few::tokens() else {
        return false;
    };
    let mut keys = ArrayVec::<_, { few::MAX_MESSAGES }>::new();
    for job in &*jobs {
        match (C::aes_cbc(&job.key.cipher), job.key.mac.hmac_sha256()) {
            (Some(cipher), Some(mac)) if few::pays(job.data.len()) => keys.push((cipher, mac)),
            _ => return false,
        }
    }
    let alike = keys
        .windows(2)
        .all(|pair| pair[0].0.rounds() == pair[1].0.rounds());
    if alike && !keys.is_empty() {
        few::seal::<Apart, _>(tokens, &keys, jobs);
    }
    alike
}

/// AES-CBC and SHA-256 by the best ways there are for each.
#[cfg(target_arch = "x86_64")]
enum Apart {}

#[cfg(target_arch = "x86_64")]
impl few::Halves for Apart {
    #[inline]
    fn encrypt(jobs: &mut [CipherJob<'_, AesKey>]) {
        cbc::encrypt(jobs);
    }

    #[inline]
    fn hash<'j>(messages: impl ExactSizeIterator<Item = Message<'j, Sha256>>) {
        hash_lanes::sha256(None, messages);
    }
}

/// Compares the tag of every job, in constant time, with the MAC that it should
/// have, and decrypts those jobs where it is right. The others say so in
/// [`right`](AuthencJob::right).
///
/// # Panics
/// As [`seal`].
#[inline]
pub fn open<M: Mac, C: Cipher>(jobs: &mut [AuthencJob<'_, AuthencKey<M, C>>]) {
    for group in jobs.chunks_mut(GROUP) {
        let mut right = ArrayVec::<_, GROUP>::new();
        right.extend(group.iter().map(|_| [0; LONGEST]));
        let mut macs = ArrayVec::<_, GROUP>::new();
        for (job, right) in group.iter_mut().zip(&mut right) {
            macs.push(MacJob {
                key: &job.key.mac,
                head: job.aad,
                data: job.data.get_in(),
                suffix: job.suffix,
                mac: &mut right[..job.tag.len()],
            });
        }
        M::run(&mut macs);
        drop(macs);
        for (job, right) in group.iter_mut().zip(&right) {
            *job.right = is_same(job.tag, &right[..job.tag.len()]);
        }
        ciphers::<M, C>(group.iter_mut().filter(|job| *job.right), C::decrypt);
    }
}

/// Runs the cipher over at most [`GROUP`] jobs.
#[inline(always)]
fn ciphers<'j, 'a: 'j, M: Mac, C: Cipher>(
    jobs: impl Iterator<Item = &'j mut AuthencJob<'a, AuthencKey<M, C>>>,
    run: fn(&mut [CipherJob<'_, C::Key>]),
) {
    let mut group = ArrayVec::<_, GROUP>::new();
    for job in jobs {
        group.push(CipherJob {
            key: &job.key.cipher,
            iv: job.iv,
            data: job.data.reborrow(),
        });
    }
    run(&mut group);
}

#[cfg(test)]
mod tests;
