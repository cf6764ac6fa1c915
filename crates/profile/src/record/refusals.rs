//! What the kernel refuses to whom, and what would change that.

use std::io;

use super::events::Scope;
use crate::Error;

/// kernel.perf_event_paranoid.
pub(super) fn level() -> String {
    std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid")
        .map_or_else(|_| "unknown".to_owned(), |text| text.trim().to_owned())
}

pub(super) fn without_kernel() -> String {
    format!(
        "the kernel's part of the processor time, what is waited for and who ends it, and system calls \
         are not recorded: kernel.perf_event_paranoid is {}; run as root, or 'sysctl \
         kernel.perf_event_paranoid=1 kernel.kptr_restrict=0'",
        level()
    )
}

/// Why no processor time can be recorded: the kernel said `source`, and kernel.perf_event_paranoid is
/// `level`.
pub(super) fn refused(source: io::Error, scope: Scope<'_>, at_exec: bool, level: String) -> Error {
    // Up to this level users may record their own processes.
    const OWN: i32 = 2;
    match (source.raw_os_error(), scope) {
        (Some(libc::EACCES | libc::EPERM), Scope::Threads { tids, .. })
            if !at_exec && level.parse().is_ok_and(|level: i32| level <= OWN) =>
        {
            Error::NotYours {
                pid: tids.first().copied().unwrap_or(0),
                source,
            }
        }
        (Some(libc::EACCES | libc::EPERM), _) => Error::Refused { source, level },
        _ => failed("processor time", source),
    }
}

pub(super) fn failed(what: &'static str, source: io::Error) -> Error {
    match source.raw_os_error() {
        Some(libc::EMFILE | libc::ENFILE) => Error::Rings {
            what,
            source,
            remedy: "raise the limit on open files (ulimit -n)",
        },
        Some(libc::EPERM | libc::ENOMEM) => Error::Rings {
            what,
            source,
            remedy: "raise the limit on locked memory (ulimit -l) or kernel.perf_event_mlock_kb",
        },
        _ => Error::Unsupported { what, source },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Debian and Ubuntu have levels above the kernel's own, which refuse one's own processes too.
    #[test]
    fn the_level_says_whose_fault_a_refusal_is() {
        let scope = Scope::Threads {
            tids: &[7],
            children: false,
        };
        let told = |at_exec, level: &str| {
            let error = io::Error::from_raw_os_error(libc::EACCES);
            refused(error, scope, at_exec, level.to_owned()).to_string()
        };
        for level in ["3", "4", "unknown"] {
            for at_exec in [true, false] {
                let told = told(at_exec, level);
                let named = format!("kernel.perf_event_paranoid is {level}");
                assert!(told.contains(&named), "{told}");
                assert!(
                    told.contains("sysctl kernel.perf_event_paranoid=2"),
                    "{told}"
                );
            }
        }
        assert!(told(false, "2").contains("process 7 cannot be recorded"));
        assert!(told(true, "2").contains("allow the system call"));
        let none = io::Error::from_raw_os_error(libc::ENOSYS);
        let told = refused(none, scope, true, "2".to_owned()).to_string();
        assert!(told.contains("CONFIG_PERF_EVENTS"), "{told}");
    }
}
