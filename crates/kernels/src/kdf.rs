//! Key derivation by HMAC over Streebog (RFC 7836 sections 4.4 and 4.5), in constant time.

use zeroize::Zeroize;

use crate::streebog::hmac_256;

/// KDF_GOSTR3411_2012_256 of RFC 7836 section 4.5: 256 bits of key from a key of any
/// length, a label and a seed.
pub fn gostr3411_2012_256(key: &[u8], label: &[u8], seed: &[u8]) -> [u8; 32] {
    let mut derived = [0; 32];
    tree_gostr3411_2012_256(key, label, seed, &mut derived);
    derived
}

/// KDF_TREE_GOSTR3411_2012_256 of RFC 7836 section 4.4, counting in one byte (R = 1):
/// fills `derived`.
///
/// # Panics
/// If `derived` is longer than 255 times 32 bytes, which that byte can count.
pub fn tree_gostr3411_2012_256(key: &[u8], label: &[u8], seed: &[u8], derived: &mut [u8]) {
    let count = derived.len().div_ceil(32);
    assert!(count <= 255, "at most 8160 bytes are derived");
    let bits = (8 * derived.len() as u32).to_be_bytes();
    // Without the zeros that it begins with.
    let bits = &bits[(bits.iter().take_while(|&&byte| byte == 0).count())..];
    for (number, part) in (1..=255).zip(derived.chunks_mut(32)) {
        let mut bytes = hmac_256(key, &[&[number], label, &[0], seed, bits]);
        part.copy_from_slice(&bytes[..part.len()]);
        bytes.zeroize();
    }
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

    /// RFC 7836 appendix B, item 10.
    #[test]
    fn rfc_7836_tree() {
        let file = file(include_str!("../../../vectors/gost/rfc7801-8891-7836.json"));
        let vector = &file["kdf_rfc7836"][1];
        assert_eq!(vector["function"], "KDF_TREE_GOSTR3411_2012_256");
        let [key, label, seed, out] =
            ["K_in", "label", "seed", "out"].map(|field| bytes(&vector[field]));
        let mut derived = vec![0; out.len()];
        tree_gostr3411_2012_256(&key, &label, &seed, &mut derived);
        assert_eq!(derived, out);
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
