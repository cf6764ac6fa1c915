//! GOST 28147-89 (RFC 5830) and what RFC 4357 makes of it. Keys have 32 bytes.

/// `rows[i][x]` substitutes the value `x` of bits `4i` to `4i + 3`.
type Rows = [[u8; 16]; 8];

const FORWARD: [usize; 8] = [0, 1, 2, 3, 4, 5, 6, 7];
const BACKWARD: [usize; 8] = [7, 6, 5, 4, 3, 2, 1, 0];

/// The constant C of RFC 4357 section 2.3.2.
const MESHING: &str = "6900722264c904238d3adb9646e92ac418feac9400ed0712c086dcc2ef4ca92b";

/// Rounds with these subkeys; gives N1 and N2 after them.
fn rounds(rows: &Rows, key: &[u8], block: &[u8], order: &[usize]) -> (u32, u32) {
    let word = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().unwrap());
    let (mut n1, mut n2) = (word(&block[..4]), word(&block[4..]));
    for &i in order {
        let sum = n1.wrapping_add(word(&key[4 * i..][..4]));
        let mut substituted = 0;
        for (i, row) in rows.iter().enumerate() {
            substituted |= u32::from(row[(sum >> (4 * i)) as usize % 16]) << (4 * i);
        }
        (n1, n2) = (n2 ^ substituted.rotate_left(11), n1);
    }
    (n1, n2)
}

fn joined(first: u32, second: u32) -> [u8; 8] {
    let block = u64::from(first) | u64::from(second) << 32;
    block.to_le_bytes()
}

/// RFC 5830 section 5.1.
fn encrypt(rows: &Rows, key: &[u8], block: &[u8]) -> [u8; 8] {
    let order = [FORWARD, FORWARD, FORWARD, BACKWARD].concat();
    let (n1, n2) = rounds(rows, key, block, &order);
    joined(n2, n1)
}

/// RFC 5830 section 5.2.
fn decrypt(rows: &Rows, key: &[u8], block: &[u8]) -> [u8; 8] {
    let order = [FORWARD, BACKWARD, BACKWARD, BACKWARD].concat();
    let (n1, n2) = rounds(rows, key, block, &order);
    joined(n2, n1)
}

/// The key that follows `key` (RFC 4357 section 2.3.2).
fn next_key(rows: &Rows, key: &[u8]) -> Vec<u8> {
    let byte = |i: usize| u8::from_str_radix(&MESHING[2 * i..][..2], 16).unwrap();
    let constant: Vec<u8> = (0..32).map(byte).collect();
    gost28147_ecb_decrypt(rows, key, &constant)
}

fn xor(a: &[u8], b: &[u8]) -> Vec<u8> {
    a.iter().zip(b).map(|(a, b)| a ^ b).collect()
}

/// Simple substitution (RFC 5830 section 5) of whole blocks.
pub fn gost28147_ecb_encrypt(rows: &[[u8; 16]; 8], key: &[u8], data: &[u8]) -> Vec<u8> {
    assert!(data.len().is_multiple_of(8));
    let blocks = data.chunks(8).map(|block| encrypt(rows, key, block));
    blocks.collect::<Vec<_>>().concat()
}

/// The inverse of [`gost28147_ecb_encrypt`].
pub fn gost28147_ecb_decrypt(rows: &[[u8; 16]; 8], key: &[u8], data: &[u8]) -> Vec<u8> {
    assert!(data.len().is_multiple_of(8));
    let blocks = data.chunks(8).map(|block| decrypt(rows, key, block));
    blocks.collect::<Vec<_>>().concat()
}

/// Counter mode (RFC 5830 section 6), with key meshing if `meshed`.
pub fn gost28147_cnt(
    rows: &[[u8; 16]; 8],
    key: &[u8],
    iv: &[u8],
    data: &[u8],
    meshed: bool,
) -> Vec<u8> {
    let mut key = key.to_vec();
    let mut counter = encrypt(rows, &key, iv);
    let mut output = Vec::new();
    for (i, block) in data.chunks(8).enumerate() {
        if meshed && i > 0 && i % 128 == 0 {
            key = next_key(rows, &key);
            counter = encrypt(rows, &key, &counter);
        }
        let n3 = u32::from_le_bytes(counter[..4].try_into().unwrap());
        let n4 = u32::from_le_bytes(counter[4..].try_into().unwrap());
        let n3 = n3.wrapping_add(0x0101_0101);
        let (n4, carry) = n4.overflowing_add(0x0101_0104);
        counter = joined(n3, if carry { n4 + 1 } else { n4 });
        output.extend(xor(block, &encrypt(rows, &key, &counter)));
    }
    output
}

fn cfb(
    rows: &Rows,
    key: &[u8],
    iv: &[u8],
    data: &[u8],
    meshed: bool,
    // The ciphertext of a block, of what went in and what comes out.
    cipher: fn(&[u8], &[u8]) -> Vec<u8>,
) -> Vec<u8> {
    let mut key = key.to_vec();
    let mut feedback = iv.to_vec();
    let mut output = Vec::new();
    for (i, block) in data.chunks(8).enumerate() {
        if meshed && i > 0 && i % 128 == 0 {
            key = next_key(rows, &key);
            feedback = encrypt(rows, &key, &feedback).to_vec();
        }
        let part = xor(block, &encrypt(rows, &key, &feedback));
        feedback = cipher(block, &part);
        output.extend(part);
    }
    output
}

/// Cipher feedback (RFC 5830 section 7), with key meshing if `meshed`.
pub fn gost28147_cfb_encrypt(
    rows: &[[u8; 16]; 8],
    key: &[u8],
    iv: &[u8],
    data: &[u8],
    meshed: bool,
) -> Vec<u8> {
    cfb(rows, key, iv, data, meshed, |_, output| output.to_vec())
}

/// The inverse of [`gost28147_cfb_encrypt`].
pub fn gost28147_cfb_decrypt(
    rows: &[[u8; 16]; 8],
    key: &[u8],
    iv: &[u8],
    data: &[u8],
    meshed: bool,
) -> Vec<u8> {
    cfb(rows, key, iv, data, meshed, |input, _| input.to_vec())
}

/// The MAC (RFC 5830 section 8), with key meshing if `meshed`.
pub fn gost28147_imit(rows: &[[u8; 16]; 8], key: &[u8], data: &[u8], meshed: bool) -> [u8; 4] {
    let mut key = key.to_vec();
    let mut padded = data.to_vec();
    padded.resize(data.len().next_multiple_of(8), 0);
    if padded.len() == 8 {
        padded.resize(16, 0);
    }
    let mut state = [0; 8];
    for (i, block) in padded.chunks(8).enumerate() {
        if meshed && i > 0 && i % 128 == 0 {
            key = next_key(rows, &key);
        }
        let order = [FORWARD, FORWARD].concat();
        let (n1, n2) = rounds(rows, &key, &xor(&state, block), &order);
        state = joined(n1, n2);
    }
    [state[0], state[1], state[2], state[3]]
}

/// Diversification of a key (RFC 4357 section 7).
pub fn gost28147_divers(rows: &[[u8; 16]; 8], key: &[u8], d: [u8; 8]) -> [u8; 32] {
    let mut key = key.to_vec();
    for u in d {
        let mut feedback = vec![0, 0, 0, u, 0xff, 0xff, 0xff, 0xff ^ u];
        let mut next = Vec::new();
        for block in key.chunks(8) {
            let (n1, n2) = rounds(rows, &key, &feedback, &FORWARD);
            feedback = xor(block, &joined(n2, n1));
            next.extend_from_slice(&feedback);
        }
        key = next;
    }
    let derived = gost28147_cfb_encrypt(rows, &key, &d, &[d, d, d, d].concat(), false);
    derived.try_into().unwrap()
}
