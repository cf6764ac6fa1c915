//! AES key expansion (FIPS 197 section 5.2) without tables: the S-box is
//! computed, four bytes to a word, so that no secret chooses an address.

use crate::aes::key::RoundKeys;

/// Fills the schedule of encryption from a key of 16, 24 or 32 bytes.
pub(crate) fn expand(key: &[u8], enc: &mut RoundKeys) {
    let words = enc.as_flattened_mut();
    words[..key.len()].copy_from_slice(key);
    let nk = key.len() / 4;
    let mut last = word(&key[key.len() - 4..]);
    let mut rcon = 1u32;
    for i in nk..4 * (nk + 7) {
        if i % nk == 0 {
            // Words are little-endian, so RotWord turns right.
            last = sub_word(last.rotate_right(8)) ^ rcon;
            rcon = double(rcon);
        } else if nk > 6 && i % nk == 4 {
            last = sub_word(last);
        }
        last ^= word(&words[4 * (i - nk)..]);
        words[4 * i..4 * i + 4].copy_from_slice(&last.to_le_bytes());
    }
}

/// Fills the schedule of the equivalent inverse cipher (section 5.3.5), in order of use.
pub(crate) fn inverse(rounds: usize, enc: &RoundKeys, dec: &mut RoundKeys) {
    dec[0] = enc[rounds];
    for i in 1..rounds {
        let from = enc[rounds - i].chunks_exact(4);
        for (to, from) in dec[i].chunks_exact_mut(4).zip(from) {
            to.copy_from_slice(&inv_mix_column(word(from)).to_le_bytes());
        }
    }
    dec[rounds] = enc[0];
}

#[inline(always)]
fn word(bytes: &[u8]) -> u32 {
    u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

/// Four bytes, each times x in GF(2^8).
#[inline(always)]
fn double(a: u32) -> u32 {
    ((a & 0x7f7f_7f7f) << 1) ^ (((a >> 7) & 0x0101_0101) * 0x1b)
}

/// Four products in GF(2^8).
fn product(mut a: u32, b: u32) -> u32 {
    let mut sum = 0;
    for bit in 0..8 {
        sum ^= a & (((b >> bit) & 0x0101_0101) * 0xff);
        a = double(a);
    }
    sum
}

/// The S-box on four bytes: the inverse, as the 254th power, then the affine map.
fn sub_word(a: u32) -> u32 {
    let square = |a| product(a, a);
    let a2 = square(a);
    let a3 = product(a2, a);
    let a12 = square(square(a3));
    let a15 = product(a12, a3);
    let a240 = square(square(square(square(a15))));
    let inverse = product(product(a240, a12), a2);
    let rotate = |by: u32| {
        let low = 0x0101_0101 * (0xff >> by);
        ((inverse & low) << by) | ((inverse & !low) >> (8 - by))
    };
    inverse ^ rotate(1) ^ rotate(2) ^ rotate(3) ^ rotate(4) ^ 0x6363_6363
}

/// InvMixColumns of one column (section 5.3.3).
fn inv_mix_column(a: u32) -> u32 {
    let a2 = double(a);
    let a4 = double(a2);
    let a8 = double(a4);
    (a8 ^ a4 ^ a2)
        ^ (a8 ^ a2 ^ a).rotate_right(8)
        ^ (a8 ^ a4 ^ a).rotate_right(16)
        ^ (a8 ^ a).rotate_right(24)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sub_word_is_the_s_box() {
        // FIPS 197 section 5.1.1: the S-box of 0x53 is 0xed; 0 goes to 0x63.
        assert_eq!(sub_word(0x5300_5300), 0xed63_ed63);
        let mut seen = [false; 256];
        for a in 0..=255u32 {
            let s = sub_word(a * 0x0101_0101);
            assert_eq!(s, (s & 0xff) * 0x0101_0101);
            seen[(s & 0xff) as usize] = true;
        }
        assert!(seen.iter().all(|&s| s), "a permutation");
    }

    #[test]
    fn inverse_mix_column_undoes_mix_column() {
        // FIPS 197 round 1 of appendix B: MixColumns of d4 bf 5d 30 is 04 66 81 e5.
        let mixed = u32::from_le_bytes([0x04, 0x66, 0x81, 0xe5]);
        assert_eq!(
            inv_mix_column(mixed).to_le_bytes(),
            [0xd4, 0xbf, 0x5d, 0x30]
        );
    }
}
