//! The one call that the crate for performance events does not have.

use std::io;
use std::os::fd::AsRawFd;

use perf_event::Counter;

/// `PERF_EVENT_IOC_SET_OUTPUT` of perf_event_open(2).
const SET_OUTPUT: libc::Ioctl = libc::_IO(b'$' as u32, 5);

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
