//! Judged by the crates of RustCrypto: MGM (RFC 9058) of Kuznyechik and Magma, which
//! gost-engine has in versions only that Debian has not, and libgcrypt not at all.

use cipherlane_kernels::job::AeadJob;
use cipherlane_kernels::kuznyechik::KuznyechikKey;
use cipherlane_kernels::magma::MagmaKey;
use cipherlane_kernels::mgm::{self, Cipher};
use inout::InOutBuf;
use mgm_peer::Mgm;
use mgm_peer::aead::{AeadInPlace, KeyInit};
use proptest::prelude::*;

use crate::{Message, batches};

/// Seals the batch, every message with the one behind it as additional data, cut short;
/// judges output and tag, and opens it again.
fn judge<K: Cipher, const N: usize>(
    messages: &[Message],
    new: fn(&[u8]) -> Option<K>,
    theirs: impl Fn(&Message, &[u8], &mut [u8]) -> [u8; N],
) -> Result<(), TestCaseError> {
    let keys: Vec<K> = messages
        .iter()
        .map(|m| new(&m.key).expect("32 bytes"))
        .collect();
    let aad = |i: usize| {
        let data = &messages[(i + 1) % messages.len()].data;
        &data[..data.len().min(50)]
    };
    let mut data: Vec<_> = messages.iter().map(|m| m.data.clone()).collect();
    let run = |data: &mut [Vec<u8>], mode: fn(&mut [AeadJob<'_, K>])| {
        let mut tags = vec![[0; N]; messages.len()];
        let jobs = data.iter_mut().zip(messages).zip(&keys).zip(&mut tags);
        let jobs = jobs.enumerate();
        let jobs = jobs.map(|(i, (((data, message), key), tag))| AeadJob {
            key,
            iv: message.iv,
            aad: aad(i),
            data: InOutBuf::from(&mut data[..]),
            tag,
        });
        mode(&mut jobs.collect::<Vec<_>>());
        tags
    };
    let tags = run(&mut data, |jobs| mgm::seal(jobs).expect("right nonces"));
    for (i, message) in messages.iter().enumerate() {
        let mut expected = message.data.clone();
        let tag = theirs(message, aad(i), &mut expected);
        prop_assert_eq!(&data[i], &expected);
        prop_assert_eq!(tags[i], tag);
    }
    let opened = run(&mut data, |jobs| mgm::open(jobs).expect("right nonces"));
    prop_assert_eq!(opened, tags);
    for (data, message) in data.iter().zip(messages) {
        prop_assert_eq!(data, &message.data);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(24)
    })]

    #[test]
    fn mgm_of_rustcrypto_gives_the_same(mut messages in batches()) {
        // It takes no nonce with a first bit.
        messages.iter_mut().for_each(|m| m.iv[0] &= 0x7f);
        judge(&messages, KuznyechikKey::new, |message, aad, data| {
            let cipher = Mgm::<kuznyechik_peer::Kuznyechik>::new(&message.key.into());
            let tag = cipher.encrypt_in_place_detached(&message.iv.into(), aad, data);
            tag.expect("a message within the limits").into()
        })?;
        judge(&messages, MagmaKey::new, |message, aad, data| {
            let cipher = Mgm::<magma_peer::Magma>::new(&message.key.into());
            let nonce = message.iv.first_chunk::<8>().expect("16 bytes");
            let tag = cipher.encrypt_in_place_detached(&(*nonce).into(), aad, data);
            tag.expect("a message within the limits").into()
        })?;
    }
}
