//! A worker: a thread pinned to its core that does pieces, looks for more, and sleeps.

use std::io;
use std::os::unix::thread::JoinHandleExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::contest::Contest;
use super::course::Turn;
use super::pool::Pool;
use super::settings::Settings;

/// How soon a resting worker notices that the pool stops.
const STOP_LOOK: Duration = Duration::from_millis(10);
/// Looks for work in one slot between two looks at all slots, and those between two looks at the
/// clock.
const LOOKS: [u32; 2] = [16, 4];

/// Starts a worker for each core. What cannot be had is noted; without any worker,
/// callers do everything themselves.
///
/// Core and priority are set from here: a new thread inherits those of the caller, and
/// might never get to run, and to set its own, beside a caller that never rests.
pub(super) fn start(pool: &Arc<Pool>, settings: &Settings) {
    let mut threads = Vec::new();
    let mut notes = pool.notes.lock().unwrap_or_else(PoisonError::into_inner);
    let signals = SignalsBlocked::new();
    for (worker, &core) in settings.cores.iter().enumerate() {
        let (pool_of, settings_of) = (pool.clone(), settings.clone());
        let thread = std::thread::Builder::new()
            .name(format!("cipherlane-{core}"))
            .spawn(move || main(&pool_of, &settings_of, worker));
        let thread = match thread {
            Ok(thread) => thread,
            Err(error) => {
                notes.push(format!("no worker on core {core}: {error}"));
                continue;
            }
        };
        if let Err(error) = pin(&thread, core) {
            notes.push(format!("the worker for core {core} is not pinned: {error}"));
        }
        if let Err(error) = set_priority(&thread, settings.realtime) {
            let priority = settings.realtime.unwrap_or(0);
            notes.push(format!(
                "no SCHED_FIFO priority {priority} on core {core}: {error}; run with \
                 CAP_SYS_NICE or raise RLIMIT_RTPRIO, or leave realtime out"
            ));
        }
        pool.workers.fetch_add(1, Ordering::Relaxed);
        threads.push(thread);
    }
    drop(signals);
    *pool.threads.lock().unwrap_or_else(PoisonError::into_inner) = threads;
}

fn main(pool: &Pool, settings: &Settings, worker: usize) {
    // A worker that dies has settled its piece while unwinding, and begins anew in the
    // same thread: unlike the start of another one, that cannot fail.
    while catch_unwind(AssertUnwindSafe(|| serve(pool, settings, worker))).is_err() {
        pool.restarts.fetch_add(1, Ordering::Relaxed);
    }
}

/// Works until the pool stops.
fn serve(pool: &Pool, settings: &Settings, worker: usize) {
    let mut turn = Turn::of_worker(worker);
    let mut contest = Contest::new();
    let has_work = || pool.has_work() || pool.stop.load(Ordering::Relaxed);
    while !pool.stop.load(Ordering::Relaxed) {
        if let Some(time) = contest.look() {
            rest(pool, time);
        }
        if pool.work(&mut turn, &pool.fault) {
            continue;
        }
        let idle = Instant::now();
        let found = loop {
            let look = |_| {
                std::hint::spin_loop();
                pool.has_work_for(&turn)
            };
            if (0..LOOKS[1]).any(|_| (0..LOOKS[0]).any(look) || has_work()) {
                break true;
            }
            if idle.elapsed() >= settings.spin {
                break false;
            }
        };
        if !found {
            cipherlane_core::wipe_stack();
            let began = Instant::now();
            pool.wakes.sleep(worker, has_work);
            contest.slept(began.elapsed());
        }
    }
}

/// Leaves the core to others for a time; callers do not count on this worker meanwhile.
fn rest(pool: &Pool, time: Duration) {
    pool.workers.fetch_sub(1, Ordering::Relaxed);
    let started = Instant::now();
    while started.elapsed() < time && !pool.stop.load(Ordering::Relaxed) {
        std::thread::sleep(STOP_LOOK.min(time));
    }
    pool.workers.fetch_add(1, Ordering::Relaxed);
}

/// Signals are for the program's own threads: a thread that starts meanwhile takes none.
struct SignalsBlocked(libc::sigset_t);

impl SignalsBlocked {
    fn new() -> Self {
        // SAFETY: plain data; the first call fills one set, the second reads it and fills
        // the other.
        unsafe {
            let (mut all, mut before) = std::mem::zeroed();
            libc::sigfillset(&mut all);
            libc::pthread_sigmask(libc::SIG_BLOCK, &all, &mut before);
            SignalsBlocked(before)
        }
    }
}

impl Drop for SignalsBlocked {
    fn drop(&mut self) {
        // SAFETY: a set that `new` filled.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.0, std::ptr::null_mut()) };
    }
}

fn pin(thread: &JoinHandle<()>, core: usize) -> io::Result<()> {
    if core >= libc::CPU_SETSIZE as usize {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: `cpu_set_t` is a plain bit set; zero is the empty one.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: in range (checked).
    unsafe { libc::CPU_SET(core, &mut set) };
    // SAFETY: a thread that is not joined, and a set of the size given.
    let error =
        unsafe { libc::pthread_setaffinity_np(thread.as_pthread_t(), size_of_val(&set), &set) };
    check(error)
}

/// `SCHED_FIFO` where a priority is given; the ordinary policy otherwise, even if the
/// caller has another.
fn set_priority(thread: &JoinHandle<()>, realtime: Option<u8>) -> io::Result<()> {
    let policy = match realtime {
        Some(_) => libc::SCHED_FIFO,
        None => libc::SCHED_OTHER,
    };
    // SAFETY: `sched_param` is plain data.
    let mut parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    parameters.sched_priority = realtime.unwrap_or(0).into();
    // SAFETY: a thread that is not joined, and a valid parameter block.
    check(unsafe { libc::pthread_setschedparam(thread.as_pthread_t(), policy, &parameters) })
}

fn check(error: libc::c_int) -> io::Result<()> {
    match error {
        0 => Ok(()),
        _ => Err(io::Error::from_raw_os_error(error)),
    }
}
