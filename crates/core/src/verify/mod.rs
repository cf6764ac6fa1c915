//! A driver may report success and be wrong. Of every driver but the base, one request in a
//! [number](Sampler) of them is computed again in software, in the background. At the first
//! difference the driver is quarantined, and a [`Mismatch`] says what the driver did.

mod mismatch;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use zeroize::Zeroizing;

pub use self::mismatch::{Answer, Mismatch};
use crate::dispatch::BASE;
use crate::framework::RegisteredDriver;
use crate::request::{Request, Status};
use crate::session::Inner;
use crate::{Direction, Flight, Framework, Process, Split, Transform};

/// One request in this many is verified, unless the settings say otherwise.
pub(crate) const DEFAULT_INTERVAL: u64 = 4096;
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
/// Threads of different shards do not write to one cache line.
const SHARDS: usize = 16;

thread_local! {
    /// This thread's shard of every sampler.
    static SHARD: usize = {
        static THREADS: AtomicUsize = AtomicUsize::new(0);
        THREADS.fetch_add(1, Ordering::Relaxed) % SHARDS
    };
}

/// Counts a driver's requests until one is to be verified.
#[derive(Debug)]
pub(crate) struct Sampler {
    /// One request in this many; 0 means none.
    every: i64,
    left: [Shard; SHARDS],
}

#[derive(Debug)]
#[repr(align(64))]
struct Shard(AtomicI64);

impl Sampler {
    pub(crate) fn new(every: u64) -> Self {
        let every = i64::try_from(every).unwrap_or(i64::MAX);
        Sampler {
            every,
            left: std::array::from_fn(|_| Shard(AtomicI64::new(every))),
        }
    }

    /// Whether every request is to be verified.
    fn is_for_all(&self) -> bool {
        self.every == 1
    }

    /// The place of the request to be verified among the next `requests`, if one of them is. Of
    /// threads that ask at the same time, only one may be counted.
    #[inline]
    pub(crate) fn pick(&self, requests: usize) -> Option<usize> {
        let Shard(counter) = &self.left[SHARD.with(|&shard| shard)];
        let left = counter.load(Ordering::Relaxed);
        let after = left.saturating_sub(requests as i64);
        if after > 0 || self.every == 0 {
            counter.store(after, Ordering::Relaxed);
            return None;
        }
        counter.store(self.every, Ordering::Relaxed);
        (requests > 0).then(|| (left.max(1) as usize - 1).min(requests - 1))
    }
}

/// A copy of a request, made before the driver gets the request.
pub(crate) struct RequestSnapshot {
    place: usize,
    iv: [u8; 16],
    iv_len: usize,
    aad: Vec<u8>,
    input: Zeroizing<Vec<u8>>,
    tag: Vec<u8>,
    has_output: bool,
}

impl RequestSnapshot {
    pub(crate) fn new(place: usize, request: &mut Request<'_>) -> Self {
        let mut input = Zeroizing::new(vec![0; request.len()]);
        request.gather(&mut input);
        RequestSnapshot {
            place,
            iv: request.iv_block(),
            iv_len: request.iv_bytes().len(),
            aad: request.aad_bytes().to_vec(),
            input,
            tag: request.tag_bytes().to_vec(),
            has_output: request.has_output(),
        }
    }

    /// The copy together with the driver's results; `None` if the driver gave the request up.
    fn after(self, direction: Direction, requests: &mut [Request<'_>]) -> Option<Sample> {
        let request = requests.get_mut(self.place)?;
        if !matches!(request.status(), Status::Done | Status::BadTag) {
            return None;
        }
        let found = Answer {
            authentic: request.status() == Status::Done,
            output: request.copy_output(),
            tag: request.tag_bytes().to_vec(),
        };
        Some(Sample {
            snapshot: self,
            direction,
            found,
        })
    }
}

/// A request and what a driver has made of it.
struct Sample {
    snapshot: RequestSnapshot,
    direction: Direction,
    found: Answer,
}

impl Sample {
    /// Computes the request again in software; `Some` if the driver's result was wrong.
    fn check(
        self,
        algorithm: &'static str,
        base: &dyn Transform,
        with_data: bool,
    ) -> Option<Mismatch> {
        let RequestSnapshot {
            iv,
            iv_len,
            aad,
            input,
            mut tag,
            has_output,
            ..
        } = self.snapshot;
        let iv = &iv[..iv_len];
        let mut output = input.clone();
        let request = match has_output {
            true => Request::in_place(&mut output),
            false => Request::mac(&input),
        };
        let mut requests = [request.iv(iv).aad(&aad).tag(&mut tag)];
        base.run(self.direction, &mut requests);
        let authentic = requests[0].status() == Status::Done;
        let expected = Answer {
            authentic,
            output: match has_output {
                true => std::mem::take(&mut output),
                false => Vec::new(),
            },
            tag,
        };
        (expected != self.found).then(|| Mismatch {
            algorithm,
            decrypting: self.direction == Direction::Decrypt,
            iv: iv.to_vec(),
            aad,
            input: input.to_vec(),
            found: self.found,
            expected,
            with_data,
        })
    }
}

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

struct Job {
    watch: Watch,
    sample: Sample,
}

impl Verifier {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(self: &Arc<Self>, job: Job) {
        let waits = job.watch.entry().sampler.is_for_all();
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

impl Job {
    fn run(self) {
        let Watch {
            session,
            framework,
            driver,
            algorithm,
        } = self.watch;
        let with_data = framework.shared.config.mismatch_data == Some(true);
        if let Some(session) = session.upgrade()
            && let base = session.transform(BASE)
            && let Some(mismatch) = self.sample.check(algorithm, base, with_data)
        {
            framework.quarantine(driver, mismatch);
        }
    }
}

/// What is needed to verify one driver's work for one session.
#[derive(Clone)]
struct Watch {
    /// Weak, so that closing a session does not wait for its verification.
    session: Weak<Inner>,
    framework: Framework,
    driver: usize,
    algorithm: &'static str,
}

impl Watch {
    fn entry(&self) -> &RegisteredDriver {
        &self.framework.shared.entries[self.driver]
    }

    #[inline]
    fn is_quarantined(&self) -> bool {
        self.entry().breaker.is_quarantined()
    }

    /// A copy of the request to be verified among the next requests, if one of them is.
    #[inline]
    fn pick(&self, requests: &mut [Request<'_>]) -> Option<RequestSnapshot> {
        let place = self.entry().sampler.pick(requests.len())?;
        Some(RequestSnapshot::new(place, &mut requests[place]))
    }

    /// Hands a picked request to the verifying thread, after the driver has served the request.
    #[cold]
    fn push(self, snapshot: RequestSnapshot, direction: Direction, requests: &mut [Request<'_>]) {
        if let Some(sample) = snapshot.after(direction, requests) {
            let verifier = self.framework.shared.verifier.clone();
            verifier.push(Job {
                watch: self,
                sample,
            });
        }
    }
}

/// A request of a flight that is to be verified when it lands.
pub(crate) struct Pick {
    watch: Watch,
    snapshot: RequestSnapshot,
}

impl Pick {
    pub(crate) fn landed(self, direction: Direction, requests: &mut [Request<'_>]) {
        self.watch.push(self.snapshot, direction, requests);
    }
}

/// The transform of another driver, a sample of whose requests is verified. While the driver is
/// quarantined, this transform gives up every request untouched.
pub(crate) struct Verified {
    transform: Box<dyn Transform>,
    watch: Watch,
}

impl Verified {
    pub(crate) fn new(
        transform: Box<dyn Transform>,
        (framework, driver): (&Framework, usize),
        algorithm: &'static str,
        session: &Weak<Inner>,
    ) -> Self {
        Verified {
            transform,
            watch: Watch {
                session: session.clone(),
                framework: framework.clone(),
                driver,
                algorithm,
            },
        }
    }
}

fn give_up(requests: &mut [Request<'_>]) {
    requests
        .iter_mut()
        .for_each(|request| request.set_status(Status::Untouched));
}

impl Transform for Verified {
    #[inline]
    fn run(&self, direction: Direction, requests: &mut [Request<'_>]) {
        if self.watch.is_quarantined() {
            return give_up(requests);
        }
        let picked = self.watch.pick(requests);
        self.transform.run(direction, requests);
        if let Some(snapshot) = picked {
            self.watch.clone().push(snapshot, direction, requests);
        }
    }

    fn submit(&self, direction: Direction, mut flight: Flight) -> Result<(), Flight> {
        if self.watch.is_quarantined() {
            flight.with_requests(give_up);
            flight.finish();
            return Ok(());
        }
        if let Some(snapshot) = flight.with_requests(|requests| self.watch.pick(requests)) {
            let watch = self.watch.clone();
            flight.pick(Pick { watch, snapshot });
        }
        self.transform.submit(direction, flight)
    }

    fn room(&self) -> usize {
        self.transform.room()
    }

    fn max_len(&self) -> usize {
        self.transform.max_len()
    }

    fn poll(&self) {
        self.transform.poll();
    }

    fn assist(&self) -> bool {
        self.transform.assist()
    }

    fn scatters(&self) -> bool {
        self.transform.scatters()
    }

    fn split(&self) -> Option<&dyn Split> {
        self.transform.split()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_in_so_many_requests_is_picked_and_only_in_its_batch() {
        let sampler = Sampler::new(10);
        let picks: Vec<_> = [4, 4, 4, 9, 1, 100].map(|n| sampler.pick(n)).into();
        assert_eq!(picks, [None, None, Some(1), None, Some(0), Some(9)]);
        let each = Sampler::new(1);
        assert_eq!([each.pick(1), each.pick(3)], [Some(0), Some(0)]);
        let never = Sampler::new(0);
        assert!((0..100).all(|_| never.pick(1000).is_none()));
    }
}
