//! The names of the transforms, and how long their keys are.

use cipherlane_esp::{Integrity, Suite};

/// The transforms that a gateway has. Those without encryption are not among them: it sends no
/// clear text.
fn transforms() -> impl Iterator<Item = (&'static str, Suite)> {
    Suite::NAMED
        .into_iter()
        .filter(|(_, transform)| transform.encrypts())
}

/// The transform of a name.
pub(crate) fn transform(name: &str) -> Result<(Suite, &'static str), String> {
    let found = transforms().find(|(known, _)| *known == name);
    found
        .map(|(name, transform)| (transform, name))
        .ok_or_else(|| {
            let names: Vec<_> = transforms().map(|(name, _)| name).collect();
            format!(
                "there is no transform '{name}'; those that there are: {}",
                names.join(", ")
            )
        })
}

/// Bytes of the key of a transform, the longest where it takes more than one.
pub(crate) fn key_len(transform: Suite) -> usize {
    let integrity = |integrity| match integrity {
        Integrity::HmacSha256 => 32,
        Integrity::HmacSha512 => 64,
    };
    match transform {
        Suite::AesCbc(with) => 32 + integrity(with),
        Suite::AesCtr(with) => 36 + integrity(with),
        Suite::Gost1kImit(_) => 68,
        Suite::KuznyechikMgm => 44,
        _ => 36,
    }
}

/// Whether IVs follow the sequence number, so that a number sent twice gives away plaintext.
pub(super) fn is_counter_mode(transform: Suite) -> bool {
    !matches!(transform, Suite::AesCbc(_))
}
