//! What a command needs that runs in the foreground as a service: a log, signals, and words for
//! the service manager.

use std::fmt;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::mpsc;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tracing::subscriber::set_global_default;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::{Writer, format};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use crate::failure::Failure;

/// Messages go to standard error. Where that is the journal, each line begins with its level, as
/// journald takes it (sd-daemon(3)).
pub(crate) fn log() {
    // journald and terminals have a clock of their own.
    let subscriber = tracing_subscriber::fmt()
        .with_writer(io::stderr)
        .with_target(false)
        .with_ansi(false)
        .without_time();
    // Another one is there in tests alone.
    let _ = match is_stderr_journal() {
        true => {
            let format = Journal(format().with_target(false).with_level(false).without_time());
            set_global_default(subscriber.event_format(format).finish())
        }
        false => set_global_default(subscriber.finish()),
    };
}

/// A format with the level before it, as journald takes it.
struct Journal<F>(F);

impl<S, N, F> FormatEvent<S, N> for Journal<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let level = match *event.metadata().level() {
            Level::ERROR => 3,
            Level::WARN => 4,
            Level::INFO => 6,
            _ => 7,
        };
        write!(writer, "<{level}>")?;
        self.0.format_event(context, writer, event)
    }
}

/// Whether standard error is what the service manager has connected to the journal
/// (systemd.exec(5), JOURNAL_STREAM), and not what somebody has put in its place.
fn is_stderr_journal() -> bool {
    let Some(stream) = cipherlane_core::environment::variable("JOURNAL_STREAM") else {
        return false;
    };
    rustix::fs::fstat(io::stderr())
        .is_ok_and(|stat| stream.to_str() == Some(&format!("{}:{}", stat.st_dev, stat.st_ino)))
}

/// The signals that come, in their order.
pub(crate) fn signals() -> Result<mpsc::Receiver<i32>, Failure> {
    let failed = |error| Failure::io("catch", "signals", &error);
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM]).map_err(failed)?;
    let (sender, receiver) = mpsc::channel();
    let forward = move || {
        for signal in signals.forever() {
            if sender.send(signal).is_err() {
                return;
            }
        }
    };
    std::thread::Builder::new().spawn(forward).map_err(failed)?;
    Ok(receiver)
}

/// Tells the service manager, where there is one (sd_notify(3)).
pub(crate) fn notify(state: &str) {
    let Some(name) = cipherlane_core::environment::variable("NOTIFY_SOCKET") else {
        return;
    };
    let sent = || {
        let address = match name.as_bytes() {
            [b'@', rest @ ..] => SocketAddr::from_abstract_name(rest)?,
            path => SocketAddr::from_pathname(std::ffi::OsStr::from_bytes(path))?,
        };
        UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address)
    };
    if let Err(error) = sent() {
        tracing::warn!("the service manager could not be told '{state}': {error}");
    }
}
