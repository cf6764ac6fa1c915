//! Whether tags or keys are the same, in constant time.

use subtle::ConstantTimeEq;

/// Whether two tags or keys are the same, in a time that depends on their lengths alone.
///
/// They are compared as numbers of up to 16 bytes. Byte by byte the 32 bytes of an HMAC-SHA-256 take a
/// third of the time of a short message.
#[inline]
pub fn is_same(one: &[u8], other: &[u8]) -> bool {
    // Nearly all tags are of 16 bytes.
    if let (Ok(one), Ok(other)) = (<&[u8; 16]>::try_from(one), <&[u8; 16]>::try_from(other)) {
        let [one, other] = [one, other].map(|tag| u128::from_ne_bytes(*tag));
        return (one ^ other).ct_eq(&0).into();
    }
    if one.len() != other.len() {
        return false;
    }
    let difference = match one.len() {
        16.. => difference::<16>(one, other),
        8.. => difference::<8>(one, other),
        4.. => difference::<4>(one, other),
        _ => difference::<1>(one, other),
    };
    difference.ct_eq(&0).into()
}

#[inline(always)]
fn number<const N: usize>(block: &[u8; N]) -> u128 {
    let mut bytes = [0u8; 16];
    bytes[..N].copy_from_slice(block);
    u128::from_ne_bytes(bytes)
}

/// Zero where bytes of one length are the same: by blocks of `N`, the last of which overlaps the one before.
#[inline(always)]
fn difference<const N: usize>(one: &[u8], other: &[u8]) -> u128 {
    let mut difference = 0u128;
    for (one, other) in one.as_chunks::<N>().0.iter().zip(other.as_chunks::<N>().0) {
        difference |= number(one) ^ number(other);
    }
    if let (Some(one), Some(other)) = (one.last_chunk::<N>(), other.last_chunk::<N>()) {
        difference |= number(one) ^ number(other);
    }
    difference
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_bit_or_one_byte_makes_a_difference() {
        let bytes: [u8; 70] = std::array::from_fn(|i| i as u8);
        for len in 0..=bytes.len() {
            let one = &bytes[..len];
            assert!(is_same(one, one.to_vec().as_slice()));
            for other in (0..=bytes.len()).filter(|&other| other != len) {
                assert!(!is_same(one, &bytes[..other]), "{len} and {other} bytes");
            }
            for bit in 0..8 * len {
                let mut other = one.to_vec();
                other[bit / 8] ^= 1 << (bit % 8);
                assert!(!is_same(one, &other), "bit {bit} of {len} bytes");
            }
        }
    }
}
