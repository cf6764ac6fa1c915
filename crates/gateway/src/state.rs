//! Which sequence numbers were sent, kept over a restart.
//!
//! An IV that is sent twice under one key gives away what it protects. So numbers are reserved in
//! blocks: they are used only below a mark that was written, and synced, before. After a restart
//! an SA begins behind its mark, whatever it had used of the block.
//!
//! An SA is known by its key, not by its SPI or its tunnel: who renames a tunnel keeps the key and
//! with it the danger.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use cipherlane_esp::Suite;
use sha2::{Digest, Sha256};

use crate::Error;
use crate::key::Key;

/// Numbers of an SA's first block.
const FIRST_BLOCK: u64 = 1 << 16;

/// Numbers of the largest block.
const LARGEST_BLOCK: u64 = 1 << 24;

/// The first line of the file.
const TITLE: &str = "cipherlane gateway state, version 1";

/// The longest file that is read: for a million SAs.
const LONGEST: u64 = 128 << 20;

/// What an SA is known by: a digest of its transform and its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity([u8; 16]);

impl Identity {
    /// Of a key.
    pub(crate) fn of(key: &Key, transform: Suite) -> Self {
        let mut digest = Sha256::new();
        digest.update(b"cipherlane gateway key identity, version 1");
        digest.update(format!("{transform:?}"));
        digest.update(key.bytes());
        let digest = digest.finalize();
        let mut identity = [0; 16];
        identity.copy_from_slice(&digest[..16]);
        Identity(identity)
    }
}

/// Where the reserved numbers are kept: a file, or for many gateways a store that they share.
pub trait Store: Send {
    /// The mark of an SA: no number above it was used. 0 for one that the store does not know.
    fn mark(&self, sa: Identity) -> u64;

    /// Sets marks. When it returns without an error they are safe from a crash of the machine;
    /// with an error they may be or not be, and must not be relied on.
    fn set(&mut self, marks: &[(Identity, u64)]) -> Result<(), Error>;
}

/// A file of lines: an identity and its mark.
#[derive(Debug)]
pub struct FileStore {
    path: PathBuf,
    marks: BTreeMap<Identity, u64>,
    /// Held for as long as the store lives, so that two gateways do not share the file.
    _lock: File,
}

impl FileStore {
    /// Makes an empty file where there is none.
    pub fn create(path: &Path) -> Result<(), Error> {
        let failed = |error: io::Error| Error::State {
            path: path.to_owned(),
            problem: match error.kind() {
                io::ErrorKind::AlreadyExists => {
                    "it is there already, and forgetting it would repeat IVs; leave it".to_owned()
                }
                _ => format!("cannot be made: {error}; choose a directory that can be written"),
            },
        };
        cipherlane_files::create_private(path, format!("{TITLE}\n").as_bytes()).map_err(failed)
    }

    /// Reads a file, and keeps others from it.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let failed = |problem: String| Error::State {
            path: path.to_owned(),
            problem,
        };
        let text = match cipherlane_core::read_text(path, LONGEST) {
            Ok(text) => text,
            Err(cipherlane_core::Error::Io { source, .. })
                if source.kind() == io::ErrorKind::NotFound =>
            {
                return Err(Error::NoState {
                    path: path.to_owned(),
                });
            }
            Err(error) => return Err(Error::File(error)),
        };
        // The file itself is replaced with each writing, so that its lock would be lost.
        let lock_path = beside(path, "lock");
        // No link is followed: where others may write, it could lead anywhere.
        let lock = cipherlane_files::append(&lock_path).map_err(|error| {
            failed(format!(
                "its lock '{}' cannot be opened: {error}; make its directory writable",
                lock_path.display()
            ))
        })?;
        // Who cannot open it cannot hold it. The lock of another owner stays as it is.
        let _ = lock.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600));
        lock.try_lock().map_err(|_| {
            failed("another gateway uses it; stop that one, or name another file".to_owned())
        })?;
        let marks = parse(&text).map_err(|problem| {
            failed(format!(
                "{problem}. Its numbers are not known any more: give the tunnels new keys, remove \
                 the file, and make another by 'cipherlane gateway new-state'"
            ))
        })?;
        Ok(FileStore {
            path: path.to_owned(),
            marks,
            _lock: lock,
        })
    }

    fn text(&self) -> String {
        let mut text = String::with_capacity(100 + 56 * self.marks.len());
        text.push_str(TITLE);
        text.push('\n');
        for (identity, mark) in &self.marks {
            // Two digits a byte.
            let mut digits = [0; 32];
            let _ = hex::encode_to_slice(identity.0, &mut digits);
            text.extend(digits.map(char::from));
            // Writing to a string cannot fail.
            let _ = writeln!(text, " {mark}");
        }
        // A file that was cut short must not pass for a whole one.
        text.push_str(&format!("end {}\n", self.marks.len()));
        text
    }
}

impl Store for FileStore {
    fn mark(&self, sa: Identity) -> u64 {
        self.marks.get(&sa).copied().unwrap_or(0)
    }

    fn set(&mut self, marks: &[(Identity, u64)]) -> Result<(), Error> {
        self.marks.extend(marks.iter().copied());
        let written = cipherlane_files::write_synced(&self.path, self.text().as_bytes());
        written.map_err(|error| Error::State {
            path: self.path.clone(),
            problem: format!(
                "cannot be written: {error}; no more sequence numbers can be reserved. Free some \
                 space, or make its directory writable"
            ),
        })
    }
}

fn parse(text: &str) -> Result<BTreeMap<Identity, u64>, String> {
    let mut lines = text.lines();
    if lines.next() != Some(TITLE) {
        return Err("is no state of a gateway".to_owned());
    }
    let mut marks = BTreeMap::new();
    let mut end = None;
    for (number, line) in lines.enumerate() {
        let wrong = || format!("line {}: is damaged", number + 2);
        let (name, value) = line.split_once(' ').ok_or_else(wrong)?;
        let value: u64 = value.parse().map_err(|_| wrong())?;
        if end.is_some() {
            return Err(wrong());
        }
        if name == "end" {
            end = Some(value);
            continue;
        }
        let mut identity = [0; 16];
        hex::decode_to_slice(name, &mut identity).map_err(|_| wrong())?;
        if marks.insert(Identity(identity), value).is_some() {
            return Err(wrong());
        }
    }
    // A new file has no last line.
    match end {
        Some(count) if count == marks.len() as u64 => Ok(marks),
        None if marks.is_empty() => Ok(marks),
        _ => Err("was cut short".to_owned()),
    }
}

/// The file's name with something behind it.
fn beside(path: &Path, what: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(what);
    name.into()
}

/// How many numbers an SA is given next: more where the last block did not last.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block(u64);

impl Block {
    pub(crate) const FIRST: Block = Block(FIRST_BLOCK);

    pub(crate) fn numbers(self) -> u64 {
        self.0
    }

    /// An SA that has fewer reserved numbers than this is given more: the second half of a block
    /// lasts while a slow disk writes.
    pub(crate) fn low(self) -> u64 {
        self.0 / 2
    }

    /// The block was used up in `seconds`.
    pub(crate) fn adapt(&mut self, seconds: f64) {
        if seconds < 4.0 {
            self.0 = (self.0 * 2).min(LARGEST_BLOCK);
        } else if seconds > 60.0 {
            self.0 = (self.0 / 2).max(FIRST_BLOCK);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(n: u8) -> Identity {
        Identity([n; 16])
    }

    #[test]
    fn marks_are_there_after_a_restart() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state");
        assert!(matches!(FileStore::open(&path), Err(Error::NoState { .. })));
        FileStore::create(&path).unwrap();
        assert!(FileStore::create(&path).is_err());
        let mut store = FileStore::open(&path).unwrap();
        assert_eq!(store.mark(identity(1)), 0);
        store.set(&[(identity(1), 100), (identity(2), 7)]).unwrap();
        store.set(&[(identity(1), 200)]).unwrap();
        // A second gateway is kept away.
        let error = FileStore::open(&path).unwrap_err().to_string();
        assert!(error.contains("another gateway"), "{error}");
        drop(store);
        let store = FileStore::open(&path).unwrap();
        assert_eq!(store.mark(identity(1)), 200);
        assert_eq!(store.mark(identity(2)), 7);
        assert_eq!(store.mark(identity(3)), 0);
    }

    #[test]
    fn planted_links_are_not_followed() {
        use std::os::unix::fs::symlink;
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        std::fs::write(path("victim"), "precious").unwrap();
        symlink(path("victim"), path("dangling")).unwrap();
        let error = FileStore::create(&path("dangling"))
            .unwrap_err()
            .to_string();
        assert!(error.contains("there already"), "{error}");
        FileStore::create(&path("state")).unwrap();
        symlink(path("victim"), path("state.lock")).unwrap();
        let error = FileStore::open(&path("state")).unwrap_err().to_string();
        assert!(error.contains("state.lock"), "{error}");
        std::fs::remove_file(path("state.lock")).unwrap();
        // The name that a new content could have before it is whole.
        symlink(path("victim"), path("state.new")).unwrap();
        let mut store = FileStore::open(&path("state")).unwrap();
        store.set(&[(identity(1), 100)]).unwrap();
        assert_eq!(std::fs::read_to_string(path("victim")).unwrap(), "precious");
        assert!(path("state.new").is_symlink());
        use std::os::unix::fs::MetadataExt;
        assert_eq!(
            std::fs::metadata(path("state")).unwrap().mode() & 0o777,
            0o600
        );
    }

    #[test]
    fn a_damaged_file_is_refused() {
        let line = format!("{} 5\n", hex::encode([1; 16]));
        let whole = format!("{TITLE}\n{line}end 1\n");
        assert_eq!(parse(&whole).unwrap().len(), 1);
        assert!(parse(&format!("{TITLE}\n")).unwrap().is_empty());
        for wrong in [
            String::new(),
            "state\n".to_owned(),
            format!("{TITLE}\n{line}"),
            format!("{TITLE}\n{line}end 2\n"),
            format!("{TITLE}\n{line}{line}end 2\n"),
            format!("{TITLE}\n{line}end 1\n{line}"),
            format!("{TITLE}\nab 5\nend 1\n"),
            format!("{TITLE}\n{} -5\nend 1\n", hex::encode([1; 16])),
        ] {
            assert!(parse(&wrong).is_err(), "{wrong}");
        }
        for cut in TITLE.len() + 2..whole.len() - 1 {
            assert!(parse(&whole[..cut]).is_err(), "{cut}");
        }
    }

    #[test]
    fn blocks_follow_the_traffic() {
        let mut block = Block::FIRST;
        block.adapt(1.0);
        assert_eq!(block.numbers(), 2 * FIRST_BLOCK);
        block.adapt(10.0);
        assert_eq!(block.numbers(), 2 * FIRST_BLOCK);
        block.adapt(100.0);
        assert_eq!(block.numbers(), FIRST_BLOCK);
        (0..40).for_each(|_| block.adapt(0.1));
        assert_eq!(block.numbers(), LARGEST_BLOCK);
    }
}
