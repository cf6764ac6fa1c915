//! Large calls are shared with worker threads on cores that the user dedicates.
//!
//! | file | what it holds |
//! |---|---|
//! | `mod.rs` | when there are workers, and how a call gets to them |
//! | `work` | the parts of a call, mode by mode |
//! | `ledger` | what calls cost alone and shared, and which way the next call takes |
//!
//! `cores = 1-3` in the provider's section of OpenSSL's configuration, or the environment
//! variable `CIPHERLANE_CORES`, names the cores. A process has one set of
//! workers. They start with its first large call, since a program may fork after it has loaded the
//! library. They are stopped before the library is unloaded.

mod ledger;
mod work;

use std::ptr::null_mut;
use std::slice;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, PoisonError};

use cipherlane_core::{Config, Request, Status};
use cipherlane_drivers::cores::{Cores, Settings};
use cipherlane_kernels::gcm::{GcmKey, GcmState};
use cipherlane_kernels::job::Direction;
use inout::InOutBuf;

pub(crate) use self::ledger::Ledger;
use self::ledger::Way;
pub(crate) use self::work::Work;
use crate::error::Reason;
use crate::hint::rarely;
use crate::spec::Spec;
use crate::statistics;

/// A call with fewer bytes runs on its own thread alone: it is over before a sleeping worker is
/// awake.
const MIN_CALL: usize = 512 << 10;

/// The note for a setting that cannot be followed.
const NOT_FOLLOWED: &str = "CIPHERLANE_CORES, or 'cores' in the provider's section, is no list of \
                            cores that are online; write it like 1-3 or 1,3";

/// The workers, from a `Box`; null where no cores are dedicated. The pointer changes only while no
/// context is in use.
static CORES: AtomicPtr<Cores> = AtomicPtr::new(null_mut());

/// The number of library contexts that use the provider.
static USERS: Mutex<usize> = Mutex::new(0);

/// Notes that a library context begins to use the provider. `configured` is the setting of its
/// configuration; the first library context that names cores sets them.
pub(crate) fn start(configured: Option<&str>) {
    let mut users = USERS.lock().unwrap_or_else(PoisonError::into_inner);
    *users += 1;
    let mut config = Config::default();
    if let Some(list) = configured {
        Settings::dedicate(&mut config, list);
    }
    Settings::environment(&mut config);
    if config.drivers.is_empty() || !CORES.load(Ordering::Relaxed).is_null() {
        return;
    }
    match Cores::new(&config) {
        Ok(cores) => CORES.store(Box::into_raw(Box::new(cores)), Ordering::Release),
        // A wrong setting must not leave a program without its ciphers.
        Err(_) => statistics::note(NOT_FOLLOWED),
    }
}

/// Notes that a library context has ended its use of the provider. With the last one the workers
/// end.
pub(crate) fn stop() {
    let mut users = USERS.lock().unwrap_or_else(PoisonError::into_inner);
    *users = users.saturating_sub(1);
    if *users == 0 {
        let cores = CORES.swap(null_mut(), Ordering::AcqRel);
        if !cores.is_null() {
            // SAFETY: from `start`, and swapped out once. Contexts keep their library
            // context's provider, so none is left that uses it.
            drop(unsafe { Box::from_raw(cores) });
        }
    }
}

fn cores() -> Option<&'static Cores> {
    // SAFETY: null or from `start`; it lives while there are contexts, whose calls this is for.
    unsafe { CORES.load(Ordering::Acquire).as_ref() }
}

/// Whether a call with `len` bytes is one for [`crypt`] or [`gcm`].
#[inline]
pub(crate) fn takes(len: usize) -> bool {
    #[cfg(test)]
    if fault::FAILS.get() {
        return true;
    }
    rarely(len >= MIN_CALL) && cores().is_some()
}

/// Does a call alone or with the workers, as the cipher's ledger decides. `iv` is the IV of the
/// first block.
#[cold]
pub(crate) fn crypt(
    spec: &'static Spec,
    direction: Direction,
    work: &Work<'_>,
    iv: &[u8; 16],
    data: InOutBuf<'_, '_, u8>,
) -> Result<(), Reason> {
    #[cfg(test)]
    if fault::FAILS.get() {
        return Err(Reason::InternalError);
    }
    let len = data.len();
    let (input, output) = data.into_raw();
    // SAFETY: the data is borrowed until this returns, and its two sides are one or apart.
    let mut request = unsafe { Request::from_raw(input, len, output, len) }.iv(iv);
    let requests = slice::from_mut(&mut request);
    let turn = spec.ledger.turn(direction, len);
    match (turn.way(), cores()) {
        (Way::Shared, Some(cores)) => {
            statistics::count_split(spec);
            cores.run(work, direction, requests, turn.alone_ns());
        }
        _ => cipherlane_core::Transform::run(work, direction, requests),
    }
    turn.end();
    match request.status() {
        Status::Done => Ok(()),
        _ => Err(Reason::InternalError),
    }
}

/// Does a piece of an AES-GCM message that has had `so_far` bytes of data, and returns the state
/// after the piece. A call that fails returns no state, since the same keystream could be used
/// again with it.
#[cold]
pub(crate) fn gcm(
    spec: &'static Spec,
    direction: Direction,
    key: &GcmKey,
    mut state: GcmState,
    so_far: u64,
    data: InOutBuf<'_, '_, u8>,
) -> Result<GcmState, Reason> {
    // Parts are whole blocks. The bytes that complete a block, and those that begin one, are done
    // separately.
    let (head, rest) = data.split_at((so_far as usize).wrapping_neg() % 16);
    let whole = rest.len() / 16 * 16;
    let (middle, tail) = rest.split_at(whole);
    state.update(key, head);
    let work = Work::gcm(key, &state);
    crypt(spec, direction, &work, &[0; 16], middle)?;
    let parts = work.into_parts();
    state.join(key, &parts);
    state.update(key, tail);
    Ok(state)
}

/// Lets tests make a call fail, to see what it leaves behind.
#[cfg(test)]
pub(crate) mod fault {
    use std::cell::Cell;

    thread_local! {
        /// Calls of this thread count as large, and fail.
        pub(crate) static FAILS: Cell<bool> = const { Cell::new(false) };
    }
}
