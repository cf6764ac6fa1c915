//! Counters of programs that end by `_exit`, where no exit handlers run.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::place::{Place, succeeded};

/// Builds `observer.c` in the place: a library to be preloaded.
pub(crate) fn build(place: &Place) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/observer.c");
    let library = place.path().join("observer.so");
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-O", "-o"]).arg(&library);
    succeeded(cc.arg(source));
    library
}
