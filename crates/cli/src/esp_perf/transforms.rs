//! Transforms by the names that `--transform` takes.

use cipherlane_esp::{GostSbox, Integrity, IvOrigin, Keys, SaParameters, Suite};
use clap::builder::{PossibleValuesParser, TypedValueParser};

/// A transform with what is needed to make an SA of it.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) name: &'static str,
    /// In words.
    pub(super) title: &'static str,
    pub(super) transform: Suite,
    /// Bytes of cipher key and salt, or of SPI-Auth-Code.
    encryption: usize,
    /// Bytes of the integrity key.
    integrity: usize,
    /// Encryption and authentication by their names in Wireshark's ESP key table; absent where
    /// it has none.
    pub(super) wireshark: Option<(&'static str, &'static str)>,
}

const GCM: Suite = Suite::AesGcm {
    icv: 16,
    iv: IvOrigin::Explicit,
};
const CHACHA: Suite = Suite::ChaCha20Poly1305 {
    iv: IvOrigin::Explicit,
};
const WIRESHARK_GCM: Option<(&str, &str)> = Some(("AES-GCM with 16 octet ICV [RFC4106]", "NULL"));
const WIRESHARK_SHA256: &str = "HMAC-SHA-256-128 [RFC4868]";

/// All transforms; the first is the default.
pub(super) const ALL: [Entry; 13] = [
    Entry {
        name: "gcm-128",
        title: "AES-128-GCM",
        transform: GCM,
        encryption: 20,
        integrity: 0,
        wireshark: WIRESHARK_GCM,
    },
    Entry {
        name: "gcm-192",
        title: "AES-192-GCM",
        transform: GCM,
        encryption: 28,
        integrity: 0,
        wireshark: WIRESHARK_GCM,
    },
    Entry {
        name: "gcm-256",
        title: "AES-256-GCM",
        transform: GCM,
        encryption: 36,
        integrity: 0,
        wireshark: WIRESHARK_GCM,
    },
    Entry {
        name: "cbc-sha256",
        title: "AES-128-CBC with HMAC-SHA-256-128",
        transform: Suite::AesCbc(Integrity::HmacSha256),
        encryption: 16,
        integrity: 32,
        wireshark: Some(("AES-CBC [RFC3602]", WIRESHARK_SHA256)),
    },
    Entry {
        name: "cbc-sha512",
        title: "AES-256-CBC with HMAC-SHA-512-256",
        transform: Suite::AesCbc(Integrity::HmacSha512),
        encryption: 32,
        integrity: 64,
        wireshark: Some(("AES-CBC [RFC3602]", "HMAC-SHA-512-256 [RFC4868]")),
    },
    Entry {
        name: "ctr-sha256",
        title: "AES-128-CTR with HMAC-SHA-256-128",
        transform: Suite::AesCtr(Integrity::HmacSha256),
        encryption: 20,
        integrity: 32,
        wireshark: Some(("AES-CTR [RFC3686]", WIRESHARK_SHA256)),
    },
    Entry {
        name: "chacha",
        title: "ChaCha20-Poly1305",
        transform: CHACHA,
        encryption: 36,
        integrity: 0,
        wireshark: None,
    },
    Entry {
        name: "null-sha256",
        title: "NULL with HMAC-SHA-256-128",
        transform: Suite::Null(Integrity::HmacSha256),
        encryption: 0,
        integrity: 32,
        wireshark: Some(("NULL", WIRESHARK_SHA256)),
    },
    Entry {
        name: "gmac-128",
        title: "AES-128-GMAC",
        transform: Suite::AesGmac,
        encryption: 20,
        integrity: 0,
        wireshark: None,
    },
    Entry {
        name: "gost-4m",
        title: "ESP_GOST-4M-IMIT",
        transform: Suite::Gost4mImit(GostSbox::CryptoProB),
        encryption: 36,
        integrity: 0,
        wireshark: None,
    },
    Entry {
        name: "gost-1k",
        title: "ESP_GOST-1K-IMIT",
        transform: Suite::Gost1kImit(GostSbox::CryptoProB),
        encryption: 68,
        integrity: 0,
        wireshark: None,
    },
    Entry {
        name: "kuznyechik-mgm",
        title: "ENCR_KUZNYECHIK_MGM_KTREE",
        transform: Suite::KuznyechikMgm,
        encryption: 44,
        integrity: 0,
        wireshark: None,
    },
    Entry {
        name: "magma-mgm",
        title: "ENCR_MAGMA_MGM_KTREE",
        transform: Suite::MagmaMgm,
        encryption: 36,
        integrity: 0,
        wireshark: None,
    },
];

/// The transform of that name.
pub(super) fn find(name: &str) -> Option<&'static Entry> {
    ALL.iter().find(|entry| entry.name == name)
}

/// What the command line takes.
pub(super) fn parser() -> impl TypedValueParser<Value = &'static Entry> {
    PossibleValuesParser::new(ALL.iter().map(|entry| entry.name))
        .map(|name| find(&name).expect("names are of the table"))
}

impl Entry {
    /// Parameters of an SA in tunnel mode, with extended sequence numbers and a window of
    /// `window`. The keys are no secret: they are counted bytes.
    pub(super) fn parameters(&self, spi: u32, window: u32) -> SaParameters {
        let keys = Keys::pair(&counted(1, self.encryption), &counted(101, self.integrity));
        let mut parameters = SaParameters::new(spi, self.transform, keys);
        parameters.replay_window = Some(window);
        parameters
    }
}

/// `first`, `first + 1`, ...
fn counted(first: u8, len: usize) -> Vec<u8> {
    (0..len).map(|i| first.wrapping_add(i as u8)).collect()
}
