//! Key derivation by HMAC over Streebog (RFC 7836 section 4.5).
//!
//! The hash is that of the `streebog` crate, which looks up tables by what it hashes:
//! unlike all else here, it is **not constant time** on machines whose caches tell.

use hmac::{Hmac, KeyInit, Mac};
use streebog::Streebog256;
use zeroize::Zeroize;

/// KDF_GOSTR3411_2012_256 of RFC 7836 section 4.5: 256 bits of key from a key of any
/// length, a label and a seed.
pub fn gostr3411_2012_256(key: &[u8], label: &[u8], seed: &[u8]) -> [u8; 32] {
    let mut mac = Hmac::<Streebog256>::new_from_slice(key).expect("a key of any length");
    for part in [&[1], label, &[0], seed, &[1, 0]] {
        mac.update(part);
    }
    let mut derived = mac.finalize().into_bytes();
    let key = derived.into();
    derived.zeroize();
    key
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn file(text: &str) -> Value {
        serde_json::from_str(text).unwrap()
    }

    fn bytes(value: &Value) -> Vec<u8> {
        hex::decode(value.as_str().unwrap()).unwrap()
    }

    /// RFC 7836 appendix B, item 9.
    #[test]
    fn rfc_7836() {
        let file = file(include_str!("../../../vectors/gost/rfc7801-8891-7836.json"));
        let vector = &file["kdf_rfc7836"][0];
        assert_eq!(vector["function"], "KDF_GOSTR3411_2012_256");
        let [key, label, seed, out] =
            ["K_in", "label", "seed", "out"].map(|field| bytes(&vector[field]));
        assert_eq!(gostr3411_2012_256(&key, &label, &seed), out[..]);
    }

    /// RFC 9227 appendix A: the keys of messages, three levels down from K.
    #[test]
    fn rfc_9227_key_tree() {
        let file = file(include_str!("../../../vectors/gost/rfc9227.json"));
        for vector in file["vectors"].as_array().unwrap() {
            let [key, i1, i2, i3, leaf] =
                ["K", "i1", "i2", "i3", "K_msg"].map(|field| bytes(&vector[field]));
            let first = gostr3411_2012_256(&key, b"level1", &[&[0], &i1[..]].concat());
            let second = gostr3411_2012_256(&first, b"level2", &i2);
            assert_eq!(gostr3411_2012_256(&second, b"level3", &i3), leaf[..]);
        }
    }
}
