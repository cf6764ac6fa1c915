//! The two hashes: states, blocks and digests. How blocks are compressed is said elsewhere.

use zeroize::Zeroize;

/// One of the two hashes: a state of eight words, which blocks are compressed into.
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

    #[inline(always)]
    fn digest(state: &[u64; 8], out: &mut [u8]) {
        let (out, _) = out[..64].as_chunks_mut::<8>();
        for (bytes, word) in out.iter_mut().zip(state) {
            *bytes = word.to_be_bytes();
        }
    }
}
