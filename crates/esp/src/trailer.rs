//! The ESP trailer: padding, pad length, next header (RFC 4303 sections 2.4 to 2.6); and what
//! a tunnelled packet says of its own length.

use crate::Malformed;

/// IP protocol numbers that ESP itself knows.
pub(crate) mod protocol {
    /// An IPv4 packet in a tunnel.
    pub(crate) const IPV4: u8 = 4;
    /// An IPv6 packet in a tunnel.
    pub(crate) const IPV6: u8 = 41;
    /// No next header: a dummy packet.
    pub(crate) const NONE: u8 = 59;
}

/// Pad length and next header.
pub(crate) const FIXED: usize = 2;

/// The padding that makes `payload` bytes and the trailer a multiple of `block`.
#[inline]
pub(crate) fn pad_len(payload: usize, block: usize) -> usize {
    (payload + FIXED).wrapping_neg() & (block - 1)
}

/// Writes the trailer to the beginning of `room`, which may be longer than it.
///
/// # Panics
/// If there is no room for it.
#[inline]
pub(crate) fn write(room: &mut [u8], pad_len: usize, next_header: u8) {
    // Whole stores of a known length, where what lies behind is written later.
    match room.first_chunk_mut::<4>() {
        Some(first) if pad_len < 4 => *first = [1, 2, 3, 0],
        _ => {
            for (byte, value) in room[..pad_len].iter_mut().zip(1..=255) {
                *byte = value;
            }
        }
    }
    let fixed = [pad_len as u8, next_header];
    room[pad_len..pad_len + FIXED].copy_from_slice(&fixed);
}

/// Takes the trailer off decrypted bytes: the length of the payload, and the next header.
/// `zeros`: padding of zeros is accepted too.
#[inline]
pub(crate) fn read(plaintext: &[u8], zeros: bool) -> Result<(usize, u8), Malformed> {
    let Some((rest, &[pad_len, next_header])) = plaintext.split_last_chunk::<FIXED>() else {
        return Err(Malformed::Truncated);
    };
    let Some(payload) = rest.len().checked_sub(usize::from(pad_len)) else {
        return Err(Malformed::PadLength);
    };
    // All of it is looked at, whatever it holds.
    let (mut ascending, mut zero) = (0, 0);
    for (&byte, expected) in rest[payload..].iter().zip(1u8..=255) {
        ascending |= byte ^ expected;
        zero |= byte;
    }
    if ascending != 0 && !(zeros && zero == 0) {
        return Err(Malformed::Padding);
    }
    Ok((payload, next_header))
}

/// The IP protocol number of a whole IP packet in a tunnel, by its version.
#[inline]
pub(crate) fn tunnelled(packet: &[u8]) -> Option<u8> {
    match packet.first()? >> 4 {
        4 => Some(protocol::IPV4),
        6 => Some(protocol::IPV6),
        _ => None,
    }
}

/// The length that a tunnelled packet says it has; what is behind it is padding for traffic
/// flow confidentiality (RFC 4303 section 2.7).
#[inline]
pub(crate) fn inner_len(payload: &[u8], next_header: u8) -> Result<usize, Malformed> {
    let number = |at: usize| usize::from(payload[at]) << 8 | usize::from(payload[at + 1]);
    let (least, version) = match next_header {
        protocol::IPV4 => (20, 4),
        protocol::IPV6 => (40, 6),
        _ => return Err(Malformed::NextHeader),
    };
    if payload.len() < least || payload[0] >> 4 != version {
        return Err(Malformed::InnerHeader);
    }
    let (header, len) = match version {
        4 => (usize::from(payload[0] & 15) * 4, number(2)),
        _ => (40, 40 + number(4)),
    };
    if header < least || header > len || len > payload.len() {
        return Err(Malformed::InnerLength);
    }
    Ok(len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for block in [4, 8, 16] {
            for payload in 0..40 {
                let pad = pad_len(payload, block);
                assert!(pad < block && (payload + pad + FIXED).is_multiple_of(block));
                // No more room than is needed, and some.
                for room in [pad + FIXED, 64] {
                    let mut bytes = vec![0xee; payload + room];
                    write(&mut bytes[payload..], pad, 4);
                    bytes.truncate(payload + pad + FIXED);
                    assert_eq!(read(&bytes, false), Ok((payload, 4)));
                }
            }
        }
    }

    #[test]
    fn a_wrong_trailer_is_refused() {
        assert_eq!(read(&[0], false), Err(Malformed::Truncated));
        assert_eq!(read(&[1, 2, 3, 4], false), Err(Malformed::PadLength));
        assert_eq!(read(&[255, 4], false), Err(Malformed::PadLength));
        assert_eq!(read(&[1, 1, 2, 4], false), Err(Malformed::Padding));
        assert_eq!(read(&[9, 2, 2, 4], false), Err(Malformed::Padding));
        assert_eq!(read(&[0, 0, 2, 4], false), Err(Malformed::Padding));
        assert_eq!(read(&[0, 0, 2, 4], true), Ok((0, 4)));
        assert_eq!(read(&[1, 0, 2, 4], true), Err(Malformed::Padding));
        let longest: Vec<u8> = (0..=255).chain([255, 59]).collect();
        assert_eq!(read(&longest, false), Ok((1, 59)));
    }

    #[test]
    fn a_tunnelled_packet_has_a_whole_header_and_no_more_bytes_than_it_says() {
        let mut v4 = [0; 30];
        (v4[0], v4[3]) = (0x45, 28);
        assert_eq!(inner_len(&v4, 4), Ok(28));
        assert_eq!(inner_len(&v4, 41), Err(Malformed::InnerHeader));
        assert_eq!(inner_len(&v4, 6), Err(Malformed::NextHeader));
        assert_eq!(inner_len(&v4[..27], 4), Err(Malformed::InnerLength));
        assert_eq!(inner_len(&v4[..19], 4), Err(Malformed::InnerHeader));
        assert_eq!(inner_len(&[], 4), Err(Malformed::InnerHeader));
        v4[3] = 19;
        assert_eq!(inner_len(&v4, 4), Err(Malformed::InnerLength));
        (v4[0], v4[3]) = (0x4f, 28);
        assert_eq!(inner_len(&v4, 4), Err(Malformed::InnerLength));
        v4[0] = 0x44;
        assert_eq!(inner_len(&v4, 4), Err(Malformed::InnerLength));
        let mut v6 = [0; 48];
        (v6[0], v6[5]) = (0x60, 8);
        assert_eq!(inner_len(&v6, 41), Ok(48));
        assert_eq!(inner_len(&v6[..47], 41), Err(Malformed::InnerLength));
        assert_eq!(inner_len(&v6[..39], 41), Err(Malformed::InnerHeader));
    }
}
