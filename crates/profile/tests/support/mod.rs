//! What the tests that record have in common.

use std::ffi::OsString;
use std::sync::atomic::AtomicBool;

use cipherlane_profile::Error;
use cipherlane_profile::record::{Options, Target, record};
use cipherlane_profile::recording::Recording;

pub(crate) fn options() -> Options {
    Options {
        children: false,
        time: None,
        // The programs that are recorded run for a short time.
        rate: Some(499),
        exact: false,
        work: None,
        meter: None,
    }
}

/// `None`, loudly, where this kernel or this user may not record the kernel's part.
#[track_caller]
pub(crate) fn recorded(target: &Target, options: &Options) -> Option<Recording> {
    match record(target, options, &AtomicBool::new(false)) {
        Ok(recording)
            if recording
                .missing
                .iter()
                .any(|text| text.contains("kernel's part")) =>
        {
            eprintln!("SKIPPED: {}", recording.missing.join("; "));
            None
        }
        Ok(recording) => Some(recording),
        Err(error @ (Error::Refused { .. } | Error::Unsupported { .. })) => {
            eprintln!("SKIPPED: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

pub(crate) fn command(words: &[&str]) -> Target {
    Target::Command(words.iter().map(OsString::from).collect())
}
