//! The internet checksum (RFC 1071), summed in memory order: the result is stored as it is.

use super::inner::Inner;

/// The sum of 16-bit words in memory order, not folded. Of at most 2^32 bytes.
///
/// The checksum is taken of every byte at both ends of a tunnel, so its speed decides as the
/// cipher's does. Words of 64 bits are added whole, wrapping, and their upper halves once more by
/// themselves: three vector instructions for 16 bytes, and the sum of the lower halves is what is
/// left of the first sum without the second.
#[inline]
pub(crate) fn sum(bytes: &[u8]) -> u64 {
    if bytes.len() < 64 {
        return short(bytes);
    }
    // Independent lanes, which the compiler keeps in vector registers.
    let (mut words, mut upper) = ([0u64; 8], [0u64; 8]);
    let (blocks, rest) = bytes.as_chunks::<64>();
    for block in blocks {
        let (block, _) = block.as_chunks::<8>();
        for ((words, upper), word) in words.iter_mut().zip(&mut upper).zip(block) {
            let word = u64::from_ne_bytes(*word);
            *words = words.wrapping_add(word);
            *upper += word >> 32;
        }
    }
    let mut sum = words.into_iter().fold(0, u64::wrapping_add);
    let mut high = upper.into_iter().sum::<u64>();
    let (words, last) = rest.as_chunks::<8>();
    let mut end = [0; 8];
    end[..last.len()].copy_from_slice(last);
    for word in words.iter().chain([&end]) {
        let word = u64::from_ne_bytes(*word);
        sum = sum.wrapping_add(word);
        high += word >> 32;
    }
    sum.wrapping_sub(high << 32) + high
}

/// The sum of what is as short as a header: there the lanes cost more than they save, and three
/// headers are summed for each packet.
#[inline]
fn short(bytes: &[u8]) -> u64 {
    let (words, last) = bytes.as_chunks::<4>();
    let mut end = [0; 4];
    end[..last.len()].copy_from_slice(last);
    let words = words.iter().chain([&end]);
    words.map(|word| u64::from(u32::from_ne_bytes(*word))).sum()
}

/// Folds a sum to 16 bits, in memory order.
#[inline]
pub(crate) fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// The sum of the pseudo-header of `protocol` over `len` bytes from the transport header on.
#[inline]
pub(crate) fn pseudo_header(ip: &[u8], protocol: u8, len: usize) -> u64 {
    let addresses = match ip[0] >> 4 {
        4 => short(&ip[12..20]),
        _ => short(&ip[8..40]),
    };
    let len = u32::from_ne_bytes((len as u32).to_be_bytes());
    addresses + u64::from(len) + u64::from(u16::from_ne_bytes([0, protocol]))
}

/// Writes the checksum of an IPv4 header.
#[inline]
pub(crate) fn write_ipv4(header: &mut [u8]) {
    header[10..12].fill(0);
    let value = !fold(short(header));
    header[10..12].copy_from_slice(&value.to_ne_bytes());
}

/// Whether the checksum of a TCP or UDP packet is right.
#[inline]
pub(crate) fn is_right(packet: &[u8], inner: &Inner) -> bool {
    let transport = &packet[inner.header..inner.len];
    let pseudo = pseudo_header(packet, inner.protocol, transport.len());
    fold(pseudo + sum(transport)) == 0xffff
}

/// Finishes a checksum whose field holds the sum of the pseudo-header; it covers what is from
/// `start` on. `is_udp`: 0 would mean that there is none.
#[inline]
pub(crate) fn finish(packet: &mut [u8], start: usize, field: usize, is_udp: bool) {
    let mut value = !fold(sum(&packet[start..]));
    if value == 0 && is_udp {
        value = 0xffff;
    }
    packet[field..field + 2].copy_from_slice(&value.to_ne_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use cipherlane_esp::headers;
    use proptest::prelude::*;

    /// Also runs of ones, where every sum has its carries.
    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        let any = prop::collection::vec(any::<u8>(), 0..400);
        prop_oneof![any, (0usize..70_000).prop_map(|len| vec![0xff; len])]
    }

    proptest! {
        #[test]
        fn it_agrees_with_the_one_of_the_esp_headers(bytes in bytes()) {
            let expected = headers::checksum(&[&bytes]);
            prop_assert_eq!((!fold(sum(&bytes))).to_ne_bytes(), expected.to_be_bytes());
        }
    }
}
