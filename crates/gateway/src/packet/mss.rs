//! The segment size that inner TCP offers, made no more than the tunnel takes in one piece.

use super::inner::Inner;
use super::{checksum, flag, protocol, put_word, word};

/// Lowers the MSS option of a SYN to what fits `mtu`, and mends the checksum. Packets of other
/// kinds stay as they are.
#[inline]
pub(crate) fn clamp(packet: &mut [u8], inner: &Inner, mtu: usize) {
    let at = inner.header;
    let is_tcp = inner.protocol == protocol::TCP && !inner.is_fragment && inner.len >= at + 20;
    if is_tcp && packet[at + 13] & flag::SYN != 0 {
        lower(&mut packet[..inner.len], at, mtu.saturating_sub(at + 20));
    }
}

#[cold]
fn lower(packet: &mut [u8], at: usize, most: usize) {
    let most = most.min(usize::from(u16::MAX)) as u16;
    let end = (at + usize::from(packet[at + 12] >> 4) * 4).min(packet.len());
    let mut option = at + 20;
    while option < end {
        match packet[option] {
            0 => return,
            1 => option += 1,
            2 if option + 4 <= end && packet[option + 1] == 4 => {
                let old = word(packet, option + 2);
                if old > most {
                    put_word(packet, option + 2, most);
                    // The option may begin at an odd place, so that its bytes are in the two
                    // halves of two words; RFC 1624 for the sum of all words, in memory order.
                    let weigh = |value: u16| match option % 2 {
                        0 => u64::from(value),
                        _ => u64::from(value.swap_bytes()),
                    };
                    let sum = u64::from(!word(packet, at + 16)) + weigh(!old) + weigh(most);
                    put_word(packet, at + 16, !checksum::fold(sum));
                }
                return;
            }
            _ => match packet.get(option + 1) {
                Some(&len) if len >= 2 => option += usize::from(len),
                _ => return,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn syn(options: &[u8]) -> Vec<u8> {
        let mut packet = vec![0; 40 + options.len()];
        (packet[0], packet[9], packet[33]) = (0x45, 6, flag::SYN);
        packet[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
        let len = packet.len();
        put_word(&mut packet, 2, len as u16);
        packet[32] = ((20 + options.len()) as u8 / 4) << 4;
        packet[40..].copy_from_slice(options);
        let pseudo = checksum::pseudo_header(&packet, 6, len - 20);
        let pseudo = checksum::fold(pseudo).to_ne_bytes();
        packet[36..38].copy_from_slice(&pseudo);
        checksum::finish(&mut packet, 20, 36, false);
        packet
    }

    #[test]
    fn an_offer_is_lowered_and_its_checksum_is_right() {
        let cases: [(&[u8], usize); 4] = [
            (&[2, 4, 5, 180, 0, 0, 0, 0], 42),
            (&[1, 2, 4, 5, 180, 0, 0, 0], 43),
            (&[3, 3, 7, 2, 4, 5, 180, 0], 45),
            (&[1, 1, 2, 4, 255, 255, 0, 0], 44),
        ];
        for (options, at) in cases {
            let mut packet = syn(options);
            let inner = Inner::of(&packet).unwrap();
            assert!(checksum::is_right(&packet, &inner));
            clamp(&mut packet, &inner, 1400);
            assert_eq!(word(&packet, at), 1360, "{options:?}");
            assert!(checksum::is_right(&packet, &inner), "{options:?}");
            clamp(&mut packet, &inner, 9000);
            assert_eq!(word(&packet, at), 1360);
        }
    }

    #[test]
    fn options_that_lie_about_their_length_change_nothing() {
        let cases: [&[u8]; 5] = [
            &[2, 0, 5, 180],
            &[3, 1, 2, 4],
            &[3, 255, 2, 4],
            &[1, 1, 2, 4],
            &[0, 2, 4, 255],
        ];
        for options in cases {
            let mut packet = syn(options);
            let before = packet.clone();
            let inner = Inner::of(&packet).unwrap();
            clamp(&mut packet, &inner, 600);
            assert_eq!(packet, before, "{options:?}");
        }
    }
}
