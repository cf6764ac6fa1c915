//! What happens to temporary files when the program is interrupted.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Once};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;

/// From now on the signals that end a program remove the temporary names first, and a limit on
/// file size is an error of the write.
pub(crate) fn watch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let _ = signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)));
        // What the parent had us ignore stays ignored, as nohup wants it.
        let ends = [SIGINT, SIGTERM, SIGHUP]
            .into_iter()
            .filter(|&s| !is_ignored(s));
        let Ok(mut signals) = Signals::new(ends) else {
            return;
        };
        let watch = move || {
            if let Some(signal) = signals.forever().next() {
                // It does not return for these signals.
                let end = || signal_hook::low_level::emulate_default_handler(signal);
                let _ = cipherlane_files::abandon_and(end);
            }
        };
        let _ = std::thread::Builder::new().spawn(watch);
    });
}

/// Whether this process was started with a signal ignored (proc(5), SigIgn).
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_are_told_from_others() {
        // The start-up code of Rust ignores SIGPIPE.
        assert!(is_ignored(signal_hook::consts::SIGPIPE));
        assert!(!is_ignored(SIGTERM));
    }
}
