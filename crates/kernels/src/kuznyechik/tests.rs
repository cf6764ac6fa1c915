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
        KuznyechikKey::crypt(Direction::Encrypt, &vec![&key; count], &mut blocks);
        assert!(blocks.iter().all(|block| *block == cipher));
        KuznyechikKey::crypt(Direction::Decrypt, &vec![&key; count], &mut blocks);
        assert!(blocks.iter().all(|block| *block == plain));
    }
}
