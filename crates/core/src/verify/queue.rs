//! The requests that wait to be verified, and the thread that verifies them.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::Job;
use crate::Process;

/// The most requests that wait to be verified. Further requests are not verified, unless the
/// settings ask for every request: then their callers wait.
const MAX_WAITING: usize = 64;
/// The verifying thread ends after this time without a request.
const IDLE_TIMEOUT: Duration = Duration::from_secs(5);
/// After its work the verifying thread collects requests for this long: to wake it takes longer than
/// most requests, and where the machine has no idle core it interrupts a caller.
const COLLECTING: Duration = Duration::from_millis(5);
/// This many requests wake it earlier.
const MAX_COLLECTED: usize = MAX_WAITING / 2;

/// The requests that wait to be verified, and the thread that verifies them.
#[derive(Default)]
pub(crate) struct Verifier {
    queue: Mutex<Queue>,
    bell: Condvar,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    /// Requests that were taken from the queue and are not done.
    under_way: usize,
    /// The process that has the thread, if there is a thread. A forked child has no thread.
    thread: Option<Process>,
    /// Whether the thread collects requests and need not be woken for one.
    collects: bool,
    /// Threads that wait for the verifying thread.
    waiting: usize,
}

impl Queue {
    fn has_thread(&self) -> bool {
        self.thread.is_some_and(|process| process.is_current())
    }
}

impl Verifier {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn push(self: &Arc<Self>, job: Job) {
        let waits = job.is_waited_for();
        let mut queue = self.queue();
        while queue.jobs.len() >= MAX_WAITING {
            if !waits || !queue.has_thread() {
                return;
            }
            queue = self.wait(queue);
        }
        queue.jobs.push_back(job);
        if !queue.has_thread() {
            let verifier = self.clone();
            let builder = std::thread::Builder::new().name("verify".to_owned());
            if builder.spawn(move || verifier.serve()).is_err() {
                // A system that has no room for a thread cannot verify either.
                queue.jobs.clear();
                return;
            }
            queue.thread = Some(Process::current());
            (queue.under_way, queue.waiting, queue.collects) = (0, 0, false);
        }
        let wakes = waits || !queue.collects || queue.jobs.len() >= MAX_COLLECTED;
        drop(queue);
        if wakes {
            self.bell.notify_all();
        }
    }

    /// Verifies requests until there was none for [`IDLE_TIMEOUT`].
    fn serve(&self) {
        let mut queue = self.queue();
        let mut has_worked = false;
        loop {
            let Some(job) = queue.jobs.pop_front() else {
                let patience = if has_worked { COLLECTING } else { IDLE_TIMEOUT };
                queue.collects = has_worked;
                let (next, idle) = self
                    .bell
                    .wait_timeout(queue, patience)
                    .unwrap_or_else(PoisonError::into_inner);
                queue = next;
                queue.collects = false;
                if idle.timed_out() && queue.jobs.is_empty() {
                    if !has_worked {
                        queue.thread = None;
                        return;
                    }
                    has_worked = false;
                }
                continue;
            };
            queue.under_way += 1;
            drop(queue);
            job.run();
            has_worked = true;
            queue = self.queue();
            queue.under_way -= 1;
            if queue.waiting > 0 {
                self.bell.notify_all();
            }
        }
    }

    /// Waits until the verifying thread, which is woken, has done something.
    fn wait<'q>(&self, mut queue: MutexGuard<'q, Queue>) -> MutexGuard<'q, Queue> {
        queue.waiting += 1;
        if queue.collects {
            self.bell.notify_all();
        }
        let mut queue = self
            .bell
            .wait(queue)
            .unwrap_or_else(PoisonError::into_inner);
        queue.waiting = queue.waiting.saturating_sub(1);
        queue
    }

    /// Waits until all requests that were picked so far are verified.
    pub(crate) fn finish(&self) {
        let mut queue = self.queue();
        while queue.has_thread() && (!queue.jobs.is_empty() || queue.under_way > 0) {
            queue = self.wait(queue);
        }
    }
}
