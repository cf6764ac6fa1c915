//! Packets: MACs and counter mode together, as the naive reference does them one after the other.

use super::super::packets::{MAC, MACS, OUTER, SUFFIX};
use super::super::schedulers::packets::LONGEST_HEAD;
use super::*;

/// A packet and what its job is given.
#[derive(Clone, Debug)]
struct Plain {
    /// Both keys, by number.
    keys: [usize; MACS],
    iv: [u8; 8],
    content: Vec<u8>,
    head: usize,
    suffix: Vec<u8>,
}

fn packets(len: impl Strategy<Value = usize> + Clone) -> impl Strategy<Value = Vec<Plain>> {
    let packet = (
        any::<[usize; MACS]>(),
        any::<[u8; 8]>(),
        len,
        prop_oneof![4 => Just(16_usize), 1 => 0..=LONGEST_HEAD],
        any::<u8>(),
        prop_oneof![Just(0), Just(SUFFIX), 0..=SUFFIX],
    );
    let packet = packet.prop_map(|(keys, iv, len, head, seed, suffix)| Plain {
        keys,
        iv,
        content: (0..head + len)
            .map(|i| (i as u8).wrapping_mul(seed | 1) ^ (i >> 8) as u8)
            .collect(),
        head,
        suffix: (0..suffix as u8).map(|i| i ^ seed).collect(),
    });
    vec(packet, 0..=40)
}

/// The sealed content and both MACs.
fn sealed(
    packet: &Plain,
    keys: &[(&[u8; 32], [[u8; 16]; 8])],
    meshed: bool,
) -> (Vec<u8>, [[u8; MAC]; MACS]) {
    let [(inner, rows), (outer, _)] = places(packet, keys.len(), |i| keys[i].1).map(|i| keys[i]);
    let text = [&packet.content[..], &packet.suffix].concat();
    let mac = naive::gost28147_imit(&rows, &inner[..], &text, meshed);
    let (head, data) = packet.content.split_at(packet.head);
    let data = naive::gost28147_cnt(&rows, &inner[..], &packet.iv, data, meshed);
    let sealed = [head, &data].concat();
    let over = match meshed {
        true => {
            let text = [&sealed[..], &packet.suffix, &mac].concat();
            naive::gost28147_imit(&rows, &outer[..], &text, true)
        }
        false => [0xee; MAC],
    };
    (sealed, [mac, over])
}

/// Its two keys: the second is the first one where it has another S-box.
fn places<S: PartialEq>(packet: &Plain, keys: usize, set: impl Fn(usize) -> S) -> [usize; MACS] {
    let [inner, outer] = packet.keys.map(|key| key % keys);
    let is_same = set(inner) == set(outer);
    [inner, if is_same { outer } else { inner }]
}

fn judge_packets(bytes: &[([u8; 32], usize)], packets: &[Plain]) {
    let (keys, plain) = (expanded(bytes), chunked(bytes));
    for meshed in [false, true] {
        let expected: Vec<_> = packets.iter().map(|p| sealed(p, &plain, meshed)).collect();
        for ops in engines() {
            for opening in [false, true] {
                let given =
                    |(p, (sealed, macs)): (&Plain, &(Vec<u8>, [[u8; MAC]; MACS]))| match opening {
                        false => (p.content.clone(), [[0xee; MAC]; MACS]),
                        // The MAC over the ciphertext is over the inner one that was received.
                        true => (sealed.clone(), [macs[INNER], [0xee; MAC]]),
                    };
                let mut given: Vec<_> = packets.iter().zip(&expected).map(given).collect();
                let jobs = packets
                    .iter()
                    .zip(&mut given)
                    .map(|(p, (content, macs))| PacketJob {
                        keys: places(p, keys.len(), |i| bytes[i].1).map(|i| &keys[i]),
                        iv: p.iv,
                        content,
                        head: p.head,
                        suffix: &p.suffix,
                        macs,
                    });
                (ops.packets)(&mut jobs.collect::<Vec<_>>(), opening, meshed);
                for (i, (content, macs)) in given.iter().enumerate() {
                    let of = format!(
                        "{} {i} of {}, opening {opening}, meshed {meshed}",
                        ops.name,
                        packets.len()
                    );
                    let (sealed, right) = &expected[i];
                    let text = if opening { &packets[i].content } else { sealed };
                    assert!(content == text, "{of}: {} bytes", content.len());
                    assert_eq!(macs, right, "{of}: {} bytes", content.len());
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn packets_agree_with_the_naive_reference(
        bytes in keys(),
        packets in packets(prop_oneof![3 => 0..300usize, 3 => 0..1500usize, 1 => 0..=5000usize]),
    ) {
        judge_packets(&bytes, &packets);
    }

    /// As packets of one stream are: the lanes are never shared anew.
    #[test]
    fn packets_of_one_length_agree_with_the_naive_reference(
        bytes in keys(),
        mut packets in packets(Just(0)),
        len in prop_oneof![250..1500usize, Just(1400), Just(2048), Just(2032)],
    ) {
        packets.iter_mut().for_each(|p| p.content.resize(p.head + len, 0x5b));
        judge_packets(&bytes, &packets);
    }
}

/// A MAC over what was received says whether it is right, whatever was changed.
#[test]
fn a_changed_packet_has_other_macs() {
    let key = Key::new(&[7; 32], &Sbox::crypto_pro_b()).unwrap();
    let other = Key::new(&[9; 32], &Sbox::crypto_pro_b()).unwrap();
    for ops in engines() {
        let run = |contents: &mut [Vec<u8>], macs: &mut [[[u8; MAC]; MACS]], opening| {
            let jobs = contents
                .iter_mut()
                .zip(macs)
                .map(|(content, macs)| PacketJob {
                    keys: [&key, &other],
                    iv: [3; 8],
                    content,
                    head: 16,
                    suffix: &[],
                    macs,
                });
            (ops.packets)(&mut jobs.collect::<Vec<_>>(), opening, true);
        };
        let mut contents = vec![vec![0x11; 700]; 5];
        let mut right = [[[0; MAC]; MACS]; 5];
        run(&mut contents, &mut right, false);
        // A header, the first and the last byte of data; the inner MAC.
        for (content, at) in contents[..3].iter_mut().zip([2, 16, 699]) {
            content[at] ^= 1;
        }
        let mut macs = right;
        macs[3][INNER][0] ^= 1;
        run(&mut contents, &mut macs, true);
        for i in 0..3 {
            assert_ne!(macs[i][INNER], right[i][INNER], "{} {i}", ops.name);
            assert_ne!(macs[i][OUTER], right[i][OUTER], "{} {i}", ops.name);
        }
        assert_eq!(macs[3][INNER], right[3][INNER], "{}", ops.name);
        assert_ne!(macs[3][OUTER], right[3][OUTER], "{}", ops.name);
        assert_eq!(macs[4], right[4], "{}", ops.name);
    }
}
