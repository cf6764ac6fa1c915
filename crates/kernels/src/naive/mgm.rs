//! MGM (RFC 9058) over a block cipher of 16 or 8 bytes.

use super::kuznyechik;
use super::magma::magma_encrypt_block;

/// Multiplication of section 3 in the field of `8 * N` bits: bit 0 of a block, the
/// leftmost, is the coefficient of the highest power.
fn multiply<const N: usize>(x: u128, y: u128) -> u128 {
    let (bits, low) = if N == 16 { (128, 0x87) } else { (64, 0x1b) };
    let mask = u128::MAX >> (128 - bits);
    (0..bits).rev().fold(0, |z, i| {
        let carry = z >> (bits - 1) & 1 == 1;
        let doubled = z << 1 & mask ^ if carry { low } else { 0 };
        doubled ^ if x >> i & 1 == 1 { y } else { 0 }
    })
}

/// A block as a number; a short one has zeros appended.
fn number<const N: usize>(bytes: &[u8]) -> u128 {
    let mut block = [0; 16];
    block[16 - N..][..bytes.len()].copy_from_slice(bytes);
    u128::from_be_bytes(block)
}

fn block<const N: usize>(number: u128) -> [u8; N] {
    number.to_be_bytes()[16 - N..].try_into().expect("N bytes")
}

/// incr_r and incr_l of section 3: one half of the block counts, the other stays.
fn increment<const N: usize>(block: [u8; N], left: bool) -> [u8; N] {
    let mut next = block;
    let half = if left { 0..N / 2 } else { N / 2..N };
    for byte in next[half].iter_mut().rev() {
        *byte = byte.wrapping_add(1);
        if *byte != 0 {
            break;
        }
    }
    next
}

/// E(first bit || ICN) of sections 4.1 and 4.2. The nonce has 8 * N - 1 bits.
fn start<const N: usize>(encrypt: impl Fn(&[u8; N]) -> [u8; N], icn: &[u8; N], bit: u8) -> [u8; N] {
    assert!(icn[0] < 0x80, "the first bit of the nonce is set");
    let mut block = *icn;
    block[0] |= bit << 7;
    encrypt(&block)
}

/// Section 4.1, steps 2 and 3; decryption is the same.
fn crypt<const N: usize>(
    encrypt: impl Fn(&[u8; N]) -> [u8; N],
    icn: &[u8; N],
    data: &[u8],
) -> Vec<u8> {
    let mut y = start(&encrypt, icn, 0);
    let mut out = Vec::new();
    for block in data.chunks(N) {
        out.extend(block.iter().zip(encrypt(&y)).map(|(byte, pad)| byte ^ pad));
        y = increment(y, false);
    }
    out
}

/// Section 4.1, steps 4 to 7: the whole tag.
fn tag<const N: usize>(
    encrypt: impl Fn(&[u8; N]) -> [u8; N],
    icn: &[u8; N],
    aad: &[u8],
    ciphertext: &[u8],
) -> [u8; N] {
    let bits = |bytes: &[u8]| 8 * bytes.len() as u128;
    let lengths = bits(aad) << (4 * N) | bits(ciphertext);
    let blocks = aad.chunks(N).chain(ciphertext.chunks(N)).map(number::<N>);
    let mut z = start(&encrypt, icn, 1);
    let mut sum = 0;
    for x in blocks.chain([lengths]) {
        sum ^= multiply::<N>(number::<N>(&encrypt(&z)), x);
        z = increment(z, true);
    }
    encrypt(&block(sum))
}

/// Kuznyechik in MGM: the ciphertext and the whole tag.
///
/// # Panics
/// If the first bit of the nonce is set; so do the others.
pub fn kuznyechik_mgm_seal(
    key: &[u8; 32],
    icn: &[u8; 16],
    aad: &[u8],
    plaintext: &[u8],
) -> (Vec<u8>, [u8; 16]) {
    let keys = kuznyechik::expand(key);
    let encrypt = |block: &_| kuznyechik::encrypt(&keys, block);
    let ciphertext = crypt(encrypt, icn, plaintext);
    let tag = tag(encrypt, icn, aad, &ciphertext);
    (ciphertext, tag)
}

/// Kuznyechik in MGM: the plaintext, and the tag that the message should have had.
pub fn kuznyechik_mgm_open(
    key: &[u8; 32],
    icn: &[u8; 16],
    aad: &[u8],
    ciphertext: &[u8],
) -> (Vec<u8>, [u8; 16]) {
    let keys = kuznyechik::expand(key);
    let encrypt = |block: &_| kuznyechik::encrypt(&keys, block);
    let tag = tag(encrypt, icn, aad, ciphertext);
    (crypt(encrypt, icn, ciphertext), tag)
}

/// Magma in MGM: the ciphertext and the whole tag.
pub fn magma_mgm_seal(
    key: &[u8; 32],
    icn: &[u8; 8],
    aad: &[u8],
    plaintext: &[u8],
) -> (Vec<u8>, [u8; 8]) {
    let encrypt = |block: &_| magma_encrypt_block(key, block);
    let ciphertext = crypt(encrypt, icn, plaintext);
    let tag = tag(encrypt, icn, aad, &ciphertext);
    (ciphertext, tag)
}

/// Magma in MGM: the plaintext, and the tag that the message should have had.
pub fn magma_mgm_open(
    key: &[u8; 32],
    icn: &[u8; 8],
    aad: &[u8],
    ciphertext: &[u8],
) -> (Vec<u8>, [u8; 8]) {
    let encrypt = |block: &_| magma_encrypt_block(key, block);
    let tag = tag(encrypt, icn, aad, ciphertext);
    (crypt(encrypt, icn, ciphertext), tag)
}
