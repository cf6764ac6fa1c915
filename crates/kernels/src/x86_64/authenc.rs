//! AES-CBC encryption and SHA-256 of one to four messages in the same loop.
//!
//! Alone, both wait for themselves most of the time: a block of CBC for the one
//! before it, a round of SHA-256 likewise. Side by side they take little longer than
//! the slower of the two. The hash follows the cipher at some distance.
//!
//! With more messages each half fills its units by itself. On a Zen 5, one loop for
//! both halves of 16 messages of 1392 bytes took 33100 cycles with the SHA
//! instructions, where one half after the other takes 34300, and 23300 instead of
//! 21400 with the hash in 16 elements of 512-bit registers, which leaves no unit free.

use core::arch::x86_64::*;

use arrayvec::ArrayVec;
use zeroize::Zeroize;

use crate::aes::key::{AesKey, Block, RoundKeys};
use crate::cpu::{HaveAesNi, HaveAvx2, HaveShaNi};
use crate::hash_lanes::message::Message;
use crate::hmac::key::HmacSha256Key;
use crate::job::{AuthencJob, CipherJob};
use crate::sha2::constants::K256;
use crate::sha2::hash::Sha256;
use crate::x86_64::memory;
use crate::x86_64::{sha256, wipe};

/// The most messages.
pub(crate) const MAX_MESSAGES: usize = 4;

/// Bytes of data from which on this pays.
const MIN_LEN: usize = 192;

/// How far the cipher is ahead of the hash at least: the bytes that are hashed
/// must have left the store queue, since blocks of the hash and of the cipher do
/// not begin at the same places.
const AHEAD: usize = 96;

/// What [`seal`] needs.
type Tokens = (HaveAesNi, HaveShaNi, HaveAvx2);

/// The keys of a message.
pub(crate) type Keys<'k> = (&'k AesKey, &'k HmacSha256Key);

/// Each half by itself, for what is left when the shortest message is through.
pub(crate) trait Halves {
    /// Encrypts every job with AES-CBC.
    fn encrypt(jobs: &mut [CipherJob<'_, AesKey>]);

    /// Hashes all messages.
    fn hash<'j>(messages: impl ExactSizeIterator<Item = Message<'j, Sha256>>);
}

/// The tokens, if this machine gives them all.
#[inline]
pub(crate) fn tokens() -> Option<Tokens> {
    Some((HaveAesNi::new()?, HaveShaNi::new()?, HaveAvx2::new()?))
}

/// Whether [`seal`] takes a message with `len` bytes of data.
#[inline]
pub(crate) fn pays(len: usize) -> bool {
    len >= MIN_LEN && len.is_multiple_of(16)
}

/// Encrypts one to four messages of [`MIN_LEN`] bytes or more, multiples of 16, and
/// computes their MACs. The AES keys have one length.
pub(crate) fn seal<H: Halves, K>(
    tokens: Tokens,
    keys: &[Keys<'_>],
    jobs: &mut [AuthencJob<'_, K>],
) {
    match jobs.len() {
        1 => lanes::<H, K, 1>(tokens, keys, jobs),
        2 => lanes::<H, K, 2>(tokens, keys, jobs),
        3 => lanes::<H, K, 3>(tokens, keys, jobs),
        4 => lanes::<H, K, 4>(tokens, keys, jobs),
        messages => panic!("{messages} messages, of {MAX_MESSAGES}"),
    }
}

#[inline(never)]
fn lanes<H: Halves, K, const L: usize>(
    tokens: Tokens,
    keys: &[Keys<'_>],
    jobs: &mut [AuthencJob<'_, K>],
) {
    let keys: [Keys<'_>; L] = keys.try_into().expect("keys for each message");
    let jobs: &mut [_; L] = jobs.try_into().expect("as many messages");
    let rounds = keys[0].0.rounds();
    assert!(keys.iter().all(|(enc, _)| enc.rounds() == rounds));
    assert!(jobs.iter().all(|job| pays(job.data.len())));
    // What the first blocks of the hash take of the data, to fill up the last
    // block of the associated data.
    let taken = jobs.each_ref().map(|job| job.aad.len().wrapping_neg() % 64);
    let most_taken = taken.iter().fold(0, |most, &taken| most.max(taken));
    let lead = (most_taken + AHEAD).next_multiple_of(16);
    let least = jobs.iter().map(|job| job.data.len()).min().unwrap_or(lead);
    let both = (least - lead) / 64;

    let mut lanes = Lanes {
        keys: keys.map(|(enc, _)| enc.enc()),
        chain: jobs.each_ref().map(|job| job.iv),
        at: jobs.each_mut().map(|job| job.data.reborrow().into_raw()),
    };
    // SAFETY: `lead` is a multiple of 16, at most 160, and the data is longer.
    unsafe { lanes.encrypt(tokens.0, rounds, 0, lead) };
    let mut states = keys.map(|(_, auth)| *auth.inner());
    heads(tokens.1, jobs, &taken, &mut states);
    // SAFETY: the cipher's 64 bytes of the last turn end at `lead + 64 * both`, which is
    // the least length at most; those of the hash end before what the cipher has written.
    // The tokens were made only where the instructions are present.
    unsafe {
        match rounds {
            10 => lanes.with_hash::<10>(lead, &mut states, &taken, both),
            12 => lanes.with_hash::<12>(lead, &mut states, &taken, both),
            _ => lanes.with_hash::<14>(lead, &mut states, &taken, both),
        }
        lanes.encrypt(tokens.0, rounds, lead + 64 * both, least);
    }
    let mut longer: ArrayVec<_, L> = ArrayVec::new();
    for (l, job) in jobs
        .iter_mut()
        .enumerate()
        .filter(|(_, job)| job.data.len() > least)
    {
        longer.push(CipherJob {
            key: keys[l].0,
            iv: lanes.chain[l],
            data: job.data.reborrow().split_at(least).1,
        });
    }
    if !longer.is_empty() {
        H::encrypt(&mut longer);
    }
    drop(longer);

    H::hash(jobs.iter_mut().enumerate().map(|(l, job)| {
        let hashed = taken[l] + 64 * both;
        let rest = [&job.data.get_out()[hashed..], job.suffix];
        keys[l]
            .1
            .rest(&states[l], job.aad.len() + hashed, rest, job.tag)
    }));
    states.zeroize();
    wipe::vectors(tokens.2, None);
}

/// Hashes the associated data of every message, and of its ciphertext the first bytes, as
/// many as `taken`.
fn heads<K, const L: usize>(
    sha_ni: HaveShaNi,
    jobs: &mut [AuthencJob<'_, K>; L],
    taken: &[usize; L],
    states: &mut [[u32; 8]; L],
) {
    let mut meeting = [[0; 64]; L];
    for (((block, job), &taken), state) in meeting.iter_mut().zip(jobs).zip(taken).zip(&mut *states)
    {
        let (whole, rest) = job.aad.split_at(job.aad.len() - job.aad.len() % 64);
        if !whole.is_empty() {
            sha256::compress(sha_ni, core::slice::from_mut(state), &[whole]);
        }
        block[..rest.len()].copy_from_slice(rest);
        block[64 - taken..].copy_from_slice(&job.data.get_out()[..taken]);
    }
    if taken.iter().all(|&taken| taken > 0) {
        let meeting = meeting.each_ref().map(|block| &block[..]);
        return sha256::compress(sha_ni, states, &meeting);
    }
    for l in (0..L).filter(|&l| taken[l] > 0) {
        sha256::compress(sha_ni, &mut states[l..=l], &[&meeting[l]]);
    }
}

/// The encryptions under way.
struct Lanes<'k, const L: usize> {
    keys: [&'k RoundKeys; L],
    chain: [Block; L],
    /// Input and output.
    at: [(*const u8, *mut u8); L],
}

impl<const L: usize> Lanes<'_, L> {
    /// Encrypts the bytes from `start` to `end`, whole blocks.
    ///
    /// # Safety
    /// Inputs and outputs have `end` bytes, and the keys have `rounds` rounds.
    unsafe fn encrypt(&mut self, _: HaveAesNi, rounds: usize, start: usize, end: usize) {
        #[target_feature(enable = "aes")]
        unsafe fn inner<const L: usize>(
            lanes: &mut Lanes<'_, L>,
            rounds: usize,
            start: usize,
            end: usize,
        ) {
            let mut chain = lanes.chain.each_ref().map(|chain| load(chain));
            for at in (start..end).step_by(16) {
                for (l, chain) in chain.iter_mut().enumerate() {
                    // SAFETY: a block of 16 bytes, from `start` to `end`.
                    let input = unsafe { memory::load(lanes.at[l].0.add(at)) };
                    *chain = _mm_xor_si128(*chain, _mm_xor_si128(input, load(&lanes.keys[l][0])));
                }
                for round in 1..rounds {
                    for (chain, keys) in chain.iter_mut().zip(&lanes.keys) {
                        *chain = _mm_aesenc_si128(*chain, load(&keys[round]));
                    }
                }
                for (l, chain) in chain.iter_mut().enumerate() {
                    *chain = _mm_aesenclast_si128(*chain, load(&lanes.keys[l][rounds]));
                    // SAFETY: as above.
                    unsafe { _mm_storeu_si128(lanes.at[l].1.add(at).cast(), *chain) };
                }
            }
            for (to, chain) in lanes.chain.iter_mut().zip(chain) {
                // SAFETY: a store of 16 bytes to as many.
                unsafe { _mm_storeu_si128(to.as_mut_ptr().cast(), chain) };
            }
        }
        // SAFETY: by the contract of this function; the token is made only where
        // the instructions are present.
        unsafe { inner(self, rounds, start, end) }
    }

    /// Encrypts `turns` times 64 bytes from `start` on, and hashes as many of each output
    /// from `hashed` on.
    ///
    /// # Safety
    /// Inputs and outputs have the bytes. What is hashed in a turn was encrypted
    /// before it. AES-NI, the SHA instructions and AVX2 are there.
    #[target_feature(enable = "aes,sha,avx2")]
    unsafe fn with_hash<const ROUNDS: usize>(
        &mut self,
        start: usize,
        states: &mut [[u32; 8]; L],
        hashed: &[usize; L],
        turns: usize,
    ) {
        let big_endian = _mm_set_epi64x(0x0c0d_0e0f_0809_0a0b, 0x0405_0607_0001_0203);
        let keys = self.keys;
        let mut chain = self.chain.each_ref().map(|chain| load(chain));
        let mut feba = states.each_ref().map(|state| sha256::load(&state[..4]));
        let mut hgdc = states.each_ref().map(|state| sha256::load(&state[4..]));
        for turn in 0..turns {
            let (feba_before, hgdc_before) = (feba, hgdc);
            let mut w = [[_mm_setzero_si128(); 4]; L];
            for l in 0..L {
                let at = hashed[l] + 64 * turn;
                for (i, w) in w[l].iter_mut().enumerate() {
                    // SAFETY: 16 of the 64 bytes to hash.
                    let words = unsafe { memory::load(self.at[l].1.add(at + 16 * i)) };
                    *w = _mm_shuffle_epi8(words, big_endian);
                }
            }
            // Four rounds of each hash, and a sixteenth of the four blocks' rounds.
            macro_rules! quarter {
                ($($j:literal)*) => {$({
                    for l in 0..L {
                        sha256::four_rounds!($j, w[l], feba[l], hgdc[l]);
                    }
                    for step in $j * 4 * (ROUNDS + 1) / 16..($j + 1) * 4 * (ROUNDS + 1) / 16 {
                        let (block, round) = (step / (ROUNDS + 1), step % (ROUNDS + 1));
                        for l in 0..L {
                            let at = start + 64 * turn + 16 * block;
                            let key = load(&keys[l][round]);
                            // SAFETY: 16 of the 64 bytes to encrypt.
                            unsafe {
                                if round == 0 {
                                    let input = memory::load(self.at[l].0.add(at));
                                    chain[l] = _mm_xor_si128(chain[l], _mm_xor_si128(input, key));
                                } else if round < ROUNDS {
                                    chain[l] = _mm_aesenc_si128(chain[l], key);
                                } else {
                                    chain[l] = _mm_aesenclast_si128(chain[l], key);
                                    _mm_storeu_si128(self.at[l].1.add(at).cast(), chain[l]);
                                }
                            }
                        }
                    }
                })*};
            }
            quarter!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
            for l in 0..L {
                feba[l] = _mm_add_epi32(feba[l], feba_before[l]);
                hgdc[l] = _mm_add_epi32(hgdc[l], hgdc_before[l]);
            }
        }
        for l in 0..L {
            sha256::store(&mut states[l][..4], feba[l]);
            sha256::store(&mut states[l][4..], hgdc[l]);
            // SAFETY: a store of 16 bytes to as many.
            unsafe { _mm_storeu_si128(self.chain[l].as_mut_ptr().cast(), chain[l]) };
        }
    }
}

#[inline]
#[target_feature(enable = "sse2")]
fn load(block: &Block) -> __m128i {
    // SAFETY: a load of 16 bytes from as many.
    unsafe { memory::load(block.as_ptr()) }
}
