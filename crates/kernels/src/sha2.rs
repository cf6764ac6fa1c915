//! SHA-256 and SHA-512 (FIPS 180-4).
//!
//! The hashes of whole batches; one message is a batch of one. [`crate::hmac`]
//! and [`crate::authenc`] run over the same lanes.

use zeroize::Zeroize;

use crate::hash_lanes::{self, Message};
use crate::job::MacJob;
use crate::portable;

/// SHA-256 of every message; the key of the jobs says nothing.
pub fn sha256(jobs: &mut [MacJob<'_, ()>]) {
    hash_lanes::sha256(jobs.iter_mut().map(plain));
}

/// SHA-512 of every message; the key of the jobs says nothing.
pub fn sha512(jobs: &mut [MacJob<'_, ()>]) {
    hash_lanes::sha512(jobs.iter_mut().map(plain));
}

fn plain<'j, H: Hash>(job: &'j mut MacJob<'_, ()>) -> Message<'j, H> {
    Message {
        states: None,
        before: 0,
        head: job.head,
        data: job.data,
        suffix: job.suffix,
        digest: job.mac,
    }
}

/// One of the two hashes: a state of eight words and a compression of blocks.
pub(crate) trait Hash {
    /// The chaining value, in the order that suits the vector kernels.
    type State: Copy + Zeroize + 'static;
    const INITIAL: Self::State;
    const ZERO: Self::State;
    type TwoBlocks: AsRef<[u8]> + AsMut<[u8]>;
    const NO_BLOCKS: Self::TwoBlocks;
    /// Bytes of a block, of the digest, and of the length at the end of the padding.
    const BLOCK: usize;
    const DIGEST: usize;
    const LENGTH: usize;

    /// Compresses whole blocks, on any machine.
    fn compress(state: &mut Self::State, blocks: &[u8]);

    /// Writes the digest that the state stands for to the front of `out`.
    fn digest(state: &Self::State, out: &mut [u8]);
}

/// SHA-256, with the words a to h in the order f e b a, h g d c: the two
/// registers of the SHA instructions.
pub(crate) struct Sha256;

/// Where the words a to h stand in the state of [`Sha256`].
pub(crate) const SHA256_PLACES: [usize; 8] = [3, 2, 7, 6, 1, 0, 5, 4];

impl Hash for Sha256 {
    type State = [u32; 8];
    const INITIAL: [u32; 8] = [
        0x9b05688c, 0x510e527f, 0xbb67ae85, 0x6a09e667, 0x5be0cd19, 0x1f83d9ab, 0xa54ff53a,
        0x3c6ef372,
    ];
    const ZERO: [u32; 8] = [0; 8];
    type TwoBlocks = [u8; 128];
    const NO_BLOCKS: [u8; 128] = [0; 128];
    const BLOCK: usize = 64;
    const DIGEST: usize = 32;
    const LENGTH: usize = 8;

    fn compress(state: &mut [u32; 8], blocks: &[u8]) {
        let mut ordered = SHA256_PLACES.map(|place| state[place]);
        portable::sha2::compress256(&mut ordered, blocks);
        for (place, word) in SHA256_PLACES.into_iter().zip(ordered) {
            state[place] = word;
        }
        ordered.zeroize();
    }

    #[inline(always)]
    fn digest(state: &[u32; 8], out: &mut [u8]) {
        let (out, _) = out[..32].as_chunks_mut::<4>();
        for (word, place) in out.iter_mut().zip(SHA256_PLACES) {
            *word = state[place].to_be_bytes();
        }
    }
}

/// SHA-512, with the words in the order of the standard.
pub(crate) struct Sha512;

impl Hash for Sha512 {
    type State = [u64; 8];
    const INITIAL: [u64; 8] = [
        0x6a09e667f3bcc908,
        0xbb67ae8584caa73b,
        0x3c6ef372fe94f82b,
        0xa54ff53a5f1d36f1,
        0x510e527fade682d1,
        0x9b05688c2b3e6c1f,
        0x1f83d9abfb41bd6b,
        0x5be0cd19137e2179,
    ];
    const ZERO: [u64; 8] = [0; 8];
    type TwoBlocks = [u8; 256];
    const NO_BLOCKS: [u8; 256] = [0; 256];
    const BLOCK: usize = 128;
    const DIGEST: usize = 64;
    const LENGTH: usize = 16;

    fn compress(state: &mut [u64; 8], blocks: &[u8]) {
        portable::sha2::compress512(state, blocks);
    }

    #[inline(always)]
    fn digest(state: &[u64; 8], out: &mut [u8]) {
        let (out, _) = out[..64].as_chunks_mut::<8>();
        for (bytes, word) in out.iter_mut().zip(state) {
            *bytes = word.to_be_bytes();
        }
    }
}

/// The round constants of SHA-256 (section 4.2.2).
#[cfg(target_arch = "x86_64")]
pub(crate) static K256: [u32; 64] = k256();

/// The upper halves of the first 64 of [`K512`]: both tables are cube roots of
/// the same primes.
#[cfg(target_arch = "x86_64")]
const fn k256() -> [u32; 64] {
    let mut k = [0; 64];
    let mut i = 0;
    while i < 64 {
        k[i] = (K512[i] >> 32) as u32;
        i += 1;
    }
    k
}

/// The round constants of SHA-512 (section 4.2.3).
#[cfg(target_arch = "x86_64")]
pub(crate) static K512: [u64; 80] = [
    0x428a2f98d728ae22,
    0x7137449123ef65cd,
    0xb5c0fbcfec4d3b2f,
    0xe9b5dba58189dbbc,
    0x3956c25bf348b538,
    0x59f111f1b605d019,
    0x923f82a4af194f9b,
    0xab1c5ed5da6d8118,
    0xd807aa98a3030242,
    0x12835b0145706fbe,
    0x243185be4ee4b28c,
    0x550c7dc3d5ffb4e2,
    0x72be5d74f27b896f,
    0x80deb1fe3b1696b1,
    0x9bdc06a725c71235,
    0xc19bf174cf692694,
    0xe49b69c19ef14ad2,
    0xefbe4786384f25e3,
    0x0fc19dc68b8cd5b5,
    0x240ca1cc77ac9c65,
    0x2de92c6f592b0275,
    0x4a7484aa6ea6e483,
    0x5cb0a9dcbd41fbd4,
    0x76f988da831153b5,
    0x983e5152ee66dfab,
    0xa831c66d2db43210,
    0xb00327c898fb213f,
    0xbf597fc7beef0ee4,
    0xc6e00bf33da88fc2,
    0xd5a79147930aa725,
    0x06ca6351e003826f,
    0x142929670a0e6e70,
    0x27b70a8546d22ffc,
    0x2e1b21385c26c926,
    0x4d2c6dfc5ac42aed,
    0x53380d139d95b3df,
    0x650a73548baf63de,
    0x766a0abb3c77b2a8,
    0x81c2c92e47edaee6,
    0x92722c851482353b,
    0xa2bfe8a14cf10364,
    0xa81a664bbc423001,
    0xc24b8b70d0f89791,
    0xc76c51a30654be30,
    0xd192e819d6ef5218,
    0xd69906245565a910,
    0xf40e35855771202a,
    0x106aa07032bbd1b8,
    0x19a4c116b8d2d0c8,
    0x1e376c085141ab53,
    0x2748774cdf8eeb99,
    0x34b0bcb5e19b48a8,
    0x391c0cb3c5c95a63,
    0x4ed8aa4ae3418acb,
    0x5b9cca4f7763e373,
    0x682e6ff3d6b2b8a3,
    0x748f82ee5defb2fc,
    0x78a5636f43172f60,
    0x84c87814a1f0ab72,
    0x8cc702081a6439ec,
    0x90befffa23631e28,
    0xa4506cebde82bde9,
    0xbef9a3f7b2c67915,
    0xc67178f2e372532b,
    0xca273eceea26619c,
    0xd186b8c721c0c207,
    0xeada7dd6cde0eb1e,
    0xf57d4f7fee6ed178,
    0x06f067aa72176fba,
    0x0a637dc5a2c898a6,
    0x113f9804bef90dae,
    0x1b710b35131c471b,
    0x28db77f523047d84,
    0x32caab7b40c72493,
    0x3c9ebe0a15c9bebc,
    0x431d67c49c100d4c,
    0x4cc5d4becb3e42b6,
    0x597f299cfc657e2a,
    0x5fcb6fab3ad6faec,
    0x6c44198c4a475817,
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::naive;

    #[test]
    fn batches_agree_with_the_reference() {
        let data: Vec<u8> = (0..700).map(|i| ((i * 31) >> 3) as u8).collect();
        let mut of_256 = vec![[0xff; 32]; data.len()];
        let mut of_512 = vec![[0xff; 64]; data.len()];
        let job = |len: usize, mac| MacJob {
            key: &(),
            head: &data[..len / 3],
            data: &data[len / 3..len - len / 2 % 8],
            suffix: &data[len - len / 2 % 8..len],
            mac,
        };
        let jobs = of_256.iter_mut().enumerate();
        let jobs = jobs.map(|(len, digest)| job(len, &mut digest[..]));
        sha256(&mut jobs.collect::<Vec<_>>());
        let jobs = of_512.iter_mut().enumerate();
        let jobs = jobs.map(|(len, digest)| job(len, &mut digest[..]));
        sha512(&mut jobs.collect::<Vec<_>>());
        for (len, digests) in of_256.iter().zip(&of_512).enumerate() {
            let expected = (&naive::sha256(&data[..len]), &naive::sha512(&data[..len]));
            assert_eq!(digests, expected, "{len} bytes");
        }
    }
}
