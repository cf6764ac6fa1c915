//! A worker: a thread pinned to its core that does pieces, looks for more, and sleeps.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Instant;

use super::claim::End;
use super::pool::{Pool, Turn};
use super::settings::Settings;

/// Looks for work between two looks at the clock.
const LOOKS: u32 = 64;

/// Starts a worker for each core. What cannot be had is noted; without any worker,
/// callers do everything themselves.
pub(super) fn start(pool: &Arc<Pool>, settings: &Settings) {
    let mut threads = Vec::new();
    for (worker, &core) in settings.cores.iter().enumerate() {
        let (pool_of, settings) = (pool.clone(), settings.clone());
        let thread = std::thread::Builder::new()
            .name(format!("cipherlane-{core}"))
            .spawn(move || main(&pool_of, &settings, worker, core));
        match thread {
            Ok(thread) => {
                pool.workers.fetch_add(1, Ordering::Relaxed);
                threads.push(thread);
            }
            Err(error) => note(pool, format!("no worker on core {core}: {error}")),
        }
    }
    *pool.threads.lock().unwrap_or_else(PoisonError::into_inner) = threads;
}

fn main(pool: &Pool, settings: &Settings, worker: usize, core: usize) {
    block_signals();
    if let Err(error) = pin(core) {
        note(
            pool,
            format!("the worker for core {core} is not pinned: {error}"),
        );
    }
    if let Some(priority) = settings.realtime
        && let Err(error) = real_time(priority)
    {
        note(
            pool,
            format!(
                "no SCHED_FIFO priority {priority}: {error}; run with CAP_SYS_NICE or raise \
                 RLIMIT_RTPRIO, or leave realtime out"
            ),
        );
    }
    // A worker that dies has settled its piece while unwinding, and begins anew in the
    // same thread: unlike the start of another one, that cannot fail.
    while catch_unwind(AssertUnwindSafe(|| serve(pool, settings, worker))).is_err() {
        pool.restarts.fetch_add(1, Ordering::Relaxed);
    }
}

/// Works until the pool stops.
fn serve(pool: &Pool, settings: &Settings, worker: usize) {
    let mut turn = Turn::default();
    let has_work = || pool.has_work() || pool.stop.load(Ordering::Relaxed);
    while !pool.stop.load(Ordering::Relaxed) {
        if pool.work(&mut turn, End::Last, &pool.fault) {
            continue;
        }
        let idle = Instant::now();
        let found = loop {
            if (0..LOOKS).any(|_| {
                std::hint::spin_loop();
                has_work()
            }) {
                break true;
            }
            if idle.elapsed() >= settings.spin {
                break false;
            }
        };
        if !found && let Some(called) = pool.beds.sleep(worker, has_work) {
            pool.learn_delay(called);
        }
    }
}

fn note(pool: &Pool, text: String) {
    let mut notes = pool.notes.lock().unwrap_or_else(PoisonError::into_inner);
    notes.push(text);
}

/// Signals are for the program's own threads.
fn block_signals() {
    // SAFETY: plain data that `sigfillset` initialises, read by `pthread_sigmask`.
    unsafe {
        let mut all = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_BLOCK, &all, std::ptr::null_mut());
    }
}

fn pin(core: usize) -> std::io::Result<()> {
    // SAFETY: `cpu_set_t` is a plain bit set; zero is the empty one.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    if core >= libc::CPU_SETSIZE as usize {
        return Err(std::io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: in range (checked).
    unsafe { libc::CPU_SET(core, &mut set) };
    // SAFETY: a set of the size given; 0 is the calling thread.
    match unsafe { libc::sched_setaffinity(0, size_of_val(&set), &set) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

fn real_time(priority: u8) -> std::io::Result<()> {
    // SAFETY: `sched_param` is plain data.
    let mut parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    parameters.sched_priority = priority.into();
    // SAFETY: a valid parameter block; 0 is the calling thread on Linux.
    match unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameters) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}
