//! Files by which a machine tells about itself: those of this one, or of a test.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// A machine's `/proc` and `/sys`.
#[derive(Debug)]
pub(super) struct System {
    root: PathBuf,
}

/// A process that could be looked at.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) name: String,
    /// Files that it has mapped.
    pub(super) files: Vec<String>,
    /// `NAME=VALUE`.
    pub(super) environment: Vec<String>,
}

impl System {
    pub(super) fn this() -> Self {
        System {
            root: PathBuf::from("/"),
        }
    }

    /// A file's text, without its last newline. `None`: it is not there, or may not be read.
    pub(super) fn read(&self, path: &str) -> Option<String> {
        let text = std::fs::read(self.root.join(path)).ok()?;
        Some(String::from_utf8_lossy(&text).trim_end().to_owned())
    }

    /// Names in a directory, in order.
    pub(super) fn list(&self, path: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.root.join(path))
            .into_iter()
            .flatten();
        let mut names: Vec<String> = entries
            .flatten()
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    /// The first processor's fields of `/proc/cpuinfo`.
    pub(super) fn cpuinfo(&self) -> BTreeMap<String, String> {
        let text = self.read("proc/cpuinfo").unwrap_or_default();
        let first = text.split("\n\n").next().unwrap_or_default();
        let fields = first.lines().filter_map(|line| line.split_once(':'));
        fields
            .map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()))
            .collect()
    }

    /// The processes that may be looked at, and the number of the others.
    pub(super) fn processes(&self) -> (Vec<Process>, usize) {
        let mut hidden = 0;
        let mut processes = Vec::new();
        for id in self.list("proc") {
            if !id.bytes().all(|byte| byte.is_ascii_digit()) {
                continue;
            }
            let read = |file: &str| self.read(&format!("proc/{id}/{file}"));
            let (Some(name), Some(maps)) = (read("comm"), read("maps")) else {
                hidden += 1;
                continue;
            };
            // Address, permissions, offset, device, inode, then the file.
            let file = |line: &str| line.split_whitespace().nth(5).map(str::to_owned);
            let mut files: Vec<String> = maps.lines().filter_map(file).collect();
            files.sort();
            files.dedup();
            let environment = read("environ").unwrap_or_default();
            processes.push(Process {
                name,
                files,
                environment: environment.split('\0').map(str::to_owned).collect(),
            });
        }
        (processes, hidden)
    }
}

/// What a program of this machine prints; `Err` says why there is nothing, without a full stop.
pub(super) fn output_of(program: &str, words: &[&str]) -> Result<String, String> {
    let line = format!("{program} {}", words.join(" "));
    let output = Command::new(program)
        .args(words)
        .stdin(Stdio::null())
        .output();
    match output {
        Ok(output) if output.status.success() => {
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        }
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            let said = said.lines().next().unwrap_or("it failed");
            Err(format!("'{line}': {}", said.trim_end_matches('.')))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(format!("the program {program} is not installed"))
        }
        Err(error) => Err(format!("'{line}': {error}")),
    }
}

/// A machine made of files, for tests: `path` and text.
#[cfg(test)]
pub(super) fn machine(files: &[(&str, &str)]) -> (System, tempfile::TempDir) {
    let directory = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = directory.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let root = directory.path().to_owned();
    (System { root }, directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_are_read_and_those_that_hide_are_counted() {
        let (system, _directory) = machine(&[
            ("proc/7/comm", "nginx\n"),
            (
                "proc/7/maps",
                "7f0-7f1 r-xp 0 fe:01 1 /usr/lib/libcrypto.so.3\n7f1-7f2 rw-p 0 00:00 0 \n\
                 7f2-7f3 r--p 0 fe:01 1 /usr/lib/libcrypto.so.3\n",
            ),
            ("proc/7/environ", "A=b\0C=d\0"),
            ("proc/8/comm", "other\n"),
            ("proc/self/comm", "no number\n"),
        ]);
        let (processes, hidden) = system.processes();
        assert_eq!((processes.len(), hidden), (1, 1));
        assert_eq!(processes[0].name, "nginx");
        assert_eq!(processes[0].files, ["/usr/lib/libcrypto.so.3"]);
        assert_eq!(processes[0].environment[..2], ["A=b", "C=d"]);
    }
}
