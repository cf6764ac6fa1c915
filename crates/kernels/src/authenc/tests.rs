use super::*;
use crate::aead_batches::{Message, batches};
use crate::job::{Direction, SUFFIX};
use crate::naive;
use inout::InOutBuf;
use proptest::prelude::*;

/// What the tests need to know of a MAC.
trait Judged: Mac {
    const MAC: usize;
    fn naive(key: &[u8], message: &[u8]) -> Vec<u8>;
}

impl Judged for HmacSha256Key {
    const MAC: usize = 32;
    fn naive(key: &[u8], message: &[u8]) -> Vec<u8> {
        naive::hmac_sha256(key, message).to_vec()
    }
}

impl Judged for HmacSha512Key {
    const MAC: usize = 64;
    fn naive(key: &[u8], message: &[u8]) -> Vec<u8> {
        naive::hmac_sha512(key, message).to_vec()
    }
}

/// What the tests need to know of a cipher.
trait JudgedCipher: Cipher {
    /// Bytes of the shortest key, and by how much the next two are longer.
    const KEY: (usize, usize);
    fn naive(direction: Direction, key: &[u8], iv: &[u8; 16], data: &[u8]) -> Vec<u8>;
}

impl JudgedCipher for CbcAes {
    const KEY: (usize, usize) = (16, 8);
    fn naive(direction: Direction, key: &[u8], iv: &[u8; 16], data: &[u8]) -> Vec<u8> {
        match direction {
            Direction::Encrypt => naive::cbc_encrypt(key, iv, data),
            Direction::Decrypt => naive::cbc_decrypt(key, iv, data),
        }
    }
}

impl JudgedCipher for CtrAes {
    const KEY: (usize, usize) = (16, 8);
    fn naive(_: Direction, key: &[u8], iv: &[u8; 16], data: &[u8]) -> Vec<u8> {
        naive::ctr_apply(key, iv, data)
    }
}

impl JudgedCipher for CipherNull {
    const KEY: (usize, usize) = (0, 0);
    fn naive(_: Direction, _: &[u8], _: &[u8; 16], data: &[u8]) -> Vec<u8> {
        data.to_vec()
    }
}

/// Keys of any length for the MAC, of each that the cipher has for the cipher.
fn halves<C: JudgedCipher>(message: &Message) -> (&[u8], &[u8]) {
    let mac_len = message.iv[0] as usize % 65;
    let (mac, cipher) = message.key.split_at(64);
    let (least, step) = C::KEY;
    (&mac[..mac_len], &cipher[..least + step * message.key_len])
}

/// None, four bytes, or any number.
fn suffix(message: &Message) -> &[u8] {
    let len = match message.iv[1] % 4 {
        0 | 1 => 0,
        2 => 4,
        _ => message.iv[2] as usize % (SUFFIX + 1),
    };
    &message.key[..len]
}

/// From one byte to all of the MAC.
fn tag_len<M: Judged>(message: &Message) -> usize {
    message.iv[3] as usize % M::MAC + 1
}

/// The output and the tag that the message should have.
fn expected<M: Judged, C: JudgedCipher>(dir: Direction, message: &Message) -> (Vec<u8>, Vec<u8>) {
    let (mac, cipher) = halves::<C>(message);
    let (output, mut tag) = naive::authenc(
        dir,
        |data| C::naive(dir, cipher, &message.iv, data),
        |text| M::naive(mac, text),
        &message.aad,
        &message.data,
        suffix(message),
    );
    tag.truncate(tag_len::<M>(message));
    (output, tag)
}

/// Output, tag and verdict of every message of a batch, given the tags; each at an
/// alignment of its own. The output is `0xdd` before, or the input if `in_place`.
fn results<M: Judged, C: JudgedCipher>(
    messages: &[Message],
    mut tags: Vec<Vec<u8>>,
    in_place: bool,
    run: fn(&mut [AuthencJob<'_, AuthencKey<M, C>>]),
) -> Vec<(Vec<u8>, Vec<u8>, bool)> {
    let keys: Vec<_> = messages
        .iter()
        .map(|message| {
            let (mac, cipher) = halves::<C>(message);
            AuthencKey::<M, C>::new(mac, cipher).unwrap()
        })
        .collect();
    let mut outputs: Vec<_> = messages
        .iter()
        .enumerate()
        .map(|(i, message)| [&vec![0xee; i % 19], &message.data[..]].concat())
        .collect();
    let mut right = vec![false; messages.len()];
    let places = outputs.iter_mut().zip(&mut tags).zip(&mut right);
    let mut jobs: Vec<_> = places
        .enumerate()
        .zip(messages.iter().zip(&keys))
        .map(|((i, ((output, tag), right)), (message, key))| {
            let output = &mut output[i % 19..];
            let data = if in_place {
                InOutBuf::from(output)
            } else {
                output.fill(0xdd);
                InOutBuf::new(&message.data, output).unwrap()
            };
            AuthencJob {
                key,
                iv: message.iv,
                aad: &message.aad,
                data,
                suffix: suffix(message),
                tag,
                right,
            }
        })
        .collect();
    run(&mut jobs);
    let results = outputs.into_iter().enumerate().zip(tags).zip(right);
    let results =
        results.map(|(((i, output), tag), right)| (output[i % 19..].to_vec(), tag, right));
    results.collect()
}

/// Seals a batch, and opens it with every third tag wrong in a bit.
fn check<M: Judged, C: JudgedCipher>(messages: &[Message], in_place: bool) {
    let empty = messages
        .iter()
        .map(|message| vec![0xff; tag_len::<M>(message)])
        .collect();
    let sealed = results::<M, C>(messages, empty, in_place, seal);
    for (message, (output, tag, _)) in messages.iter().zip(sealed) {
        assert_eq!((output, tag), expected::<M, C>(Direction::Encrypt, message));
    }
    let mut tags = Vec::new();
    let mut right = Vec::new();
    for (message, i) in messages.iter().zip(0..) {
        let (plain, mut tag) = expected::<M, C>(Direction::Decrypt, message);
        let forged = i % 3 == 2;
        if forged {
            let bit = i % (8 * tag.len());
            tag[bit / 8] ^= 1 << (bit % 8);
        }
        let untouched = match in_place {
            true => message.data.clone(),
            false => vec![0xdd; message.data.len()],
        };
        let output = if forged { untouched } else { plain };
        right.push((output, tag.clone(), !forged));
        tags.push(tag);
    }
    assert_eq!(results::<M, C>(messages, tags, in_place, open), right);
}

macro_rules! combinations {
    ($($name:ident: $mac:ty, $cipher:ty, $unit:literal, $cases:literal;)*) => {$(
        mod $name {
            use super::*;

            proptest! {
                #![proptest_config(ProptestConfig::with_cases($cases))]
                #[test]
                fn batches_agree_with_the_reference(
                    messages in batches($unit),
                    in_place: bool,
                ) {
                    check::<$mac, $cipher>(&messages, in_place);
                }
            }
        }
    )*};
}

combinations! {
    sha256_cbc: HmacSha256Key, CbcAes, 16, 16;
    sha512_cbc: HmacSha512Key, CbcAes, 16, 8;
    sha256_ctr: HmacSha256Key, CtrAes, 1, 8;
    sha512_ctr: HmacSha512Key, CtrAes, 1, 8;
    sha256_null: HmacSha256Key, CipherNull, 1, 8;
    sha512_null: HmacSha512Key, CipherNull, 1, 8;
}

/// A few messages take another way than a batch: all lengths around its beginning, with
/// associated data that ends anywhere in a block of the hash, alone and in company of
/// others, with keys of one length or of several.
#[test]
fn few_messages_agree_with_the_reference() {
    let bytes: Vec<u8> = (0..2000_u32).map(|i| ((i * i) >> 5) as u8).collect();
    let mut messages = Vec::new();
    for (len, i) in (0..=640).step_by(16).chain([1392, 1600]).zip(0..) {
        for aad_len in (0..=140).filter(|n| (n + i) % 7 == 0) {
            messages.push(Message {
                key: bytes[i..][..96].try_into().unwrap(),
                key_len: aad_len % 3,
                iv: bytes[aad_len..][..16].try_into().unwrap(),
                aad: bytes[7..][..aad_len].to_vec(),
                data: bytes[i..][..len].to_vec(),
            });
        }
    }
    for (i, message) in messages.iter().enumerate() {
        check::<HmacSha256Key, CbcAes>(std::slice::from_ref(message), i % 2 == 0);
    }
    let from = messages.len();
    let scattered = (0..from).map(|i| messages[i * 7919 % from].clone());
    let mut scattered: Vec<_> = scattered.collect();
    for company in 2..=4 {
        for (i, group) in scattered.chunks_mut(company).enumerate() {
            if i % 4 > 0 {
                group.iter_mut().for_each(|message| message.key_len = i % 3);
            }
            check::<HmacSha256Key, CbcAes>(group, i % 2 == 0);
        }
    }
}

/// The key of the MAC is 00 01 .., as long as the digest; the plaintext 00 01 .., as long
/// as the ciphertext; the suffix the number 1 in four bytes.
fn packet<M: Judged, C: Cipher>(key: &str, iv: &str, aad: &str, ciphertext: &str, tag: &str) {
    let [key, iv, aad] = [key, iv, aad].map(|hex| hex::decode(hex).unwrap());
    let mac_key: Vec<u8> = (0..M::MAC as u8).collect();
    let key = AuthencKey::<M, C>::new(&mac_key, &key).unwrap();
    let plain: Vec<u8> = (0..ciphertext.len() as u8 / 2).collect();
    for batch in [1, 2, 4, 16, 21] {
        let mut packets = vec![(plain.clone(), vec![0; M::MAC], false); batch];
        for opening in [false, true] {
            let mut jobs: Vec<_> = packets
                .iter_mut()
                .map(|(data, tag, right)| AuthencJob {
                    key: &key,
                    iv: iv[..].try_into().unwrap(),
                    aad: &aad,
                    data: InOutBuf::from(&mut data[..]),
                    suffix: &[0, 0, 0, 1],
                    tag,
                    right,
                })
                .collect();
            let plain = hex::encode(&plain);
            let expected = match opening {
                false => {
                    seal(&mut jobs);
                    ciphertext
                }
                true => {
                    open(&mut jobs);
                    assert!(jobs.iter().all(|job| *job.right), "{batch} packets");
                    &plain
                }
            };
            drop(jobs);
            for (data, mac, _) in &packets {
                assert_eq!(hex::encode(data), expected, "{batch} packets");
                assert_eq!(hex::encode(mac), tag, "{batch} packets");
            }
        }
    }
}

/// Ciphertexts of RFC 3602 section 4 case 2 and RFC 3686 section 6 vector 3; MACs by
/// Python's hashlib.
#[test]
fn packets_of_esp() {
    packet::<HmacSha256Key, CbcAes>(
        "c286696d887c9aa0611bbb3e2025a45a",
        "562e17996d093d28ddb3ba695a2e6f58",
        "0000432187654321562e17996d093d28ddb3ba695a2e6f58",
        "d296cd94c2cccf8a3a863028b5e1dc0a7586602d253cfff91b8266bea6d61ab1",
        "060efbd60d89f63d0826d970bf4abe9ff33f5b6adc316f04a6932ca62ec47d80",
    );
    packet::<HmacSha256Key, CtrAes>(
        "7691be035e5020a8ac6e618529f9a0dc",
        "00e0017b27777f3f4a1786f000000001",
        "000043218765432127777f3f4a1786f0",
        "c1cf48a89f2ffdd9cf4652e9efdb72d74540a42bde6d7836d59a5ceaaef3105325b2072f",
        "8e1c1ea0c784ea2b283a12f9c48c29ea401cd2cde0da96ab8d0c1d54fc0cebf2",
    );
    packet::<HmacSha512Key, CbcAes>(
        "c286696d887c9aa0611bbb3e2025a45a",
        "562e17996d093d28ddb3ba695a2e6f58",
        "0000432187654321562e17996d093d28ddb3ba695a2e6f58",
        "d296cd94c2cccf8a3a863028b5e1dc0a7586602d253cfff91b8266bea6d61ab1",
        "4e9a264c233d531a8bc3d2a421134cfbd5d44477cbd5e864db6885686ad1c902394d77431af1c2359ff91cc6cb737fa579295bee4d350ebce07027b6631f4f03",
    );
    packet::<HmacSha512Key, CtrAes>(
        "7691be035e5020a8ac6e618529f9a0dc",
        "00e0017b27777f3f4a1786f000000001",
        "000043218765432127777f3f4a1786f0",
        "c1cf48a89f2ffdd9cf4652e9efdb72d74540a42bde6d7836d59a5ceaaef3105325b2072f",
        "f367b55048d1755daa49f4df5c52e922ed7b4d8828e7f77962b1026941967054f9c38ed0d83275727a10a9aa2a5acc815e1274ca1cfc573c827cd036d470a19a",
    );
}

#[test]
fn cipher_keys_of_other_lengths_are_refused() {
    for len in (0..100).filter(|len| ![16, 24, 32].contains(len)) {
        let key = vec![0; len];
        assert!(AuthencKey::<HmacSha256Key, CbcAes>::new(&[1; 32], &key).is_none());
        assert!(AuthencKey::<HmacSha256Key, CtrAes>::new(&[1; 32], &key).is_none());
        let taken = AuthencKey::<HmacSha256Key, CipherNull>::new(&[1; 32], &key).is_some();
        assert_eq!(taken, len == 0);
    }
}

fn seal_one(len: usize, suffix: usize) {
    let key = AuthencKey::<HmacSha256Key, CbcAes>::new(&[1; 32], &[2; 16]).unwrap();
    seal(&mut [AuthencJob {
        key: &key,
        iv: [0; 16],
        aad: &[],
        data: InOutBuf::from(&mut vec![0; len][..]),
        suffix: &vec![0; suffix],
        tag: &mut [0; 32],
        right: &mut false,
    }]);
}

#[test]
#[should_panic]
fn a_broken_block_is_refused() {
    seal_one(17, 0);
}

#[test]
#[should_panic(expected = "suffix")]
fn a_long_suffix_is_refused() {
    seal_one(32, SUFFIX + 1);
}
