//! The workers: each reads a chunk, works on it and writes it, all at the same time on
//! different chunks.
//!
//! Copying through the page cache costs several times what the cipher costs, so it is the
//! copying that is spread over the cores. A chunk stays in one core's cache from read to write.
//! What must keep an order (a stream at either end, CBC encryption) waits for its turn at that
//! step only, so the steps of different chunks still overlap.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use indicatif::ProgressBar;
use rustix::thread::{CpuSet, sched_setaffinity};

use super::buffer::Buffer;
use super::coder::Coder;
use super::sink::Sink;
use super::source::Source;
use crate::failure::Failure;

/// Time between two looks at the progress; a run that takes less shows none.
const GLANCE: Duration = Duration::from_millis(100);

/// Everything the workers share.
#[derive(Debug)]
pub(super) struct Pipeline {
    pub(super) source: Source,
    pub(super) coder: Coder,
    pub(super) sink: Sink,
    /// Bytes of a chunk.
    pub(super) chunk: usize,
    /// Bytes of input done with.
    pub(super) done: AtomicU64,
}

impl Pipeline {
    /// Runs `workers`, each on its core if it has one, until the input ends, and names the
    /// output. Returns the bytes written.
    ///
    /// On an error it returns at once: a worker may be waiting for input that never comes, and
    /// the program is about to end.
    pub(super) fn run(
        self,
        workers: &[Option<usize>],
        progress: &ProgressBar,
    ) -> Result<u64, Failure> {
        let pipeline = Arc::new(self);
        let (sender, results) = channel();
        for &core in workers {
            let pipeline = pipeline.clone();
            let report = Report(Some(sender.clone()));
            let work = move || {
                let result = core.map_or(Ok(()), pin);
                report.send(result.and_then(|()| pipeline.work()));
            };
            std::thread::Builder::new()
                .spawn(work)
                .map_err(|error| Failure::io("start", "a thread", &error))?;
        }
        drop(sender);
        let mut written = 0;
        loop {
            match results.recv_timeout(GLANCE) {
                Ok(result) => written += result?,
                Err(RecvTimeoutError::Timeout) => {
                    progress.set_position(pipeline.done.load(Ordering::Relaxed));
                }
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        pipeline.source.check()?;
        pipeline.coder.verify()?;
        pipeline.sink.commit(written)?;
        Ok(written)
    }

    /// One worker.
    fn work(&self) -> Result<u64, Failure> {
        let mut buffer = Buffer::new(self.chunk);
        let mut written = 0;
        while let Some(chunk) = self.source.next(&mut buffer)? {
            let len = self.coder.run(&chunk, &mut buffer, self.source.name())?;
            self.sink
                .write(chunk.index, chunk.offset, buffer.payload(len))?;
            written += len as u64;
            self.done.fetch_add(chunk.len as u64, Ordering::Relaxed);
        }
        Ok(written)
    }
}

/// Tells how a worker ended, also when it panicked: nobody must wait for it then.
struct Report(Option<Sender<Result<u64, Failure>>>);

impl Report {
    fn send(mut self, result: Result<u64, Failure>) {
        if let Some(sender) = self.0.take() {
            // The receiver is gone once another worker has failed.
            let _ = sender.send(result);
        }
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        if let Some(sender) = self.0.take() {
            let message = "a worker of enc ended unexpectedly; the output was not written";
            let _ = sender.send(Err(Failure::Runtime(message.to_owned())));
        }
    }
}

/// Keeps this thread on one core.
fn pin(core: usize) -> Result<(), Failure> {
    let mut set = CpuSet::new();
    set.set(core);
    sched_setaffinity(None, &set).map_err(|error| {
        Failure::Runtime(format!(
            "core {core} cannot be used: {error}; 'taskset -p $$' tells which are allowed here"
        ))
    })
}
