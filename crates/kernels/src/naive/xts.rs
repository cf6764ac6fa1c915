//! AES-XTS with ciphertext stealing (IEEE 1619-2018, section 5).

use super::aes::{Block, decrypt, encrypt, expand, xor};

/// The tweak times the primitive element of GF(2^128), section 5.2.
fn double(tweak: &Block) -> Block {
    let value = u128::from_le_bytes(*tweak);
    let carry = if value >> 127 == 1 { 0x87 } else { 0 };
    ((value << 1) ^ carry).to_le_bytes()
}

/// A data unit under `key` = key 1 | key 2 (32, 48 or 64 bytes); `one` is the
/// block cipher's direction. When decrypting, the last whole block and the
/// partial one take their tweaks in the other order (section 5.4.2).
fn crypt(
    one: fn(&[Block], &Block) -> Block,
    decrypting: bool,
    key: &[u8],
    tweak: &[u8; 16],
    data: &[u8],
) -> Vec<u8> {
    assert!(
        data.len() >= 16,
        "a data unit has 16 bytes or more, not {}",
        data.len()
    );
    let (key_1, key_2) = key.split_at(key.len() / 2);
    let keys = expand(key_1);
    let mut tweak = encrypt(&expand(key_2), tweak);
    let with = |tweak: &Block, block: &Block| xor(&one(&keys, &xor(block, tweak)), tweak);

    let partial = data.len() % 16;
    let whole = data.len() / 16 - usize::from(partial > 0);
    let mut out = Vec::new();
    for block in data[..16 * whole].chunks(16) {
        out.extend(with(&tweak, block.try_into().unwrap()));
        tweak = double(&tweak);
    }
    if partial > 0 {
        let (mut first, mut second) = (tweak, double(&tweak));
        if decrypting {
            std::mem::swap(&mut first, &mut second);
        }
        let (block, rest) = data[16 * whole..].split_at(16);
        let stolen = with(&first, block.try_into().unwrap());
        let mut last = stolen;
        last[..partial].copy_from_slice(rest);
        out.extend(with(&second, &last));
        out.extend(&stolen[..partial]);
    }
    out
}

/// Encrypts a data unit of 16 bytes or more. `key` is key 1 | key 2, `tweak` the
/// data unit's number as 16 little-endian bytes.
pub fn xts_encrypt(key: &[u8], tweak: &[u8; 16], data: &[u8]) -> Vec<u8> {
    crypt(encrypt, false, key, tweak, data)
}

/// Decrypts a data unit of 16 bytes or more, the inverse of [`xts_encrypt`].
pub fn xts_decrypt(key: &[u8], tweak: &[u8; 16], data: &[u8]) -> Vec<u8> {
    crypt(decrypt, true, key, tweak, data)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(key: &str, tweak: u128, plaintext: &[u8], expected: &str) {
        let (key, tweak) = (hex::decode(key).unwrap(), tweak.to_le_bytes());
        let encrypted = xts_encrypt(&key, &tweak, plaintext);
        assert_eq!(hex::encode(&encrypted), expected);
        assert_eq!(xts_decrypt(&key, &tweak, &encrypted), plaintext);
    }

    /// IEEE 1619, appendix B, vectors 1 to 3.
    #[test]
    fn whole_blocks() {
        check(
            &"00".repeat(32),
            0,
            &[0; 32],
            "917cf69ebd68b2ec9b9fe9a3eadda692cd43d2f59598ed858c02c2652fbf922e",
        );
        let key = "11".repeat(16) + &"22".repeat(16);
        check(
            &key,
            0x33_3333_3333,
            &[0x44; 32],
            "c454185e6a16936e39334038acef838bfb186fff7480adc4289382ecd6d394f0",
        );
        let key = "fffefdfcfbfaf9f8f7f6f5f4f3f2f1f0".to_owned() + &"22".repeat(16);
        check(
            &key,
            0x33_3333_3333,
            &[0x44; 32],
            "af85336b597afc1a900b2eb21ec949d292df4c047e0b21532186a5971a227a89",
        );
    }

    /// IEEE 1619, appendix B, vectors 15 to 18: ciphertext stealing.
    #[test]
    fn ciphertext_stealing() {
        let key = "fffefdfcfbfaf9f8f7f6f5f4f3f2f1f0bfbebdbcbbbab9b8b7b6b5b4b3b2b1b0";
        let plaintext: Vec<u8> = (0..20).collect();
        for expected in [
            "6c1625db4671522d3d7599601de7ca09ed",
            "d069444b7a7e0cab09e24447d24deb1fedbf",
            "e5df1351c0544ba1350b3363cd8ef4beedbf9d",
            "9d84c813f719aa2c7be3f66171c7c5c2edbf9dac",
        ] {
            check(
                key,
                0x12_3456_789a,
                &plaintext[..expected.len() / 2],
                expected,
            );
        }
    }
}
