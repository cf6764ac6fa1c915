//! A file that appears under its name only when it is whole.
//!
//! It is written without any name where the file system can do that (`O_TMPFILE`): then not even
//! `kill -9` leaves something behind. Elsewhere it has a temporary name beside the target, which
//! is removed when the program fails or is interrupted.

use std::fs::{File, OpenOptions, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};

use rustix::fs::{Access, AtFlags, CWD, FallocateFlags, Mode, OFlags};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;

use crate::failure::Failure;

/// The temporary name to remove when the program ends early.
static TEMPORARY: Mutex<Option<PathBuf>> = Mutex::new(None);

fn temporary() -> MutexGuard<'static, Option<PathBuf>> {
    TEMPORARY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A file to be.
#[derive(Debug)]
pub(crate) struct Target {
    /// As the user named it.
    path: PathBuf,
    /// Where that is.
    resolved: PathBuf,
    temporary: PathBuf,
    file: File,
    /// It has no name yet, not even a temporary one.
    nameless: bool,
    committed: AtomicBool,
}

impl Target {
    /// Begins a file beside `path`, with the permissions of the file that is there now, if any.
    pub(crate) fn create(path: &Path) -> Result<Target, Failure> {
        watch_signals();
        // The file that a symbolic link names is replaced, not the link.
        let resolved = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let old = std::fs::metadata(&resolved).ok();
        if old.is_some() {
            rustix::fs::access(&resolved, Access::WRITE_OK)
                .map_err(|error| Failure::path("write", path, &error.into()))?;
        }
        let dir = match resolved.parent() {
            Some(dir) if !dir.as_os_str().is_empty() => dir.to_owned(),
            _ => PathBuf::from("."),
        };
        let failed = |error: io::Error| {
            Failure::io(
                "write",
                &format!("'{}' (in directory '{}')", path.display(), dir.display()),
                &error,
            )
        };
        let (file, temporary, nameless) = match create_nameless(&dir) {
            Ok(file) => (file, temporary_path(&dir, 0), true),
            Err(_) => {
                let (file, temporary) = create_named(&dir).map_err(failed)?;
                (file, temporary, false)
            }
        };
        if let Some(old) = old {
            let mode = Permissions::from_mode(old.permissions().mode() & 0o777);
            file.set_permissions(mode).map_err(failed)?;
        }
        Ok(Target {
            path: path.to_owned(),
            resolved,
            temporary,
            file,
            nameless,
            committed: AtomicBool::new(false),
        })
    }

    /// For writing.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Takes room for `len` bytes, so that a full disk is noticed now, and writing is faster.
    pub(crate) fn reserve(&self, len: u64) -> Result<(), Failure> {
        if len == 0 {
            return Ok(());
        }
        let error = match rustix::fs::fallocate(&self.file, FallocateFlags::empty(), 0, len) {
            Ok(()) => return Ok(()),
            Err(error) => io::Error::from(error),
        };
        match error.kind() {
            io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::FileTooLarge => {
                Err(Failure::path("make room for", &self.path, &error))
            }
            // Not every file system can; the writes tell then.
            _ => Ok(()),
        }
    }

    /// Gives the file, of `len` bytes, its name, in place of what had it before.
    pub(crate) fn commit(&self, len: u64) -> Result<(), Failure> {
        self.file
            .set_len(len)
            .map_err(|error| Failure::path("write", &self.path, &error))?;
        // A signal that comes now waits until the file has one name or the other.
        let mut registered = temporary();
        if self.nameless {
            let _ = std::fs::remove_file(&self.temporary);
            let descriptor = format!("/proc/self/fd/{}", self.file.as_raw_fd());
            rustix::fs::linkat(
                CWD,
                descriptor,
                CWD,
                &self.temporary,
                AtFlags::SYMLINK_FOLLOW,
            )
            .map_err(|error| Failure::path("name", &self.path, &error.into()))?;
        }
        if let Err(error) = std::fs::rename(&self.temporary, &self.resolved) {
            let _ = std::fs::remove_file(&self.temporary);
            return Err(Failure::path("name", &self.path, &error));
        }
        if !self.nameless {
            *registered = None;
        }
        self.committed.store(true, Ordering::Relaxed);
        Ok(())
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        if !self.nameless && !self.committed.load(Ordering::Relaxed) {
            remove_temporary(&mut temporary());
        }
    }
}

/// A file without a name. `Err` where the file system, or a system without /proc, cannot do it.
fn create_nameless(dir: &Path) -> io::Result<File> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(dir, flags, Mode::from_raw_mode(0o666))?);
    std::fs::symlink_metadata(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
    Ok(file)
}

/// A file with a temporary name, which is removed if the program ends early.
fn create_named(dir: &Path) -> io::Result<(File, PathBuf)> {
    let mut registered = temporary();
    for attempt in 0.. {
        let path = temporary_path(dir, attempt);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o666)
            .open(&path);
        match file {
            Ok(file) => {
                *registered = Some(path.clone());
                return Ok((file, path));
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && attempt < 100 => {}
            Err(error) => return Err(error),
        }
    }
    unreachable!("the last attempt returns")
}

fn temporary_path(dir: &Path, attempt: u32) -> PathBuf {
    dir.join(format!(".cipherlane-{}-{attempt}", std::process::id()))
}

fn remove_temporary(registered: &mut Option<PathBuf>) {
    if let Some(path) = registered.take() {
        let _ = std::fs::remove_file(path);
    }
}

/// Removes the temporary name when the program fails while other threads still write.
pub(crate) fn abandon() {
    remove_temporary(&mut temporary());
}

/// From now on the signals that end a program remove the temporary name first, and a limit on
/// file size is an error of the write.
fn watch_signals() {
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
                let mut registered = temporary();
                remove_temporary(&mut registered);
                // It does not return for these signals; the lock is held until the end, so that
                // no file is named any more.
                let _ = signal_hook::low_level::emulate_default_handler(signal);
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
    use std::io::Write;

    use super::*;

    fn names(dir: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(dir).unwrap();
        entries
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect()
    }

    #[test]
    fn a_file_appears_whole_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out");
        std::fs::write(&path, "old").unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        let nameless = || Target::create(&path).unwrap();
        let named = || {
            let (file, temporary) = create_named(dir.path()).unwrap();
            Target {
                path: path.clone(),
                resolved: path.clone(),
                temporary,
                file,
                nameless: false,
                committed: AtomicBool::new(false),
            }
        };
        for (round, create) in [&nameless as &dyn Fn() -> Target, &named]
            .iter()
            .enumerate()
        {
            let target = create();
            target.reserve(1 << 20).unwrap();
            target.file().write_all(b"half").unwrap();
            drop(target);
            assert_eq!(names(dir.path()), ["out"]);
            let target = create();
            target.reserve(1 << 20).unwrap();
            write!(target.file(), "new {round}").unwrap();
            target.commit(5).unwrap();
            drop(target);
            assert_eq!(
                std::fs::read_to_string(&path).unwrap(),
                format!("new {round}")
            );
            assert_eq!(names(dir.path()), ["out"]);
            if round == 0 {
                let mode = std::fs::metadata(&path).unwrap().permissions().mode();
                assert_eq!(mode & 0o777, 0o640);
            }
        }
        let abandoned = named();
        assert_eq!(names(dir.path()).len(), 2);
        abandon();
        assert_eq!(names(dir.path()), ["out"]);
        drop(abandoned);
    }

    #[test]
    fn a_link_stays_a_link() {
        let dir = tempfile::tempdir().unwrap();
        let (real, link) = (dir.path().join("real"), dir.path().join("link"));
        std::fs::write(&real, "old").unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let target = Target::create(&link).unwrap();
        target.file().write_all(b"new").unwrap();
        target.commit(3).unwrap();
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(std::fs::read_to_string(&real).unwrap(), "new");
    }

    #[test]
    fn a_signal_removes_the_temporary_name() {
        const DIR: &str = "CIPHERLANE_TEST_TARGET_DIR";
        if let Some(dir) = std::env::var_os(DIR) {
            // The program that is interrupted: this test, started once more.
            watch_signals();
            let _file = create_named(Path::new(&dir)).unwrap();
            std::thread::sleep(std::time::Duration::from_secs(60));
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let mut child = std::process::Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "enc::target::tests::a_signal_removes_the_temporary_name",
            ])
            .env(DIR, dir.path())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        while names(dir.path()).is_empty() {
            assert!(child.try_wait().unwrap().is_none(), "it ended early");
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        let status = child.wait().unwrap();
        assert_eq!(
            std::os::unix::process::ExitStatusExt::signal(&status),
            Some(SIGTERM)
        );
        assert!(names(dir.path()).is_empty());
    }

    #[test]
    fn ignored_signals_are_told_from_others() {
        // The start-up code of Rust ignores SIGPIPE.
        assert!(is_ignored(signal_hook::consts::SIGPIPE));
        assert!(!is_ignored(SIGTERM));
    }
}
