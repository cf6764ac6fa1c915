//! Open files of the device, and the sessions in each.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cipherlane_core::{Algorithm, Direction, Error, Framework, Request, Session};
use cipherlane_drivers::cryptodev::header::{CIPHERS, MACS, name};
use rustc_hash::FxHashMap;
use zeroize::Zeroizing;

use super::KeepKeys;
use super::counters::{Counters, Refusal};

/// What programs may have at most.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) files: usize,
    pub(crate) sessions: usize,
}

/// All open files.
pub(crate) struct Files {
    framework: Framework,
    keep_keys: KeepKeys,
    limits: Limits,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    next: u64,
    files: FxHashMap<u64, Arc<File>>,
}

/// An open file: sessions belong to it, and nobody else can name them.
pub(crate) struct File {
    sessions: Mutex<Sessions>,
}

struct Sessions {
    next: u32,
    open: FxHashMap<u32, Arc<Entry>>,
}

/// A session of a program: a cipher, a MAC, or both.
pub(crate) struct Entry {
    pub(crate) cipher: Option<Keyed>,
    pub(crate) mac: Option<Keyed>,
    /// The IV of a request that gives none: a cipher goes on where the last request has ended.
    pub(crate) chain: Mutex<[u8; 16]>,
}

/// An algorithm and a key.
pub(crate) struct Keyed {
    pub(crate) algorithm: &'static Algorithm,
    framework: Framework,
    keep_keys: KeepKeys,
    key: Zeroizing<Vec<u8>>,
    /// The framework's sessions by the length of the tag, which each request may choose.
    by_tag: Mutex<Vec<(usize, Session)>>,
}

/// Algorithm and key as a program asks for them.
#[derive(Clone, Copy)]
pub(crate) struct Wanted<'k> {
    pub(crate) number: u32,
    pub(crate) key: &'k [u8],
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Files {
    pub(crate) fn new(framework: &Framework, keep_keys: KeepKeys, limits: Limits) -> Files {
        Files {
            framework: framework.clone(),
            keep_keys,
            limits,
            open: Mutex::default(),
        }
    }

    /// Opens one; its number.
    pub(crate) fn open(&self, counters: &Counters) -> Result<u64, Refusal> {
        let mut open = lock(&self.open);
        if open.files.len() >= self.limits.files {
            return Err(Refusal::Limit);
        }
        open.next += 1;
        let number = open.next;
        let sessions = Sessions {
            // Numbers of a server that died mean nothing here.
            next: getrandom::u32().unwrap_or(std::process::id()),
            open: FxHashMap::default(),
        };
        let file = File {
            sessions: Mutex::new(sessions),
        };
        open.files.insert(number, Arc::new(file));
        counters.files_opened.fetch_add(1, Relaxed);
        Ok(number)
    }

    /// Closes one, with all its sessions.
    pub(crate) fn close(&self, number: u64, counters: &Counters) {
        let closed = lock(&self.open).files.remove(&number);
        if let Some(file) = closed {
            let sessions = lock(&file.sessions).open.len() as u64;
            counters.sessions_closed.fetch_add(sessions, Relaxed);
            counters.files_closed.fetch_add(1, Relaxed);
        }
    }

    /// Closes all.
    pub(crate) fn close_all(&self, counters: &Counters) {
        let numbers: Vec<u64> = lock(&self.open).files.keys().copied().collect();
        numbers
            .into_iter()
            .for_each(|number| self.close(number, counters));
    }

    pub(crate) fn find(&self, number: u64) -> Option<Arc<File>> {
        lock(&self.open).files.get(&number).cloned()
    }

    /// Opens a session in a file; its number.
    pub(crate) fn open_session(
        &self,
        file: &File,
        cipher: Option<Wanted<'_>>,
        mac: Option<Wanted<'_>>,
        counters: &Counters,
    ) -> Result<u32, Refusal> {
        if lock(&file.sessions).open.len() >= self.limits.sessions {
            return Err(Refusal::Limit);
        }
        // Expanding keys takes time: other requests of the file go on.
        let keyed = |list, wanted: Option<Wanted<'_>>| {
            wanted.map(|wanted| self.keyed(list, wanted)).transpose()
        };
        let entry = Arc::new(Entry {
            cipher: keyed(&CIPHERS, cipher)?,
            mac: keyed(&MACS, mac)?,
            chain: Mutex::default(),
        });
        let sessions = &mut *lock(&file.sessions);
        if sessions.open.len() >= self.limits.sessions {
            return Err(Refusal::Limit);
        }
        loop {
            sessions.next = sessions.next.wrapping_add(1);
            if !sessions.open.contains_key(&sessions.next) {
                break;
            }
        }
        sessions.open.insert(sessions.next, entry);
        counters.sessions_opened.fetch_add(1, Relaxed);
        Ok(sessions.next)
    }

    fn keyed(&self, list: &[(u32, &'static str)], wanted: Wanted<'_>) -> Result<Keyed, Refusal> {
        let name = name(list, wanted.number).ok_or(Refusal::Unsupported)?;
        let algorithm = Algorithm::find(name).map_err(|_| Refusal::Unsupported)?;
        let mut key = Zeroizing::default();
        (self.keep_keys)(&mut || key = Zeroizing::new(wanted.key.to_vec()));
        let keyed = Keyed {
            algorithm,
            framework: self.framework.clone(),
            keep_keys: self.keep_keys,
            key,
            by_tag: Mutex::default(),
        };
        keyed.session(algorithm.tag_len())?;
        Ok(keyed)
    }
}

impl File {
    pub(crate) fn session(&self, number: u32) -> Result<Arc<Entry>, Refusal> {
        let sessions = lock(&self.sessions);
        let found = sessions.open.get(&number).cloned();
        found.ok_or(Refusal::Session)
    }

    /// Closes a session and wipes its keys, after requests under way. `false`: there is none.
    pub(crate) fn close_session(&self, number: u32, counters: &Counters) -> bool {
        let closed = lock(&self.sessions).open.remove(&number);
        counters
            .sessions_closed
            .fetch_add(u64::from(closed.is_some()), Relaxed);
        closed.is_some()
    }
}

impl Keyed {
    /// The framework's session for tags of this length.
    fn session(&self, tag_len: usize) -> Result<Session, Refusal> {
        let mut known = lock(&self.by_tag);
        if let Some((_, session)) = known.iter().find(|(len, _)| *len == tag_len) {
            return Ok(session.clone());
        }
        let mut opened = None;
        (self.keep_keys)(&mut || {
            let builder = self.framework.session(self.algorithm.name, &self.key);
            opened = Some(builder.and_then(|builder| builder.tag_len(tag_len).open()));
        });
        match opened {
            Some(Ok(session)) => {
                known.push((tag_len, session.clone()));
                Ok(session)
            }
            Some(Err(error)) => {
                tracing::debug!("no session: {error}");
                Err(Refusal::Unsupported)
            }
            None => Err(Refusal::Failed),
        }
    }

    /// The length of a tag as a request gives it: 0 is the longest.
    pub(crate) fn tag_len(&self, given: u32) -> Result<usize, Refusal> {
        match usize::try_from(given).unwrap_or(usize::MAX) {
            0 => Ok(self.algorithm.tag_len()),
            len if self.algorithm.tags.contains(&len) => Ok(len),
            _ => Err(Refusal::Lengths),
        }
    }

    /// Runs a request.
    pub(crate) fn run(
        &self,
        direction: Direction,
        tag_len: usize,
        request: Request<'_>,
    ) -> Result<(), Refusal> {
        let session = self.session(tag_len)?;
        let ran = session.process(direction, &mut [request]);
        ran.map_err(|error| match error {
            Error::BadTag { .. } => Refusal::Forged,
            Error::DriverFailed { .. } => Refusal::Failed,
            _ => Refusal::Lengths,
        })
    }
}
