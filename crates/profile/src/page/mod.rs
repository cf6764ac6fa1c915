//! One or two recordings as a page to look at.

use crate::diff::Diff;
use crate::recording::Recording;
use crate::rules::Rules;

/// The page of one recording.
pub fn html(_recording: &Recording, _rules: &Rules) -> String {
    String::new()
}

/// The page of two recordings.
pub fn diff(_a: &Recording, _b: &Recording, _diff: &Diff, _rules: &Rules) -> String {
    String::new()
}
