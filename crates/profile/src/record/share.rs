//! The calls that the crate for performance events does not have.

use std::ffi::{CStr, c_char};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::ptr::null;
use std::time::Duration;

use perf_event::Counter;

/// `PERF_EVENT_IOC_SET_OUTPUT` of perf_event_open(2).
const SET_OUTPUT: libc::Ioctl = libc::_IO(b'$' as u32, 5);

/// `PERF_EVENT_IOC_SET_FILTER` of perf_event_open(2).
const SET_FILTER: libc::Ioctl = libc::_IOW::<*mut c_char>(b'$' as u32, 6);

/// From now on the samples of `event` go into the ring of `owner`, which is of the same processor.
pub(super) fn share(event: &Counter, owner: &Counter) -> io::Result<()> {
    // SAFETY: both are open descriptors of performance events, and the call takes the second one
    // by value: it reads and writes no memory of this process.
    let done = unsafe { libc::ioctl(event.as_raw_fd(), SET_OUTPUT, owner.as_raw_fd()) };
    match done {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// From now on `event`, which is of a tracepoint, counts only where its fields are as `filter` says.
pub(super) fn set_filter(event: &Counter, filter: &CStr) -> io::Result<()> {
    // SAFETY: the descriptor is an open one of a performance event, and the kernel reads the text up
    // to its zero byte, which it copies.
    let done = unsafe { libc::ioctl(event.as_raw_fd(), SET_FILTER, filter.as_ptr()) };
    match done {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Nanoseconds of processors that a process has used, with its threads that have ended.
pub(super) fn processor_clock(pid: u32) -> io::Result<u64> {
    let pid = libc::pid_t::try_from(pid).map_err(|_| io::ErrorKind::InvalidInput)?;
    let mut clock = 0;
    // SAFETY: the call writes the number of a clock where it is told to, and nothing else.
    match unsafe { libc::clock_getcpuclockid(pid, &mut clock) } {
        0 => {}
        error => return Err(io::Error::from_raw_os_error(error)),
    }
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the call writes a time where it is told to; a clock whose process has ended is an error.
    match unsafe { libc::clock_gettime(clock, &mut now) } {
        0 => Ok(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64),
        _ => Err(io::Error::last_os_error()),
    }
}

/// What descriptors said that a sleep has waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Polled {
    /// A ring has hung up: from then on it would end each sleep at once.
    pub(super) hung_up: bool,
    /// The process that is watched has ended, whether or not its parent has waited for it.
    pub(super) ended: bool,
}

/// Sleeps until a quarter of a ring is full, the process of the pidfd `watched` ends, a signal comes, or
/// `time` is over.
pub(super) fn sleep(
    rings: impl Iterator<Item = RawFd>,
    watched: Option<RawFd>,
    time: Duration,
) -> Polled {
    let of = |fd| libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    };
    // A descriptor below zero is left out by the call.
    let watched = of(watched.unwrap_or(-1));
    let mut polled: Vec<libc::pollfd> = std::iter::once(watched).chain(rings.map(of)).collect();
    let time = libc::timespec {
        tv_sec: time.as_secs() as libc::time_t,
        tv_nsec: libc::c_long::from(time.subsec_nanos() as i32),
    };
    // SAFETY: the array lives until the call returns and has as many entries as it is told, and so does
    // the time; no set of signals is given. What fails is a sleep that a signal has ended.
    let woken = unsafe {
        libc::ppoll(
            polled.as_mut_ptr(),
            polled.len() as libc::nfds_t,
            &time,
            null(),
        )
    };
    if woken <= 0 {
        return Polled::default();
    }
    let hung_up = libc::POLLHUP | libc::POLLERR | libc::POLLNVAL;
    Polled {
        hung_up: polled[1..].iter().any(|of| of.revents & hung_up != 0),
        ended: polled[0].revents != 0,
    }
}
