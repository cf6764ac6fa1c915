use super::*;
use crate::aead_batches::{Message, batches, cut, results};
use crate::naive;
use inout::InOutBuf;
use proptest::prelude::*;
use serde_json::Value;

fn bytes(vector: &Value, field: &str) -> Vec<u8> {
    let text = vector[field].as_str();
    hex::decode(text.unwrap_or_else(|| panic!("no {field} in {vector}"))).unwrap()
}

/// Seals and opens one message in place: the ciphertext, the tag and the plaintext.
fn through<K: Cipher, const N: usize>(
    key: &K,
    icn: &[u8; N],
    aad: &[u8],
    plain: &[u8],
) -> (Vec<u8>, Vec<u8>) {
    let mut data = plain.to_vec();
    let mut iv = [0; 16];
    iv[..icn.len()].copy_from_slice(icn);
    let mut run = |mode: Mode<K>| {
        let mut tag = vec![0xff; N];
        mode(&mut [AeadJob {
            key,
            iv,
            aad,
            data: InOutBuf::from(&mut data[..]),
            tag: &mut tag,
        }])
        .unwrap();
        (data.clone(), tag)
    };
    let sealed = run(seal);
    assert_eq!(run(open), (plain.to_vec(), sealed.1.clone()));
    sealed
}

/// RFC 9058 appendix A.
#[test]
fn rfc_9058() {
    let text = include_str!("../../../../vectors/gost/rfc9058.json");
    let file: Value = serde_json::from_str(text).unwrap();
    let vectors = file["vectors"].as_array().unwrap();
    assert!(vectors.len() >= 4);
    for vector in vectors {
        let [key, icn, aad, plain, cipher, tag] =
            ["K", "ICN", "A", "P", "C", "T"].map(|field| bytes(vector, field));
        let text = &key[..].try_into().unwrap();
        let (sealed, by_reference) = match vector["cipher"].as_str() {
            Some("Kuznyechik") => {
                let icn16 = &icn[..].try_into().unwrap();
                let naive = naive::kuznyechik_mgm_seal(text, icn16, &aad, &plain);
                let key = KuznyechikKey::new(&key).unwrap();
                (
                    through(&key, icn16, &aad, &plain),
                    (naive.0, naive.1.to_vec()),
                )
            }
            Some("Magma") => {
                let icn8 = &icn[..].try_into().unwrap();
                let naive = naive::magma_mgm_seal(text, icn8, &aad, &plain);
                let key = MagmaKey::new(&key).unwrap();
                (
                    through(&key, icn8, &aad, &plain),
                    (naive.0, naive.1.to_vec()),
                )
            }
            other => panic!("cipher {other:?}"),
        };
        assert_eq!(by_reference, (cipher, tag));
        assert_eq!(sealed, by_reference);
    }
}

/// The same first bytes but for the first bit, which is no part of the nonce.
#[test]
fn a_set_first_bit_is_refused_and_nothing_is_touched() {
    fn judge<K: Cipher>(key: &K) {
        let modes: [Mode<K>; 2] = [seal, open];
        for mode in modes {
            for wrong in 0..3 {
                let (mut data, mut tags) = ([[7u8; 24]; 3], [[0; 8]; 3]);
                let mut jobs: Vec<_> = data
                    .iter_mut()
                    .zip(&mut tags)
                    .enumerate()
                    .map(|(i, (data, tag))| AeadJob {
                        key,
                        iv: [if i == wrong { 0x85 } else { 0x05 }; 16],
                        aad: b"header",
                        data: InOutBuf::from(&mut data[..]),
                        tag,
                    })
                    .collect();
                assert_eq!(mode(&mut jobs), Err(Refused::NonceBit));
                drop(jobs);
                assert_eq!((data, tags), ([[7; 24]; 3], [[0; 8]; 3]));
            }
        }
    }
    judge(&KuznyechikKey::new(&[1; 32]).unwrap());
    judge(&MagmaKey::new(&[1; 32]).unwrap());
}

/// RFC 9058 section 4.1; the memory is never touched, so it need not be there.
#[test]
fn a_message_over_the_limit_is_refused() {
    assert_eq!((longest(8), longest(16)), ((1 << 29) - 1, (1 << 61) - 1));
    let key = MagmaKey::new(&[1; 32]).unwrap();
    let aad = vec![0; 1 << 29];
    let seal = |aad: &[u8], data: &mut [u8]| {
        seal(&mut [AeadJob {
            key: &key,
            iv: [1; 16],
            aad,
            data: InOutBuf::from(data),
            tag: &mut [0; 8],
        }])
    };
    assert_eq!(seal(&aad, &mut []), Err(Refused::TooLong));
    assert_eq!(seal(&aad[8..], &mut [0; 8]), Err(Refused::TooLong));
    assert_eq!(seal(&aad[..100], &mut [0; 8]), Ok(()));
}

type Mode<K> = fn(&mut [AeadJob<'_, K>]) -> Result<(), Refused>;

type Naive<const N: usize> = fn(&[u8; 32], &[u8; N], &[u8], &[u8]) -> (Vec<u8>, [u8; N]);

fn judge<K: Cipher, const N: usize>(
    messages: &[Message],
    in_place: bool,
    key: fn(&[u8]) -> Option<K>,
    by_reference: [Naive<N>; 2],
) -> Result<(), TestCaseError> {
    let modes: [fn(&mut [AeadJob<'_, K>]); 2] = [
        |jobs| seal(jobs).expect("right nonces"),
        |jobs| open(jobs).expect("right nonces"),
    ];
    for (mode, naive) in modes.into_iter().zip(by_reference) {
        // Neighbours of equal key_len share a key.
        let text = |message: &Message| -> [u8; 32] {
            let first = messages.iter().find(|m| m.key_len == message.key_len);
            first.expect("itself at least").key[..32]
                .try_into()
                .unwrap()
        };
        let new = |message: &Message| key(&text(message)).unwrap();
        let results = results::<_, N>(messages, in_place, new, mode);
        for (message, result) in messages.iter().zip(results) {
            let icn = message.iv[..N].try_into().unwrap();
            let expected = naive(&text(message), icn, &message.aad, &message.data);
            prop_assert_eq!(&result, &cut(expected, &result.1));
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]
    #[test]
    fn batches_agree_with_the_reference(mut messages in batches(1), in_place: bool) {
        messages.iter_mut().for_each(|message| message.iv[0] &= 0x7f);
        judge(
            &messages,
            in_place,
            KuznyechikKey::new,
            [naive::kuznyechik_mgm_seal, naive::kuznyechik_mgm_open],
        )?;
        judge(
            &messages,
            in_place,
            MagmaKey::new,
            [naive::magma_mgm_seal, naive::magma_mgm_open],
        )?;
    }
}
