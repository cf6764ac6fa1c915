//! The project's own layout of whole ESP packets.

use std::sync::Arc;

use cipherlane_esp::{Integrity, IvOrigin, Suite};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::case::{Case, Hex, Vectors};
use super::direct::{Direct, Esp, Work};
use super::error::VectorError;
use super::json::{self, Lines};
use super::layouts::wrong;

/// The value of `layout` in such files.
pub(super) const LAYOUT: &str = "cipherlane-esp-1";

/// Reserved SPIs, which stand in examples that were never sent.
const RESERVED: &str = "an SPI below 256 is reserved";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Published {
    name: String,
    transform: String,
    encryption_key: Hex,
    integrity_key: Hex,
    esn: bool,
    /// The whole number; the packet carries its lower half.
    sequence: String,
    packet: Hex,
    payload: Hex,
    next_header: u8,
}

pub(super) fn read<'a>(
    file: &Arc<str>,
    parts: &[&'a RawValue],
    lines: &mut Lines<'a>,
) -> Result<Vectors, VectorError> {
    let mut vectors = Vectors::new(LAYOUT);
    for part in parts {
        let line = lines.of(part);
        let published: Published = json::parse_at(file, part, line)?;
        let explicit = IvOrigin::Explicit;
        let name = published.transform.as_str();
        let transform = match name {
            "aes-gcm-16" => Suite::AesGcm {
                icv: 16,
                iv: explicit,
            },
            "aes-gmac" => Suite::AesGmac,
            "chacha20-poly1305" => Suite::ChaCha20Poly1305 { iv: explicit },
            "aes-cbc-hmac-sha256" => Suite::AesCbc(Integrity::HmacSha256),
            "aes-cbc-hmac-sha512" => Suite::AesCbc(Integrity::HmacSha512),
            other => return Err(wrong(file, line, format!("no transform \"{other}\""))),
        };
        let sequence = published.sequence.parse();
        let sequence = sequence.map_err(|_| wrong(file, line, "no number in sequence".into()))?;
        let mut case = Case::new(file, line, published.name, &format!("esp {name}"));
        case.key = published.encryption_key.0;
        case.auth_key = published.integrity_key.0;
        case.plaintext = published.payload.0;
        case.ciphertext = published.packet.0;
        if case.ciphertext.starts_with(&[0, 0, 0]) {
            vectors.skip(&case.algorithm, RESERVED);
            continue;
        }
        let work = Work::Esp(Esp {
            transform,
            esn: published.esn,
            sequence,
            next_header: published.next_header,
        });
        vectors.direct.push(Direct { case, work });
    }
    Ok(vectors)
}
