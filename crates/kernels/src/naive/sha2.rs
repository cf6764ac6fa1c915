//! SHA-256 and SHA-512 (FIPS 180-4).

/// First 64 bits of the fractional parts of the square roots of the first 8
/// primes (section 5.3.5); their upper halves are SHA-256's (section 5.3.3).
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

/// First 64 bits of the fractional parts of the cube roots of the first 80
/// primes (section 4.2.3); the upper halves of 64 of them are SHA-256's (4.2.2).
const K: [u64; 80] = [
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

/// The message with its padding (section 5.1) for blocks of `block` bytes that
/// end in a length of `block / 8` bytes.
fn padded(message: &[u8], block: usize) -> Vec<u8> {
    let mut padded = message.to_vec();
    padded.push(0x80);
    while padded.len() % block != block - block / 8 {
        padded.push(0);
    }
    let bits = 8 * message.len() as u128;
    padded.extend(&bits.to_be_bytes()[16 - block / 8..]);
    padded
}

fn choose(x: u64, y: u64, z: u64) -> u64 {
    (x & y) ^ (!x & z)
}

fn majority(x: u64, y: u64, z: u64) -> u64 {
    (x & y) ^ (x & z) ^ (y & z)
}

/// SHA-256, section 6.2.
pub fn sha256(message: &[u8]) -> [u8; 32] {
    let mut h: [u32; 8] = INITIAL.map(|word| (word >> 32) as u32);
    for block in padded(message, 64).chunks(64) {
        let mut w: Vec<u32> = block
            .chunks(4)
            .map(|word| u32::from_be_bytes(word.try_into().unwrap()))
            .collect();
        for t in 16..64 {
            let (x, y) = (w[t - 2], w[t - 15]);
            let sigma_1 = x.rotate_right(17) ^ x.rotate_right(19) ^ (x >> 10);
            let sigma_0 = y.rotate_right(7) ^ y.rotate_right(18) ^ (y >> 3);
            w.push(
                sigma_1
                    .wrapping_add(w[t - 7])
                    .wrapping_add(sigma_0)
                    .wrapping_add(w[t - 16]),
            );
        }
        let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut last] = h;
        for t in 0..64 {
            let sum_1 = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
            let sum_0 = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
            let t_1 = last
                .wrapping_add(sum_1)
                .wrapping_add(choose(e.into(), f.into(), g.into()) as u32)
                .wrapping_add((K[t] >> 32) as u32)
                .wrapping_add(w[t]);
            let t_2 = sum_0.wrapping_add(majority(a.into(), b.into(), c.into()) as u32);
            (last, g, f, e) = (g, f, e, d.wrapping_add(t_1));
            (d, c, b, a) = (c, b, a, t_1.wrapping_add(t_2));
        }
        for (sum, word) in h.iter_mut().zip([a, b, c, d, e, f, g, last]) {
            *sum = sum.wrapping_add(word);
        }
    }
    h.map(u32::to_be_bytes).concat().try_into().unwrap()
}

/// SHA-512, section 6.4.
pub fn sha512(message: &[u8]) -> [u8; 64] {
    let mut h = INITIAL;
    for block in padded(message, 128).chunks(128) {
        let mut w: Vec<u64> = block
            .chunks(8)
            .map(|word| u64::from_be_bytes(word.try_into().unwrap()))
            .collect();
        for t in 16..80 {
            let (x, y) = (w[t - 2], w[t - 15]);
            let sigma_1 = x.rotate_right(19) ^ x.rotate_right(61) ^ (x >> 6);
            let sigma_0 = y.rotate_right(1) ^ y.rotate_right(8) ^ (y >> 7);
            w.push(
                sigma_1
                    .wrapping_add(w[t - 7])
                    .wrapping_add(sigma_0)
                    .wrapping_add(w[t - 16]),
            );
        }
        let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut last] = h;
        for t in 0..80 {
            let sum_1 = e.rotate_right(14) ^ e.rotate_right(18) ^ e.rotate_right(41);
            let sum_0 = a.rotate_right(28) ^ a.rotate_right(34) ^ a.rotate_right(39);
            let t_1 = last
                .wrapping_add(sum_1)
                .wrapping_add(choose(e, f, g))
                .wrapping_add(K[t])
                .wrapping_add(w[t]);
            let t_2 = sum_0.wrapping_add(majority(a, b, c));
            (last, g, f, e) = (g, f, e, d.wrapping_add(t_1));
            (d, c, b, a) = (c, b, a, t_1.wrapping_add(t_2));
        }
        for (sum, word) in h.iter_mut().zip([a, b, c, d, e, f, g, last]) {
            *sum = sum.wrapping_add(word);
        }
    }
    h.map(u64::to_be_bytes).concat().try_into().unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples that NIST publishes with FIPS 180-4: one block, two blocks,
    /// and the empty message.
    #[test]
    fn fips_180_examples() {
        for (message, expected) in [
            (
                "",
                "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            ),
            (
                "abc",
                "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
            ),
            (
                "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
            ),
        ] {
            assert_eq!(hex::encode(sha256(message.as_bytes())), expected);
        }
        for (message, expected) in [
            (
                "",
                "cf83e1357eefb8bdf1542850d66d8007d620e4050b5715dc83f4a921d36ce9ce\
                 47d0d13c5d85f2b0ff8318d2877eec2f63b931bd47417a81a538327af927da3e",
            ),
            (
                "abc",
                "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a\
                 2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
            ),
            (
                "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmn\
                 hijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
                "8e959b75dae313da8cf4f72814fc143f8f7779c6eb9f7fa17299aeadb6889018\
                 501d289e4900f7e4331b99dec4b5433ac7d329eeb6dd26545e96e55b874be909",
            ),
        ] {
            assert_eq!(hex::encode(sha512(message.as_bytes())), expected);
        }
    }

    /// A million times 'a': many blocks and a length of three bytes.
    #[test]
    fn a_million_bytes() {
        let message = vec![b'a'; 1_000_000];
        assert_eq!(
            hex::encode(sha256(&message)),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"
        );
        assert_eq!(
            hex::encode(sha512(&message)),
            "e718483d0ce769644e2e42c7bc15b4638e1f98b13b2044285632a803afa973eb\
             de0ff244877ea60a4cb0432ce577c31beb009c5c2c49aa2e4eadb217ad8cc09b"
        );
    }
}
