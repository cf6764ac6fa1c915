//! CBC records of SSL 3.0 to TLS 1.2 and DTLS (RFC 5246 section 6.2.3.2). Padding is added to a
//! record that is sent. Padding and MAC are removed from a record that was received, in a time that
//! does not depend on the length of the padding.

use subtle::{Choice, ConditionallySelectable, ConstantTimeEq, ConstantTimeGreater};
use zeroize::{Zeroize, ZeroizeOnDrop};

/// The longest MAC of a record, in bytes.
pub(crate) const LONGEST_MAC: usize = 64;

/// Versions, with the numbers that a record has for them.
const SSL3: u32 = 0x0300;
const TLS1: u32 = 0x0301;
/// The versions whose records begin with a block of IV: TLS 1.1 and 1.2, DTLS 1.0 and 1.2, and the
/// DTLS that Cisco had before the standard.
const EXPLICIT_IV: [u32; 5] = [0x0302, 0x0303, 0xfeff, 0xfefd, 0x0100];

/// The MAC of a received record.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub(crate) struct Mac {
    bytes: [u8; LONGEST_MAC],
    len: usize,
}

impl Default for Mac {
    fn default() -> Self {
        Mac {
            bytes: [0; LONGEST_MAC],
            len: 0,
        }
    }
}

impl Mac {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// Fills the padding at the end of a record.
pub(crate) fn pad(version: u32, padding: &mut [u8]) {
    let last = (padding.len() - 1) as u8;
    // SSL 3.0 reads the last byte only.
    padding.fill(if version == SSL3 { 0 } else { last });
    padding[padding.len() - 1] = last;
}

/// Removes explicit IV, padding and MAC from a decrypted record. Returns the length of the data,
/// which stands behind the IV, and the MAC. Where the padding is wrong the MAC is random, so that
/// the record fails as it would fail with a wrong MAC. `None` if the record cannot have its length
/// or its version; both are public.
pub(crate) fn unpad(
    version: u32,
    record: &[u8],
    block: usize,
    mac_len: usize,
) -> Option<(usize, Mac)> {
    let explicit = match version {
        SSL3 | TLS1 => 0,
        _ if EXPLICIT_IV.contains(&version) => block,
        _ => return None,
    };
    let record = record.get(explicit..)?;
    if mac_len > LONGEST_MAC || record.len() <= mac_len {
        return None;
    }
    let (padding, good) = padding(version, record, block, mac_len);
    let left =
        u32::try_from(record.len()).ok()? - u32::conditional_select(&0, &(padding + 1), good);
    if mac_len == 0 {
        // Nothing can fail after this.
        return bool::from(good).then(|| (left as usize, Mac::default()));
    }
    let end = left;
    let mac = mac(record, end, mac_len, good)?;
    Some((end as usize - mac_len, mac))
}

/// The number of bytes of padding before the last byte, which has that number, and whether the
/// padding is right.
fn padding(version: u32, record: &[u8], block: usize, mac_len: usize) -> (u32, Choice) {
    let len = record.len() as u32;
    let padding = record[record.len() - 1];
    let fits = !(u32::from(padding) + 1 + mac_len as u32).ct_gt(&len);
    let good = if version == SSL3 {
        // The padding has at most one block, and its bytes are arbitrary.
        fits & !u32::from(padding).ct_gt(&(block as u32 - 1))
    } else {
        let mut good = fits;
        for (i, byte) in record.iter().rev().take(256).enumerate() {
            let outside = (i as u32).ct_gt(&u32::from(padding));
            good &= outside | byte.ct_eq(&padding);
        }
        good
    };
    (padding.into(), good)
}

/// The `len` bytes before `end`, or random bytes. `end` is secret: the same memory is read for every
/// value of it.
fn mac(record: &[u8], end: u32, len: usize, good: Choice) -> Option<Mac> {
    let start = end - len as u32;
    // A MAC that ends as early as possible has 256 bytes of padding behind it.
    let from = record.len().saturating_sub(len + 256);
    let mut rotated = [0u8; LONGEST_MAC];
    let mut first = 0u32;
    for (i, byte) in (from as u32..).zip(&record[from..]) {
        let place = (i - from as u32) % len as u32;
        let inside = !start.ct_gt(&i) & end.ct_gt(&i);
        rotated[place as usize] |= u8::conditional_select(&0, byte, inside);
        first.conditional_assign(&place, i.ct_eq(&start));
    }
    let mut mac = Mac {
        bytes: [0; LONGEST_MAC],
        len,
    };
    let mut random = [0; LONGEST_MAC];
    getrandom::fill(&mut random[..len]).ok()?;
    for (i, (byte, random)) in mac.bytes[..len].iter_mut().zip(random).enumerate() {
        let mut right = 0;
        for (place, found) in rotated[..len].iter().enumerate() {
            // Both numbers are below `len`, so that one subtraction gives the remainder.
            let wanted = i as u32 + first;
            let wanted = u32::conditional_select(
                &wanted,
                &wanted.wrapping_sub(len as u32),
                !(len as u32).ct_gt(&wanted),
            );
            right |= u8::conditional_select(&0, found, (place as u32).ct_eq(&wanted));
        }
        *byte = u8::conditional_select(&random, &right, good);
    }
    rotated.zeroize();
    Some(mac)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: usize = 16;
    const TLS12: u32 = 0x0303;

    /// A record of TLS 1.2 before it is encrypted: IV, data, MAC, padding.
    fn record(data: usize, mac: &[u8], padding: usize) -> Vec<u8> {
        let mut record = vec![0xdd; BLOCK + data];
        record.extend(mac);
        record.extend(vec![padding as u8; padding + 1]);
        record
    }

    #[test]
    fn data_and_mac_come_apart_at_every_length() {
        for len in [20, 32, 48] {
            let mac: Vec<u8> = (1..=len as u8).collect();
            for data in 0..300 {
                for padding in [0, 1, 15, 100, 255] {
                    let record = record(data, &mac, padding);
                    let (left, found) = unpad(TLS12, &record, BLOCK, len).unwrap();
                    assert_eq!((left, found.bytes()), (data, &mac[..]));
                }
            }
        }
    }

    #[test]
    fn any_wrong_byte_of_padding_gives_a_wrong_mac() {
        let mac = [0x77; 20];
        for wrong in 0..=40 {
            let mut record = record(100, &mac, 40);
            let last = record.len() - 1;
            record[last - wrong] ^= 0x80;
            let (_, found) = unpad(TLS12, &record, BLOCK, 20).unwrap();
            assert_ne!(found.bytes(), mac);
        }
    }

    #[test]
    fn records_too_short_for_their_mac_are_refused() {
        assert!(unpad(TLS12, &[0; BLOCK + 20], BLOCK, 20).is_none());
        assert!(unpad(TLS12, &[0; 3], BLOCK, 20).is_none());
        // Padding that would reach over the MAC.
        let (_, found) = unpad(TLS12, &[0xff; BLOCK + 32], BLOCK, 20).unwrap();
        assert_ne!(found.bytes(), [0xff; 20]);
    }

    #[test]
    fn padding_is_as_the_versions_want_it() {
        let mut padding = [9; 4];
        pad(TLS12, &mut padding);
        assert_eq!(padding, [3; 4]);
        pad(SSL3, &mut padding);
        assert_eq!(padding, [0, 0, 0, 3]);
    }
}
