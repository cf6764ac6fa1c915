//! Batches whose nonces are alike, as those of packets of an ESP SA are (RFC 4106): kernels share work among
//! them.

use super::*;

/// A message with a nonce that differs from others in all bytes but those that have to agree. Bytes 10 and
/// 11 count messages.
fn packet(number: u64, len: usize) -> Message {
    let differs = |i: u64| ((number * (2 * i + 3)) ^ (number >> 3)) as u8;
    let mut nonce = core::array::from_fn(|i| differs(i as u64));
    (nonce[0], nonce[5]) = (0xe5, 0x5e);
    nonce[10..].copy_from_slice(&(number as u16).to_be_bytes());
    let seed = number as u8;
    Message {
        key: bytes(16, 1),
        nonce,
        aad: bytes([8, 12, 0, 40][number as usize % 4], seed),
        data: bytes(len, seed),
        shift: len % 64,
        in_place: number.is_multiple_of(2),
    }
}

/// Lengths that end around every place where another vector or chunk begins, up to where the last byte of
/// the counter begins again and, less of them, to where messages keep states of their own; and the next
/// packet is shorter or longer.
#[test]
fn packets_of_every_length() {
    let lengths = (0..4300).step_by(16).chain((4300..6700).step_by(48));
    let lengths = lengths.flat_map(|len| [len, len + 5]);
    let lengths = lengths.enumerate().map(|(i, len)| match i % 16 {
        // A short one, or a long one among short ones, parts the batch.
        7 => 4064 - len.min(4000),
        _ => len,
    });
    let packets: Vec<_> = (1..).zip(lengths).map(|(i, len)| packet(i, len)).collect();
    for implementation in implementations() {
        for batch in packets.chunks(16) {
            check(implementation, batch);
        }
    }
}

/// Where the number's last byte begins again, the key is another, or a packet is short, other work begins.
#[test]
fn what_is_not_alike_parts_a_batch() {
    let mut packets: Vec<_> = (240..272).map(|number| packet(number, 1400)).collect();
    for (i, len) in [(4, 20), (5, 6000), (22, 300)] {
        packets[i].data = bytes(len, 9);
    }
    packets[10].key = bytes(16, 2);
    packets[26].nonce[0] ^= 1;
    packets[27].nonce[5] ^= 0x80;
    for implementation in implementations() {
        for first in 0..8 {
            check(implementation, &packets[first..]);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// The bytes that matter are one of two, mostly the first, and so are keys.
    #[test]
    fn random_batches_of_few_keys(
        messages in proptest::collection::vec((message(), any::<[u8; 4]>(), any::<bool>()), 1..24),
        keys in proptest::sample::select(&[16, 24, 32]).prop_flat_map(|len| {
            proptest::collection::vec(any::<u8>(), len)
        }),
    ) {
        let messages: Vec<_> = messages
            .into_iter()
            .map(|(mut message, choices, keeps_key)| {
                for (i, choice) in [0, 5, 10].into_iter().zip(choices) {
                    message.nonce[i] = u8::from(choice > 250);
                }
                if keeps_key || choices[3] < 200 {
                    message.key.clone_from(&keys);
                }
                message
            })
            .collect();
        for implementation in implementations() {
            check(implementation, &messages);
        }
    }
}
