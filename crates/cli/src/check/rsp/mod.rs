//! Response files of NIST's Cryptographic Algorithm Validation Program, and files written in
//! their manner.
//!
//! Read are the AES known-answer and multi-block files (AESAVS), XTS (XTSVS), GCM (GCMVS) and
//! HMAC (HMACVS). Monte Carlo files and files of other algorithms are recognised and counted.

mod records;

use std::sync::Arc;

use super::case::{Case, NOT_SUPPORTED, Vectors, Verdict};
use super::error::VectorError;
use records::{Record, Response};

/// Reason for vectors of thousand-fold iterated encryption.
const MONTE_CARLO: &str = "Monte Carlo files are not run";
/// Reason for data units that end within a byte.
const BIT_LENGTH: &str = "xts(aes) takes whole bytes";

/// What a file tests.
#[derive(Debug, PartialEq, Eq)]
enum Kind {
    /// A block cipher mode without authentication.
    Mode(&'static str),
    Gcm,
    Xts,
    /// The algorithm, or `None` where each section tells by its `[L = bytes]`.
    Hmac(Option<&'static str>),
    /// An algorithm or test that is only counted.
    Counted(String, &'static str),
}

/// Reads the text of a response file. `file` is the name that errors carry.
pub(crate) fn parse(file: &Arc<str>, text: &str) -> Result<Vectors, VectorError> {
    let response = Response::parse(file, text)?;
    let Some(kind) = recognise(&response) else {
        return Err(VectorError::Unknown {
            file: file.to_string(),
            what: match response.records.is_empty() {
                true => "it has no records".to_owned(),
                false => "neither its first comments nor its fields tell an algorithm".to_owned(),
            },
        });
    };
    let mut vectors = Vectors::new("NIST response file");
    for record in &response.records {
        match &kind {
            Kind::Mode(algorithm) => vectors.push(mode(file, record, algorithm)?),
            Kind::Gcm => vectors.push(gcm(file, record)?),
            Kind::Xts => match xts(file, record)? {
                Some(case) => vectors.push(case),
                None => vectors.skip("xts(aes)", BIT_LENGTH),
            },
            Kind::Hmac(algorithm) => {
                match algorithm.map_or_else(|| hmac_of_section(record), |a| Ok(Ok(a)))? {
                    Ok(algorithm) => vectors.push(hmac(file, record, algorithm)?),
                    Err(other) => vectors.skip(&other, NOT_SUPPORTED),
                }
            }
            Kind::Counted(algorithm, reason) => vectors.skip(algorithm, reason),
        }
    }
    Ok(vectors)
}

/// Tells the kind by the comments at the head, or else by the fields of the first record.
fn recognise(response: &Response<'_>) -> Option<Kind> {
    let first = response.records.first()?;
    for line in &response.header {
        if let Some((test, mode)) = line
            .strip_prefix("AESVS ")
            .and_then(|rest| rest.split_once(" test data for "))
        {
            let name = mode.trim().to_ascii_lowercase();
            return Some(match (test, name.as_str()) {
                ("MCT", mode) => Kind::Counted(format!("{mode}(aes)"), MONTE_CARLO),
                (_, "ecb") => Kind::Mode("ecb(aes)"),
                (_, "cbc") => Kind::Mode("cbc(aes)"),
                (_, "ctr") => Kind::Mode("ctr(aes)"),
                (_, other) => Kind::Counted(format!("{other}(aes)"), NOT_SUPPORTED),
            });
        }
        if line.starts_with("AES Counter ") {
            return Some(Kind::Mode("ctr(aes)"));
        }
        if line.starts_with("GCM ") {
            return Some(Kind::Gcm);
        }
        if line.starts_with("XTSGen ") {
            return Some(Kind::Xts);
        }
        if line.contains("HMAC") {
            return Some(match line.split("HMAC-").nth(1).map(str::trim) {
                Some("SHA256") => Kind::Hmac(Some("hmac(sha256)")),
                Some("SHA512") => Kind::Hmac(Some("hmac(sha512)")),
                Some(other) => Kind::Counted(
                    format!("hmac({})", other.to_ascii_lowercase()),
                    NOT_SUPPORTED,
                ),
                None => Kind::Hmac(None),
            });
        }
        if line.contains("\"SHA-") {
            let name = line.split('"').nth(1).unwrap_or("SHA").to_owned();
            return Some(Kind::Counted(name, NOT_SUPPORTED));
        }
    }
    if first.has("KEYs") || first.has("KEY1") {
        return Some(Kind::Counted("des3_ede".to_owned(), NOT_SUPPORTED));
    }
    if first.has("DataUnitLen") {
        return Some(Kind::Xts);
    }
    (first.has("IV") && first.has("AAD") && first.has("CT") && first.has("Tag"))
        .then_some(Kind::Gcm)
}

fn begin(file: &Arc<str>, record: &Record<'_>, algorithm: &str) -> Result<Case, VectorError> {
    let id = match record.has("Count") {
        true => format!("Count {}", record.number("Count")?),
        false => "the record".to_owned(),
    };
    Ok(Case::new(file, record.line, id, algorithm))
}

/// Reads an AES key, of twice the length where it is for XTS.
fn aes_key(record: &Record<'_>, keys: usize) -> Result<Vec<u8>, VectorError> {
    let key = record.hex("KEY")?;
    match key.len() / keys {
        16 | 24 | 32 if key.len().is_multiple_of(keys) => Ok(key),
        _ => Err(record.wrong("KEY", format!("an AES key of {} bytes", key.len()))),
    }
}

fn mode(file: &Arc<str>, record: &Record<'_>, algorithm: &str) -> Result<Case, VectorError> {
    let mut case = begin(file, record, algorithm)?;
    case.key = aes_key(record, 1)?;
    if algorithm != "ecb(aes)" {
        case.iv = record.hex("IV")?;
        if case.iv.len() != 16 {
            return Err(record.wrong("IV", format!("an IV of {} bytes, not 16", case.iv.len())));
        }
    }
    case.plaintext = record.hex("PLAINTEXT")?;
    case.ciphertext = record.hex("CIPHERTEXT")?;
    same_length(record, "CIPHERTEXT", &case)?;
    if algorithm != "ctr(aes)" && !case.plaintext.len().is_multiple_of(16) {
        return Err(record.wrong("PLAINTEXT", "no whole number of 16-byte blocks".to_owned()));
    }
    Ok(case)
}

fn same_length(record: &Record<'_>, name: &str, case: &Case) -> Result<(), VectorError> {
    match case.plaintext.len() == case.ciphertext.len() {
        true => Ok(()),
        false => Err(record.wrong(
            name,
            format!(
                "{} bytes of ciphertext for {} of plaintext",
                case.ciphertext.len(),
                case.plaintext.len()
            ),
        )),
    }
}

fn gcm(file: &Arc<str>, record: &Record<'_>) -> Result<Case, VectorError> {
    let mut case = begin(file, record, "gcm(aes)")?;
    case.key = aes_key(record, 1)?;
    case.iv = record.hex("IV")?;
    case.aad = record.hex("AAD")?;
    case.ciphertext = record.hex("CT")?;
    case.tag = record.hex("Tag")?;
    record.check_bits("Key", &case.key, "Keylen")?;
    record.check_bits("IV", &case.iv, "IVlen")?;
    record.check_bits("AAD", &case.aad, "AADlen")?;
    record.check_bits("CT", &case.ciphertext, "PTlen")?;
    record.check_bits("Tag", &case.tag, "Taglen")?;
    if record.failed {
        case.verdict = Verdict::Reject;
    } else {
        case.plaintext = record.hex("PT")?;
        same_length(record, "CT", &case)?;
    }
    Ok(case)
}

/// Reads an XTS record, or `None` where the data unit ends within a byte.
fn xts(file: &Arc<str>, record: &Record<'_>) -> Result<Option<Case>, VectorError> {
    let mut case = begin(file, record, "xts(aes)")?;
    let bits = record.number("DataUnitLen")?;
    case.key = aes_key(record, 2)?;
    case.iv = match record.has("DataUnitSeqNumber") {
        // IEEE 1619 section 5.1: the number of the data unit, least significant byte first.
        true => u128::from(record.number("DataUnitSeqNumber")?)
            .to_le_bytes()
            .to_vec(),
        false => record.hex("i")?,
    };
    if case.iv.len() != 16 {
        return Err(record.wrong("i", format!("a tweak of {} bytes, not 16", case.iv.len())));
    }
    case.plaintext = record.hex("PT")?;
    case.ciphertext = record.hex("CT")?;
    same_length(record, "CT", &case)?;
    if case.plaintext.len() as u64 != bits.div_ceil(8) {
        return Err(record.wrong(
            "PT",
            format!("{} bytes, DataUnitLen = {bits} bits", case.plaintext.len()),
        ));
    }
    Ok(bits.is_multiple_of(8).then_some(case))
}

/// The HMAC of a section by the length of its hash in bytes, or the name of one not known here.
fn hmac_of_section(record: &Record<'_>) -> Result<Result<&'static str, String>, VectorError> {
    Ok(match record.setting("L")? {
        Some(32) => Ok("hmac(sha256)"),
        Some(64) => Ok("hmac(sha512)"),
        Some(20) => Err("hmac(sha1)".to_owned()),
        Some(28) => Err("hmac(sha224)".to_owned()),
        Some(48) => Err("hmac(sha384)".to_owned()),
        Some(other) => Err(format!("hmac with a hash of {other} bytes")),
        None => {
            return Err(record.wrong(
                "Key",
                "no [L = bytes] above the record tells its hash".to_owned(),
            ));
        }
    })
}

fn hmac(file: &Arc<str>, record: &Record<'_>, algorithm: &str) -> Result<Case, VectorError> {
    let mut case = begin(file, record, algorithm)?;
    case.key = record.hex("Key")?;
    let name = if record.has("Mac") { "Mac" } else { "MD" };
    case.tag = record.hex(name)?;
    case.plaintext = record.hex("Msg")?;
    for (field, length, of, bytes) in [
        ("Klen", case.key.len(), "Key", 1),
        ("Tlen", case.tag.len(), name, 1),
        ("Len", case.plaintext.len(), "Msg", 8),
    ] {
        if record.has(field) {
            let stated = record.number(field)?;
            // NIST writes the empty message as one zero byte.
            if (field, stated, case.plaintext.as_slice()) == ("Len", 0, &[0]) {
                case.plaintext.clear();
            } else if stated != length as u64 * bytes {
                let what = format!("{of} has {length} bytes, {field} = {stated}");
                return Err(record.wrong(of, what));
            }
        }
    }
    Ok(case)
}

#[cfg(test)]
mod tests;
