//! Threads that wait in the kernel for implementations that may finish later, such as devices.
//!
//! A read from a socket of `AF_ALG` ends when the implementation has finished, and nothing
//! interrupts it: behind a device that has died it waits for ever. (Linux
//! 6.1.192 does the same within `io_submit(2)`.) So a thread of the driver
//! waits, with memory of its own, and a caller can stop waiting for the thread. With several of
//! them a device has several requests at once.
//!
//! A process with a request that is never finished cannot end before the device is reset or
//! removed: the kernel waits for the request.

use std::collections::VecDeque;
use std::io::{self, IoSliceMut};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use zeroize::Zeroizing;

use super::socket::Operation;
use super::way::Shape;

/// Threads at most, and so requests at most that a device has at once.
pub(super) const DEPTH: usize = 16;

/// Bytes of a thread's stack.
const STACK: usize = 128 << 10;

/// The threads of a driver. They are started when there is work for them, and end with it.
#[derive(Debug)]
pub(super) struct Crew(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    work: Mutex<Work>,
    new: Condvar,
}

#[derive(Debug, Default)]
struct Work {
    jobs: VecDeque<Job>,
    threads: usize,
    idle: usize,
    /// Requests that nobody waits for any more. A thread may count one of them down before its
    /// caller has counted it up.
    late: isize,
    is_closed: bool,
}

/// A request that has been sent.
#[derive(Debug)]
struct Job {
    number: usize,
    socket: Operation,
    wanted: usize,
    memory: Zeroizing<Vec<u8>>,
    batch: Arc<Batch>,
}

/// Requests whose ends are awaited together.
#[derive(Debug, Default)]
pub(super) struct Batch {
    ended: Mutex<Ended>,
    last: Condvar,
}

#[derive(Debug, Default)]
struct Ended {
    results: Vec<Finished>,
    under_way: usize,
    /// Nobody waits any more.
    is_left: bool,
}

/// The end of a request.
#[derive(Debug)]
pub(super) struct Finished {
    /// The caller's.
    pub(super) number: usize,
    pub(super) result: io::Result<Zeroizing<Vec<u8>>>,
    /// May be used again, where there was no error.
    pub(super) socket: Option<Operation>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Crew {
    pub(super) fn new() -> Self {
        Crew(Arc::default())
    }

    /// Begins to receive a result. `Err`: there is no thread for it, since none can be started, or
    /// all of them wait for a device that is late.
    pub(super) fn begin(
        &self,
        batch: &Arc<Batch>,
        number: usize,
        socket: Operation,
        shape: Shape,
    ) -> io::Result<()> {
        let mut work = lock(&self.0.work);
        if work.late >= DEPTH as isize {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        if work.idle <= work.jobs.len() && work.threads < DEPTH {
            let shared = self.0.clone();
            let thread = std::thread::Builder::new().name("cipherlane-afalg".to_owned());
            match thread.stack_size(STACK).spawn(move || shared.serve()) {
                Ok(_) => work.threads += 1,
                Err(error) if work.threads == 0 => return Err(error),
                Err(_) => {}
            }
        }
        lock(&batch.ended).under_way += 1;
        work.jobs.push_back(Job {
            number,
            socket,
            wanted: shape.len(),
            memory: Zeroizing::new(vec![0; shape.aad + shape.payload + shape.behind()]),
            batch: batch.clone(),
        });
        drop(work);
        self.0.new.notify_one();
        Ok(())
    }
}

impl Crew {
    /// Waits until all of a batch have ended, or the time has passed: those that have ended. The
    /// others write to memory that nobody looks at.
    pub(super) fn wait(&self, batch: &Batch, patience: Duration) -> Vec<Finished> {
        let deadline = Instant::now() + patience;
        let mut ended = lock(&batch.ended);
        while ended.under_way > 0 {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let waited = batch.last.wait_timeout(ended, left);
            ended = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        ended.is_left = true;
        let (late, results) = (ended.under_way, std::mem::take(&mut ended.results));
        drop(ended);
        lock(&self.0.work).late += late as isize;
        results
    }
}

impl Drop for Crew {
    /// Nobody waits for the threads: one of them may wait for a device for ever.
    fn drop(&mut self) {
        lock(&self.0.work).is_closed = true;
        self.0.new.notify_all();
    }
}

impl Shared {
    /// What a thread does.
    fn serve(&self) {
        let mut work = lock(&self.work);
        loop {
            if let Some(job) = work.jobs.pop_front() {
                drop(work);
                let is_late = job.run();
                work = lock(&self.work);
                work.late -= isize::from(is_late);
            } else if work.is_closed {
                return;
            } else {
                work.idle += 1;
                work = self.new.wait(work).unwrap_or_else(PoisonError::into_inner);
                work.idle -= 1;
            }
        }
    }
}

impl Job {
    /// Whether nobody waits for the end any more.
    fn run(mut self) -> bool {
        if lock(&self.batch.ended).is_left {
            return true;
        }
        let wanted = self.wanted;
        let received = (self.socket).receive(wanted, &mut [IoSliceMut::new(&mut self.memory)]);
        let is_usable = received.is_ok();
        let finished = Finished {
            number: self.number,
            result: received.map(|()| {
                self.memory.truncate(wanted);
                self.memory
            }),
            socket: is_usable.then_some(self.socket),
        };
        let mut ended = lock(&self.batch.ended);
        ended.results.push(finished);
        ended.under_way -= 1;
        if ended.under_way == 0 {
            self.batch.last.notify_one();
        }
        ended.is_left
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;

    use super::*;

    /// A socket whose other end decides when a result comes.
    fn pair() -> (Operation, UnixStream) {
        let (own, other) = UnixStream::pair().unwrap();
        (Operation::from(OwnedFd::from(own)), other)
    }

    fn payload(len: usize) -> Shape {
        Shape {
            aad: 0,
            payload: len,
            tag: 0,
        }
    }

    #[test]
    fn results_come_in_any_order_and_a_late_one_is_left_behind() {
        use std::io::Write;
        let crew = Crew::new();
        let batch = Arc::new(Batch::default());
        let mut ends = Vec::new();
        for number in 0..4 {
            let (socket, end) = pair();
            crew.begin(&batch, number, socket, payload(3)).unwrap();
            ends.push(end);
        }
        for number in [2, 0] {
            ends[number].write_all(&[number as u8; 3]).unwrap();
        }
        // Too short, which is an error of that one alone.
        ends[3].write_all(&[9]).unwrap();
        let mut numbers = Vec::new();
        for finished in crew.wait(&batch, Duration::from_secs(1)) {
            numbers.push(finished.number);
            match finished.result {
                Ok(bytes) => assert_eq!(*bytes, [finished.number as u8; 3]),
                Err(_) => assert_eq!((finished.number, finished.socket.is_none()), (3, true)),
            }
        }
        numbers.sort();
        assert_eq!(numbers, [0, 2, 3]);
        // The crew can go while one of its threads waits.
        drop(crew);
        ends[1].write_all(&[1; 3]).unwrap();
    }

    #[test]
    fn threads_are_as_many_as_said_and_late_ones_do_not_gather_work() {
        let crew = Crew::new();
        let begin = |batch: &Arc<Batch>| -> Vec<_> {
            let begin = |number| {
                let (socket, end) = pair();
                crew.begin(batch, number, socket, payload(1)).map(|()| end)
            };
            (0..2 * DEPTH)
                .map_while(|number| begin(number).ok())
                .collect()
        };
        let batch = Arc::new(Batch::default());
        let ends = begin(&batch);
        assert_eq!(ends.len(), 2 * DEPTH);
        assert_eq!(lock(&crew.0.work).threads, DEPTH);
        assert_eq!(crew.wait(&batch, Duration::ZERO).len(), 0);
        assert_eq!(begin(&Arc::new(Batch::default())).len(), 0);
        // The device is back: all that was late ends, and there is room again.
        drop(ends);
        while lock(&crew.0.work).late > 0 {
            std::thread::yield_now();
        }
        assert_eq!(begin(&Arc::new(Batch::default())).len(), 2 * DEPTH);
    }
}
