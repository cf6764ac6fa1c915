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

/// Sleeps until a quarter of a ring is full, another descriptor has something to say, a signal comes, or
/// `time` is over. Says whether a descriptor has hung up: from then on it would end each sleep at once.
pub(super) fn sleep(descriptors: impl Iterator<Item = RawFd>, time: Duration) -> bool {
    let mut polled: Vec<libc::pollfd> = descriptors
        .map(|fd| libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        })
        .collect();
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
    let hung_up = libc::POLLHUP | libc::POLLERR | libc::POLLNVAL;
    woken > 0 && polled.iter().any(|of| of.revents & hung_up != 0)
}
