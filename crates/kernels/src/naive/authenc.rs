//! `authenc(hmac(sha256),cbc(aes))`: AES-CBC, then HMAC-SHA-256 over the
//! associated data and the ciphertext, as the Linux CryptoAPI template has it.

use super::hmac::hmac_sha256;
use super::modes::{cbc_decrypt, cbc_encrypt};

/// Encrypts, then authenticates `aad` and the ciphertext: the ciphertext, a
/// whole number of blocks as `data` is, and the uncut MAC.
pub fn authenc_seal(
    auth: &[u8],
    enc: &[u8],
    iv: &[u8; 16],
    aad: &[u8],
    data: &[u8],
) -> (Vec<u8>, [u8; 32]) {
    let ciphertext = cbc_encrypt(enc, iv, data);
    let mac = hmac_sha256(auth, &[aad, &ciphertext].concat());
    (ciphertext, mac)
}

/// The plaintext of `data`, and the MAC that `aad` and `data` should have.
pub fn authenc_open(
    auth: &[u8],
    enc: &[u8],
    iv: &[u8; 16],
    aad: &[u8],
    data: &[u8],
) -> (Vec<u8>, [u8; 32]) {
    let mac = hmac_sha256(auth, &[aad, data].concat());
    (cbc_decrypt(enc, iv, data), mac)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 3602, section 4, case 1, with the MAC of a second implementation
    /// under the key 00 01 .. 1f and the IV as associated data.
    #[test]
    fn one_block() {
        let auth: Vec<u8> = (0..32).collect();
        let enc = hex::decode("06a9214036b8a15b512e03d534120006").unwrap();
        let iv = hex::decode("3dafba429d9eb430b422da802c9fac41").unwrap();
        let iv = iv.try_into().unwrap();
        let (ciphertext, mac) = authenc_seal(&auth, &enc, &iv, &iv, b"Single block msg");
        assert_eq!(hex::encode(&ciphertext), "e353779c1079aeb82708942dbe77181a");
        assert_eq!(
            hex::encode(mac),
            "8a89ec6c8249090f1007d08d5e6fc6f26f7c675361553ecf2e8198c53c3ab5c0"
        );
        assert_eq!(
            authenc_open(&auth, &enc, &iv, &iv, &ciphertext),
            (b"Single block msg".to_vec(), mac)
        );
    }
}
