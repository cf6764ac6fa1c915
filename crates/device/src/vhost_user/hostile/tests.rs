//! A guest and a front-end, sound and hostile ones, without sockets.

use super::*;

const CBC: u32 = 3;

/// NIST SP 800-38A, F.2.1, the first two blocks.
const KEY: [u8; 16] = hex(b"2b7e151628aed2a6abf7158809cf4f3c");
const IV: [u8; 16] = hex(b"000102030405060708090a0b0c0d0e0f");
const PLAIN: [u8; 32] = hex(b"6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51");
const CIPHER: [u8; 32] = hex(b"7649abac8119b246cee98e9b12e9197d5086cb9b507219ee95db113a917678b2");

const fn hex<const N: usize>(text: &[u8]) -> [u8; N] {
    const fn digit(character: u8) -> u8 {
        match character {
            b'a'.. => character - b'a' + 10,
            _ => character - b'0',
        }
    }
    let (mut bytes, mut at) = ([0; N], 0);
    while at < N {
        bytes[at] = digit(text[2 * at]) << 4 | digit(text[2 * at + 1]);
        at += 1;
    }
    bytes
}

pub(super) fn guest() -> Guest {
    let framework = cipherlane_drivers::framework(cipherlane_core::Config::default()).unwrap();
    let mut guest = Guest::new(&framework);
    guest.set_up().unwrap();
    guest
}

fn sound(session: u64) -> Sound<'static> {
    Sound {
        session,
        is_encryption: true,
        iv: &IV,
        data: &PLAIN,
    }
}

/// Whether the device serves a sound guest, which starts it again.
fn still_works(guest: &mut Guest) {
    guest.set_up().unwrap();
    let session = guest.open(true, CBC, true, &KEY).unwrap();
    let place = guest.put(&sound(session));
    guest.kick();
    assert_eq!(guest.result(place, 32), (0, CIPHER.to_vec()));
    assert_eq!(guest.used(), 1);
}

#[test]
fn both_directions_by_both_messages_are_right() {
    for is_new in [false, true] {
        let mut guest = guest();
        let encrypts = guest.open(is_new, CBC, true, &KEY).unwrap();
        let decrypts = guest.open(is_new, CBC, false, &KEY).unwrap();
        let one = guest.put(&sound(encrypts));
        let other = guest.put(&Sound {
            is_encryption: false,
            data: &CIPHER,
            ..sound(decrypts)
        });
        guest.kick();
        assert_eq!(guest.result(one, 32), (0, CIPHER.to_vec()));
        assert_eq!(guest.result(other, 32), (0, PLAIN.to_vec()));
        let status = guest.status();
        assert_eq!((status.requests, status.bytes), (2, 64));
        assert_eq!((status.kicks, status.calls), (1, 2));
        assert_eq!(status.batches[&2], 1);
    }
}

#[test]
fn a_batch_is_one_call_for_each_key() {
    let mut guest = guest();
    let sessions = [1u8, 2].map(|key| guest.open(true, CBC, true, &[key; 32]).unwrap());
    let place = |index: usize| sessions[index % 2];
    let places: Vec<u16> = (0..12).map(|i| guest.put(&sound(place(i)))).collect();
    guest.kick();
    assert_eq!(guest.status().calls, 2);
    let results: Vec<_> = places.iter().map(|&at| guest.result(at, 32)).collect();
    for (index, (status, output)) in results.iter().enumerate() {
        assert_eq!(*status, 0);
        assert_eq!(output, &results[index % 2].1);
    }
    assert_ne!(results[0].1, results[1].1);
}

#[test]
fn other_ciphers_are_served_where_a_driver_asks_for_them() {
    let mut guest = guest();
    // ECB takes no IV; the first block of CBC with an IV of zeros is the same.
    let ecb = guest.open(true, 2, true, &KEY).unwrap();
    let cbc = guest.open(true, CBC, true, &KEY).unwrap();
    let zeros = [0; 16];
    let data = &PLAIN[..16];
    let one = guest.put(&Sound {
        iv: &[],
        data,
        ..sound(ecb)
    });
    let other = guest.put(&Sound {
        iv: &zeros,
        data,
        ..sound(cbc)
    });
    guest.kick();
    assert_eq!(guest.result(one, 16).0, 0);
    assert_eq!(guest.result(one, 16), guest.result(other, 16));
    // CTR encrypts any length.
    let ctr = guest.open(true, 4, true, &KEY).unwrap();
    let one = guest.put(&Sound {
        data: &PLAIN[..5],
        ..sound(ctr)
    });
    guest.kick();
    assert_eq!(guest.result(one, 5).0, 0);
    assert!(
        guest
            .open(true, 13, true, &[&KEY[..], &IV].concat())
            .is_some(),
        "XTS"
    );
    for cipher in [0, 1, 5, 7, 14, 1000] {
        assert!(guest.open(true, cipher, true, &KEY).is_none());
    }
    assert!(
        guest.open(true, CBC, true, &KEY[..15]).is_none(),
        "a key of 15 bytes"
    );
}

#[test]
fn refusals_have_the_status_that_virtio_has_for_them() {
    let mut guest = guest();
    let session = guest.open(true, CBC, true, &KEY).unwrap();
    let closed = guest.open(true, CBC, true, &KEY).unwrap();
    guest.close(closed);
    let decrypts = guest.open(true, CBC, false, &KEY).unwrap();
    let cases = [
        (sound(session + 99), 4),
        (sound(closed), 4),
        (sound(decrypts), 1),
        (
            Sound {
                data: &PLAIN[..31],
                ..sound(session)
            },
            1,
        ),
        (
            Sound {
                iv: &IV[..12],
                ..sound(session)
            },
            1,
        ),
        (sound(session), 0),
    ];
    let places: Vec<u16> = cases.iter().map(|(case, _)| guest.put(case)).collect();
    guest.kick();
    for (place, (case, expected)) in places.iter().zip(&cases) {
        let (status, output) = guest.result(*place, 32);
        assert_eq!(status, *expected, "{case:?}");
        assert_eq!(output == CIPHER, *expected == 0);
    }
    assert_eq!(usize::from(guest.used()), cases.len());
    let refused: u64 = guest.status().refused.values().sum();
    assert_eq!(refused, 5);
}

#[test]
fn descriptors_that_lie_fail_their_request_alone() {
    // Where in the 80 bytes of the descriptors, and what is written there.
    let cases: [(&str, u64, &[u8]); 12] = [
        ("a loop", 14, &[0, 0]),
        ("a loop further on", 4 * 16 + 12, &[3, 0, 2, 0]),
        ("a next one that is not there", 14, &[0xff, 0xff]),
        ("a header that is not in memory", 0, &[0xff; 8]),
        (
            "an input at the edge of memory",
            2 * 16,
            &(GUEST + MEMORY - 31).to_le_bytes(),
        ),
        ("an input below memory", 2 * 16, &(GUEST - 1).to_le_bytes()),
        (
            "an output at the edge",
            3 * 16,
            &(GUEST + MEMORY - 1).to_le_bytes(),
        ),
        ("an output that wraps around", 3 * 16, &[0xff; 8]),
        ("an input of 4 GiB", 2 * 16 + 8, &[0xff; 4]),
        ("an input that is too short", 2 * 16 + 8, &[31, 0, 0, 0]),
        ("an output that is too short", 3 * 16 + 8, &[31, 0, 0, 0]),
        ("an input that is to be written", 2 * 16 + 12, &[3, 0]),
    ];
    for (name, at, bytes) in cases {
        let mut guest = guest();
        let session = guest.open(true, CBC, true, &KEY).unwrap();
        let bad = guest.put(&sound(session));
        let good = guest.put(&sound(session));
        guest.write(guest.descriptor(bad) + at, bytes);
        guest.kick();
        assert_eq!(guest.used(), 2, "{name}: both are given back");
        assert_eq!(guest.result(good, 32), (0, CIPHER.to_vec()), "{name}");
        // An input of 4 GiB of which 32 bytes are wanted is no lie that matters.
        let expected = u8::from(name != "an input of 4 GiB");
        let told = guest.result(bad, 32).0;
        assert!(told == expected || told == 255, "{name}: {told}");
        assert_eq!(guest.status().queues_stopped, 0, "{name}");
    }
}

#[test]
fn an_indirect_table_is_followed_once() {
    let mut guest = guest();
    let session = guest.open(true, CBC, true, &KEY).unwrap();
    // A table with the same descriptors, from 0 on.
    let indirect = |guest: &mut Guest, is_nested: bool| {
        let place = guest.put(&sound(session));
        let mut table = vec![0; 80];
        guest
            .memory
            .read_exact_at(&mut table, guest.descriptor(place))
            .unwrap();
        for (index, descriptor) in table.chunks_exact_mut(16).enumerate() {
            descriptor[14..].copy_from_slice(&(index as u16 + 1).to_le_bytes());
        }
        if is_nested {
            table[12] |= 4;
        }
        guest.write(0xe000, &table);
        let mut head = [0; 16];
        head[..8].copy_from_slice(&(GUEST + 0xe000).to_le_bytes());
        head[8] = 80;
        head[12] = 4;
        guest.write(guest.descriptor(place), &head);
        guest.kick();
        guest.result(place, 32).0
    };
    assert_eq!(indirect(&mut guest, false), 0);
    assert_ne!(indirect(&mut guest, true), 0);
    assert_eq!(guest.used(), 2);
}

#[test]
fn a_ring_that_runs_backwards_is_stopped_until_it_is_set_up_again() {
    for index in [65, 0x8000, 0xffff] {
        let mut guest = guest();
        guest.set_available(index);
        guest.kick();
        let status = guest.status();
        assert_eq!((status.queues_stopped, guest.used()), (1, 0), "{index}");
        guest.kick();
        still_works(&mut guest);
    }
}

#[test]
fn memory_that_changes_while_it_is_read_is_read_once() {
    let mut guest = guest();
    let session = guest.open(true, CBC, true, &KEY).unwrap();
    let memory = guest.memory.try_clone().unwrap();
    let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let stopped = stop.clone();
    let enemy = std::thread::spawn(move || {
        let mut round = 0u64;
        while !stopped.load(std::sync::atomic::Ordering::Relaxed) {
            round = round.wrapping_mul(6364136223846793005).wrapping_add(1);
            // Descriptors, headers and payloads of the first places; the ring itself stays.
            let at = match round >> 62 {
                0 => (round >> 40) % 0x140,
                _ => REQUESTS + (round >> 40) % (4 * STRIDE),
            };
            let _ = memory.write_all_at(&[(round >> 32) as u8], at);
        }
    });
    for _ in 0..500 {
        let before = guest.used();
        for _ in 0..12 {
            guest.put(&sound(session));
        }
        guest.kick();
        assert_eq!(guest.used().wrapping_sub(before), 12);
    }
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    enemy.join().unwrap();
    let status = guest.status();
    assert_eq!(status.requests + status.refused.values().sum::<u64>(), 6000);
    still_works(&mut guest);
}

#[test]
fn sessions_are_limited_and_their_numbers_never_come_again() {
    let mut guest = guest();
    let opened: Vec<_> = (0..10).map(|_| guest.open(true, CBC, true, &KEY)).collect();
    assert_eq!(opened.iter().flatten().count(), 8);
    assert_eq!(guest.status().sessions_refused, 2);
    guest.close(opened[0].unwrap());
    let again = guest.open(true, CBC, true, &KEY).unwrap();
    assert!(!opened.contains(&Some(again)));
    guest.set_up().unwrap();
    assert_eq!(guest.status().sessions, 0, "a new front-end has none");
    let later = guest.open(true, CBC, true, &KEY).unwrap();
    assert!(later > again);
    let other = super::tests::guest().open(true, CBC, true, &KEY).unwrap();
    assert_ne!(
        other & !0xff,
        later & !0xff,
        "another process begins elsewhere"
    );
}

#[test]
fn messages_that_cannot_be_are_refused_and_the_device_goes_on() {
    let words = |words: &[u32]| {
        words
            .iter()
            .flat_map(|w| w.to_ne_bytes())
            .collect::<Vec<_>>()
    };
    let longs = |longs: &[u64]| {
        longs
            .iter()
            .flat_map(|l| l.to_ne_bytes())
            .collect::<Vec<_>>()
    };
    let mut guest = guest();
    let cases = [
        ("unknown", 99, vec![], 0),
        ("short", request::SET_VRING_NUM, vec![0; 7], 0),
        ("a running ring", request::SET_VRING_NUM, words(&[0, 64]), 0),
        ("three", request::SET_VRING_NUM, words(&[1, 3]), 0),
        ("65536", request::SET_VRING_NUM, words(&[1, 65536]), 0),
        ("ring 64", request::SET_VRING_NUM, words(&[64, 64]), 0),
        ("base", request::SET_VRING_BASE, words(&[1, 65536]), 0),
        ("no place", request::SET_VRING_KICK, longs(&[1]), 1),
        ("no file", request::SET_VRING_KICK, longs(&[0]), 0),
        ("polled", request::SET_VRING_KICK, longs(&[0x100]), 0),
        ("two files", request::SET_VRING_CALL, longs(&[0]), 2),
        (
            "outside",
            request::SET_VRING_ADDR,
            longs(&[1, 1, 1, 1, 0]),
            0,
        ),
        ("features", request::SET_FEATURES, longs(&[1 << 26]), 0),
        (
            "regions",
            request::SET_MEM_TABLE,
            longs(&[2, 0, 0, 0, 0]),
            1,
        ),
        ("a session", request::CREATE_CRYPTO_SESSION, vec![0; 700], 0),
    ];
    for (name, number, body, files) in cases {
        assert!(guest.send(number, &body, files).is_err(), "{name}");
    }
    assert_eq!(guest.status().messages_refused, 15);
    // The ring of before is still there.
    let session = guest.open(false, CBC, true, &KEY).unwrap();
    let place = guest.put(&sound(session));
    guest.kick();
    assert_eq!(guest.result(place, 32), (0, CIPHER.to_vec()));
}

#[test]
fn a_ring_that_is_stopped_goes_on_where_it_was() {
    let mut guest = guest();
    let session = guest.open(true, CBC, true, &KEY).unwrap();
    for _ in 0..3 {
        guest.put(&sound(session));
    }
    guest.kick();
    let reply = guest
        .send(request::GET_VRING_BASE, &[0; 8], 0)
        .unwrap()
        .unwrap();
    assert_eq!(reply, [0, 0, 0, 0, 3, 0, 0, 0]);
    let place = guest.put(&sound(session));
    guest.kick();
    assert_eq!(guest.used(), 3, "it stands");
    guest.send(request::SET_VRING_KICK, &[0; 8], 1).unwrap();
    guest.kick();
    assert_eq!((guest.used(), guest.result(place, 32).0), (4, 0));
    // Memory without the ring stops it.
    let nowhere: Vec<u8> = [1u64, 1 << 40, MEMORY, USER, 0]
        .iter()
        .flat_map(|l| l.to_ne_bytes())
        .collect();
    guest.send(request::SET_MEM_TABLE, &nowhere, 1).unwrap();
    assert_eq!(guest.status().queues_stopped, 1);
    still_works(&mut guest);
}
