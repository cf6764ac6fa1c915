//! AES-CBC encryption and SHA-256 of one message in the same loop.
//!
//! Alone, both wait for themselves most of the time: a block of CBC for the one
//! before it, a round of SHA-256 likewise. Side by side they take as long as the
//! slower of the two. The hash follows the cipher at some distance.

use core::arch::x86_64::*;

use zeroize::Zeroize;

use crate::aes::{AesKey, Block, RoundKeys};
use crate::cpu::{HaveAesNi, HaveAvx2, HaveShaNi};
use crate::hash_lanes;
use crate::hmac::HmacSha256Key;
use crate::job::AuthencJob;
use crate::sha2::K256;
use crate::x86_64::{sha256, wipe};

/// Bytes of data from which on this pays.
const LEAST: usize = 192;

/// How far the cipher is ahead of the hash at least: the bytes that are hashed
/// must have left the store queue, since blocks of the hash and of the cipher do
/// not begin at the same places.
const AHEAD: usize = 96;

/// What [`seal`] needs.
type Tokens = (HaveAesNi, HaveShaNi, HaveAvx2);

/// The tokens, if this machine gives them all.
#[inline]
pub(crate) fn tokens() -> Option<Tokens> {
    Some((HaveAesNi::new()?, HaveShaNi::new()?, HaveAvx2::new()?))
}

/// Whether [`seal`] takes a message with so many bytes of data.
#[inline]
pub(crate) fn pays(len: usize) -> bool {
    len >= LEAST && len.is_multiple_of(16)
}

/// Encrypts a message of [`LEAST`] bytes or more, a multiple of 16, and computes its MAC.
pub(crate) fn seal<K>(
    tokens: Tokens,
    enc: &AesKey,
    auth: &HmacSha256Key,
    job: &mut AuthencJob<'_, K>,
) {
    let len = job.data.len();
    assert!(pays(len));
    let (from, to) = job.data.reborrow().into_raw();
    let mut cbc = Cbc {
        round_keys: enc.enc(),
        rounds: enc.rounds(),
        chain: job.iv,
        from,
        to,
    };
    let mut state = *auth.inner();

    // What the first blocks of the hash take of the data, to fill up the last
    // block of the associated data.
    let (aad_blocks, aad_rest) = job.aad.split_at(job.aad.len() - job.aad.len() % 64);
    let taken = if aad_rest.is_empty() {
        0
    } else {
        64 - aad_rest.len()
    };
    let lead = (taken + AHEAD).next_multiple_of(16);
    // SAFETY: `lead` is a multiple of 16, at most 160, and the data is longer.
    unsafe { cbc.encrypt(tokens.0, 0, lead) };
    if !aad_blocks.is_empty() {
        sha256::compress(tokens.1, core::slice::from_mut(&mut state), &[aad_blocks]);
    }
    if taken > 0 {
        let mut block = [0; 64];
        block[..aad_rest.len()].copy_from_slice(aad_rest);
        // SAFETY: the first `taken` bytes of the output were written above.
        let first = unsafe { core::slice::from_raw_parts(to.cast_const(), taken) };
        block[aad_rest.len()..].copy_from_slice(first);
        sha256::compress(tokens.1, core::slice::from_mut(&mut state), &[&block]);
    }

    let both = (len - lead) / 64;
    // SAFETY: the cipher's 64 bytes of the last turn end at `lead + 64 * both`, which
    // is `len` at most; those of the hash end before what the cipher has written.
    // The tokens were made only where the instructions are present.
    unsafe {
        match cbc.rounds {
            10 => cbc.with_hash::<10>(lead, &mut state, taken, both),
            12 => cbc.with_hash::<12>(lead, &mut state, taken, both),
            _ => cbc.with_hash::<14>(lead, &mut state, taken, both),
        }
        cbc.encrypt(tokens.0, lead + 64 * both, len);
    }
    let hashed = taken + 64 * both;
    let rest = &job.data.get_out()[hashed..];
    let seen = job.aad.len() + hashed;
    let mut mac = [0; 64];
    let message = auth.rest(&state, seen, [rest, job.suffix], &mut mac);
    hash_lanes::sha256(core::iter::once(message));
    job.tag.copy_from_slice(&mac[..job.tag.len()]);
    state.zeroize();
    wipe::vectors(tokens.2, None);
}

/// The encryption under way: its input and its output of the same length.
struct Cbc<'k> {
    round_keys: &'k RoundKeys,
    rounds: usize,
    chain: Block,
    from: *const u8,
    to: *mut u8,
}

impl Cbc<'_> {
    /// Encrypts the bytes from `start` to `end`, whole blocks.
    ///
    /// # Safety
    /// Input and output have `end` bytes.
    unsafe fn encrypt(&mut self, _: HaveAesNi, start: usize, end: usize) {
        #[target_feature(enable = "aes")]
        unsafe fn inner(cbc: &mut Cbc<'_>, start: usize, end: usize) {
            let (keys, last) = cbc.round_keys.split_at(cbc.rounds);
            // SAFETY: blocks of 16 bytes, from `start` to `end`.
            unsafe {
                let mut chain = load(&cbc.chain);
                for at in (start..end).step_by(16) {
                    let block = _mm_loadu_si128(cbc.from.add(at).cast());
                    chain = _mm_xor_si128(chain, _mm_xor_si128(block, load(&keys[0])));
                    for key in &keys[1..] {
                        chain = _mm_aesenc_si128(chain, load(key));
                    }
                    chain = _mm_aesenclast_si128(chain, load(&last[0]));
                    _mm_storeu_si128(cbc.to.add(at).cast(), chain);
                }
                _mm_storeu_si128(cbc.chain.as_mut_ptr().cast(), chain);
            }
        }
        // SAFETY: by the contract of this function; the token is made only where
        // the instructions are present.
        unsafe { inner(self, start, end) }
    }

    /// Encrypts `turns` times 64 bytes from `start` on, and hashes as many of the
    /// output from `hashed` on.
    ///
    /// # Safety
    /// Input and output have the bytes. What is hashed in a turn was encrypted
    /// before it. AES-NI, the SHA instructions and AVX2 are there.
    #[target_feature(enable = "aes,sha,avx2")]
    unsafe fn with_hash<const ROUNDS: usize>(
        &mut self,
        start: usize,
        state: &mut [u32; 8],
        hashed: usize,
        turns: usize,
    ) {
        let big_endian = _mm_set_epi64x(0x0c0d_0e0f_0809_0a0b, 0x0405_0607_0001_0203);
        let keys = self.round_keys;
        let mut chain = load(&self.chain);
        let mut feba = sha256::load(&state[..4]);
        let mut hgdc = sha256::load(&state[4..]);
        for turn in 0..turns {
            // SAFETY: by the contract of this function.
            let (from, to, hash) = unsafe {
                let at = start + 64 * turn;
                (
                    self.from.add(at),
                    self.to.add(at),
                    self.to.add(hashed + 64 * turn),
                )
            };
            let (feba_before, hgdc_before) = (feba, hgdc);
            let mut w = [_mm_setzero_si128(); 4];
            for (i, w) in w.iter_mut().enumerate() {
                // SAFETY: 16 of the 64 bytes to hash.
                let words = unsafe { _mm_loadu_si128(hash.add(16 * i).cast()) };
                *w = _mm_shuffle_epi8(words, big_endian);
            }
            // Four rounds of the hash, and a sixteenth of the four blocks' rounds.
            macro_rules! quarter {
                ($($j:literal)*) => {$({
                    sha256::four_rounds!($j, w, feba, hgdc);
                    for step in $j * 4 * (ROUNDS + 1) / 16..($j + 1) * 4 * (ROUNDS + 1) / 16 {
                        let (block, round) = (step / (ROUNDS + 1), step % (ROUNDS + 1));
                        let key = load(&keys[round]);
                        // SAFETY: 16 of the 64 bytes to encrypt.
                        unsafe {
                            if round == 0 {
                                let input = _mm_loadu_si128(from.add(16 * block).cast());
                                chain = _mm_xor_si128(chain, _mm_xor_si128(input, key));
                            } else if round < ROUNDS {
                                chain = _mm_aesenc_si128(chain, key);
                            } else {
                                chain = _mm_aesenclast_si128(chain, key);
                                _mm_storeu_si128(to.add(16 * block).cast(), chain);
                            }
                        }
                    }
                })*};
            }
            quarter!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
            feba = _mm_add_epi32(feba, feba_before);
            hgdc = _mm_add_epi32(hgdc, hgdc_before);
        }
        sha256::store(&mut state[..4], feba);
        sha256::store(&mut state[4..], hgdc);
        // SAFETY: a store of 16 bytes to as many.
        unsafe { _mm_storeu_si128(self.chain.as_mut_ptr().cast(), chain) };
    }
}

#[inline]
#[target_feature(enable = "sse2")]
fn load(block: &Block) -> __m128i {
    // SAFETY: a load of 16 bytes from as many.
    unsafe { _mm_loadu_si128(block.as_ptr().cast()) }
}
