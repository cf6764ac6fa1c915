//! The guest's keys: sessions of the framework by number.

use cipherlane_core::{Algorithm, Direction, Framework, Session};
use rustc_hash::FxHashMap;

use super::creation::Creation;
use super::private::{ALGORITHMS, Open};

/// Runs work within which what is allocated belongs to keys.
pub type KeepKeys = fn(&mut dyn FnMut());

/// A key with what it is for.
pub(crate) struct Entry {
    pub(crate) session: Session,
    /// `None`: both.
    pub(crate) direction: Option<Direction>,
}

/// What a session is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Name {
    /// By a number that was given out here.
    Given(u64),
    /// By a number that the guest has chosen.
    Chosen(u32),
}

/// Sessions that a guest has opened.
pub(crate) struct Sessions {
    framework: Framework,
    keep_keys: KeepKeys,
    limit: usize,
    /// The number of the next one. Numbers begin at random and none comes twice, not even after a
    /// restart: a guest that has a number of a back-end that died must get an error, and not
    /// another session's key.
    next: u64,
    open: FxHashMap<u64, Entry>,
    /// Those that the guest has opened on a data queue, by numbers of its own.
    chosen: FxHashMap<u32, Entry>,
}

impl Sessions {
    /// None yet, and at most `limit`.
    pub(crate) fn new(framework: &Framework, keep_keys: KeepKeys, limit: usize) -> Sessions {
        // The upper bits stay free: QEMU takes a negative number for a failure.
        let next = getrandom::u64().unwrap_or(u64::from(std::process::id()) << 32) >> 2;
        Sessions {
            framework: framework.clone(),
            keep_keys,
            limit,
            next,
            open: FxHashMap::default(),
            chosen: FxHashMap::default(),
        }
    }

    /// Has the framework test its drivers by each algorithm that a guest can ask for, which it does
    /// once. Otherwise the first session of each algorithm would do it, while the guest waits.
    pub(crate) fn test_drivers(&self) {
        for (_, name) in ALGORITHMS {
            let lengths = Algorithm::find(name).map(Algorithm::key_lengths);
            let Some(&len) = lengths.iter().flatten().next() else {
                continue;
            };
            // The halves of a key of XTS must differ.
            let key: Vec<u8> = (0..len).map(|index| index as u8).collect();
            // What fails here fails again for the guest, and is told then.
            let _ = self.make(name, &key, None, None);
        }
    }

    /// How many may be open at once.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    fn make(
        &self,
        algorithm: &str,
        key: &[u8],
        tag_len: Option<usize>,
        direction: Option<Direction>,
    ) -> Result<Entry, String> {
        if self.open.len() + self.chosen.len() >= self.limit {
            return Err(format!(
                "more than {} sessions; --sessions allows more",
                self.limit
            ));
        }
        let mut made = None;
        (self.keep_keys)(&mut || {
            let builder = self.framework.session(algorithm, key);
            let builder = builder.map(|builder| match tag_len {
                Some(bytes) => builder.tag_len(bytes),
                None => builder,
            });
            made = Some(builder.and_then(|builder| builder.open()));
        });
        match made {
            Some(Ok(session)) => Ok(Entry { session, direction }),
            Some(Err(error)) => Err(error.to_string()),
            None => Err("keys have no memory".to_owned()),
        }
    }

    /// Opens one; its number.
    pub(crate) fn open(&mut self, creation: &Creation<'_>) -> Result<u64, String> {
        let (key, direction) = (creation.key, Some(creation.direction));
        let entry = self.make(creation.algorithm, key, None, direction)?;
        let number = self.next;
        self.next += 1;
        self.open.insert(number, entry);
        Ok(number)
    }

    /// Opens one that the guest has a number for.
    pub(crate) fn open_chosen(&mut self, open: &Open, key: &[u8]) -> Result<(), String> {
        if self.chosen.contains_key(&open.number) {
            return Err("a number of a session that is open".to_owned());
        }
        let tag_len = (open.tag_len > 0).then_some(open.tag_len);
        let entry = self.make(open.algorithm, key, tag_len, None)?;
        self.chosen.insert(open.number, entry);
        Ok(())
    }

    /// Closes one that the guest has a number for. `false`: there is none of that number.
    pub(crate) fn close_chosen(&mut self, number: u32) -> bool {
        self.chosen.remove(&number).is_some()
    }

    /// Closes all that the guest has numbers for; how many there were.
    pub(crate) fn close_all_chosen(&mut self) -> usize {
        let count = self.chosen.len();
        self.chosen.clear();
        count
    }

    /// Closes one and wipes its key. `false`: there is none of that number.
    pub(crate) fn close(&mut self, number: u64) -> bool {
        self.open.remove(&number).is_some()
    }

    /// Closes all; how many there were.
    pub(crate) fn close_all(&mut self) -> usize {
        let count = self.open.len() + self.close_all_chosen();
        self.open.clear();
        count
    }

    /// A session by its name.
    pub(crate) fn find(&self, name: Name) -> Option<&Entry> {
        match name {
            Name::Given(number) => self.open.get(&number),
            Name::Chosen(number) => self.chosen.get(&number),
        }
    }
}
