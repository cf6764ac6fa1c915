//! A cipher and a MAC, encrypt then MAC, as the template `authenc` of the Linux
//! CryptoAPI has it.

use crate::job::Direction;

/// The output of the cipher over `data`, and the uncut MAC over `aad`, the
/// ciphertext and `suffix`. `cipher` goes the way of `direction`.
pub fn authenc(
    direction: Direction,
    cipher: impl Fn(&[u8]) -> Vec<u8>,
    mac: impl Fn(&[u8]) -> Vec<u8>,
    aad: &[u8],
    data: &[u8],
    suffix: &[u8],
) -> (Vec<u8>, Vec<u8>) {
    let output = cipher(data);
    let ciphertext = match direction {
        Direction::Encrypt => &output,
        Direction::Decrypt => data,
    };
    let tag = mac(&[aad, ciphertext, suffix].concat());
    (output, tag)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::naive::{cbc_decrypt, cbc_encrypt, hmac_sha256};

    /// RFC 3602, section 4, case 1, with the MAC of a second implementation
    /// under the key 00 01 .. 1f and the IV as associated data.
    #[test]
    fn one_block() {
        let auth: Vec<u8> = (0..32).collect();
        let enc = hex::decode("06a9214036b8a15b512e03d534120006").unwrap();
        let iv = hex::decode("3dafba429d9eb430b422da802c9fac41").unwrap();
        let iv: [u8; 16] = iv.try_into().unwrap();
        let mac = |message: &[u8]| hmac_sha256(&auth, message).to_vec();
        let encrypt = |data: &[u8]| cbc_encrypt(&enc, &iv, data);
        let decrypt = |data: &[u8]| cbc_decrypt(&enc, &iv, data);
        let plain = b"Single block msg";
        let (ciphertext, tag) = authenc(Direction::Encrypt, encrypt, mac, &iv, plain, &[]);
        assert_eq!(hex::encode(&ciphertext), "e353779c1079aeb82708942dbe77181a");
        assert_eq!(
            hex::encode(&tag),
            "8a89ec6c8249090f1007d08d5e6fc6f26f7c675361553ecf2e8198c53c3ab5c0"
        );
        assert_eq!(
            authenc(Direction::Decrypt, decrypt, mac, &iv, &ciphertext, &[]),
            (plain.to_vec(), tag)
        );
        // What is cut from the end of the associated data into the ciphertext, and from
        // there into the suffix, changes nothing for the MAC.
        let (_, moved) = authenc(
            Direction::Decrypt,
            |data| data.to_vec(),
            mac,
            &iv[..5],
            &[&iv[5..], &ciphertext[..9]].concat(),
            &ciphertext[9..],
        );
        assert_eq!(
            hex::encode(moved),
            "8a89ec6c8249090f1007d08d5e6fc6f26f7c675361553ecf2e8198c53c3ab5c0"
        );
    }
}
