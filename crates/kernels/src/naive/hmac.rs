//! HMAC (FIPS 198-1, RFC 2104).

use super::sha2::{sha256, sha512};

/// The key as one block of the hash: hashed first if it is longer.
fn block_key(key: &[u8], block: usize, hash: impl Fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let mut padded = if key.len() > block {
        hash(key)
    } else {
        key.to_vec()
    };
    padded.resize(block, 0);
    padded
}

fn hmac(key: &[u8], message: &[u8], block: usize, hash: impl Fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let key = block_key(key, block, &hash);
    let pad = |value: u8| -> Vec<u8> { key.iter().map(|byte| byte ^ value).collect() };
    let inner = hash(&[&pad(0x36), message].concat());
    hash(&[pad(0x5c), inner].concat())
}

/// HMAC-SHA-256 under a key of any length.
pub fn hmac_sha256(key: &[u8], message: &[u8]) -> [u8; 32] {
    let mac = hmac(key, message, 64, |data| sha256(data).to_vec());
    mac.try_into().unwrap()
}

/// HMAC-SHA-512 under a key of any length.
pub fn hmac_sha512(key: &[u8], message: &[u8]) -> [u8; 64] {
    let mac = hmac(key, message, 128, |data| sha512(data).to_vec());
    mac.try_into().unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 4231, test cases 1 to 4, 6 and 7 (5 is 1's kind with a cut tag).
    #[test]
    fn rfc_4231() {
        let counting: Vec<u8> = (1..=25).collect();
        let long = "Test Using Larger Than Block-Size Key - Hash Key First";
        let longer = "This is a test using a larger than block-size key and a larger than \
                      block-size data. The key needs to be hashed before being used by the \
                      HMAC algorithm.";
        let cases: [(&[u8], &[u8], &str, &str); 6] = [
            (
                &[0x0b; 20],
                b"Hi There",
                "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
                "87aa7cdea5ef619d4ff0b4241a1d6cb02379f4e2ce4ec2787ad0b30545e17cde\
                 daa833b7d6b8a702038b274eaea3f4e4be9d914eeb61f1702e696c203a126854",
            ),
            (
                b"Jefe",
                b"what do ya want for nothing?",
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
                "164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea250554\
                 9758bf75c05a994a6d034f65f8f0e6fdcaeab1a34d4a6b4b636e070a38bce737",
            ),
            (
                &[0xaa; 20],
                &[0xdd; 50],
                "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe",
                "fa73b0089d56a284efb0f0756c890be9b1b5dbdd8ee81a3655f83e33b2279d39\
                 bf3e848279a722c806b485a47e67c807b946a337bee8942674278859e13292fb",
            ),
            (
                &counting,
                &[0xcd; 50],
                "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b",
                "b0ba465637458c6990e5a8c5f61d4af7e576d97ff94b872de76f8050361ee3db\
                 a91ca5c11aa25eb4d679275cc5788063a5f19741120c4f2de2adebeb10a298dd",
            ),
            (
                &[0xaa; 131],
                long.as_bytes(),
                "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
                "80b24263c7c1a3ebb71493c1dd7be8b49b46d1f41b4aeec1121b013783f8f352\
                 6b56d037e05f2598bd0fd2215d6a1e5295e64f73f63f0aec8b915a985d786598",
            ),
            (
                &[0xaa; 131],
                longer.as_bytes(),
                "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2",
                "e37b6a775dc87dbaa4dfa9f96e5e3ffddebd71f8867289865df5a32d20cdc944\
                 b6022cac3c4982b10d5eeb55c3e4de15134676fb6de0446065c97440fa8c6a58",
            ),
        ];
        for (key, message, sha256, sha512) in cases {
            assert_eq!(hex::encode(hmac_sha256(key, message)), sha256);
            assert_eq!(hex::encode(hmac_sha512(key, message)), sha512);
        }
    }
}
