//! AES-GCM with an IV of any length (SP 800-38D).

use super::aes::{Block, encrypt, expand};

/// Multiplication of section 6.3: bit 0 of a block is the leftmost.
fn multiply(x: u128, y: u128) -> u128 {
    let (mut z, mut v) = (0, y);
    for i in 0..128 {
        if x >> (127 - i) & 1 == 1 {
            z ^= v;
        }
        v = (v >> 1) ^ if v & 1 == 1 { 0xe1 << 120 } else { 0 };
    }
    z
}

/// GHASH of section 6.4 under `h` over a whole number of blocks.
pub fn ghash(h: &[u8; 16], data: &[u8]) -> [u8; 16] {
    assert!(
        data.len().is_multiple_of(16),
        "{} bytes are not a whole number of blocks",
        data.len()
    );
    let h = u128::from_be_bytes(*h);
    let hash = data.chunks(16).fold(0, |y, block| {
        multiply(y ^ u128::from_be_bytes(block.try_into().unwrap()), h)
    });
    hash.to_be_bytes()
}

/// `data` and zeros up to a whole block.
fn padded(data: &[u8]) -> Vec<u8> {
    let mut padded = data.to_vec();
    padded.resize(data.len().next_multiple_of(16), 0);
    padded
}

fn bits(data: &[u8]) -> [u8; 8] {
    (8 * data.len() as u64).to_be_bytes()
}

/// The pre-counter block J0 of section 7.1, step 2.
fn first_counter(h: &Block, iv: &[u8]) -> Block {
    assert!(!iv.is_empty(), "a GCM IV has one byte or more");
    if iv.len() == 12 {
        let mut j0 = [0; 16];
        j0[..12].copy_from_slice(iv);
        j0[15] = 1;
        return j0;
    }
    ghash(h, &[&padded(iv)[..], &[0; 8], &bits(iv)].concat())
}

/// GCTR of section 6.5: a counter of the rightmost 32 bits.
fn gctr(keys: &[Block], first: Block, data: &[u8]) -> Vec<u8> {
    let mut counter = first;
    let mut out = Vec::new();
    for block in data.chunks(16) {
        let pad = encrypt(keys, &counter);
        out.extend(block.iter().zip(pad).map(|(byte, pad)| byte ^ pad));
        counter = increment(counter);
    }
    out
}

fn increment(mut block: Block) -> Block {
    let low = u32::from_be_bytes(block[12..].try_into().unwrap());
    block[12..].copy_from_slice(&low.wrapping_add(1).to_be_bytes());
    block
}

/// Section 7.1, steps 4 to 6, with a tag of 16 bytes.
fn tag(keys: &[Block], h: &Block, j0: Block, aad: &[u8], ciphertext: &[u8]) -> [u8; 16] {
    let lengths = [bits(aad), bits(ciphertext)].concat();
    let hash = ghash(h, &[padded(aad), padded(ciphertext), lengths].concat());
    gctr(keys, j0, &hash).try_into().unwrap()
}

/// Authenticated encryption, section 7.1: the ciphertext and its tag.
pub fn gcm_seal(key: &[u8], iv: &[u8], aad: &[u8], data: &[u8]) -> (Vec<u8>, [u8; 16]) {
    let keys = expand(key);
    let h = encrypt(&keys, &[0; 16]);
    let j0 = first_counter(&h, iv);
    let ciphertext = gctr(&keys, increment(j0), data);
    let tag = tag(&keys, &h, j0, aad, &ciphertext);
    (ciphertext, tag)
}

/// Decryption, section 7.2: the plaintext and the tag that `data` should have.
pub fn gcm_open(key: &[u8], iv: &[u8], aad: &[u8], data: &[u8]) -> (Vec<u8>, [u8; 16]) {
    let keys = expand(key);
    let h = encrypt(&keys, &[0; 16]);
    let j0 = first_counter(&h, iv);
    let tag = tag(&keys, &h, j0, aad, data);
    (gctr(&keys, increment(j0), data), tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "feffe9928665731c6d6a8f9467308308";
    const PLAINTEXT: &str = "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72\
                             1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b391aafd255";
    const AAD: &str = "feedfacedeadbeeffeedfacedeadbeefabaddad2";
    const IV_8: &str = "cafebabefacedbad";
    const IV_12: &str = "cafebabefacedbaddecaf888";
    const IV_60: &str = "9313225df88406e555909c5aff5269aa6a7a9538534f7da1e4c303d2a318a728\
                         c3c0c95156809539fcf0e2429a6b525416aedbf5a0de6a57a637b39b";

    fn check(key: &str, iv: &str, aad: &str, plaintext: &str, ciphertext: &str, tag: &str) {
        let [key, iv, aad, plaintext] = [key, iv, aad, plaintext].map(|h| hex::decode(h).unwrap());
        let sealed = gcm_seal(&key, &iv, &aad, &plaintext);
        assert_eq!(hex::encode(&sealed.0), ciphertext);
        assert_eq!(hex::encode(sealed.1), tag);
        let opened = gcm_open(&key, &iv, &aad, &sealed.0);
        assert_eq!(opened, (plaintext, sealed.1));
    }

    /// The GCM specification of McGrew and Viega, test cases 1 and 2.
    #[test]
    fn zeros() {
        let (key, iv) = ("00".repeat(16), "00".repeat(12));
        check(&key, &iv, "", "", "", "58e2fccefa7e3061367f1d57a4e7455a");
        check(
            &key,
            &iv,
            "",
            &"00".repeat(16),
            "0388dace60b6a392f328c2b971b2fe78",
            "ab6e47d42cec13bdf53a67b21257bddf",
        );
    }

    /// Test cases 3 to 6: with and without AAD, IVs of 12, 8 and 60 bytes.
    #[test]
    fn ivs_of_several_lengths() {
        check(
            KEY,
            IV_12,
            "",
            PLAINTEXT,
            "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e\
             21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091473f5985",
            "4d5c2af327cd64a62cf35abd2ba6fab4",
        );
        let short = &PLAINTEXT[..120];
        check(
            KEY,
            IV_12,
            AAD,
            short,
            "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e\
             21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091",
            "5bc94fbc3221a5db94fae95ae7121a47",
        );
        check(
            KEY,
            IV_8,
            AAD,
            short,
            "61353b4c2806934a777ff51fa22a4755699b2a714fcdc6f83766e5f97b6c7423\
             73806900e49f24b22b097544d4896b424989b5e1ebac0f07c23f4598",
            "3612d2e79e3b0785561be14aaca2fccb",
        );
        check(
            KEY,
            IV_60,
            AAD,
            short,
            "8ce24998625615b603a033aca13fb894be9112a5c3a211a8ba262a3cca7e2ca7\
             01e4a9a4fba43c90ccdcb281d48c7c6fd62875d2aca417034c34aee5",
            "619cc5aefffe0bfa462af43c1699d050",
        );
    }

    /// Test cases 10 and 16: keys of 24 and 32 bytes.
    #[test]
    fn longer_keys() {
        check(
            &(KEY.to_owned() + &KEY[..16]),
            IV_12,
            AAD,
            &PLAINTEXT[..120],
            "3980ca0b3c00e841eb06fac4872a2757859e1ceaa6efd984628593b40ca1e19c\
             7d773d00c144c525ac619d18c84a3f4718e2448b2fe324d9ccda2710",
            "2519498e80f1478f37ba55bd6d27618c",
        );
        check(
            &KEY.repeat(2),
            IV_12,
            AAD,
            &PLAINTEXT[..120],
            "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa\
             8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662",
            "76fc6ece0f4e1768cddf8853bb2d551b",
        );
    }

    #[test]
    fn counter_wraps_over_32_bits_only() {
        let mut block = [0xff; 16];
        block[0] = 1;
        let next = increment(block);
        assert_eq!(next[..12], block[..12]);
        assert_eq!(next[12..], [0; 4]);
    }
}
