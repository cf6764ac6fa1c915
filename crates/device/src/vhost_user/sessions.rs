//! The guest's keys: sessions of the framework by number.

use cipherlane_core::{Direction, Framework, Session};
use rustc_hash::FxHashMap;

use super::creation::Creation;

/// Runs work within which what is allocated belongs to keys.
pub type KeepKeys = fn(&mut dyn FnMut());

/// A key with what it is for.
pub(crate) struct Entry {
    pub(crate) session: Session,
    pub(crate) direction: Direction,
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
        }
    }

    /// Opens one; its number.
    pub(crate) fn open(&mut self, creation: &Creation<'_>) -> Result<u64, String> {
        if self.open.len() >= self.limit {
            return Err(format!(
                "more than {} sessions; --sessions allows more",
                self.limit
            ));
        }
        let mut made = None;
        (self.keep_keys)(&mut || {
            let builder = self.framework.session(creation.algorithm, creation.key);
            made = Some(builder.and_then(|builder| builder.open()));
        });
        let session = match made {
            Some(Ok(session)) => session,
            Some(Err(error)) => return Err(error.to_string()),
            None => return Err("keys have no memory".to_owned()),
        };
        let number = self.next;
        self.next += 1;
        let direction = creation.direction;
        self.open.insert(number, Entry { session, direction });
        Ok(number)
    }

    /// Closes one and wipes its key. `false`: there is none of that number.
    pub(crate) fn close(&mut self, number: u64) -> bool {
        self.open.remove(&number).is_some()
    }

    /// Closes all; how many there were.
    pub(crate) fn close_all(&mut self) -> usize {
        let count = self.open.len();
        self.open.clear();
        count
    }

    /// The session of a number.
    pub(crate) fn find(&self, number: u64) -> Option<&Entry> {
        self.open.get(&number)
    }
}
