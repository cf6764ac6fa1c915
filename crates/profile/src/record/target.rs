//! Whom to record: a command that waits to be let go, or processes that run.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

use super::Meter;
use crate::Error;

/// Stops before it becomes the command, so that events can be attached; with the first word of
/// the command as its own name in the process list.
const WAIT: &str = "kill -STOP $$; exec \"$@\"";

/// A command that has been started and waits.
#[derive(Debug)]
pub(super) struct Waiting {
    child: Child,
}

/// What it has read and written, from proc_pid_io(5).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Moved {
    pub(super) read: u64,
    pub(super) written: u64,
}

impl Waiting {
    /// Starts a command that stops at once.
    pub(super) fn start(command: &[OsString], meter: Option<&Meter>) -> Result<Self, Error> {
        let failed = |source| Error::Start {
            command: command
                .first()
                .map_or_else(String::new, |word| word.to_string_lossy().into()),
            source,
        };
        let Some(program) = command.first() else {
            return Err(failed(std::io::ErrorKind::InvalidInput.into()));
        };
        let path = find(program).map_err(failed)?;
        let child = Command::new("/bin/sh")
            .args(["-c", WAIT, "sh"])
            .arg(path)
            .args(&command[1..])
            .envs(meter.and_then(|meter| meter.variable.clone()))
            .spawn()
            .map_err(failed)?;
        let waiting = Self { child };
        let options = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        waitid(WaitId::Pid(waiting.pid()), options).map_err(|error| failed(error.into()))?;
        Ok(waiting)
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id() as i32).expect("no process has the number 0")
    }

    /// Lets the command begin.
    pub(super) fn go(&self) {
        // It is our child, and not yet waited for.
        let _ = kill_process(self.pid(), Signal::CONT);
    }

    /// Whether it has ended; what it did can still be read then.
    pub(super) fn has_ended(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        !matches!(waitid(WaitId::Pid(self.pid()), options), Ok(None))
    }

    /// Asks it to end, and those of `started` that descend from it: another process may have got
    /// the number of one that has ended.
    pub(super) fn end(&self, started: &BTreeSet<u32>) {
        let own = self.id();
        let descends = |mut pid: u32| {
            // A line of parents is not longer than this, or it has changed meanwhile.
            (0..100).any(|_| {
                let is = pid == own;
                pid = parent(pid);
                is
            })
        };
        let ends: Vec<u32> = started
            .iter()
            .copied()
            .filter(|&pid| descends(pid))
            .collect();
        for pid in ends.into_iter().filter(|&pid| pid != own) {
            if let Some(pid) = Pid::from_raw(pid as i32) {
                let _ = kill_process(pid, Signal::TERM);
            }
        }
        let _ = kill_process(self.pid(), Signal::TERM);
    }

    /// What it and the children that it has waited for have moved so far.
    pub(super) fn moved(&self) -> Moved {
        moved(self.id())
    }

    /// Waits for its end: its exit status, or 128 and the signal.
    pub(super) fn status(mut self) -> i32 {
        use std::os::unix::process::ExitStatusExt;
        match self.child.wait() {
            Ok(status) => status
                .code()
                .or(status.signal().map(|signal| 128 + signal))
                .unwrap_or(1),
            Err(_) => 1,
        }
    }

    /// Ends it before it has begun.
    pub(super) fn abandon(mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The parent of a process, 0 where there is none (proc_pid_stat(5)).
fn parent(pid: u32) -> u32 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    field(&stat, 4).map_or(0, |parent| parent as u32)
}

/// A number of proc_pid_stat(5), by its place in the manual page, behind the program's name.
pub(super) fn field(stat: &str, place: usize) -> Option<u64> {
    let (_, behind) = stat.rsplit_once(')')?;
    let word = behind.split_whitespace().nth(place.checked_sub(3)?)?;
    word.parse().ok()
}

/// What a process has moved by system calls, its pipes and sockets included.
pub(super) fn moved(pid: u32) -> Moved {
    let io = std::fs::read_to_string(format!("/proc/{pid}/io")).unwrap_or_default();
    let field = |name: &str| {
        let line = io.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|text| text.trim().parse().ok()).unwrap_or(0)
    };
    Moved {
        read: field("rchar:"),
        written: field("wchar:"),
    }
}

/// The threads of a process, the main one first.
pub(super) fn threads(pid: u32) -> Result<Vec<u32>, Error> {
    let listed = std::fs::read_dir(format!("/proc/{pid}/task"));
    let entries = listed.map_err(|_| Error::NoProcess(pid))?;
    let mut threads: Vec<u32> = entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    threads.sort_unstable();
    match threads.is_empty() {
        true => Err(Error::NoProcess(pid)),
        false => Ok(threads),
    }
}

/// The words of a process's command line, or its name.
pub(super) fn command_line(pid: u32) -> String {
    let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words: Vec<_> = words
        .split(|byte| *byte == 0)
        .filter(|word| !word.is_empty())
        .map(String::from_utf8_lossy)
        .collect();
    without_secrets(words.iter().map(AsRef::as_ref))
}

/// Words of a command line; keys and passwords, which some programs take there, are left out, as
/// recordings are sent to others.
pub(super) fn without_secrets<'w>(words: impl Iterator<Item = &'w str>) -> String {
    /// Hexadecimal digits that may be a key: 56 bits.
    const KEY: usize = 14;
    let is_secret = |word: &str, before: &str| {
        let value = word.rsplit(['=', ':']).next().unwrap_or(word);
        let is_key = value.len() >= KEY && value.bytes().all(|byte| byte.is_ascii_hexdigit());
        let names = ["pass", "secret", "token", "-K", "-k"];
        let named = |of: &str| {
            names
                .iter()
                .any(|name| of.trim_start_matches('-').starts_with(name) || of == *name)
        };
        is_key
            || (named(word) && word.contains([':', '=']))
            || (named(before) && !before.contains([':', '=']))
    };
    let mut before = "";
    let mut shown = Vec::new();
    for word in words {
        shown.push(if is_secret(word, before) { "…" } else { word });
        before = word;
    }
    shown.join(" ")
}

/// The program of a name, as the shell would find it.
fn find(program: &OsString) -> std::io::Result<PathBuf> {
    let is_program = |path: &Path| {
        std::fs::metadata(path).is_ok_and(|of| of.is_file() && of.permissions().mode() & 0o111 != 0)
    };
    if program.as_bytes().contains(&b'/') {
        let path = PathBuf::from(program);
        std::fs::metadata(&path)?;
        return match is_program(&path) {
            true => Ok(path),
            false => Err(std::io::ErrorKind::PermissionDenied.into()),
        };
    }
    #[allow(clippy::disallowed_methods)]
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
    std::env::split_paths(&path)
        .map(|directory| directory.join(program))
        .find(|path| is_program(path))
        .ok_or_else(|| std::io::ErrorKind::NotFound.into())
}

impl Moved {
    pub(super) fn since(self, earlier: Self) -> Self {
        Self {
            read: self.read.saturating_sub(earlier.read),
            written: self.written.saturating_sub(earlier.written),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_waits_until_it_is_let_go() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("made");
        let words = ["touch".into(), file.clone().into_os_string()];
        let waiting = Waiting::start(&words, None).unwrap();
        assert!(!file.exists() && !waiting.has_ended());
        waiting.go();
        assert_eq!(waiting.status(), 0);
        assert!(file.exists());
    }

    #[test]
    fn its_bytes_can_be_read_when_it_has_ended() {
        let words = ["sh", "-c", "head -c 3000000 /dev/zero; exit 3"].map(OsString::from);
        let words = ["sh", "-c", "\"$0\" \"$@\" >/dev/null"]
            .map(OsString::from)
            .into_iter()
            .chain(words)
            .collect::<Vec<_>>();
        let waiting = Waiting::start(&words, None).unwrap();
        waiting.go();
        while !waiting.has_ended() {
            std::thread::yield_now();
        }
        let moved = waiting.moved();
        assert!(
            moved.read >= 3_000_000 && moved.written >= 3_000_000,
            "{moved:?}"
        );
        assert_eq!(waiting.status(), 3);
    }

    #[test]
    fn secrets_are_not_recorded() {
        for (words, shown) in [
            ("openssl enc -K 00ff -iv 1", "openssl enc -K … -iv 1"),
            ("x -pass pass:word y", "x -pass … y"),
            ("x --password=word y", "x … y"),
            ("x 00112233445566778899aabbccddeeff", "x …"),
            ("dd if=/dev/zero bs=64k", "dd if=/dev/zero bs=64k"),
        ] {
            assert_eq!(without_secrets(words.split(' ')), shown);
        }
    }

    #[test]
    fn a_command_that_is_not_there_is_named() {
        let error = Waiting::start(&["no-such-command".into()], None).unwrap_err();
        assert!(error.to_string().contains("'no-such-command'"), "{error}");
        assert!(matches!(threads(u32::MAX), Err(Error::NoProcess(u32::MAX))));
    }
}
