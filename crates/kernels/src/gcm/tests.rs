//! Every implementation against the standard's vectors, the naive reference, and
//! the other ways to give it the same message.

mod alike;
mod known_answers;
mod pieces;

use std::collections::BTreeMap;

use inout::InOutBuf;
use proptest::prelude::*;

use super::key::Implementation;
use super::lazy::LITTLE;
use super::*;
#[cfg(target_arch = "x86_64")]
use crate::cpu::{HaveAesNi, HaveClmul, HaveVaes, HaveVaes512};
use crate::naive;

/// Every implementation that this machine has.
fn implementations() -> Vec<Implementation> {
    let mut all = vec![Implementation::Portable];
    #[cfg(target_arch = "x86_64")]
    {
        all.extend(HaveAesNi::new().map(Implementation::Bare));
        all.extend(HaveClmul::new().map(Implementation::AesNi));
        all.extend(HaveVaes::new().map(Implementation::Vaes));
        all.extend(HaveVaes512::new().map(Implementation::Vaes512));
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
fn run(
    implementation: Implementation,
    dir: Direction,
    messages: &[Message],
) -> Vec<(Vec<u8>, [u8; 16])> {
    const AROUND: usize = 80;
    // One for all messages of a key.
    let keys: BTreeMap<_, _> = messages
        .iter()
        .map(|m| (&m.key, GcmKey::on(implementation, &m.key).unwrap()))
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
    let mut tags = vec![[0x99; 16]; messages.len()];
    let mut jobs: Vec<_> = messages
        .iter()
        .zip(inputs.iter().zip(&mut outputs))
        .zip(&mut tags)
        .map(|((m, (input, output)), tag)| {
            let range = AROUND + m.shift..AROUND + m.shift + m.data.len();
            let output = &mut output[range.clone()];
            let mut iv = [0x77; 16];
            iv[..12].copy_from_slice(&m.nonce);
            AeadJob {
                key: &keys[&m.key],
                iv,
                aad: &m.aad,
                data: if m.in_place {
                    InOutBuf::from(output)
                } else {
                    InOutBuf::new(&input[range], output).unwrap()
                },
                tag,
            }
        })
        .collect();
    match dir {
        Direction::Encrypt => seal(&mut jobs),
        Direction::Decrypt => open(&mut jobs),
    }
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

fn check(implementation: Implementation, messages: &[Message]) {
    for dir in [Direction::Encrypt, Direction::Decrypt] {
        let results = run(implementation, dir, messages);
        for (i, (message, result)) in messages.iter().zip(results).enumerate() {
            let expected = message.naive(dir);
            let what = format!(
                "{implementation:?} {dir:?}, job {i}: key {}, aad {}, data {}, in place {}",
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

/// Each length around the places where vectors and chunks end, with additional data
/// of several lengths.
#[test]
fn every_length() {
    for implementation in implementations() {
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
            check(implementation, batch);
        }
    }
}

/// Behind 256 blocks kernels begin with what they kept of these. Around where that begins and where
/// the last byte of the counter comes again.
#[test]
fn long_messages() {
    let ends = [6144, 8192 - 32, 8192, 12288 - 32];
    let lengths = ends.iter().flat_map(|end| end - 20..end + 20);
    let mut messages: Vec<_> = lengths
        .chain((6500..21_000).step_by(487))
        .map(|len| Message {
            key: bytes([16, 24, 32][len % 3], 1),
            nonce: core::array::from_fn(|i| (len >> i) as u8),
            aad: bytes([8, 0, 12, 40][len % 4], 3),
            data: bytes(len, 5),
            shift: len % 64,
            in_place: len % 2 == 0,
        })
        .collect();
    messages.sort_by_key(|message| message.data.len());
    for implementation in implementations() {
        check(implementation, &messages);
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn random_batches(messages in proptest::collection::vec(message(), 1..24)) {
        for implementation in implementations() {
            check(implementation, &messages);
        }
    }
}

/// Short messages and long ones, alone and in a batch, with tags of every length.
#[test]
fn a_short_tag_is_the_front_of_the_whole_one() {
    for implementation in implementations() {
        let key = GcmKey::on(implementation, &[7; 16]).unwrap();
        for len in [0, 64, 3000] {
            let (_, whole) = naive::gcm_seal(&[7; 16], &[1; 12], b"aad", &bytes(len, 3));
            let mut data = vec![bytes(len, 3); 17];
            let mut tags: Vec<_> = (0..=16).map(|asked| vec![0x99; asked]).collect();
            let mut jobs: Vec<_> = data
                .iter_mut()
                .zip(&mut tags)
                .map(|(data, tag)| AeadJob {
                    key: &key,
                    iv: [1; 16],
                    aad: b"aad",
                    data: InOutBuf::from(&mut data[..]),
                    tag,
                })
                .collect();
            let (alone, others) = jobs.split_at_mut(5);
            seal(others);
            alone
                .iter_mut()
                .for_each(|job| seal(core::slice::from_mut(job)));
            for tag in tags {
                assert_eq!(tag, whole[..tag.len()], "{implementation:?}, {len} bytes");
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
    for implementation in implementations() {
        let mut key = GcmKey::on(implementation, &[0x5a; 32]).unwrap();
        for (len, seed) in [(24, 1), (16, 2), (16, 3), (32, 4), (16, 5), (24, 6)] {
            let bytes = bytes(len, seed);
            key.rekey_on(implementation, &bytes).unwrap();
            let fresh = GcmKey::on(implementation, &bytes).unwrap();
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
            assert_eq!(data[..], expected, "{implementation:?}");
            assert_eq!(
                join(&key, &[1; 12], b"aad", &[hash]),
                tag,
                "{implementation:?}"
            );
        }
    }
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
    for implementation in implementations() {
        let mut key = ManuallyDrop::new(GcmKey::on(implementation, &[0x5a; 16]).unwrap());
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
            assert!(wiped(offset_of!(GcmKey, table), size_of::<powers::Table>()));
        }
    }
}

/// Heads that end anywhere in a block, with data that fills it up or does not.
#[test]
fn macs_are_tags_of_additional_data() {
    let (key, nonce) = (bytes(32, 3), [7; 12]);
    for implementation in implementations() {
        let expanded = GcmKey::on(implementation, &key).unwrap();
        for head in [0, 1, 8, 15, 16, 20, 31, 32, 40] {
            for len in (0..70).chain([127, 128, 129, 400, 1399, 1400]) {
                let (head, data) = (bytes(head, 5), bytes(len, 9));
                let both = [&head[..], &data].concat();
                let (_, expected) = naive::gcm_seal(&key, &nonce, &both, &[]);
                let tag = mac(&expanded, &nonce, &head, &data);
                assert_eq!(
                    tag,
                    expected,
                    "{implementation:?}, {} and {len} bytes",
                    head.len()
                );
            }
        }
    }
}
