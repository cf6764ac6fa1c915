//! ChaCha20, Poly1305 and their AEAD (RFC 8439).

/// The quarter round of section 2.1 on four words of the state.
fn quarter_round(state: &mut [u32; 16], [a, b, c, d]: [usize; 4]) {
    for (into, other, mixed, left) in [(a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)] {
        state[into] = state[into].wrapping_add(state[other]);
        state[mixed] = (state[mixed] ^ state[into]).rotate_left(left);
    }
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u32> {
    bytes
        .chunks(4)
        .map(|word| u32::from_le_bytes(word.try_into().unwrap()))
}

/// The block function of section 2.3.
fn block(key: &[u8; 32], counter: u32, nonce: &[u8; 12]) -> [u8; 64] {
    let initial: Vec<u32> = words(b"expand 32-byte k")
        .chain(words(key))
        .chain([counter])
        .chain(words(nonce))
        .collect();
    let initial: [u32; 16] = initial.try_into().unwrap();
    let mut state = initial;
    for _ in 0..10 {
        for column in 0..4 {
            quarter_round(&mut state, [0, 4, 8, 12].map(|row| row + column));
        }
        for first in 0..4 {
            let diagonal = std::array::from_fn(|row| 4 * row + (first + row) % 4);
            quarter_round(&mut state, diagonal);
        }
    }
    let sum: Vec<u8> = state
        .iter()
        .zip(initial)
        .flat_map(|(word, start)| word.wrapping_add(start).to_le_bytes())
        .collect();
    sum.try_into().unwrap()
}

/// ChaCha20 encryption of section 2.4, starting at block `counter`.
pub fn chacha20_xor(key: &[u8; 32], counter: u32, nonce: &[u8; 12], data: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for (chunk, i) in data.chunks(64).zip(0..) {
        let pad = block(key, counter.wrapping_add(i), nonce);
        out.extend(chunk.iter().zip(pad).map(|(byte, pad)| byte ^ pad));
    }
    out
}

/// A number below 2^131: bits from 128 up, and the lower 128.
#[derive(Clone, Copy)]
struct Wide {
    high: u8,
    low: u128,
}

impl Wide {
    fn plus(self, other: Wide) -> Wide {
        let (low, carry) = self.low.overflowing_add(other.low);
        let high = self.high + other.high + u8::from(carry);
        Wide { high, low }.reduced()
    }

    /// The remainder modulo 2^130 - 5 of a sum of two remainders.
    fn reduced(self) -> Wide {
        let prime_low = u128::MAX - 4;
        if self.high > 3 || (self.high == 3 && self.low >= prime_low) {
            let (low, borrow) = self.low.overflowing_sub(prime_low);
            let high = self.high - 3 - u8::from(borrow);
            return Wide { high, low };
        }
        self
    }

    /// Bit by bit of `factor`, doubling and adding.
    fn times(self, factor: u128) -> Wide {
        let mut product = Wide { high: 0, low: 0 };
        for i in (0..128).rev() {
            product = product.plus(product);
            if factor >> i & 1 == 1 {
                product = product.plus(self);
            }
        }
        product
    }
}

/// Poly1305 of section 2.5 under a one-time key.
pub fn poly1305(key: &[u8; 32], message: &[u8]) -> [u8; 16] {
    let half = |i: usize| u128::from_le_bytes(key[16 * i..][..16].try_into().unwrap());
    let r = half(0) & 0x0fff_fffc_0fff_fffc_0fff_fffc_0fff_ffff;
    let mut sum = Wide { high: 0, low: 0 };
    for chunk in message.chunks(16) {
        let mut bytes = [0; 17];
        bytes[..chunk.len()].copy_from_slice(chunk);
        bytes[chunk.len()] = 1;
        let low = u128::from_le_bytes(bytes[..16].try_into().unwrap());
        let high = bytes[16];
        sum = sum.plus(Wide { high, low }).times(r);
    }
    sum.low.wrapping_add(half(1)).to_le_bytes()
}

/// The tag of section 2.8 over the associated data and the ciphertext.
fn tag(key: &[u8; 32], nonce: &[u8; 12], aad: &[u8], ciphertext: &[u8]) -> [u8; 16] {
    let mut message = Vec::new();
    for part in [aad, ciphertext] {
        message.extend(part);
        message.resize(message.len().next_multiple_of(16), 0);
    }
    message.extend((aad.len() as u64).to_le_bytes());
    message.extend((ciphertext.len() as u64).to_le_bytes());
    let one_time = block(key, 0, nonce)[..32].try_into().unwrap();
    poly1305(&one_time, &message)
}

/// The AEAD of section 2.8: the ciphertext and its tag.
pub fn chacha20poly1305_seal(
    key: &[u8; 32],
    nonce: &[u8; 12],
    aad: &[u8],
    data: &[u8],
) -> (Vec<u8>, [u8; 16]) {
    let ciphertext = chacha20_xor(key, 1, nonce, data);
    let tag = tag(key, nonce, aad, &ciphertext);
    (ciphertext, tag)
}

/// The plaintext of `data`, and the tag that it should have.
pub fn chacha20poly1305_open(
    key: &[u8; 32],
    nonce: &[u8; 12],
    aad: &[u8],
    data: &[u8],
) -> (Vec<u8>, [u8; 16]) {
    let tag = tag(key, nonce, aad, data);
    (chacha20_xor(key, 1, nonce, data), tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUNSCREEN: &[u8] = b"Ladies and Gentlemen of the class of '99: If I could offer you \
                               only one tip for the future, sunscreen would be it.";

    fn bytes<const N: usize>(hex: &str) -> [u8; N] {
        hex::decode(hex).unwrap().try_into().unwrap()
    }

    /// RFC 8439, section 2.1.1.
    #[test]
    fn quarter_round_example() {
        let mut state = [0; 16];
        state[..4].copy_from_slice(&[0x11111111, 0x01020304, 0x9b8d6f43, 0x01234567]);
        quarter_round(&mut state, [0, 1, 2, 3]);
        assert_eq!(state[..4], [0xea2a92f4, 0xcb1cf8ce, 0x4581472e, 0x5881c4bb]);
    }

    /// RFC 8439, sections 2.3.2 and 2.4.2.
    #[test]
    fn chacha20_examples() {
        let key = std::array::from_fn(|i| i as u8);
        assert_eq!(
            hex::encode(block(&key, 1, &bytes("000000090000004a00000000"))),
            "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e\
             d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e"
        );
        let encrypted = chacha20_xor(&key, 1, &bytes("000000000000004a00000000"), SUNSCREEN);
        assert_eq!(
            hex::encode(encrypted),
            "6e2e359a2568f98041ba0728dd0d6981e97e7aec1d4360c20a27afccfd9fae0b\
             f91b65c5524733ab8f593dabcd62b3571639d624e65152ab8f530c359f0861d8\
             07ca0dbf500d6a6156a38e088a22b65e52bc514d16ccf806818ce91ab7793736\
             5af90bbf74a35be6b40b8eedf2785e42874d"
        );
    }

    /// RFC 8439, section 2.5.2, and the corners of the arithmetic in appendix
    /// A.3, vectors 7 to 11.
    #[test]
    fn poly1305_examples() {
        let tag = poly1305(
            &bytes("85d6be7857556d337f4452fe42d506a80103808afb0db2fd4abff6af4149f51b"),
            b"Cryptographic Forum Research Group",
        );
        assert_eq!(hex::encode(tag), "a8061dc1305136c6c22b8baf0c0127a9");
        for (r, message, expected) in [
            (2, "ff".repeat(16), 3_u128),
            (
                1,
                "ff".repeat(16) + "f0" + &"ff".repeat(15) + "11" + &"00".repeat(15),
                5,
            ),
            (
                1,
                "ff".repeat(16) + "fb" + &"fe".repeat(15) + &"01".repeat(16),
                0,
            ),
            (2, "fd".to_owned() + &"ff".repeat(15), u128::MAX - 5),
        ] {
            let mut key = [0; 32];
            key[0] = r;
            let tag = poly1305(&key, &hex::decode(message).unwrap());
            assert_eq!(u128::from_le_bytes(tag), expected);
        }
    }

    /// RFC 8439, section 2.8.2.
    #[test]
    fn aead_example() {
        let key = std::array::from_fn(|i| 0x80 + i as u8);
        let nonce = bytes("070000004041424344454647");
        let aad = bytes::<12>("50515253c0c1c2c3c4c5c6c7");
        let (ciphertext, tag) = chacha20poly1305_seal(&key, &nonce, &aad, SUNSCREEN);
        assert_eq!(
            hex::encode(&ciphertext),
            "d31a8d34648e60db7b86afbc53ef7ec2a4aded51296e08fea9e2b5a736ee62d6\
             3dbea45e8ca9671282fafb69da92728b1a71de0a9e060b2905d6a5b67ecd3b36\
             92ddbd7f2d778b8c9803aee328091b58fab324e4fad675945585808b4831d7bc\
             3ff4def08e4b7a9de576d26586cec64b6116"
        );
        assert_eq!(hex::encode(tag), "1ae10b594f09e26a7e902ecbd0600691");
        assert_eq!(
            chacha20poly1305_open(&key, &nonce, &aad, &ciphertext),
            (SUNSCREEN.to_vec(), tag)
        );
    }
}
