//! The names of transforms in configurations.

use crate::{GostSbox, Integrity, IvOrigin, Transform};

const fn gcm(icv: usize) -> Transform {
    Transform::AesGcm {
        icv,
        iv: IvOrigin::Explicit,
    }
}

impl Transform {
    /// Transforms by name.
    pub const NAMED: [(&str, Transform); 19] = [
        ("aes-gcm-16", gcm(16)),
        ("aes-gcm-12", gcm(12)),
        ("aes-gcm-8", gcm(8)),
        (
            "chacha20-poly1305",
            Transform::ChaCha20Poly1305 {
                iv: IvOrigin::Explicit,
            },
        ),
        ("aes-gmac", Transform::AesGmac),
        (
            "aes-cbc-hmac-sha256",
            Transform::AesCbc(Integrity::HmacSha256),
        ),
        (
            "aes-cbc-hmac-sha512",
            Transform::AesCbc(Integrity::HmacSha512),
        ),
        (
            "aes-ctr-hmac-sha256",
            Transform::AesCtr(Integrity::HmacSha256),
        ),
        (
            "aes-ctr-hmac-sha512",
            Transform::AesCtr(Integrity::HmacSha512),
        ),
        ("null-hmac-sha256", Transform::Null(Integrity::HmacSha256)),
        ("null-hmac-sha512", Transform::Null(Integrity::HmacSha512)),
        ("kuznyechik-mgm", Transform::KuznyechikMgm),
        ("magma-mgm", Transform::MagmaMgm),
        ("kuznyechik-mgm-mac", Transform::KuznyechikMgmMac),
        ("magma-mgm-mac", Transform::MagmaMgmMac),
        ("gost-4m-imit-z", Transform::Gost4mImit(GostSbox::ParamZ)),
        (
            "gost-4m-imit-a",
            Transform::Gost4mImit(GostSbox::CryptoProA),
        ),
        ("gost-1k-imit-z", Transform::Gost1kImit(GostSbox::ParamZ)),
        (
            "gost-1k-imit-a",
            Transform::Gost1kImit(GostSbox::CryptoProA),
        ),
    ];

    /// Whether packets are encrypted, and not authenticated only.
    pub fn encrypts(self) -> bool {
        !matches!(
            self,
            Transform::AesGmac
                | Transform::Null(_)
                | Transform::KuznyechikMgmMac
                | Transform::MagmaMgmMac
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_is_one_transform() {
        let names = Transform::NAMED.map(|(name, _)| name);
        let transforms = Transform::NAMED.map(|(_, transform)| transform);
        for index in 0..names.len() {
            assert!(!names[..index].contains(&names[index]));
            assert!(!transforms[..index].contains(&transforms[index]));
        }
    }
}
