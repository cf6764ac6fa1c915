//! Every implementation against the standard's vectors, the naive reference, and
//! the other ways to give it the same message.

use inout::InOutBuf;
use proptest::prelude::*;

use super::*;
use crate::naive;

/// Every implementation that this machine has.
fn backends() -> Vec<Backend> {
    let mut all = vec![Backend::Portable];
    #[cfg(target_arch = "x86_64")]
    {
        all.extend(HaveAesNi::new().map(Backend::AesNi));
        all.extend(HaveVaes::new().map(Backend::Vaes));
        all.extend(HaveVaes512::new().map(Backend::Vaes512));
    }
    all
}

fn bytes(len: usize, seed: u8) -> Vec<u8> {
    (0..len)
        .map(|i| (i as u8).wrapping_mul(31).wrapping_add(seed) ^ (i >> 8) as u8)
        .collect()
}

/// A message, with `shift` bytes before its data so that any alignment comes up.
#[derive(Clone, Debug)]
struct Message {
    key: Vec<u8>,
    nonce: [u8; 12],
    aad: Vec<u8>,
    data: Vec<u8>,
    shift: usize,
    in_place: bool,
}

impl Message {
    fn naive(&self, dir: Direction) -> (Vec<u8>, [u8; 16]) {
        match dir {
            Direction::Encrypt => naive::gcm_seal(&self.key, &self.nonce, &self.aad, &self.data),
            Direction::Decrypt => naive::gcm_open(&self.key, &self.nonce, &self.aad, &self.data),
        }
    }
}

/// Runs a batch, and checks that no byte around the outputs changes.
fn run(backend: Backend, dir: Direction, messages: &[Message]) -> Vec<(Vec<u8>, [u8; 16])> {
    const AROUND: usize = 80;
    let keys: Vec<_> = messages
        .iter()
        .map(|m| GcmKey::on(backend, &m.key).unwrap())
        .collect();
    let padded = |m: &Message, data: &[u8]| {
        let mut padded = vec![0xa5; AROUND + m.shift];
        padded.extend_from_slice(data);
        padded.extend_from_slice(&[0xa5; AROUND]);
        padded
    };
    let inputs: Vec<_> = messages.iter().map(|m| padded(m, &m.data)).collect();
    let mut outputs: Vec<_> = messages
        .iter()
        .map(|m| {
            if m.in_place {
                padded(m, &m.data)
            } else {
                padded(m, &vec![0xee; m.data.len()])
            }
        })
        .collect();
    let mut jobs: Vec<_> = messages
        .iter()
        .zip(&keys)
        .zip(inputs.iter().zip(&mut outputs))
        .map(|((m, key), (input, output))| {
            let range = AROUND + m.shift..AROUND + m.shift + m.data.len();
            let output = &mut output[range.clone()];
            let mut iv = [0x77; 16];
            iv[..12].copy_from_slice(&m.nonce);
            AeadJob {
                key,
                iv,
                aad: &m.aad,
                data: if m.in_place {
                    InOutBuf::from(output)
                } else {
                    InOutBuf::new(&input[range], output).unwrap()
                },
                tag: [0x99; 32],
            }
        })
        .collect();
    match dir {
        Direction::Encrypt => seal(&mut jobs),
        Direction::Decrypt => open(&mut jobs),
    }
    let tags: Vec<[u8; 16]> = jobs
        .iter()
        .map(|job| {
            assert_eq!(job.tag[16..], [0; 16]);
            job.tag[..16].try_into().unwrap()
        })
        .collect();
    drop(jobs);
    messages
        .iter()
        .zip(outputs)
        .zip(tags)
        .map(|((m, output), tag)| {
            let (before, rest) = output.split_at(AROUND + m.shift);
            let (data, behind) = rest.split_at(m.data.len());
            assert!(before.iter().chain(behind).all(|&byte| byte == 0xa5));
            (data.to_vec(), tag)
        })
        .collect()
}

fn check(backend: Backend, messages: &[Message]) {
    for dir in [Direction::Encrypt, Direction::Decrypt] {
        let results = run(backend, dir, messages);
        for (i, (message, result)) in messages.iter().zip(results).enumerate() {
            let expected = message.naive(dir);
            let what = format!(
                "{backend:?} {dir:?}, job {i}: key {}, aad {}, data {}, in place {}",
                message.key.len(),
                message.aad.len(),
                message.data.len(),
                message.in_place
            );
            assert!(result.0 == expected.0, "{what}: data");
            assert_eq!(result.1, expected.1, "{what}: tag");
        }
    }
}

const KEY: &str = "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308";
const AAD: &str = "feedfacedeadbeeffeedfacedeadbeefabaddad2";
const PLAINTEXT: &str = "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72\
                         1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b391aafd255";
const IV_8: &str = "cafebabefacedbad";
const IV_12: &str = "cafebabefacedbaddecaf888";
const IV_60: &str = "9313225df88406e555909c5aff5269aa6a7a9538534f7da1e4c303d2a318a728\
                     c3c0c95156809539fcf0e2429a6b525416aedbf5a0de6a57a637b39b";
/// Sixty-four zeros.
const ZEROS: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// The test cases of McGrew and Viega, "The Galois/Counter Mode of Operation (GCM)",
/// appendix B, in order: key, IV, AAD, plaintext, ciphertext, tag.
#[rustfmt::skip]
fn mcgrew_viega() -> [[&'static str; 6]; 18] {
    let zero_iv = &ZEROS[..24];
    let short = &PLAINTEXT[..120];
    let (key_16, key_24) = (&KEY[..32], &KEY[..48]);
    [
        [&ZEROS[..32], zero_iv, "", "", "", "58e2fccefa7e3061367f1d57a4e7455a"],
        [&ZEROS[..32], zero_iv, "", &ZEROS[..32],
         "0388dace60b6a392f328c2b971b2fe78", "ab6e47d42cec13bdf53a67b21257bddf"],
        [key_16, IV_12, "", PLAINTEXT,
         "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e\
          21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091473f5985",
         "4d5c2af327cd64a62cf35abd2ba6fab4"],
        [key_16, IV_12, AAD, short,
         "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e\
          21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091",
         "5bc94fbc3221a5db94fae95ae7121a47"],
        [key_16, IV_8, AAD, short,
         "61353b4c2806934a777ff51fa22a4755699b2a714fcdc6f83766e5f97b6c7423\
          73806900e49f24b22b097544d4896b424989b5e1ebac0f07c23f4598",
         "3612d2e79e3b0785561be14aaca2fccb"],
        [key_16, IV_60, AAD, short,
         "8ce24998625615b603a033aca13fb894be9112a5c3a211a8ba262a3cca7e2ca7\
          01e4a9a4fba43c90ccdcb281d48c7c6fd62875d2aca417034c34aee5",
         "619cc5aefffe0bfa462af43c1699d050"],
        [&ZEROS[..48], zero_iv, "", "", "", "cd33b28ac773f74ba00ed1f312572435"],
        [&ZEROS[..48], zero_iv, "", &ZEROS[..32],
         "98e7247c07f0fe411c267e4384b0f600", "2ff58d80033927ab8ef4d4587514f0fb"],
        [key_24, IV_12, "", PLAINTEXT,
         "3980ca0b3c00e841eb06fac4872a2757859e1ceaa6efd984628593b40ca1e19c\
          7d773d00c144c525ac619d18c84a3f4718e2448b2fe324d9ccda2710acade256",
         "9924a7c8587336bfb118024db8674a14"],
        [key_24, IV_12, AAD, short,
         "3980ca0b3c00e841eb06fac4872a2757859e1ceaa6efd984628593b40ca1e19c\
          7d773d00c144c525ac619d18c84a3f4718e2448b2fe324d9ccda2710",
         "2519498e80f1478f37ba55bd6d27618c"],
        [key_24, IV_8, AAD, short,
         "0f10f599ae14a154ed24b36e25324db8c566632ef2bbb34f8347280fc4507057\
          fddc29df9a471f75c66541d4d4dad1c9e93a19a58e8b473fa0f062f7",
         "65dcc57fcf623a24094fcca40d3533f8"],
        [key_24, IV_60, AAD, short,
         "d27e88681ce3243c4830165a8fdcf9ff1de9a1d8e6b447ef6ef7b79828666e45\
          81e79012af34ddd9e2f037589b292db3e67c036745fa22e7e9b7373b",
         "dcf566ff291c25bbb8568fc3d376a6d9"],
        [ZEROS, zero_iv, "", "", "", "530f8afbc74536b9a963b4f1c4cb738b"],
        [ZEROS, zero_iv, "", &ZEROS[..32],
         "cea7403d4d606b6e074ec5d3baf39d18", "d0d1c8a799996bf0265b98b5d48ab919"],
        [KEY, IV_12, "", PLAINTEXT,
         "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa\
          8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662898015ad",
         "b094dac5d93471bdec1a502270e3cc6c"],
        [KEY, IV_12, AAD, short,
         "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa\
          8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662",
         "76fc6ece0f4e1768cddf8853bb2d551b"],
        [KEY, IV_8, AAD, short,
         "c3762df1ca787d32ae47c13bf19844cbaf1ae14d0b976afac52ff7d79bba9de0\
          feb582d33934a4f0954cc2363bc73f7862ac430e64abe499f47c9b1f",
         "3a337dbf46a792c45e454913fe2ea8f2"],
        [KEY, IV_60, AAD, short,
         "5a8def2f0c9e53f1f75d7853659e2a20eeb2b22aafde6419a058ab4f6f746bf4\
          0fc0c3b780f244452da3ebf1c5d82cdea2418997200ef82e44ae7e3f",
         "a44a8266ee1c8eb0c8b5d4cf5ae9f19a"],
    ]
}

#[test]
fn known_answers_in_a_stream() {
    for backend in backends() {
        for (i, case) in mcgrew_viega().into_iter().enumerate() {
            let what = format!("{backend:?}, case {}", i + 1);
            let [key, iv, aad, plaintext, ciphertext, tag] =
                case.map(|text| hex::decode(text).unwrap());
            let key = GcmKey::on(backend, &key).unwrap();
            for (dir, from, to) in [
                (Direction::Encrypt, &plaintext, &ciphertext),
                (Direction::Decrypt, &ciphertext, &plaintext),
            ] {
                let mut out = from.clone();
                let mut stream = GcmStream::new(dir, &key, &iv);
                stream.aad(&aad);
                stream.update(InOutBuf::from(&mut out[..]));
                assert_eq!(stream.finish()[..], tag[..], "{what}");
                assert_eq!(out, *to, "{what}");
            }
        }
    }
}

#[test]
fn known_answers_in_a_batch() {
    let cases = mcgrew_viega().map(|case| case.map(|text| hex::decode(text).unwrap()));
    for (dir, from, to) in [(Direction::Encrypt, 3, 4), (Direction::Decrypt, 4, 3)] {
        let (messages, expected): (Vec<_>, Vec<_>) = cases
            .iter()
            .filter(|case| case[1].len() == 12)
            .map(|case| {
                let message = Message {
                    key: case[0].clone(),
                    nonce: case[1][..].try_into().unwrap(),
                    aad: case[2].clone(),
                    data: case[from].clone(),
                    shift: 0,
                    in_place: true,
                };
                let tag: [u8; 16] = case[5][..].try_into().unwrap();
                (message, (case[to].clone(), tag))
            })
            .unzip();
        for backend in backends() {
            assert_eq!(run(backend, dir, &messages), expected, "{backend:?}");
        }
    }
}

/// Each length around the places where vectors and chunks end, with additional data
/// of several lengths.
#[test]
fn every_length() {
    for backend in backends() {
        let messages: Vec<_> = (0..700)
            .chain([1023, 1024, 1025, 1400, 1520, 4096, 9000])
            .map(|len| Message {
                key: bytes([16, 24, 32][len % 3], 1),
                nonce: core::array::from_fn(|i| (len >> i) as u8),
                aad: bytes([0, 8, 12, 13, 16, 17, 20, 100][len % 8], 3),
                data: bytes(len, 5),
                shift: len % 5,
                in_place: len % 2 == 0,
            })
            .collect();
        for batch in messages.chunks(19) {
            check(backend, batch);
        }
    }
}

fn message() -> impl Strategy<Value = Message> {
    let len = prop_oneof![4 => 0..300usize, 2 => 300..2000usize, 1 => 2000..=9000usize];
    let aad = prop_oneof![0..=20usize, 0..=300usize];
    let key = prop_oneof![Just(16), Just(24), Just(32)]
        .prop_flat_map(|len| proptest::collection::vec(any::<u8>(), len));
    (
        key,
        any::<[u8; 12]>(),
        aad,
        len,
        any::<u8>(),
        0..64usize,
        any::<bool>(),
    )
        .prop_map(|(key, nonce, aad, len, seed, shift, in_place)| Message {
            key,
            nonce,
            aad: bytes(aad, seed),
            data: bytes(len, seed ^ 0x55),
            shift,
            in_place,
        })
}

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
    fn random_batches(messages in proptest::collection::vec(message(), 1..24)) {
        for backend in backends() {
            check(backend, &messages);
        }
    }

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
        for backend in backends() {
            let key = GcmKey::on(backend, &message.key).unwrap();
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
        for backend in backends() {
            let key = GcmKey::on(backend, &message.key).unwrap();
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
        for backend in backends() {
            let key = GcmKey::on(backend, &message.key).unwrap();
            let begun = Message { data: message.data[..cut].to_vec(), ..message.clone() };
            let (mut out, tag) = run(backend, dir, &[begun]).pop().unwrap();
            let done = Done {
                aad_len: message.aad.len() as u64,
                data_len: cut as u64,
                tag: &tag,
            };
            let state = GcmState::new(dir, &key, &message.nonce);
            let mut state = state.behind(&key, &InverseHashKey::new(&key), &done);
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
        for backend in backends() {
            let key = GcmKey::on(backend, &message.key).unwrap();
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
    for backend in backends() {
        let key = GcmKey::on(backend, &bytes_of_key).unwrap();
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
                    "{backend:?} {before} {len}"
                );
            }
        }
    }
}

/// A part may lie anywhere in the counter's range.
#[test]
fn parts_count_from_their_first_block() {
    for backend in backends() {
        let key = GcmKey::on(backend, &bytes(32, 2)).unwrap();
        let nonce = [7; 12];
        for first in [u32::MAX - 9, 1 << 31, 12345] {
            let mut out = vec![0; 16 * 40];
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
                assert_eq!(block, encrypt(&key, &counter), "{backend:?} {first} {i}");
            }
        }
    }
}

#[test]
fn batches_may_be_empty() {
    seal(&mut []);
    open(&mut []);
}

#[test]
fn other_key_lengths_are_refused() {
    for len in (0..80).filter(|len| ![16, 24, 32].contains(len)) {
        assert!(GcmKey::new(&vec![0; len]).is_none());
        let mut key = GcmKey::new(&[7; 24]).unwrap();
        let before = (*key.aes.enc(), key.hash_key);
        assert!(key.rekey(&vec![0; len]).is_none());
        assert_eq!((*key.aes.enc(), key.hash_key), before);
    }
}

#[test]
fn a_replaced_key_is_as_good_as_new() {
    for backend in backends() {
        let mut key = GcmKey::on(backend, &[0x5a; 32]).unwrap();
        for (len, seed) in [(24, 1), (16, 2), (16, 3), (32, 4), (16, 5), (24, 6)] {
            let bytes = bytes(len, seed);
            key.rekey(&bytes).unwrap();
            let fresh = GcmKey::on(backend, &bytes).unwrap();
            // Nothing of a longer one is left behind a shorter one.
            assert_eq!(key.aes.enc(), fresh.aes.enc());
            let mut data = [0x33; 700];
            let hash = part(
                Direction::Encrypt,
                &key,
                &[1; 12],
                0,
                (&mut data[..]).into(),
            );
            let (expected, tag) = naive::gcm_seal(&bytes, &[1; 12], b"aad", &[0x33; 700]);
            assert_eq!(data[..], expected, "{backend:?}");
            assert_eq!(join(&key, &[1; 12], b"aad", &[hash]), tag, "{backend:?}");
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
fn keys_are_shared_between_threads() {
    fn is_sync<T: Send + Sync>() {}
    is_sync::<GcmKey>();
}

#[test]
#[allow(unsafe_code)]
fn drop_wipes_the_key() {
    use core::mem::{ManuallyDrop, offset_of};
    for backend in backends() {
        let mut key = ManuallyDrop::new(GcmKey::on(backend, &[0x5a; 16]).unwrap());
        assert_ne!(key.hash_key, [0; 16]);
        let start = (&raw mut *key).cast::<u8>();
        // SAFETY: the key is dropped once; its memory outlives it, and the fields
        // read are plain bytes, valid in any state.
        unsafe {
            ManuallyDrop::drop(&mut key);
            let wiped = |offset: usize, len: usize| {
                (0..len).all(|i| start.add(offset + i).read_volatile() == 0)
            };
            assert!(wiped(offset_of!(GcmKey, hash_key), 16));
            #[cfg(target_arch = "x86_64")]
            assert!(wiped(
                offset_of!(GcmKey, table),
                size_of::<crate::x86_64::ghash::Table>()
            ));
        }
    }
}

/// Heads that end anywhere in a block, with data that fills it up or does not.
#[test]
fn macs_are_tags_of_additional_data() {
    let (key, nonce) = (bytes(32, 3), [7; 12]);
    for backend in backends() {
        let expanded = GcmKey::on(backend, &key).unwrap();
        for head in [0, 1, 8, 15, 16, 20, 31, 32, 40] {
            for len in (0..70).chain([127, 128, 129, 400, 1399, 1400]) {
                let (head, data) = (bytes(head, 5), bytes(len, 9));
                let both = [&head[..], &data].concat();
                let (_, expected) = naive::gcm_seal(&key, &nonce, &both, &[]);
                let tag = mac(&expanded, &nonce, &head, &data);
                assert_eq!(tag, expected, "{backend:?}, {} and {len} bytes", head.len());
            }
        }
    }
}
