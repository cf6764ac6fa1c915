//! ChaCha20-Poly1305 (RFC 8439).

use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::job::{AeadJob, Direction};
use crate::portable;

/// A key of ChaCha20-Poly1305. Wiped on drop.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct ChaChaKey([u8; 32]);

impl ChaChaKey {
    /// Takes a key of 32 bytes; `None` for any other length.
    pub fn new(key: &[u8]) -> Option<ChaChaKey> {
        key.try_into().ok().map(ChaChaKey)
    }
}

/// Encrypts every job and computes its tag of 16 bytes.
pub fn seal(jobs: &mut [AeadJob<'_, ChaChaKey>]) {
    crypt(Direction::Encrypt, jobs);
}

/// Decrypts every job and computes the tag of 16 bytes that it should have.
pub fn open(jobs: &mut [AeadJob<'_, ChaChaKey>]) {
    crypt(Direction::Decrypt, jobs);
}

fn crypt(dir: Direction, jobs: &mut [AeadJob<'_, ChaChaKey>]) {
    for job in jobs {
        let (nonce, _) = job.iv.split_first_chunk().expect("12 of 16 bytes");
        let tag = portable::chacha::crypt(dir, &job.key.0, nonce, job.aad, job.data.reborrow());
        job.tag = [0; 32];
        job.tag[..16].copy_from_slice(&tag);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::naive;
    use inout::InOutBuf;
    use proptest::collection::vec;
    use proptest::prelude::*;

    #[test]
    fn keys_of_other_lengths_are_refused() {
        for len in (0..100).filter(|&len| len != 32) {
            assert!(ChaChaKey::new(&vec![0; len]).is_none());
        }
    }

    /// RFC 8439, section 2.8.2.
    #[test]
    fn rfc_8439_example() {
        let key: Vec<u8> = (0x80..0xa0).collect();
        let key = ChaChaKey::new(&key).unwrap();
        let mut iv = [0; 16];
        hex::decode_to_slice("07000000404142434445464700000000", &mut iv).unwrap();
        let mut data = *b"Ladies and Gentlemen of the class of '99: If I could offer you \
                          only one tip for the future, sunscreen would be it.";
        let mut jobs = [AeadJob {
            key: &key,
            iv,
            aad: &hex::decode("50515253c0c1c2c3c4c5c6c7").unwrap(),
            data: InOutBuf::from(&mut data[..]),
            tag: [0xff; 32],
        }];
        seal(&mut jobs);
        let expected = "1ae10b594f09e26a7e902ecbd0600691".to_owned() + &"00".repeat(16);
        assert_eq!(hex::encode(jobs[0].tag), expected);
        assert_eq!(hex::encode(&data[..8]), "d31a8d34648e60db");
        assert_eq!(hex::encode(&data[108..]), "86cec64b6116");
    }

    /// Messages of a batch: key, nonce, associated data, data.
    type Messages = Vec<([u8; 32], [u8; 16], Vec<u8>, Vec<u8>)>;

    fn messages() -> impl Strategy<Value = Messages> {
        let bytes = |most: usize| {
            prop_oneof![
                3 => vec(any::<u8>(), 0..=most.min(300)),
                1 => vec(any::<u8>(), 0..=most)
            ]
        };
        vec(
            (
                any::<[u8; 32]>(),
                any::<[u8; 16]>(),
                bytes(600),
                bytes(9000),
            ),
            0..=20,
        )
    }

    /// Runs a batch through `run`, in place or not, each message at its own alignment.
    fn results(
        messages: &Messages,
        in_place: bool,
        run: fn(&mut [AeadJob<'_, ChaChaKey>]),
    ) -> Vec<(Vec<u8>, [u8; 32])> {
        let keys: Vec<_> = messages
            .iter()
            .map(|m| ChaChaKey::new(&m.0).unwrap())
            .collect();
        let mut outputs: Vec<Vec<u8>> = messages
            .iter()
            .zip(0..)
            .map(|(m, i)| [&vec![0xee; i % 19], &m.3[..]].concat())
            .collect();
        let mut jobs: Vec<_> = outputs
            .iter_mut()
            .zip(messages)
            .zip(&keys)
            .enumerate()
            .map(|(i, ((out, m), key))| {
                let out = &mut out[i % 19..];
                let data = if in_place {
                    InOutBuf::from(out)
                } else {
                    out.fill(0xdd);
                    InOutBuf::new(&m.3, out).unwrap()
                };
                AeadJob {
                    key,
                    iv: m.1,
                    aad: &m.2,
                    data,
                    tag: [0xff; 32],
                }
            })
            .collect();
        run(&mut jobs);
        let tags: Vec<_> = jobs.iter().map(|job| job.tag).collect();
        outputs
            .iter()
            .zip(tags)
            .enumerate()
            .map(|(i, (out, tag))| (out[i % 19..].to_vec(), tag))
            .collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn batches_agree_with_the_reference(messages in messages(), in_place: bool) {
            let sealed = results(&messages, in_place, seal);
            let opened = results(&messages, in_place, open);
            for ((m, sealed), opened) in messages.iter().zip(sealed).zip(opened) {
                let nonce = m.1[..12].try_into().unwrap();
                let mut tag = [0; 32];
                let (data, short) = naive::chacha20poly1305_seal(&m.0, nonce, &m.2, &m.3);
                tag[..16].copy_from_slice(&short);
                prop_assert_eq!(sealed, (data, tag));
                let (data, short) = naive::chacha20poly1305_open(&m.0, nonce, &m.2, &m.3);
                tag[..16].copy_from_slice(&short);
                prop_assert_eq!(opened, (data, tag));
            }
        }
    }
}
