//! The names of the transforms, and how long their keys are.

use cipherlane_esp::{GostSbox, Integrity, IvOrigin, Transform};

/// The names of the transforms. Those without encryption are not among them: a gateway sends no
/// clear text.
const TRANSFORMS: [(&str, Transform); 14] = [
    ("aes-gcm-16", gcm(16)),
    ("aes-gcm-12", gcm(12)),
    ("aes-gcm-8", gcm(8)),
    (
        "chacha20-poly1305",
        Transform::ChaCha20Poly1305 {
            iv: IvOrigin::Explicit,
        },
    ),
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
    ("kuznyechik-mgm", Transform::KuznyechikMgm),
    ("magma-mgm", Transform::MagmaMgm),
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

const fn gcm(icv: usize) -> Transform {
    Transform::AesGcm {
        icv,
        iv: IvOrigin::Explicit,
    }
}

/// The transform of a name.
pub(crate) fn transform(name: &str) -> Result<(Transform, &'static str), String> {
    let found = TRANSFORMS.iter().find(|(known, _)| *known == name);
    found
        .map(|&(name, transform)| (transform, name))
        .ok_or_else(|| {
            let names: Vec<_> = TRANSFORMS.iter().map(|(name, _)| *name).collect();
            format!(
                "there is no transform '{name}'; those that there are: {}",
                names.join(", ")
            )
        })
}

/// Bytes of the key of a transform, the longest where it takes more than one.
pub(crate) fn key_len(transform: Transform) -> usize {
    let integrity = |integrity| match integrity {
        Integrity::HmacSha256 => 32,
        Integrity::HmacSha512 => 64,
    };
    match transform {
        Transform::AesCbc(with) => 32 + integrity(with),
        Transform::AesCtr(with) => 36 + integrity(with),
        Transform::Gost1kImit(_) => 68,
        Transform::KuznyechikMgm => 44,
        _ => 36,
    }
}

/// Whether IVs follow the sequence number, so that a number sent twice gives away plaintext.
pub(super) fn is_counter_mode(transform: Transform) -> bool {
    !matches!(transform, Transform::AesCbc(_))
}
