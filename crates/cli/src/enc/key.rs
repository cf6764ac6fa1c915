//! Where a key or an IV comes from: the command line, a file, a descriptor or a variable.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{BorrowedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use cipherlane_core::environment;
use rustix::io::Errno;
use zeroize::{Zeroize, Zeroizing};

use super::cipher;
use crate::failure::Failure;
use crate::secret::{Given, Secret, scope};

/// Bytes of a file that is to hold a key in hexadecimal, at most.
const MAX_LEN: usize = 4096;

/// The forms of a value that names another place.
const SOURCES: &str = "@file:NAME, @fd:NUMBER or @env:NAME";

/// The `len` bytes that an option's value stands for: hexadecimal digits, or `@file:NAME`,
/// `@fd:NUMBER` or `@env:NAME` for digits that are to be found there, with white space among them
/// or not.
///
/// Digits of the command line are filled up with zeros, as OpenSSL does. Elsewhere there must be
/// as many as the cipher takes.
pub(super) fn read(option: &str, value: &[u8], len: usize) -> Result<Secret, Failure> {
    scope(|| {
        let Some(source) = value.strip_prefix(b"@") else {
            return cipher::hex(option, text(option, value)?, len);
        };
        let mut found = Zeroizing::new(Vec::with_capacity(MAX_LEN + 1));
        let part = |name: &str| source.strip_prefix(name.as_bytes());
        let whence = if let Some(name) = part("file:") {
            from_file(option, Path::new(OsStr::from_bytes(name)), &mut found)?
        } else if let Some(number) = part("fd:") {
            from_descriptor(option, number, &mut found)?
        } else if let Some(name) = part("env:") {
            from_variable(option, OsStr::from_bytes(name), &mut found)?
        } else {
            // Not shown: it may be a key.
            return Err(Failure::Usage(format!(
                "enc: {option}: what begins with '@' names the place of a value; use {SOURCES}"
            )));
        };
        digits(option, &whence, &mut found, len)
    })
}

/// Decodes what a source holds.
fn digits(option: &str, whence: &str, found: &mut Vec<u8>, len: usize) -> Result<Secret, Failure> {
    let refused =
        |problem: String| Err(Failure::Usage(format!("enc: {option}: {whence} {problem}")));
    if found.len() > MAX_LEN {
        return refused(format!(
            "holds more than {MAX_LEN} bytes; name one that holds {} hexadecimal digits",
            2 * len
        ));
    }
    let raw = found.len();
    let is_hex = |byte: &u8| byte.is_ascii_hexdigit() || byte.is_ascii_whitespace();
    if !found.iter().all(is_hex) {
        let hint = match raw == len {
            true => "; it may be the value itself, which 'xxd -p' writes in digits",
            false => "",
        };
        return refused(format!(
            "holds something else than hexadecimal digits; write {} of them{hint}",
            2 * len
        ));
    }
    let mut kept = 0;
    for at in 0..raw {
        if !found[at].is_ascii_whitespace() {
            found[kept] = found[at];
            kept += 1;
        }
    }
    found[kept..].zeroize();
    found.truncate(kept);
    if kept != 2 * len {
        return refused(format!(
            "holds {kept} hexadecimal digits, and the cipher takes {}",
            2 * len
        ));
    }
    cipher::hex(option, text(option, found)?, len)
}

fn text<'a>(option: &str, value: &'a [u8]) -> Result<&'a str, Failure> {
    std::str::from_utf8(value).map_err(|_| {
        Failure::Usage(format!(
            "enc: {option} is no text; use the digits 0-9 and a-f"
        ))
    })
}

fn from_file(option: &str, path: &Path, found: &mut Vec<u8>) -> Result<String, Failure> {
    let whence = format!("the file '{}'", path.display());
    let failed = |error: io::Error| Failure::io("read", &format!("{whence} for {option}"), &error);
    let mut file = File::open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    let mode = metadata.permissions().mode() & 0o777;
    if metadata.is_file() && mode & 0o044 != 0 {
        eprintln!(
            "cipherlane: warning: {whence} can be read by others (mode {mode:o}); change that by \
             'chmod 600'"
        );
    }
    fill(&mut file, found).map_err(failed)?;
    Ok(whence)
}

fn from_descriptor(option: &str, number: &[u8], found: &mut Vec<u8>) -> Result<String, Failure> {
    let number = std::str::from_utf8(number).unwrap_or_default();
    let parsed = number.parse::<RawFd>().ok().filter(|&number| number >= 0);
    let Some(parsed) = parsed else {
        return Err(Failure::Usage(format!(
            "enc: {option}: '{number}' is no number of a descriptor; write @fd:3 and open it by \
             '3< FILE'"
        )));
    };
    let whence = format!("descriptor {parsed}");
    let failed = |error: io::Error| match error.raw_os_error() {
        Some(code) if code == Errno::BADF.raw_os_error() => Failure::Usage(format!(
            "enc: {option}: {whence} is not open for reading; open it by '{parsed}< FILE'"
        )),
        _ => Failure::io("read", &format!("{whence} for {option}"), &error),
    };
    // SAFETY: it is borrowed for the time of one call, which asks the kernel whether it is open.
    let descriptor = unsafe { BorrowedFd::borrow_raw(parsed) }.try_clone_to_owned();
    fill(&mut File::from(descriptor.map_err(failed)?), found).map_err(failed)?;
    Ok(whence)
}

fn from_variable(option: &str, name: &OsStr, found: &mut Vec<u8>) -> Result<String, Failure> {
    let whence = format!("the variable '{}'", name.display());
    let value = name.to_str().and_then(environment::variable);
    let Some(value) = value else {
        return Err(Failure::Usage(format!(
            "enc: {option}: {whence} is not set, or is empty; export it, or name another place"
        )));
    };
    let value = Zeroizing::new(value.into_encoded_bytes());
    Given::Environment.hide(&value);
    found.extend_from_slice(&value[..value.len().min(MAX_LEN + 1)]);
    Ok(whence)
}

/// Reads to the end, or until it is too much, without a buffer in between.
fn fill(file: &mut File, found: &mut Vec<u8>) -> io::Result<()> {
    found.resize(MAX_LEN + 1, 0);
    let mut len = 0;
    while len < found.len() {
        match file.read(&mut found[len..]) {
            Ok(0) => break,
            Ok(count) => len += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    found.truncate(len);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn digits_are_found_where_they_are_said_to_be() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"00 01\n0a0B\n").unwrap();
        let named = format!("@file:{}", file.path().display());
        let key = read("-K", named.as_bytes(), 4).unwrap();
        assert_eq!(**key, [0, 1, 10, 11]);
        assert_eq!(**read("-K", b"01", 2).unwrap(), [1, 0]);
        for (len, words) in [(3, "8 hexadecimal digits"), (5, "takes 10")] {
            let message = read("-K", named.as_bytes(), len).unwrap_err().to_string();
            assert!(message.contains(words), "{message}");
        }
    }

    #[test]
    fn what_cannot_be_used_is_refused_with_a_remedy() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, bytes: &[u8]| {
            let path = dir.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            format!("@file:{}", path.display())
        };
        for (value, words) in [
            (write("raw", &[7, 200, 0, 255]), "xxd -p"),
            (write("other", b"00112z33"), "something else"),
            (write("empty", b" \n"), "0 hexadecimal digits"),
            (write("large", &[b'0'; MAX_LEN + 1]), "more than 4096"),
            ("@file:/no/such".to_owned(), "check the name"),
            (format!("@file:{}", dir.path().display()), "directory"),
            ("@fd:x".to_owned(), "3< FILE"),
            ("@fd:-1".to_owned(), "no number"),
            ("@fd:99999".to_owned(), "not open"),
            ("@env:CIPHERLANE_NO_SUCH".to_owned(), "not set"),
            ("@env:".to_owned(), "not set"),
            ("@0011".to_owned(), "@file:NAME"),
            ("@".to_owned(), "@file:NAME"),
        ] {
            let message = read("-K", value.as_bytes(), 4).unwrap_err().to_string();
            assert!(message.contains(words), "{value}: {message}");
            assert!(
                message.contains("-K") && !message.contains("0011"),
                "{message}"
            );
        }
        assert!(read("-K", b"\xff0", 1).is_err());
    }
}
