//! `cipherlane check`: test vectors from files, run through the public API on every driver.
//!
//! - [`command`]: arguments, progress, exit status
//! - [`run`]: vectors on drivers, alone and in company; [`trial`]: what is asked for one vector and
//!   how the answer is judged; [`memory`]: in place, apart, scattered; [`report`]: the counts
//! - [`direct`]: vectors on the library itself: ESP packets, and what no driver has
//! - [`case`]: one vector, whatever file it came from
//! - [`rsp`], [`wycheproof`], [`layouts`], [`shapes`], [`whole_packets`]: the formats of files, on
//!   [`json`]
//! - [`error`]: what can be wrong with a file
//!
//! The format is told by the content of the file, never by its name.

mod case;
mod command;
mod direct;
mod error;
mod json;
mod layouts;
mod memory;
mod report;
mod rsp;
mod run;
mod shapes;
mod trial;
mod whole_packets;
mod wycheproof;

pub(crate) use command::{Arguments, run};

use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use case::Vectors;
use error::{FETCH_AGAIN, VectorError};

/// The largest vector file taken, in bytes: many times the largest that NIST publishes.
const MAX_FILE: u64 = 64 << 20;

/// Reads a vector file of any known format.
pub(crate) fn load(path: &Path) -> Result<Vectors, VectorError> {
    let file = path.display().to_string();
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|f| f.take(MAX_FILE + 1).read_to_end(&mut bytes));
    match read {
        Err(source) => Err(VectorError::Read { file, source }),
        Ok(length) if length as u64 > MAX_FILE => Err(VectorError::TooLarge {
            file,
            limit: MAX_FILE,
        }),
        Ok(_) => parse(&file, &bytes),
    }
}

/// Reads the content of a vector file. `file` is the name that errors and cases carry.
pub(crate) fn parse(file: &str, bytes: &[u8]) -> Result<Vectors, VectorError> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let before = &bytes[..error.valid_up_to()];
        VectorError::Malformed {
            file: file.to_owned(),
            line: 1 + before.iter().filter(|&&b| b == b'\n').count(),
            what: "bytes that are not UTF-8 text".to_owned(),
            remedy: FETCH_AGAIN,
        }
    })?;
    let name = Arc::from(file);
    let vectors = if !text.trim_start().starts_with('{') {
        rsp::parse(&name, text)?
    } else if layouts::is_wycheproof(file, text)? {
        wycheproof::parse(&name, text)?
    } else {
        layouts::parse(&name, text)?.ok_or_else(|| VectorError::Unknown {
            file: file.to_owned(),
            what: "JSON with neither \"testGroups\" nor \"vectors\"".to_owned(),
        })?
    };
    match vectors.total() {
        0 => Err(VectorError::Unknown {
            file: file.to_owned(),
            what: "it holds no vectors".to_owned(),
        }),
        _ => Ok(vectors),
    }
}

#[cfg(test)]
mod tests;
