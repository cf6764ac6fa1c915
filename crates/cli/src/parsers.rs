//! The parsers of files that strangers write, as `fuzz/` calls them. No interface for others.

use crate::{capture, check};

/// The IP packets of a capture; `Err` says what is wrong with it.
pub fn capture(bytes: &[u8]) -> Result<Vec<Vec<u8>>, String> {
    capture::parse(bytes)
}

/// How many vectors a file of that name and content holds; `Err` says what is wrong with it.
pub fn vectors(file: &str, bytes: &[u8]) -> Result<usize, String> {
    match check::parse(file, bytes) {
        Ok(vectors) => Ok(vectors.total()),
        Err(error) => Err(error.to_string()),
    }
}
