use super::*;
use crate::aead_batches::{Message, batches, results};
use crate::naive;
use inout::InOutBuf;
use proptest::prelude::*;
use serde_json::Value;

fn bytes(vector: &Value, field: &str) -> Vec<u8> {
    let text = vector[field].as_str();
    hex::decode(text.unwrap_or_else(|| panic!("no {field} in {vector}"))).unwrap()
}

/// Seals and opens one message in place: the ciphertext, the tag and the plaintext.
fn through<K: Cipher>(key: &K, icn: &[u8], aad: &[u8], plain: &[u8]) -> (Vec<u8>, [u8; 32]) {
    let mut data = plain.to_vec();
    let mut iv = [0; 16];
    iv[..icn.len()].copy_from_slice(icn);
    let mut run = |mode: fn(&mut [AeadJob<'_, K>])| {
        let mut job = AeadJob {
            key,
            iv,
            aad,
            data: InOutBuf::from(&mut data[..]),
            tag: [0xff; 32],
        };
        mode(core::slice::from_mut(&mut job));
        let tag = job.tag;
        (data.clone(), tag)
    };
    let sealed = run(seal);
    assert_eq!(run(open), (plain.to_vec(), sealed.1));
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
                    through(&key, &icn, &aad, &plain),
                    (naive.0, naive.1.to_vec()),
                )
            }
            Some("Magma") => {
                let icn8 = &icn[..].try_into().unwrap();
                let naive = naive::magma_mgm_seal(text, icn8, &aad, &plain);
                let key = MagmaKey::new(&key).unwrap();
                (
                    through(&key, &icn, &aad, &plain),
                    (naive.0, naive.1.to_vec()),
                )
            }
            other => panic!("cipher {other:?}"),
        };
        assert_eq!(by_reference, (cipher.clone(), tag.clone()));
        assert_eq!(sealed.0, cipher);
        assert_eq!(sealed.1[..tag.len()], tag);
        assert_eq!(sealed.1[tag.len()..], [0; 32][tag.len()..]);
    }
}

fn padded<const N: usize>((data, tag): (Vec<u8>, [u8; N])) -> (Vec<u8>, [u8; 32]) {
    let mut long = [0; 32];
    long[..N].copy_from_slice(&tag);
    (data, long)
}

type Naive<const N: usize> = fn(&[u8; 32], &[u8; N], &[u8], &[u8]) -> (Vec<u8>, [u8; N]);

fn judge<K: Cipher, const N: usize>(
    messages: &[Message],
    in_place: bool,
    key: fn(&[u8]) -> Option<K>,
    by_reference: [Naive<N>; 2],
) -> Result<(), TestCaseError> {
    let modes: [fn(&mut [AeadJob<'_, K>]); 2] = [seal, open];
    for (mode, naive) in modes.into_iter().zip(by_reference) {
        // Neighbours of equal key_len share a key.
        let text = |message: &Message| -> [u8; 32] {
            let first = messages.iter().find(|m| m.key_len == message.key_len);
            first.expect("itself at least").key[..32]
                .try_into()
                .unwrap()
        };
        let new = |message: &Message| key(&text(message)).unwrap();
        let results = results(messages, in_place, new, mode);
        for (message, result) in messages.iter().zip(results) {
            let icn = message.iv[..N].try_into().unwrap();
            let expected = naive(&text(message), icn, &message.aad, &message.data);
            prop_assert_eq!(result, padded(expected));
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]
    #[test]
    fn batches_agree_with_the_reference(messages in batches(1), in_place: bool) {
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
