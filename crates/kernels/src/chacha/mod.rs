//! ChaCha20-Poly1305 (RFC 8439): whole messages in batches, and single ones in pieces.

mod implementation;
pub(crate) mod key;
mod stream;

pub use self::key::ChaChaKey;
pub use self::stream::ChaChaState;
use crate::choose::choose;
use crate::job::{AeadJob, Direction};
use crate::portable;
use crate::wipe::on_portable;

/// Encrypts every job and computes its tag of 16 bytes.
pub fn seal(jobs: &mut [AeadJob<'_, ChaChaKey>]) {
    crypt(Direction::Encrypt, jobs);
}

/// Decrypts every job and computes the tag of 16 bytes that it should have.
pub fn open(jobs: &mut [AeadJob<'_, ChaChaKey>]) {
    crypt(Direction::Decrypt, jobs);
}

fn crypt(dir: Direction, jobs: &mut [AeadJob<'_, ChaChaKey>]) {
    choose! {
        avx2: HaveAvx2 => {
            crate::x86_64::chacha::crypt(avx2, crate::cpu::HaveAvx512::new(), dir, jobs);
            if jobs.len() > 1 {
                crate::wipe::dead_stack::<{ 8 << 10 }>();
            }
        },
        _ => on_portable(|| portable(dir, jobs)),
    }
}

fn portable(dir: Direction, jobs: &mut [AeadJob<'_, ChaChaKey>]) {
    for job in jobs {
        let (nonce, _) = job.iv.split_first_chunk().expect("12 of 16 bytes");
        let tag = portable::chacha::crypt(dir, &job.key.0, nonce, job.aad, job.data.reborrow());
        job.write_tag(&tag);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aead_batches::{Message, batches, cut, results};
    use crate::naive;
    use inout::InOutBuf;
    use proptest::prelude::*;
    use zeroize::{Zeroize, ZeroizeOnDrop};

    #[test]
    fn keys_of_other_lengths_are_refused() {
        for len in (0..100).filter(|&len| len != 32) {
            assert!(ChaChaKey::new(&vec![0; len]).is_none());
        }
    }

    #[test]
    fn wiping_clears_the_key() {
        fn on_drop<K: ZeroizeOnDrop>(_: &K) {}
        let mut key = ChaChaKey::new(&[0x5a; 32]).unwrap();
        on_drop(&key);
        key.zeroize();
        assert_eq!(key.0, [0; 32]);
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
        let mut tag = [0xff; 16];
        seal(&mut [AeadJob {
            key: &key,
            iv,
            aad: &hex::decode("50515253c0c1c2c3c4c5c6c7").unwrap(),
            data: InOutBuf::from(&mut data[..]),
            tag: &mut tag,
        }]);
        assert_eq!(hex::encode(tag), "1ae10b594f09e26a7e902ecbd0600691");
        assert_eq!(hex::encode(&data[..8]), "d31a8d34648e60db");
        assert_eq!(hex::encode(&data[108..]), "86cec64b6116");
    }

    fn key(message: &Message) -> ChaChaKey {
        ChaChaKey::new(&message.key[..32]).unwrap()
    }

    /// With this many of the tokens for AVX2 and AVX-512, as far as there are as many.
    fn crypt_by(tokens: usize, dir: Direction, jobs: &mut [AeadJob<'_, ChaChaKey>]) {
        #[cfg(target_arch = "x86_64")]
        if let (1.., Some(avx2)) = (tokens, crate::cpu::HaveAvx2::new()) {
            let avx512 = crate::cpu::HaveAvx512::new().filter(|_| tokens > 1);
            return crate::x86_64::chacha::crypt(avx2, avx512, dir, jobs);
        }
        portable(dir, jobs);
    }

    /// Every number of blocks, of bytes over, and of steps of the vectors.
    #[test]
    fn messages_of_every_length_agree_with_the_reference() {
        let key = ChaChaKey([0x31; 32]);
        let (iv, aad) = ([0x11; 16], [0xff; 33]);
        let nonce = iv[..12].try_into().unwrap();
        let bytes: Vec<u8> = (0..4200).map(|i| (i * 7 + i / 256) as u8).collect();
        for len in (0..1300).chain((1300..4200).step_by(61)) {
            let (data, aad) = (&bytes[..len], &aad[..len % 34]);
            let sealed = naive::chacha20poly1305_seal(&key.0, nonce, aad, data);
            let opened = naive::chacha20poly1305_open(&key.0, nonce, aad, data);
            for tokens in 0..3 {
                for (dir, expected) in
                    [(Direction::Encrypt, &sealed), (Direction::Decrypt, &opened)]
                {
                    let (mut data, mut tag) = (data.to_vec(), [0; 16]);
                    let job = AeadJob {
                        key: &key,
                        iv,
                        aad,
                        data: InOutBuf::from(&mut data[..]),
                        tag: &mut tag,
                    };
                    crypt_by(tokens, dir, &mut [job]);
                    assert_eq!(
                        (&data, &tag),
                        (&expected.0, &expected.1),
                        "{len} by {tokens}"
                    );
                }
            }
        }
    }

    /// The last of each goes through the MAC beside the first of the next, whatever is left of it.
    #[test]
    fn long_messages_of_a_batch_agree_with_the_reference() {
        let key = ChaChaKey([0x31; 32]);
        let (iv, aad) = ([0x11; 16], [0xff; 33]);
        let nonce = iv[..12].try_into().unwrap();
        let bytes: Vec<u8> = (0..2000).map(|i| (i * 7 + i / 256) as u8).collect();
        for first in (500..1500).step_by(23) {
            let lens = [first, 2000 - first, 1472, first + 1, 100, 512];
            for tokens in 0..3 {
                for (dir, reference) in [
                    (
                        Direction::Encrypt,
                        naive::chacha20poly1305_seal as fn(_, _, _, _) -> _,
                    ),
                    (Direction::Decrypt, naive::chacha20poly1305_open),
                ] {
                    let mut data = lens.map(|len| bytes[..len].to_vec());
                    let mut tags = [[0; 16]; 6];
                    let jobs = data.iter_mut().zip(&mut tags).map(|(data, tag)| AeadJob {
                        key: &key,
                        iv,
                        aad: &aad,
                        data: InOutBuf::from(&mut data[..]),
                        tag,
                    });
                    crypt_by(tokens, dir, &mut jobs.collect::<Vec<_>>());
                    for ((data, tag), len) in data.into_iter().zip(tags).zip(lens) {
                        let expected = reference(&key.0, nonce, &aad, &bytes[..len]);
                        assert_eq!((data, tag), expected, "{len} by {tokens}");
                    }
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn batches_agree_with_the_reference(messages in batches(1), in_place: bool, tokens in 0..3usize) {
            let run = |dir| results::<_, 16>(&messages, in_place, key, |jobs| crypt_by(tokens, dir, jobs));
            let sealed = run(Direction::Encrypt);
            let opened = run(Direction::Decrypt);
            for ((m, sealed), opened) in messages.iter().zip(sealed).zip(opened) {
                let key = m.key[..32].try_into().unwrap();
                let nonce = m.iv[..12].try_into().unwrap();
                let expected = naive::chacha20poly1305_seal(key, nonce, &m.aad, &m.data);
                prop_assert_eq!(&sealed, &cut(expected, &sealed.1));
                let expected = naive::chacha20poly1305_open(key, nonce, &m.aad, &m.data);
                prop_assert_eq!(&opened, &cut(expected, &opened.1));
            }
        }
    }
}
