//! The environment of the process, as far as it may be obeyed.
//!
//! A program that is setuid or setgid, or that has capabilities of its own, runs with rights
//! that its caller does not have, and its environment is the caller's choice. The kernel marks
//! such a program with `AT_SECURE` (getauxval(3)), and glibc then obeys no variable that would
//! hand those rights on. Cipherlane does as glibc does: each of its variables, and each path that
//! comes from `HOME` or an `XDG_` variable, is asked for here and nowhere else, and does not
//! exist in such a program.
//!
//! What such a program starts without these marks (after `setuid(0)`, say) is as trusted as the
//! environment that it is given.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::OnceLock;

/// Whether the environment is that of someone who has the rights of this process.
pub fn is_trusted() -> bool {
    static TRUSTED: OnceLock<bool> = OnceLock::new();
    *TRUSTED.get_or_init(|| !at_secure())
}

/// The variable `name`, if it is set and not empty, and the environment is to be trusted.
#[allow(clippy::disallowed_methods)] // This is the one place that may.
pub fn variable(name: &str) -> Option<OsString> {
    let value = std::env::var_os(name).filter(|value| !value.is_empty())?;
    is_trusted().then_some(value)
}

/// [`variable`], where it is UTF-8.
pub fn text(name: &str) -> Option<String> {
    variable(name)?.into_string().ok()
}

/// `cipherlane` settings of the user are in this directory: `XDG_CONFIG_HOME` or `~/.config`.
pub fn config_home() -> Option<PathBuf> {
    home("XDG_CONFIG_HOME", ".config")
}

/// What `cipherlane` learned for the user is in this directory: `XDG_CACHE_HOME` or `~/.cache`.
pub fn cache_home() -> Option<PathBuf> {
    home("XDG_CACHE_HOME", ".cache")
}

fn home(name: &str, below: &str) -> Option<PathBuf> {
    let named = variable(name).map(PathBuf::from);
    named.or_else(|| Some(PathBuf::from(variable("HOME")?).join(below)))
}

/// Whether the kernel marked this process when it started the program.
#[cfg(all(target_os = "linux", not(miri)))]
#[allow(unsafe_code)]
fn at_secure() -> bool {
    // SAFETY: it reads what the kernel gave the process, and takes any number. Every kernel
    // gives this entry; glibc itself starts by it.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// Miri starts no privileged program. On other systems there is nothing to ask, and so nothing
/// to trust.
#[cfg(not(all(target_os = "linux", not(miri))))]
fn at_secure() -> bool {
    !cfg!(miri)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tests_are_no_privileged_program() {
        assert!(is_trusted());
        assert!(variable("PATH").is_some());
        assert_eq!(variable("CIPHERLANE_NO_SUCH_VARIABLE"), None);
    }
}
