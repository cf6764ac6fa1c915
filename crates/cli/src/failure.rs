//! How a command ends badly: a message that names the thing and the remedy, and an exit status.

use std::io;
use std::path::Path;
use std::process::ExitCode;

use cipherlane_core::Error;

/// Why a command ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The user asked for something that cannot be: exit status 2.
    #[error("{0}")]
    Usage(String),
    /// It could be, but went wrong: exit status 1.
    #[error("{0}")]
    Runtime(String),
    /// Whoever read the output went away, as `head` does: no message.
    #[error("nobody reads the output any more")]
    ClosedPipe,
}

impl Failure {
    /// A file or stream that could not be read or written.
    pub(crate) fn io(doing: &str, what: &str, error: &io::Error) -> Failure {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Failure::ClosedPipe;
        }
        let remedy = match error.kind() {
            // It has words of its own.
            _ if error.get_ref().is_some() => "",
            io::ErrorKind::NotFound => "; check the name",
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                "; change its permissions or choose another"
            }
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                "; free some space or choose another place"
            }
            io::ErrorKind::FileTooLarge => "; raise the limit on file size (ulimit -f)",
            io::ErrorKind::IsADirectory => "; name a file in it",
            _ => "",
        };
        Failure::Runtime(format!("cannot {doing} {what}: {error}{remedy}"))
    }

    /// Like [`io`](Self::io), for a path.
    pub(crate) fn path(doing: &str, path: &Path, error: &io::Error) -> Failure {
        Failure::io(doing, &format!("'{}'", path.display()), error)
    }

    /// Says what happened on standard error; the exit status.
    pub(crate) fn report(&self) -> ExitCode {
        match self {
            Failure::Usage(message) => {
                eprintln!("cipherlane: {message}");
                ExitCode::from(2)
            }
            Failure::Runtime(message) => {
                eprintln!("cipherlane: {message}");
                ExitCode::from(1)
            }
            Failure::ClosedPipe => {
                // As a program would end that had not caught the signal.
                let signal = signal_hook::consts::SIGPIPE;
                let _ = signal_hook::low_level::emulate_default_handler(signal);
                ExitCode::from(1)
            }
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let message = error.to_string();
        match error {
            Error::DriverFailed { .. } | Error::BadTag { .. } | Error::Io { .. } => {
                Failure::Runtime(message)
            }
            Error::DriverUnusable { .. } => Failure::Runtime(format!(
                "{message}; 'cipherlane drivers' lists what can be used"
            )),
            _ => Failure::Usage(message),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_of_the_user_and_of_the_machine_are_told_apart() {
        let unknown = cipherlane_core::Algorithm::find("rot13").unwrap_err();
        assert!(matches!(Failure::from(unknown), Failure::Usage(m) if m.contains("rot13")));
        let full = io::Error::from(io::ErrorKind::StorageFull);
        let failure = Failure::path("write", Path::new("/a"), &full);
        assert!(matches!(failure, Failure::Runtime(m) if m.contains("'/a'") && m.contains("free")));
        let closed = io::Error::from(io::ErrorKind::BrokenPipe);
        assert!(matches!(
            Failure::io("write", "x", &closed),
            Failure::ClosedPipe
        ));
    }
}
