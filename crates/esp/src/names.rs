//! The names of suites in configurations.

use crate::{GostSbox, Integrity, IvOrigin, Suite};

const fn gcm(icv: usize) -> Suite {
    Suite::AesGcm {
        icv,
        iv: IvOrigin::Explicit,
    }
}

impl Suite {
    /// Suites by name.
    pub const NAMED: [(&str, Suite); 19] = [
        ("aes-gcm-16", gcm(16)),
        ("aes-gcm-12", gcm(12)),
        ("aes-gcm-8", gcm(8)),
        (
            "chacha20-poly1305",
            Suite::ChaCha20Poly1305 {
                iv: IvOrigin::Explicit,
            },
        ),
        ("aes-gmac", Suite::AesGmac),
        ("aes-cbc-hmac-sha256", Suite::AesCbc(Integrity::HmacSha256)),
        ("aes-cbc-hmac-sha512", Suite::AesCbc(Integrity::HmacSha512)),
        ("aes-ctr-hmac-sha256", Suite::AesCtr(Integrity::HmacSha256)),
        ("aes-ctr-hmac-sha512", Suite::AesCtr(Integrity::HmacSha512)),
        ("null-hmac-sha256", Suite::Null(Integrity::HmacSha256)),
        ("null-hmac-sha512", Suite::Null(Integrity::HmacSha512)),
        ("kuznyechik-mgm", Suite::KuznyechikMgm),
        ("magma-mgm", Suite::MagmaMgm),
        ("kuznyechik-mgm-mac", Suite::KuznyechikMgmMac),
        ("magma-mgm-mac", Suite::MagmaMgmMac),
        ("gost-4m-imit-z", Suite::Gost4mImit(GostSbox::ParamZ)),
        ("gost-4m-imit-a", Suite::Gost4mImit(GostSbox::CryptoProA)),
        ("gost-1k-imit-z", Suite::Gost1kImit(GostSbox::ParamZ)),
        ("gost-1k-imit-a", Suite::Gost1kImit(GostSbox::CryptoProA)),
    ];

    /// Whether packets are encrypted, and not authenticated only.
    pub fn encrypts(self) -> bool {
        !matches!(
            self,
            Suite::AesGmac | Suite::Null(_) | Suite::KuznyechikMgmMac | Suite::MagmaMgmMac
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_is_one_suite() {
        let names = Suite::NAMED.map(|(name, _)| name);
        let suites = Suite::NAMED.map(|(_, suite)| suite);
        for index in 0..names.len() {
            assert!(!names[..index].contains(&names[index]));
            assert!(!suites[..index].contains(&suites[index]));
        }
    }
}
