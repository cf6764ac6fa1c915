//! What the tests of the command share: running it and `openssl` in a directory of their own,
//! without the settings and learned costs of whoever runs the tests.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// 64 hexadecimal digits: a key of any length is cut from them.
pub(crate) const HEX: &str = "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4";
/// A counter that overflows its lower 64 bits within a MiB.
pub(crate) const IV: &str = "00112233445566778899aabbffffff00";

/// A directory of this test, without settings of the user.
pub(crate) struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new() -> Place {
        let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        std::fs::create_dir(dir.path().join("home")).unwrap();
        Place { dir }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, data: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, data).unwrap();
        path
    }

    /// Names of the files in the directory, but for the home directory.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.dir.path()).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name != "home")
            .collect();
        names.sort();
        names
    }

    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.dir.path())
            .stdin(Stdio::null())
            .env("HOME", self.path("home"))
            .env_remove("XDG_CACHE_HOME")
            .env_remove("XDG_CONFIG_HOME");
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("CIPHERLANE_")) {
            command.env_remove(name);
        }
        command
    }

    /// The command, with words separated by spaces.
    pub(crate) fn cipherlane(&self, line: &str) -> Command {
        let mut command = self.command(env!("CARGO_BIN_EXE_cipherlane"));
        command.args(line.split_whitespace());
        command
    }

    /// `openssl`, with words separated by spaces.
    pub(crate) fn openssl(&self, line: &str) -> Command {
        let mut command = self.command("openssl");
        command.args(line.split_whitespace());
        command
    }
}

/// Runs it; the test fails unless it exits with `status`.
#[track_caller]
pub(crate) fn run(command: &mut Command, status: i32) -> Output {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{:?} cannot be run: {error}", command.get_program()));
    assert_eq!(
        output.status.code(),
        Some(status),
        "{command:?}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Standard output of a run that must succeed.
#[track_caller]
pub(crate) fn printed(command: &mut Command) -> String {
    text(&run(command, 0).stdout)
}

/// Runs it; it must fail with `status`, and say these words on standard error.
#[track_caller]
pub(crate) fn refused(command: &mut Command, status: i32, words: &[&str]) {
    let output = run(command, status);
    let message = String::from_utf8_lossy(&output.stderr);
    for word in words {
        assert!(message.contains(word), "'{word}' is not in: {message}");
    }
    assert!(!message.contains("panicked"), "{message}");
}

/// Bytes that do not repeat.
pub(crate) fn data(len: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut bytes = vec![0; len];
    for word in bytes.chunks_mut(8) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        word.copy_from_slice(&state.to_le_bytes()[..word.len()]);
    }
    bytes
}

/// Whether two files hold the same bytes.
pub(crate) fn same(a: &Path, b: &Path) -> bool {
    std::fs::read(a).unwrap() == std::fs::read(b).unwrap()
}
