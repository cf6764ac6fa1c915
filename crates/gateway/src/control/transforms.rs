//! Transforms by the numbers that IKEv2 has for them (IANA, IKEv2 parameters): an encryption
//! algorithm and an integrity algorithm, 0 for none.

use cipherlane_esp::Suite;

use super::message::Refusal;
use crate::config::transform;

const ENCR_AES_CBC: u16 = 12;
const ENCR_AES_CTR: u16 = 13;
const ENCR_AES_GCM_8: u16 = 18;
const ENCR_AES_GCM_12: u16 = 19;
const ENCR_AES_GCM_16: u16 = 20;
const ENCR_CHACHA20_POLY1305: u16 = 28;
const ENCR_KUZNYECHIK_MGM_KTREE: u16 = 32;
const ENCR_MAGMA_MGM_KTREE: u16 = 33;
const AUTH_HMAC_SHA2_256_128: u16 = 12;
const AUTH_HMAC_SHA2_512_256: u16 = 14;

/// Those of the gateway that IKE has numbers for, by the names of the configuration.
const ALL: [(u16, u16, &str); 10] = [
    (ENCR_AES_GCM_16, 0, "aes-gcm-16"),
    (ENCR_AES_GCM_12, 0, "aes-gcm-12"),
    (ENCR_AES_GCM_8, 0, "aes-gcm-8"),
    (ENCR_CHACHA20_POLY1305, 0, "chacha20-poly1305"),
    (ENCR_AES_CBC, AUTH_HMAC_SHA2_256_128, "aes-cbc-hmac-sha256"),
    (ENCR_AES_CBC, AUTH_HMAC_SHA2_512_256, "aes-cbc-hmac-sha512"),
    (ENCR_AES_CTR, AUTH_HMAC_SHA2_256_128, "aes-ctr-hmac-sha256"),
    (ENCR_AES_CTR, AUTH_HMAC_SHA2_512_256, "aes-ctr-hmac-sha512"),
    (ENCR_KUZNYECHIK_MGM_KTREE, 0, "kuznyechik-mgm"),
    (ENCR_MAGMA_MGM_KTREE, 0, "magma-mgm"),
];

/// The numbers of all, for a hello.
pub(super) fn numbers() -> [(u16, u16); ALL.len()] {
    ALL.map(|(encryption, integrity, ..)| (encryption, integrity))
}

/// A transform and its name.
pub(super) fn find(encryption: u16, integrity: u16) -> Result<(Suite, &'static str), Refusal> {
    let found = ALL
        .iter()
        .find(|known| (known.0, known.1) == (encryption, integrity));
    match found.and_then(|(.., name)| transform(name).ok()) {
        Some(found) => Ok(found),
        None => Err(Refusal::unsupported(format!(
            "the gateway has no ESP transform of encryption {encryption} and integrity \
             {integrity}; propose for instance aes128gcm16, chacha20poly1305 or aes256-sha256"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_found_and_no_other() {
        for (encryption, integrity) in numbers() {
            assert!(find(encryption, integrity).is_ok());
        }
        assert!(
            find(ENCR_AES_CBC, 2)
                .unwrap_err()
                .text
                .contains("aes256-sha256")
        );
        assert!(find(11, AUTH_HMAC_SHA2_256_128).is_err(), "NULL");
    }
}
