//! The framework: made, asked, freed.

use std::ffi::{CString, c_char, c_int};
use std::path::Path;
use std::sync::OnceLock;

use cipherlane::{Framework, Kind};

use crate::memory::{self, free, give, handle, place, text};
use crate::status::{Refusal, answer};

/// `cipherlane_version`.
#[unsafe(no_mangle)]
pub extern "C" fn cipherlane_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}

/// `cipherlane_framework_new`.
///
/// # Safety
/// `framework` has a place or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cipherlane_framework_new(framework: *mut *mut Framework) -> c_int {
    answer(|| {
        // SAFETY: as promised.
        let framework = unsafe { place("framework", framework) }?;
        give(framework, Framework::new()?);
        Ok(())
    })
}

/// `cipherlane_framework_load`.
///
/// # Safety
/// `file` is a string or null; `framework` has a place or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cipherlane_framework_load(
    file: *const c_char,
    framework: *mut *mut Framework,
) -> c_int {
    answer(|| {
        // SAFETY: as promised.
        let framework = unsafe { place("framework", framework) }?;
        let file = match file.is_null() {
            true => None,
            // SAFETY: as promised.
            false => Some(Path::new(unsafe { text("file", file) }?)),
        };
        let config = cipherlane::load_config(file)?;
        give(framework, Framework::with_config(config)?);
        Ok(())
    })
}

/// `cipherlane_framework_free`.
///
/// # Safety
/// `framework` is a handle that is not used again, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cipherlane_framework_free(framework: *mut Framework) {
    // SAFETY: as promised.
    unsafe { free(framework) }
}

/// `struct cipherlane_algorithm`.
#[derive(Debug)]
#[repr(C)]
pub struct Algorithm {
    name: *const c_char,
    kind: c_int,
    iv_len: usize,
    block_len: usize,
    tag_len: usize,
}

/// `cipherlane_algorithm_at`.
///
/// # Safety
/// `algorithm` has a place or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cipherlane_algorithm_at(
    number: usize,
    algorithm: *mut Algorithm,
) -> c_int {
    // Names as C has them.
    static NAMES: OnceLock<Vec<CString>> = OnceLock::new();
    answer(|| {
        if algorithm.is_null() {
            return Err(Refusal::Argument("algorithm is NULL".to_owned()));
        }
        let all = cipherlane::Algorithm::all();
        let names = NAMES.get_or_init(|| {
            let names = all.iter().map(|known| CString::new(known.name));
            names.map(Result::unwrap_or_default).collect()
        });
        let (known, name) = all.get(number).zip(names.get(number)).ok_or_else(|| {
            Refusal::Argument(format!("no algorithm {number}: there are {}", all.len()))
        })?;
        let described = Algorithm {
            name: name.as_ptr(),
            kind: match known.kind {
                Kind::Cipher => 0,
                Kind::Aead => 1,
                Kind::Mac => 2,
            },
            iv_len: known.iv_len,
            block_len: known.block,
            tag_len: known.tag_len(),
        };
        // SAFETY: as promised; what was there is overwritten without being read.
        unsafe { algorithm.write(described) };
        Ok(())
    })
}

/// `cipherlane_why`.
///
/// # Safety
/// `framework` is a handle, `algorithm` a string, `text` leads to `text_size` bytes, `needed` has
/// a place; each may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cipherlane_why(
    framework: *const Framework,
    algorithm: *const c_char,
    size: usize,
    text: *mut c_char,
    text_size: usize,
    needed: *mut usize,
) -> c_int {
    answer(|| {
        // SAFETY: as promised.
        let (framework, algorithm) = unsafe {
            (
                handle("framework", framework)?,
                memory::text("algorithm", algorithm)?,
            )
        };
        // A sentence is about memory that a request can have.
        memory::check("size", std::ptr::dangling(), size)?;
        let why = framework.why(algorithm, size)?.to_string();
        // SAFETY: as promised.
        let place = unsafe { memory::bytes_mut("text", text.cast(), text_size) }?;
        // SAFETY: as promised.
        if let Some(needed) = unsafe { needed.as_mut() } {
            *needed = why.len() + 1;
        }
        let Some(last) = place.len().checked_sub(1) else {
            return match needed.is_null() {
                true => Err(Refusal::Argument("text has no bytes".to_owned())),
                false => Ok(()),
            };
        };
        // No character is cut.
        let mut ends = (0..=last.min(why.len())).rev();
        let written = ends.find(|&end| why.is_char_boundary(end)).unwrap_or(0);
        place[..written].copy_from_slice(&why.as_bytes()[..written]);
        place[written] = 0;
        Ok(())
    })
}
