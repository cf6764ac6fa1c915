use super::*;
use crate::naive;

/// RFC 8891 appendix A.
#[test]
fn rfc_8891() {
    let bytes = |text| hex::decode(text).unwrap();
    let key = bytes("ffeeddccbbaa99887766554433221100f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff");
    let plain: Block = bytes("fedcba9876543210").try_into().unwrap();
    let cipher: Block = bytes("4ee901e5c2d8ca3d").try_into().unwrap();
    let text = key[..].try_into().unwrap();
    assert_eq!(naive::magma_encrypt_block(text, &plain), cipher);
    assert_eq!(naive::magma_decrypt_block(text, &cipher), plain);
    let key = MagmaKey::new(&key).unwrap();
    for count in [1, 2, 33, 65, 130] {
        let mut blocks = vec![plain; count];
        MagmaKey::crypt(
            &mut Default::default(),
            Direction::Encrypt,
            &vec![&key; count],
            &mut blocks,
        );
        assert!(blocks.iter().all(|block| *block == cipher));
        MagmaKey::crypt(
            &mut Default::default(),
            Direction::Decrypt,
            &vec![&key; count],
            &mut blocks,
        );
        assert!(blocks.iter().all(|block| *block == plain));
    }
}
