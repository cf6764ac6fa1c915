//! AES (FIPS 197), byte by byte.

/// The state, in the order of the input bytes: column `c`, row `r` at `4 * c + r`.
pub(super) type Block = [u8; 16];

/// Multiplication in GF(2^8) modulo x^8 + x^4 + x^3 + x + 1 (section 4.2).
const fn multiply(mut a: u8, mut b: u8) -> u8 {
    let mut product = 0;
    while b != 0 {
        if b & 1 == 1 {
            product ^= a;
        }
        a = (a << 1) ^ if a & 0x80 != 0 { 0x1b } else { 0 };
        b >>= 1;
    }
    product
}

/// Section 5.1.1: the inverse in GF(2^8), found by trial, then the affine map.
const fn s_box() -> [u8; 256] {
    let mut table = [0; 256];
    let mut x = 0;
    while x < 256 {
        // Zero has none, and stands for its own.
        let mut inverse = 0;
        while x != 0 && multiply(x as u8, inverse) != 1 {
            inverse += 1;
        }
        table[x] = inverse
            ^ inverse.rotate_left(1)
            ^ inverse.rotate_left(2)
            ^ inverse.rotate_left(3)
            ^ inverse.rotate_left(4)
            ^ 0x63;
        x += 1;
    }
    table
}

const fn inverse_s_box() -> [u8; 256] {
    let mut table = [0; 256];
    let mut x = 0;
    while x < 256 {
        table[S_BOX[x] as usize] = x as u8;
        x += 1;
    }
    table
}

static S_BOX: [u8; 256] = s_box();
static INVERSE_S_BOX: [u8; 256] = inverse_s_box();

/// The key schedule of section 5.2: 11, 13 or 15 round keys.
pub(super) fn expand(key: &[u8]) -> Vec<Block> {
    assert!(
        matches!(key.len(), 16 | 24 | 32),
        "an AES key has 16, 24 or 32 bytes, not {}",
        key.len()
    );
    let nk = key.len() / 4;
    let rounds = nk + 6;
    let mut words: Vec<[u8; 4]> = key.chunks(4).map(|w| w.try_into().unwrap()).collect();
    let mut rcon = 1;
    for i in nk..4 * (rounds + 1) {
        let mut word = words[i - 1];
        if i % nk == 0 {
            word.rotate_left(1);
            word = word.map(|b| S_BOX[b as usize]);
            word[0] ^= rcon;
            rcon = multiply(rcon, 2);
        } else if nk > 6 && i % nk == 4 {
            word = word.map(|b| S_BOX[b as usize]);
        }
        for (byte, earlier) in word.iter_mut().zip(words[i - nk]) {
            *byte ^= earlier;
        }
        words.push(word);
    }
    words
        .chunks(4)
        .map(|four| four.concat().try_into().unwrap())
        .collect()
}

/// The cipher of section 5.1 under an expanded key.
pub(super) fn encrypt(round_keys: &[Block], block: &Block) -> Block {
    let last = round_keys.len() - 1;
    let mut state = xor(block, &round_keys[0]);
    for key in &round_keys[1..last] {
        state = state.map(|b| S_BOX[b as usize]);
        state = mix_columns(&shift_rows(&state, 1), [2, 3, 1, 1]);
        state = xor(&state, key);
    }
    state = state.map(|b| S_BOX[b as usize]);
    xor(&shift_rows(&state, 1), &round_keys[last])
}

/// The inverse cipher of section 5.3 under an expanded key.
pub(super) fn decrypt(round_keys: &[Block], block: &Block) -> Block {
    let last = round_keys.len() - 1;
    let mut state = xor(block, &round_keys[last]);
    for key in round_keys[1..last].iter().rev() {
        state = shift_rows(&state, 3).map(|b| INVERSE_S_BOX[b as usize]);
        state = mix_columns(&xor(&state, key), [14, 11, 13, 9]);
    }
    state = shift_rows(&state, 3).map(|b| INVERSE_S_BOX[b as usize]);
    xor(&state, &round_keys[0])
}

/// Encrypts one block under a key of 16, 24 or 32 bytes.
pub fn aes_encrypt_block(key: &[u8], block: &[u8; 16]) -> [u8; 16] {
    encrypt(&expand(key), block)
}

/// Decrypts one block under a key of 16, 24 or 32 bytes.
pub fn aes_decrypt_block(key: &[u8], block: &[u8; 16]) -> [u8; 16] {
    decrypt(&expand(key), block)
}

pub(super) fn xor(a: &Block, b: &Block) -> Block {
    std::array::from_fn(|i| a[i] ^ b[i])
}

/// Rotates row `r` by `step * r` places to the left.
fn shift_rows(state: &Block, step: usize) -> Block {
    std::array::from_fn(|i| {
        let (column, row) = (i / 4, i % 4);
        state[4 * ((column + step * row) % 4) + row]
    })
}

/// Multiplies each column by the circulant matrix whose first row is given.
fn mix_columns(state: &Block, first_row: [u8; 4]) -> Block {
    std::array::from_fn(|i| {
        let (column, row) = (i / 4, i % 4);
        (0..4).fold(0, |sum, j| {
            sum ^ multiply(state[4 * column + j], first_row[(j + 4 - row) % 4])
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FIPS 197, appendix C.
    #[test]
    fn fips_197_examples() {
        let key: Vec<u8> = (0..32).collect();
        let block: Block = std::array::from_fn(|i| 0x11 * i as u8);
        for (key_bytes, expected) in [
            (16, "69c4e0d86a7b0430d8cdb78070b4c55a"),
            (24, "dda97ca4864cdfe06eaf70a0ec0d7191"),
            (32, "8ea2b7ca516745bfeafc49904b496089"),
        ] {
            let encrypted = aes_encrypt_block(&key[..key_bytes], &block);
            assert_eq!(hex::encode(encrypted), expected);
            assert_eq!(aes_decrypt_block(&key[..key_bytes], &encrypted), block);
        }
    }

    /// FIPS 197, figure 7, and the ends of appendix A's schedules.
    #[test]
    fn s_box_and_key_schedule() {
        assert_eq!(S_BOX[..4], [0x63, 0x7c, 0x77, 0x7b]);
        assert_eq!(S_BOX[0x53], 0xed);
        let key = hex::decode("2b7e151628aed2a6abf7158809cf4f3c").unwrap();
        assert_eq!(
            hex::encode(expand(&key)[10]),
            "d014f9a8c9ee2589e13f0cc8b6630ca6"
        );
        let key = hex::decode("8e73b0f7da0e6452c810f32b809079e562f8ead2522c6b7b").unwrap();
        assert_eq!(
            hex::encode(expand(&key)[12]),
            "e98ba06f448c773c8ecc720401002202"
        );
        let key = hex::decode("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4")
            .unwrap();
        assert_eq!(
            hex::encode(expand(&key)[14]),
            "fe4890d1e6188d0b046df344706c631e"
        );
    }
}
