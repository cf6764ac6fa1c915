use super::*;
use crate::naive;

const KEY: &str = "8899aabbccddeeff0011223344556677fedcba98765432100123456789abcdef";

fn bytes<const N: usize>(text: &str) -> [u8; N] {
    hex::decode(text).unwrap().try_into().unwrap()
}

/// RFC 7801 sections 5.4 to 5.6.
#[test]
fn rfc_7801() {
    let plain = bytes("1122334455667700ffeeddccbbaa9988");
    let cipher = bytes("7f679d90bebc24305a468d42b9d4edcd");
    let key = KuznyechikKey::new(&bytes::<32>(KEY)).unwrap();
    assert_eq!(
        hex::encode(key.rounds()[9]),
        "72e9dd7416bcf45b755dbaa88e4a4043"
    );
    assert_eq!(naive::kuznyechik_encrypt_block(&bytes(KEY), &plain), cipher);
    assert_eq!(naive::kuznyechik_decrypt_block(&bytes(KEY), &cipher), plain);
    for count in [1, 2, 33, 65, 130] {
        let mut blocks = vec![plain; count];
        KuznyechikKey::crypt(
            &mut Default::default(),
            Direction::Encrypt,
            &vec![&key; count],
            &mut blocks,
        );
        assert!(blocks.iter().all(|block| *block == cipher));
        KuznyechikKey::crypt(
            &mut Default::default(),
            Direction::Decrypt,
            &vec![&key; count],
            &mut blocks,
        );
        assert!(blocks.iter().all(|block| *block == plain));
    }
}

/// A way to run blocks.
type Crypt = fn(Direction, &[&KuznyechikKey], &mut [Block]);

fn ways() -> Vec<(&'static str, Crypt)> {
    let mut ways: Vec<(_, Crypt)> = vec![("portable", portable::kuznyechik::crypt)];
    #[cfg(target_arch = "x86_64")]
    {
        use crate::{cpu, x86_64::kuznyechik};
        const HELD: &str = "listed because the token was given";
        if cpu::HaveAvx2::new().is_some() {
            ways.push(("avx2", |dir, keys, blocks| {
                let token = cpu::HaveAvx2::new().expect(HELD);
                kuznyechik::avx2::crypt(token, &mut Default::default(), dir, keys, blocks);
            }));
        }
        if cpu::HaveGfni512::new().is_some() {
            ways.push(("avx512", |dir, keys, blocks| {
                let token = cpu::HaveGfni512::new().expect(HELD);
                kuznyechik::avx512::crypt(token, &mut Default::default(), dir, keys, blocks);
            }));
        }
    }
    ways
}

#[test]
fn every_way_does_blocks_of_any_number_under_any_keys() {
    let texts: Vec<[u8; 32]> = (0..70)
        .map(|i| core::array::from_fn(|j| (i * 37 + j * j * 11) as u8))
        .collect();
    let keys: Vec<_> = texts
        .iter()
        .map(|k| KuznyechikKey::new(k).unwrap())
        .collect();
    for count in [1, 2, 3, 4, 8, 9, 24, 25, 31, 32, 33, 63, 64, 65, 100, 130] {
        // The same key everywhere, a few keys, and a key per block.
        for run in [1000, 50, 17, 1] {
            let key = |i: usize| i / run % keys.len();
            let plain: Vec<Block> = (0..count)
                .map(|i| core::array::from_fn(|j| (i * 16 + j * 7 + run) as u8))
                .collect();
            let lanes: Vec<_> = (0..count).map(|i| &keys[key(i)]).collect();
            let expected: Vec<_> = (0..count)
                .map(|i| naive::kuznyechik_encrypt_block(&texts[key(i)], &plain[i]))
                .collect();
            for (name, crypt) in ways() {
                let mut blocks = plain.clone();
                crypt(Direction::Encrypt, &lanes, &mut blocks);
                assert_eq!(blocks, expected, "{name}: {count} blocks");
                crypt(Direction::Decrypt, &lanes, &mut blocks);
                assert_eq!(blocks, plain, "{name}: {count} blocks back");
            }
        }
    }
}
