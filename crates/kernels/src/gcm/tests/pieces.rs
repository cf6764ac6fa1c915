//! Messages that come in pieces, and parts that are joined.

use super::*;

/// The data in pieces that end at each of `cuts`, taken modulo its length.
fn pieces(len: usize, cuts: &[usize], multiple: usize) -> Vec<usize> {
    let mut ends: Vec<_> = cuts
        .iter()
        .map(|cut| cut % (len + 1) / multiple * multiple)
        .chain([len])
        .collect();
    ends.sort_unstable();
    ends
}

fn dir() -> impl Strategy<Value = Direction> {
    prop_oneof![Just(Direction::Encrypt), Just(Direction::Decrypt)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn streams_are_one_shots(
        message in message(),
        dir in dir(),
        iv in proptest::collection::vec(any::<u8>(), 1..100),
        cuts in proptest::collection::vec(any::<usize>(), 0..12),
        aad_cuts in proptest::collection::vec(any::<usize>(), 0..5),
    ) {
        let expected = match dir {
            Direction::Encrypt => naive::gcm_seal(&message.key, &iv, &message.aad, &message.data),
            Direction::Decrypt => naive::gcm_open(&message.key, &iv, &message.aad, &message.data),
        };
        for implementation in implementations() {
            let key = GcmKey::on(implementation, &message.key).unwrap();
            let mut stream = GcmStream::new(dir, &key, &iv);
            let mut from = 0;
            for to in pieces(message.aad.len(), &aad_cuts, 1) {
                stream.aad(&message.aad[from..to]);
                from = to;
            }
            let mut out = message.data.clone();
            from = 0;
            for to in pieces(out.len(), &cuts, 1) {
                if message.in_place {
                    stream.update(InOutBuf::from(&mut out[from..to]));
                } else {
                    let data = InOutBuf::new(&message.data[from..to], &mut out[from..to]);
                    stream.update(data.unwrap());
                }
                from = to;
            }
            prop_assert_eq!((&out, stream.finish()), (&expected.0, expected.1));
        }
    }

    #[test]
    fn parts_of_a_stream_are_one_shots(
        message in message(),
        dir in dir(),
        iv in proptest::collection::vec(any::<u8>(), 1..20),
        head in any::<usize>(),
        cuts in proptest::collection::vec(any::<usize>(), 0..6),
    ) {
        let expected = match dir {
            Direction::Encrypt => naive::gcm_seal(&message.key, &iv, &message.aad, &message.data),
            Direction::Decrypt => naive::gcm_open(&message.key, &iv, &message.aad, &message.data),
        };
        for implementation in implementations() {
            let key = GcmKey::on(implementation, &message.key).unwrap();
            let mut state = GcmState::new(dir, &key, &iv);
            state.aad(&key, &message.aad);
            let mut out = message.data.clone();
            let head = head % (out.len() / 16 + 1) * 16;
            state.update(&key, InOutBuf::from(&mut out[..head]));
            let middle = (out.len() - head) / 16 * 16;
            let mut parts = Vec::new();
            let mut from = head;
            for to in pieces(middle, &cuts, 16) {
                let data = InOutBuf::from(&mut out[from..head + to]);
                parts.push(state.part(&key, ((from - head) / 16) as u32, data));
                from = head + to;
            }
            state.join(&key, &parts);
            state.update(&key, InOutBuf::from(&mut out[from..]));
            prop_assert_eq!((&out, state.finish(&key)), (&expected.0, expected.1));
        }
    }

    #[test]
    fn a_message_done_whole_can_go_on(
        message in message(),
        dir in dir(),
        cut in any::<usize>(),
        more in proptest::collection::vec(any::<usize>(), 0..3),
    ) {
        let expected = message.naive(dir);
        let cut = cut % (message.data.len() + 1);
        for implementation in implementations() {
            let key = GcmKey::on(implementation, &message.key).unwrap();
            let begun = Message { data: message.data[..cut].to_vec(), ..message.clone() };
            let (mut out, tag) = run(implementation, dir, &[begun]).pop().unwrap();
            let done = Done {
                aad_len: message.aad.len() as u64,
                data_len: cut as u64,
                tag: &tag,
            };
            let state = GcmState::new(dir, &key, &message.nonce);
            let mut state = state.continue_message(&key, &InverseHashKey::new(&key), &done);
            let mut rest = message.data[cut..].to_vec();
            let mut from = 0;
            for to in pieces(rest.len(), &more, 1) {
                state.update(&key, InOutBuf::from(&mut rest[from..to]));
                from = to;
            }
            out.extend(rest);
            prop_assert_eq!((&out, state.finish(&key)), (&expected.0, expected.1));
        }
    }

    #[test]
    fn joined_parts_are_one_shots(
        message in message(),
        dir in dir(),
        cuts in proptest::collection::vec(any::<usize>(), 0..12),
    ) {
        let expected = message.naive(dir);
        for implementation in implementations() {
            let key = GcmKey::on(implementation, &message.key).unwrap();
            let mut out = message.data.clone();
            let mut from = 0;
            let mut parts = Vec::new();
            for to in pieces(out.len(), &cuts, 16) {
                let data = InOutBuf::from(&mut out[from..to]);
                parts.push(part(dir, &key, &message.nonce, (from / 16) as u32, data));
                from = to;
            }
            let tag = join(&key, &message.nonce, &message.aad, &parts);
            prop_assert_eq!((&out, tag), (&expected.0, expected.1));
        }
    }
}

/// J0 of a stream may end in any 32 bits, and only they wrap.
#[test]
fn counter_wraps_in_32_bits() {
    let bytes_of_key = bytes(16, 9);
    for implementation in implementations() {
        let key = GcmKey::on(implementation, &bytes_of_key).unwrap();
        // H is invertible, so some IV of 16 bytes hashes to any J0: solve
        // (iv H + lengths) H = j0 for iv, with 1/H = H^(2^128 - 2).
        let (mut inverse, mut square) = (None, *key.hash_key());
        for _ in 1..128 {
            square = multiply(&key, &square, &square);
            inverse = Some(match inverse {
                None => square,
                Some(product) => multiply(&key, &product, &square),
            });
        }
        let inverse = inverse.unwrap();
        for before in [0, 1, 3, 8, 17, 40] {
            let mut j0 = [0xff; 16];
            j0[12..].copy_from_slice(&(u32::MAX - before).to_be_bytes());
            let iv = xor(&multiply(&key, &j0, &inverse), &lengths(0, 16));
            let iv = multiply(&key, &iv, &inverse);
            for len in [16, 64, 100, 1000, 1200] {
                let data = bytes(len, 1);
                let expected = naive::gcm_seal(&bytes_of_key, &iv, b"aad", &data);
                let mut stream = GcmStream::new(Direction::Encrypt, &key, &iv);
                assert_eq!(stream.first_counter(), j0);
                stream.aad(b"aad");
                let mut out = data;
                stream.update(InOutBuf::from(&mut out[..]));
                assert_eq!(
                    (out, stream.finish()),
                    expected,
                    "{implementation:?} {before} {len}"
                );
            }
        }
    }
}

/// Kernels that count chunks of blocks do a part that begins inside a chunk, up to its end,
/// by itself.
#[test]
fn parts_begin_anywhere_in_a_chunk() {
    let (key, nonce, data) = (bytes(16, 3), [9; 12], bytes(2100, 5));
    for implementation in implementations() {
        let expanded = GcmKey::on(implementation, &key).unwrap();
        for first in 0..=40 {
            // What is behind the chunk's end may be nothing, less than a chunk, or more.
            for len in [496, 512, 528, 1024, 2100 - 16 * first] {
                let data = &data[..16 * first + len];
                let (expected, tag) = naive::gcm_seal(&key, &nonce, b"aad", data);
                for (dir, from, to) in [
                    (Direction::Encrypt, data, &expected[..]),
                    (Direction::Decrypt, &expected, data),
                ] {
                    let mut out = from.to_vec();
                    let (head, rest) = out.split_at_mut(16 * first);
                    let parts = [
                        part(dir, &expanded, &nonce, 0, head.into()),
                        part(dir, &expanded, &nonce, first as u32, rest.into()),
                    ];
                    let what = format!("{implementation:?}, {dir:?}, {len} from block {first}");
                    assert!(out == to, "{what}");
                    assert_eq!(join(&expanded, &nonce, b"aad", &parts), tag, "{what}");
                }
            }
        }
    }
}

/// A part may lie anywhere in the counter's range.
#[test]
fn parts_count_from_their_first_block() {
    for implementation in implementations() {
        let key = GcmKey::on(implementation, &bytes(32, 2)).unwrap();
        let nonce = [7; 12];
        let starts = [u32::MAX - 9, 1 << 31, 12345].map(|first| (first, 40));
        // With many blocks kernels keep what the upper bytes of the counter do not change.
        let many = [0, 1, 31, 32, 222, 223, 255, 0xff_ff00, u32::MAX - 300];
        for (first, blocks) in starts.into_iter().chain(many.map(|first| (first, 900))) {
            let mut out = vec![0; 16 * blocks];
            part(
                Direction::Encrypt,
                &key,
                &nonce,
                first,
                InOutBuf::from(&mut out[..]),
            );
            for (i, block) in out.chunks(16).enumerate() {
                let counter =
                    counter_from(&first_counter(&nonce), first.wrapping_add(i as u32 + 1));
                assert_eq!(
                    block,
                    encrypt(&key, &counter),
                    "{implementation:?} {first} {i}"
                );
            }
        }
    }
}

#[test]
#[should_panic(expected = "before the data")]
fn additional_data_after_data_panics() {
    let key = GcmKey::new(&[0; 16]).unwrap();
    let mut stream = GcmStream::new(Direction::Encrypt, &key, &[0; 12]);
    stream.update(InOutBuf::from(&mut [0; 5][..]));
    stream.aad(&[1]);
}

#[test]
#[should_panic(expected = "where a block does")]
fn parts_inside_a_block_panic() {
    let key = GcmKey::new(&[0; 16]).unwrap();
    let mut state = GcmState::new(Direction::Encrypt, &key, &[0; 12]);
    state.update(&key, InOutBuf::from(&mut [0; 5][..]));
    state.part(&key, 0, InOutBuf::from(&mut [0; 16][..]));
}

#[test]
fn lazy_keys_are_whole_ones_in_time() {
    let (key, data) = (bytes(32, 3), bytes(300, 9));
    for implementation in implementations() {
        let mut lazy = LazyGcmKey::none();
        for (iv, aad) in [
            (12, 0),
            (1, 5),
            (12, 16),
            (64, 33),
            (96, 96),
            (97, 20),
            (12, 97),
            (12, 112),
        ] {
            let (iv, aad) = (bytes(iv, 5), bytes(aad, 7));
            for len in (0..=LITTLE + 40).chain([200, 300]) {
                lazy.rekey_on(implementation, &bytes(16, 1)).unwrap();
                lazy.complete();
                lazy.rekey_on(implementation, &key).unwrap();
                let mut state = GcmState::new(Direction::Encrypt, lazy.for_piece(iv.len()), &iv);
                state.aad(lazy.for_piece(aad.len()), &aad);
                let mut out = data[..len].to_vec();
                state.update(lazy.for_piece(len), (&mut out[..]).into());
                let tag = state.finish(lazy.for_piece(0));
                let expected = naive::gcm_seal(&key, &iv, &aad, &data[..len]);
                assert_eq!((out, tag), expected, "{implementation:?}, {len} bytes");
            }
        }
    }
}

/// All powers of the key before are gone, and a key of a wrong length changes nothing.
#[test]
#[cfg(target_arch = "x86_64")]
fn lazy_keys_keep_nothing_of_the_key_before() {
    for implementation in implementations() {
        let mut lazy = LazyGcmKey::none();
        lazy.rekey_on(implementation, &bytes(32, 3)).unwrap();
        let complete = lazy.complete().table.clone();
        assert!(lazy.rekey_on(implementation, &[0; 17]).is_none());
        let same = |table: &powers::Table| {
            table.powers == complete.powers
                && table.sums == complete.sums
                && table.shifted == complete.shifted
        };
        assert!(same(&lazy.key.table));
        lazy.rekey_on(implementation, &bytes(16, 1)).unwrap();
        let mut fresh = LazyGcmKey::none();
        fresh.rekey_on(implementation, &bytes(16, 1)).unwrap();
        assert_eq!(lazy.key.table.powers, fresh.key.table.powers);
        assert_eq!(lazy.key.table.sums, fresh.key.table.sums);
        assert_eq!(lazy.key.table.shifted, fresh.key.table.shifted);
    }
}
