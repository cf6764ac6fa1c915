//! Kuznyechik (GOST R 34.12-2015, RFC 7801), with ECB and CTR of GOST R 34.13-2015.
//! A block is its octets from the left: `a_15` of the standard is `block[0]`.

use super::modes::{counter_mode, per_block};

type Block = [u8; 16];

/// Section 4.1: the nonlinear bijection pi.
#[rustfmt::skip]
const PI: [u8; 256] = [
    252, 238, 221, 17, 207, 110, 49, 22, 251, 196, 250, 218, 35, 197, 4, 77,
    233, 119, 240, 219, 147, 46, 153, 186, 23, 54, 241, 187, 20, 205, 95, 193,
    249, 24, 101, 90, 226, 92, 239, 33, 129, 28, 60, 66, 139, 1, 142, 79,
    5, 132, 2, 174, 227, 106, 143, 160, 6, 11, 237, 152, 127, 212, 211, 31,
    235, 52, 44, 81, 234, 200, 72, 171, 242, 42, 104, 162, 253, 58, 206, 204,
    181, 112, 14, 86, 8, 12, 118, 18, 191, 114, 19, 71, 156, 183, 93, 135,
    21, 161, 150, 41, 16, 123, 154, 199, 243, 145, 120, 111, 157, 158, 178, 177,
    50, 117, 25, 61, 255, 53, 138, 126, 109, 84, 198, 128, 195, 189, 13, 87,
    223, 245, 36, 169, 62, 168, 67, 201, 215, 121, 214, 246, 124, 34, 185, 3,
    224, 15, 236, 222, 122, 148, 176, 188, 220, 232, 40, 80, 78, 51, 10, 74,
    167, 151, 96, 115, 30, 0, 98, 68, 26, 184, 56, 130, 100, 159, 38, 65,
    173, 69, 70, 146, 39, 94, 85, 47, 140, 163, 165, 125, 105, 213, 149, 59,
    7, 88, 179, 64, 134, 172, 29, 247, 48, 55, 107, 228, 136, 217, 231, 137,
    225, 27, 131, 73, 76, 63, 248, 254, 141, 83, 170, 144, 202, 216, 133, 97,
    32, 113, 103, 164, 45, 43, 9, 91, 203, 155, 37, 208, 190, 229, 108, 82,
    89, 166, 116, 210, 230, 244, 180, 192, 209, 102, 175, 194, 57, 75, 99, 182,
];

/// Section 4.2: the coefficients of the linear transformation l, of `a_15` first.
const COEFFICIENTS: Block = [
    148, 32, 133, 16, 194, 192, 1, 251, 1, 192, 194, 16, 133, 32, 148, 1,
];

/// Multiplication modulo p(x) = x^8 + x^7 + x^6 + x + 1 (section 4.2).
fn multiply(x: u8, y: u8) -> u8 {
    (0..8).rev().fold(0, |z: u8, bit| {
        let doubled = z << 1 ^ if z >> 7 == 1 { 0xc3 } else { 0 };
        doubled ^ if y >> bit & 1 == 1 { x } else { 0 }
    })
}

fn linear(a: &Block) -> u8 {
    a.iter()
        .zip(COEFFICIENTS)
        .fold(0, |sum, (&byte, coefficient)| {
            sum ^ multiply(byte, coefficient)
        })
}

/// X of section 4.3.
fn add(k: &Block, a: &Block) -> Block {
    core::array::from_fn(|i| k[i] ^ a[i])
}

/// S of section 4.3.
fn substitute(a: &Block) -> Block {
    a.map(|byte| PI[usize::from(byte)])
}

fn substitute_back(a: &Block) -> Block {
    a.map(|byte| PI.iter().position(|&p| p == byte).expect("a bijection") as u8)
}

/// R of section 4.3: one place to the right, and l of all from the left.
fn step(a: &Block) -> Block {
    core::array::from_fn(|i| if i == 0 { linear(a) } else { a[i - 1] })
}

/// The inverse of R: one place to the left, and l of all rotated so from the right.
fn step_back(a: &Block) -> Block {
    let rotated = core::array::from_fn(|i| a[(i + 1) % 16]);
    let mut back = rotated;
    back[15] = linear(&rotated);
    back
}

/// L of section 4.3.
fn mix(a: &Block) -> Block {
    (0..16).fold(*a, |a, _| step(&a))
}

fn mix_back(a: &Block) -> Block {
    (0..16).fold(*a, |a, _| step_back(&a))
}

/// The ten iteration keys of section 4.4.
pub(super) fn expand(key: &[u8; 32]) -> [Block; 10] {
    let mut keys = [[0; 16]; 10];
    let mut a1: Block = key[..16].try_into().expect("half of the key");
    let mut a0: Block = key[16..].try_into().expect("half of the key");
    (keys[0], keys[1]) = (a1, a0);
    for i in 1..=32 {
        let mut constant = [0; 16];
        constant[15] = i;
        let mixed = mix(&substitute(&add(&mix(&constant), &a1)));
        (a1, a0) = (add(&mixed, &a0), a1);
        if i % 8 == 0 {
            let pair = usize::from(i / 8) * 2;
            (keys[pair], keys[pair + 1]) = (a1, a0);
        }
    }
    keys
}

/// E of section 4.5.1.
pub(super) fn encrypt(keys: &[Block; 10], block: &Block) -> Block {
    let rounds = keys[..9].iter();
    let mixed = rounds.fold(*block, |a, k| mix(&substitute(&add(k, &a))));
    add(&keys[9], &mixed)
}

/// D of section 4.5.2.
fn decrypt(keys: &[Block; 10], block: &Block) -> Block {
    let rounds = keys[1..].iter().rev();
    let mixed = rounds.fold(*block, |a, k| substitute_back(&mix_back(&add(k, &a))));
    add(&keys[0], &mixed)
}

/// One block.
pub fn kuznyechik_encrypt_block(key: &[u8; 32], block: &[u8; 16]) -> [u8; 16] {
    encrypt(&expand(key), block)
}

/// One block.
pub fn kuznyechik_decrypt_block(key: &[u8; 32], block: &[u8; 16]) -> [u8; 16] {
    decrypt(&expand(key), block)
}

/// GOST R 34.13-2015 section 5.1. `data` is a whole number of blocks.
pub fn kuznyechik_ecb_encrypt(key: &[u8; 32], data: &[u8]) -> Vec<u8> {
    let keys = expand(key);
    per_block(data, |block| encrypt(&keys, block))
}

/// GOST R 34.13-2015 section 5.1. `data` is a whole number of blocks.
pub fn kuznyechik_ecb_decrypt(key: &[u8; 32], data: &[u8]) -> Vec<u8> {
    let keys = expand(key);
    per_block(data, |block| decrypt(&keys, block))
}

/// GOST R 34.13-2015 section 5.2, from a whole counter block: an IV of 8 bytes
/// stands in its left half, over zeros. Encrypts and decrypts.
pub fn kuznyechik_ctr(key: &[u8; 32], counter: &[u8; 16], data: &[u8]) -> Vec<u8> {
    let keys = expand(key);
    counter_mode(counter, data, |block| encrypt(&keys, block))
}
