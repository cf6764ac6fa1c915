//! Random batches (mixed keys, lengths and alignments, in place and not) through the
//! kernels and through aws-lc-rs, which shares no code with them.

use aws_lc_rs::aead::{self, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::cipher::{
    self as aws, DecryptingKey, DecryptionContext, EncryptingKey, EncryptionContext,
    UnboundCipherKey,
};
use aws_lc_rs::iv::FixedLength;
use cipherlane_kernels::aes::AesKey;
use cipherlane_kernels::chacha::{self, ChaChaKey};
use cipherlane_kernels::gcm::{self, GcmKey};
use cipherlane_kernels::hmac::{self, HmacSha256Key, HmacSha512Key};
use cipherlane_kernels::job::{AeadJob, CipherJob, MacJob};
use cipherlane_kernels::{cbc, ctr};
use inout::InOutBuf;
use proptest::collection::vec;
use proptest::prelude::*;

#[derive(Clone, Debug)]
struct Message {
    key: [u8; 32],
    /// AES: 16, 24 or 32 bytes of it.
    key_len: usize,
    iv: [u8; 16],
    aad: Vec<u8>,
    data: Vec<u8>,
    offset: usize,
    in_place: bool,
}

impl Message {
    fn key(&self) -> &[u8] {
        &self.key[..self.key_len]
    }

    /// Data of whole blocks.
    fn blocks(mut self) -> Self {
        self.data.truncate(self.data.len() & !15);
        self
    }
}

fn batches() -> impl Strategy<Value = Vec<Message>> {
    let data = prop_oneof![
        3 => vec(any::<u8>(), 0..=300),
        1 => vec(any::<u8>(), 0..=9000),
    ];
    let message = (
        any::<[u8; 32]>(),
        prop_oneof![Just(16usize), Just(24), Just(32)],
        any::<[u8; 16]>(),
        vec(any::<u8>(), 0..=60),
        data,
        0..64usize,
        any::<bool>(),
    );
    let message = message.prop_map(|(key, key_len, iv, aad, data, offset, in_place)| Message {
        key,
        key_len,
        iv,
        aad,
        data,
        offset,
        in_place,
    });
    vec(message, 0..=40)
}

/// Gives the kernel every message at its alignment; the outputs.
fn outputs(
    messages: &[Message],
    run: impl FnOnce(Vec<(&Message, InOutBuf<'_, '_, u8>)>),
) -> Vec<Vec<u8>> {
    let place = |m: &Message| [&vec![0; m.offset][..], &m.data].concat();
    let inputs: Vec<_> = messages.iter().map(place).collect();
    let mut outputs = inputs.clone();
    let places = messages.iter().zip(inputs.iter().zip(&mut outputs));
    run(places
        .map(|(m, (input, output))| {
            let (input, output) = (&input[m.offset..], &mut output[m.offset..]);
            let data = match m.in_place {
                true => output.into(),
                false => {
                    output.fill(0xdd);
                    InOutBuf::new(input, output).expect("equal lengths")
                }
            };
            (m, data)
        })
        .collect());
    let cut = |(output, m): (&Vec<u8>, &Message)| output[m.offset..].to_vec();
    outputs.iter().zip(messages).map(cut).collect()
}

fn ciphers(
    messages: &[Message],
    run: fn(&mut [CipherJob<'_, AesKey>]),
    theirs: impl Fn(&Message, &mut [u8]),
) -> Result<(), TestCaseError> {
    let aes = |m: &Message| AesKey::new(m.key()).expect("an AES key");
    let keys: Vec<_> = messages.iter().map(aes).collect();
    let ours = outputs(messages, |places| {
        let jobs = places.into_iter().zip(&keys);
        let job = |((m, data), key): ((&Message, _), _)| CipherJob {
            key,
            iv: m.iv,
            data,
        };
        run(&mut jobs.map(job).collect::<Vec<_>>());
    });
    for (m, ours) in messages.iter().zip(ours) {
        let mut data = m.data.clone();
        theirs(m, &mut data);
        prop_assert_eq!(ours, data);
    }
    Ok(())
}

/// Sealed by both, and opened by the kernels: output and tag.
fn aeads<K>(
    messages: &[Message],
    key: impl Fn(&Message) -> K,
    seal: fn(&mut [AeadJob<'_, K>]),
    open: fn(&mut [AeadJob<'_, K>]),
    theirs: impl Fn(&Message) -> UnboundKey,
) -> Result<(), TestCaseError> {
    let keys: Vec<_> = messages.iter().map(key).collect();
    let run = |messages: &[Message], kernel: fn(&mut [AeadJob<'_, K>])| {
        let mut tags = vec![vec![0; 16]; messages.len()];
        let outputs = outputs(messages, |places| {
            let jobs = places.into_iter().zip(&keys).zip(&mut tags);
            let mut jobs: Vec<_> = jobs
                .map(|(((m, data), key), tag)| AeadJob {
                    key,
                    iv: m.iv,
                    aad: &m.aad,
                    data,
                    tag,
                })
                .collect();
            kernel(&mut jobs);
        });
        outputs.into_iter().zip(tags).collect::<Vec<_>>()
    };
    let sealed: Vec<_> = messages
        .iter()
        .map(|m| {
            let mut data = m.data.clone();
            let nonce = Nonce::try_assume_unique_for_key(&m.iv[..12]).expect("12 bytes");
            let tag = LessSafeKey::new(theirs(m))
                .seal_in_place_separate_tag(nonce, Aad::from(&m.aad), &mut data)
                .expect("seals");
            (data, tag.as_ref().to_vec())
        })
        .collect();
    prop_assert_eq!(&run(messages, seal), &sealed);
    let received = messages.iter().zip(&sealed).map(|(m, (data, _))| Message {
        data: data.clone(),
        ..m.clone()
    });
    let opened = run(&received.collect::<Vec<_>>(), open);
    for ((m, (data, tag)), (_, sent)) in messages.iter().zip(opened).zip(&sealed) {
        prop_assert_eq!((&data, &tag), (&m.data, sent));
    }
    Ok(())
}

fn macs<K>(
    messages: &[Message],
    key: fn(&[u8]) -> K,
    run: fn(&mut [MacJob<'_, K>]),
    theirs: aws_lc_rs::hmac::Algorithm,
) -> Result<(), TestCaseError> {
    let keys: Vec<_> = messages.iter().map(|m| key(m.key())).collect();
    let mut macs = vec![vec![0; theirs.digest_algorithm().output_len]; messages.len()];
    let jobs = messages.iter().zip(&keys).zip(&mut macs);
    let jobs = jobs.map(|((m, key), mac)| MacJob {
        key,
        head: &m.aad,
        data: &m.data,
        suffix: &[],
        mac,
    });
    run(&mut jobs.collect::<Vec<_>>());
    for (m, ours) in messages.iter().zip(&macs) {
        let key = aws_lc_rs::hmac::Key::new(theirs, m.key());
        let mac = aws_lc_rs::hmac::sign(&key, &[&m.aad[..], &m.data].concat());
        prop_assert_eq!(&ours[..], mac.as_ref());
    }
    Ok(())
}

fn aws_key(m: &Message) -> UnboundCipherKey {
    let algorithm = match m.key_len {
        16 => &aws::AES_128,
        24 => &aws::AES_192,
        _ => &aws::AES_256,
    };
    UnboundCipherKey::new(algorithm, m.key()).expect("a key of the algorithm")
}

proptest! {
    #[test]
    fn gcm_agrees(messages in batches()) {
        let key = |m: &Message| GcmKey::new(m.key()).expect("an AES key");
        aeads(&messages, key, gcm::seal, gcm::open, |m| {
            let algorithm = match m.key_len {
                16 => &aead::AES_128_GCM,
                24 => &aead::AES_192_GCM,
                _ => &aead::AES_256_GCM,
            };
            UnboundKey::new(algorithm, m.key()).expect("a key of the algorithm")
        })?;
    }

    #[test]
    fn chacha_agrees(messages in batches()) {
        let key = |m: &Message| ChaChaKey::new(&m.key).expect("32 bytes");
        aeads(&messages, key, chacha::seal, chacha::open, |m| {
            UnboundKey::new(&aead::CHACHA20_POLY1305, &m.key).expect("32 bytes")
        })?;
    }

    #[test]
    fn cbc_agrees(messages in batches()) {
        let messages: Vec<_> = messages.into_iter().map(Message::blocks).collect();
        ciphers(&messages, cbc::encrypt, |m, data| {
            let iv = EncryptionContext::Iv128(FixedLength::from(m.iv));
            let key = EncryptingKey::cbc(aws_key(m)).expect("a key");
            key.less_safe_encrypt(data, iv).expect("encrypts");
        })?;
        ciphers(&messages, cbc::decrypt, |m, data| {
            let iv = DecryptionContext::Iv128(FixedLength::from(m.iv));
            let key = DecryptingKey::cbc(aws_key(m)).expect("a key");
            key.decrypt(data, iv).expect("decrypts");
        })?;
    }

    #[test]
    fn ctr_agrees(messages in batches()) {
        ciphers(&messages, ctr::apply, |m, data| {
            let iv = EncryptionContext::Iv128(FixedLength::from(m.iv));
            let key = EncryptingKey::ctr(aws_key(m)).expect("a key");
            key.less_safe_encrypt(data, iv).expect("encrypts");
        })?;
    }

    #[test]
    fn hmac_agrees(messages in batches()) {
        macs(&messages, HmacSha256Key::new, hmac::sha256, aws_lc_rs::hmac::HMAC_SHA256)?;
        macs(&messages, HmacSha512Key::new, hmac::sha512, aws_lc_rs::hmac::HMAC_SHA512)?;
    }
}
