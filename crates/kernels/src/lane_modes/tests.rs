use super::*;
use crate::kuznyechik::{self, KuznyechikKey};
use crate::magma::{self, MagmaKey};
use crate::naive;
use crate::testing::{answers, batches, judge};
use proptest::prelude::*;

/// Key material of any length cut and repeated to 32 bytes.
fn texts(bytes: &[Vec<u8>]) -> Vec<[u8; 32]> {
    let text = |key: &Vec<u8>| core::array::from_fn(|i| key[i % key.len()] ^ i as u8);
    bytes.iter().map(text).collect()
}

/// The counter block `blocks` further on, over the first `N` bytes.
fn advanced<const N: usize>(iv: &[u8; 16], blocks: usize) -> [u8; 16] {
    let mut wide = [0; 16];
    wide[16 - N..].copy_from_slice(&iv[..N]);
    let counter = u128::from_be_bytes(wide).wrapping_add(blocks as u128);
    let mut next = *iv;
    next[..N].copy_from_slice(&counter.to_be_bytes()[16 - N..]);
    next
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn ecb_agrees_with_the_naive_reference(
        (bytes, requests) in batches(|len| len / 16 * 16),
    ) {
        let texts = texts(&bytes);
        let keys: Vec<_> = texts.iter().map(|t| KuznyechikKey::new(t).unwrap()).collect();
        type Naive = fn(&[u8; 32], &[u8]) -> Vec<u8>;
        let ways: [(_, Naive); 2] = [
            (Direction::Encrypt, naive::kuznyechik_ecb_encrypt),
            (Direction::Decrypt, naive::kuznyechik_ecb_decrypt),
        ];
        for (dir, naive) in ways {
            let expected = answers(keys.len(), &requests, |r, key| {
                (naive(&texts[key], &r.data), r.iv)
            });
            judge("Kuznyechik", &keys, &requests, |jobs| kuznyechik::ecb(dir, jobs), &expected);
        }
        let keys: Vec<_> = texts.iter().map(|t| MagmaKey::new(t).unwrap()).collect();
        let ways: [(_, Naive); 2] = [
            (Direction::Encrypt, naive::magma_ecb_encrypt),
            (Direction::Decrypt, naive::magma_ecb_decrypt),
        ];
        for (dir, naive) in ways {
            let expected = answers(keys.len(), &requests, |r, key| {
                (naive(&texts[key], &r.data), r.iv)
            });
            judge("Magma", &keys, &requests, |jobs| magma::ecb(dir, jobs), &expected);
        }
    }

    #[test]
    fn ctr_agrees_with_the_naive_reference(
        (bytes, mut requests) in batches(|len| len),
        wraps: bool,
    ) {
        if wraps {
            requests.iter_mut().for_each(|r| r.iv[..7].fill(0xff));
        }
        let texts = texts(&bytes);
        let keys: Vec<_> = texts.iter().map(|t| KuznyechikKey::new(t).unwrap()).collect();
        let expected = answers(keys.len(), &requests, |r, key| {
            let data = naive::kuznyechik_ctr(&texts[key], &r.iv, &r.data);
            (data, advanced::<16>(&r.iv, r.data.len().div_ceil(16)))
        });
        judge("Kuznyechik", &keys, &requests, kuznyechik::ctr, &expected);
        let keys: Vec<_> = texts.iter().map(|t| MagmaKey::new(t).unwrap()).collect();
        let expected = answers(keys.len(), &requests, |r, key| {
            let counter = r.iv[..8].try_into().unwrap();
            let data = naive::magma_ctr(&texts[key], counter, &r.data);
            (data, advanced::<8>(&r.iv, r.data.len().div_ceil(8)))
        });
        judge("Magma", &keys, &requests, magma::ctr, &expected);
    }
}

/// Against the crates of RustCrypto.
#[test]
fn blocks_agree_with_rustcrypto() {
    use cipher::{BlockCipherDecrypt, BlockCipherEncrypt, KeyInit};
    let text: [u8; 32] = core::array::from_fn(|i| (i * i * 7 + 3) as u8);
    let plain: Vec<u8> = (0..16 * 333).map(|i| ((i * i) >> 5) as u8).collect();
    let ours = |run: &mut dyn FnMut(InOutBuf<'_, '_, u8>)| {
        let mut data = plain.clone();
        run(InOutBuf::from(&mut data[..]));
        data
    };
    for dir in [Direction::Encrypt, Direction::Decrypt] {
        let mut peer = plain.clone();
        let cipher = ::kuznyechik::Kuznyechik::new(&text.into());
        for block in peer.as_chunks_mut::<16>().0 {
            match dir {
                Direction::Encrypt => cipher.encrypt_block(block.into()),
                Direction::Decrypt => cipher.decrypt_block(block.into()),
            }
        }
        let key = &KuznyechikKey::new(&text).unwrap();
        let data = ours(&mut |data| {
            kuznyechik::ecb(
                dir,
                &mut [CipherJob {
                    key,
                    iv: [0; 16],
                    data,
                }],
            );
        });
        assert!(data == peer);
        let mut peer = plain.clone();
        let cipher = ::magma::Magma::new(&text.into());
        for block in peer.as_chunks_mut::<8>().0 {
            match dir {
                Direction::Encrypt => cipher.encrypt_block(block.into()),
                Direction::Decrypt => cipher.decrypt_block(block.into()),
            }
        }
        let key = &MagmaKey::new(&text).unwrap();
        let data = ours(&mut |data| {
            magma::ecb(
                dir,
                &mut [CipherJob {
                    key,
                    iv: [0; 16],
                    data,
                }],
            );
        });
        assert!(data == peer);
    }
}
