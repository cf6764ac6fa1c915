//! Work as the target counts it itself.

use std::ffi::OsString;
use std::fmt;
use std::sync::Arc;

/// What the target says of its own work.
#[derive(Clone)]
pub struct Meter {
    /// Where the figure is from, as a recording says it.
    pub source: String,
    /// Bytes of work until now, where they can be told. It is asked before the recording and behind
    /// it, when a command has ended.
    pub bytes: Arc<dyn Fn() -> Option<u64> + Send + Sync>,
    /// A variable of the environment that a command gets for that.
    pub variable: Option<(&'static str, OsString)>,
}

impl Meter {
    pub(super) fn now(&self) -> Option<u64> {
        (self.bytes)()
    }
}

impl fmt::Debug for Meter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            source, variable, ..
        } = self;
        let mut told = f.debug_struct("Meter");
        told.field("source", source).field("variable", variable);
        told.finish_non_exhaustive()
    }
}
