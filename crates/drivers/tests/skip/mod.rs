//! What a test does whose library is absent.

use std::io::Write;

/// Says that a test proves nothing here: to the stream itself, since the harness keeps what
/// `eprintln!` writes to itself unless the test fails.
pub(crate) fn skip(driver: &str, reason: &str) {
    let message = format!("SKIPPED, library absent: {driver}: {reason}\n");
    std::io::stderr()
        .write_all(message.as_bytes())
        .expect("standard error is open");
}
