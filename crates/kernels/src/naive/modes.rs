//! ECB, CBC and CTR over AES (SP 800-38A).

use super::aes::{Block, decrypt, encrypt, expand, xor};

/// The whole blocks of `data`.
fn blocks(data: &[u8]) -> impl Iterator<Item = &Block> {
    assert!(
        data.len().is_multiple_of(16),
        "{} bytes are not a whole number of blocks",
        data.len()
    );
    data.chunks(16).map(|block| block.try_into().unwrap())
}

/// Each whole block of `N` bytes by itself, for the ciphers of other standards.
pub(super) fn per_block<const N: usize>(
    data: &[u8],
    crypt: impl Fn(&[u8; N]) -> [u8; N],
) -> Vec<u8> {
    assert!(
        data.len().is_multiple_of(N),
        "{} bytes are not a whole number of blocks",
        data.len()
    );
    let blocks = data.chunks(N).map(|block| block.try_into().unwrap());
    blocks.flat_map(|block| crypt(&block)).collect()
}

/// A counter block of `N` bytes, all of it a big-endian number, for the ciphers of
/// other standards.
pub(super) fn counter_mode<const N: usize>(
    counter: &[u8; N],
    data: &[u8],
    encrypt: impl Fn(&[u8; N]) -> [u8; N],
) -> Vec<u8> {
    let mut counter = *counter;
    let mut out = Vec::new();
    for block in data.chunks(N) {
        out.extend(block.iter().zip(encrypt(&counter)).map(|(a, b)| a ^ b));
        for byte in counter.iter_mut().rev() {
            *byte = byte.wrapping_add(1);
            if *byte != 0 {
                break;
            }
        }
    }
    out
}

/// Section 6.1. `data` is a whole number of blocks.
pub fn ecb_encrypt(key: &[u8], data: &[u8]) -> Vec<u8> {
    let keys = expand(key);
    blocks(data)
        .flat_map(|block| encrypt(&keys, block))
        .collect()
}

/// Section 6.1. `data` is a whole number of blocks.
pub fn ecb_decrypt(key: &[u8], data: &[u8]) -> Vec<u8> {
    let keys = expand(key);
    blocks(data)
        .flat_map(|block| decrypt(&keys, block))
        .collect()
}

/// Section 6.2. `data` is a whole number of blocks; nothing is padded.
pub fn cbc_encrypt(key: &[u8], iv: &[u8; 16], data: &[u8]) -> Vec<u8> {
    let keys = expand(key);
    let mut chain = *iv;
    let mut out = Vec::new();
    for block in blocks(data) {
        chain = encrypt(&keys, &xor(block, &chain));
        out.extend(chain);
    }
    out
}

/// Section 6.2. `data` is a whole number of blocks.
pub fn cbc_decrypt(key: &[u8], iv: &[u8; 16], data: &[u8]) -> Vec<u8> {
    let keys = expand(key);
    let mut chain = *iv;
    let mut out = Vec::new();
    for block in blocks(data) {
        out.extend(xor(&decrypt(&keys, block), &chain));
        chain = *block;
    }
    out
}

/// Section 6.5 with the standard incrementing function over all 128 bits of the
/// counter block (appendix B.1, m = 128). Encrypts and decrypts.
pub fn ctr_apply(key: &[u8], iv: &[u8; 16], data: &[u8]) -> Vec<u8> {
    let keys = expand(key);
    let mut counter = u128::from_be_bytes(*iv);
    let mut out = Vec::new();
    for block in data.chunks(16) {
        let pad = encrypt(&keys, &counter.to_be_bytes());
        out.extend(block.iter().zip(pad).map(|(byte, pad)| byte ^ pad));
        counter = counter.wrapping_add(1);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The plaintext of all examples of SP 800-38A, appendix F.
    const PLAINTEXT: &str = "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51\
                             30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710";
    const KEYS: [&str; 3] = [
        "2b7e151628aed2a6abf7158809cf4f3c",
        "8e73b0f7da0e6452c810f32b809079e562f8ead2522c6b7b",
        "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4",
    ];

    fn bytes(hex: &str) -> Vec<u8> {
        hex::decode(hex).unwrap()
    }

    /// SP 800-38A, F.1.
    #[test]
    fn ecb_examples() {
        let expected = [
            "3ad77bb40d7a3660a89ecaf32466ef97f5d3d58503b9699de785895a96fdbaaf\
             43b1cd7f598ece23881b00e3ed0306887b0c785e27e8ad3f8223207104725dd4",
            "bd334f1d6e45f25ff712a214571fa5cc974104846d0ad3ad7734ecb3ecee4eef\
             ef7afd2270e2e60adce0ba2face6444e9a4b41ba738d6c72fb16691603c18e0e",
            "f3eed1bdb5d2a03c064b5a7e3db181f8591ccb10d410ed26dc5ba74a31362870\
             b6ed21b99ca6f4f9f153e7b1beafed1d23304b7a39f9f3ff067d8d8f9e24ecc7",
        ];
        for (key, expected) in KEYS.map(bytes).iter().zip(expected) {
            let encrypted = ecb_encrypt(key, &bytes(PLAINTEXT));
            assert_eq!(hex::encode(&encrypted), expected);
            assert_eq!(ecb_decrypt(key, &encrypted), bytes(PLAINTEXT));
        }
    }

    /// SP 800-38A, F.2.
    #[test]
    fn cbc_examples() {
        let iv = std::array::from_fn(|i| i as u8);
        let expected = [
            "7649abac8119b246cee98e9b12e9197d5086cb9b507219ee95db113a917678b2\
             73bed6b8e3c1743b7116e69e222295163ff1caa1681fac09120eca307586e1a7",
            "4f021db243bc633d7178183a9fa071e8b4d9ada9ad7dedf4e5e738763f69145a\
             571b242012fb7ae07fa9baac3df102e008b0e27988598881d920a9e64f5615cd",
            "f58c4c04d6e5f1ba779eabfb5f7bfbd69cfc4e967edb808d679f777bc6702c7d\
             39f23369a9d9bacfa530e26304231461b2eb05e2c39be9fcda6c19078c6a9d1b",
        ];
        for (key, expected) in KEYS.map(bytes).iter().zip(expected) {
            let encrypted = cbc_encrypt(key, &iv, &bytes(PLAINTEXT));
            assert_eq!(hex::encode(&encrypted), expected);
            assert_eq!(cbc_decrypt(key, &iv, &encrypted), bytes(PLAINTEXT));
        }
    }

    /// SP 800-38A, F.5, and a message that ends within a block.
    #[test]
    fn ctr_examples() {
        let iv = std::array::from_fn(|i| 0xf0 + i as u8);
        let expected = [
            "874d6191b620e3261bef6864990db6ce9806f66b7970fdff8617187bb9fffdff\
             5ae4df3edbd5d35e5b4f09020db03eab1e031dda2fbe03d1792170a0f3009cee",
            "1abc932417521ca24f2b0459fe7e6e0b090339ec0aa6faefd5ccc2c6f4ce8e94\
             1e36b26bd1ebc670d1bd1d665620abf74f78a7f6d29809585a97daec58c6b050",
            "601ec313775789a5b7a7f504bbf3d228f443e3ca4d62b59aca84e990cacaf5c5\
             2b0930daa23de94ce87017ba2d84988ddfc9c58db67aada613c2dd08457941a6",
        ];
        for (key, expected) in KEYS.map(bytes).iter().zip(expected) {
            assert_eq!(
                hex::encode(ctr_apply(key, &iv, &bytes(PLAINTEXT))),
                expected
            );
            assert_eq!(
                ctr_apply(key, &iv, &bytes(PLAINTEXT)[..37]),
                bytes(expected)[..37]
            );
        }
    }

    #[test]
    fn ctr_wraps_over_all_128_bits() {
        let key = [7; 16];
        let twice = ctr_apply(&key, &[0xff; 16], &[0; 32]);
        assert_eq!(twice[..16], ecb_encrypt(&key, &[0xff; 16]));
        assert_eq!(twice[16..], ecb_encrypt(&key, &[0; 16]));
    }
}
