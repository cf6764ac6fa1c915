//! Callers in virtual time: each has a time of its own, and the one who is furthest behind
//! takes the next step.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use cipherlane_core::{
    Batch, Direction, Framework, Goal, OwnedRequest, Payload, Request, Session, Ticket,
};

use crate::simulation::Simulation;

/// All devices offer it.
pub(crate) const ALGORITHM: &str = "cbc(aes)";
pub(crate) const KEY: [u8; 16] = [7; 16];

/// How a caller works.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Way {
    /// Waits for each batch of this number of requests.
    Wait { batch: usize },
    /// Waits for each request, and pauses after it.
    Pause { pause: Duration },
    /// Has `depth` batches of `batch` requests under way and takes them back in order.
    Submit { depth: usize, batch: usize },
}

impl Way {
    pub(crate) fn batch(self) -> usize {
        match self {
            Way::Wait { batch } | Way::Submit { batch, .. } => batch,
            Way::Pause { .. } => 1,
        }
    }
}

struct Caller {
    session: Session,
    way: Way,
    size: usize,
    now: Duration,
    /// Processor time so far.
    worked: Duration,
    /// Batches finished.
    done: u64,
    /// In order, each with whether it is known to be done.
    under_way: VecDeque<(Ticket, bool)>,
    idle: Vec<Batch>,
    data: Vec<u8>,
}

impl Caller {
    fn batch(&mut self) -> Batch {
        self.idle.pop().unwrap_or_else(|| {
            let mut batch = Batch::new(Direction::Encrypt);
            for _ in 0..self.way.batch() {
                let request = OwnedRequest::new(Payload::InPlace(vec![0; self.size]));
                batch.push(request.iv(vec![0; 16]));
            }
            batch
        })
    }

    fn step(&mut self, device: &dyn Simulation) {
        let time = device.time();
        time.turn_to(self.now);
        let before = time.clock().processor();
        device.interrupts();
        match self.way {
            Way::Wait { batch } => self.call(batch),
            Way::Pause { .. } => self.call(1),
            Way::Submit { depth, .. } => self.submit(depth),
        }
        self.now = time.now();
        self.worked += time.clock().processor() - before;
        if let Way::Pause { pause } = self.way {
            self.now += pause;
        }
    }

    /// One call with `batch` requests.
    fn call(&mut self, batch: usize) {
        // Nobody looks at the data: all requests may have the same.
        let mut copies = self.data.chunks_exact_mut(self.size);
        let mut requests: arrayvec::ArrayVec<Request<'_>, 64> = (0..batch)
            .map(|_| Request::in_place(copies.next().unwrap()).iv(&[0; 16]))
            .collect();
        self.session
            .process(Direction::Encrypt, &mut requests)
            .unwrap();
        self.done += 1;
    }

    fn submit(&mut self, depth: usize) {
        match self.under_way.pop_front() {
            Some((oldest, counted)) => match oldest.poll() {
                Ok(batch) => {
                    self.idle.push(batch);
                    self.done += u64::from(!counted);
                }
                Err(oldest) if self.under_way.len() + 1 < depth => {
                    self.under_way.push_front((oldest, false));
                    self.submit_one();
                }
                Err(oldest) => {
                    self.idle.push(oldest.wait());
                    self.done += 1;
                }
            },
            None => self.submit_one(),
        }
        // What is done is done, though something before it may not be.
        for (ticket, counted) in self.under_way.iter_mut().filter(|t| !t.1) {
            *counted = ticket.is_done();
            self.done += u64::from(*counted);
        }
    }

    /// Waits for the oldest.
    fn take_back(&mut self) {
        let (oldest, counted) = self.under_way.pop_front().expect("it has the room");
        self.idle.push(oldest.wait());
        self.done += u64::from(!counted);
    }

    fn submit_one(&mut self) {
        let mut batch = self.batch();
        while !batch.is_empty() {
            let ticket = self.session.submit(&mut batch).unwrap();
            match ticket.taken() {
                // A device that is forced and has no room.
                0 => self.take_back(),
                _ => self.under_way.push_back((ticket, false)),
            }
        }
    }
}

/// What was done by a moment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mark {
    /// Nanoseconds of all callers together.
    pub(crate) time: f64,
    /// Processor time of all callers together.
    pub(crate) worked: f64,
    /// Batches.
    pub(crate) done: f64,
}

impl Mark {
    /// From another moment to this one.
    pub(crate) fn since(self, other: Mark) -> Mark {
        Mark {
            time: self.time - other.time,
            worked: self.worked - other.worked,
            done: self.done - other.done,
        }
    }

    /// Nanoseconds per batch.
    pub(crate) fn pace(self) -> f64 {
        self.time / self.done
    }

    /// Nanoseconds of processor time per batch.
    pub(crate) fn work(self) -> f64 {
        self.worked / self.done
    }
}

/// Callers at work together.
pub(crate) struct Callers {
    device: Arc<dyn Simulation>,
    callers: Vec<Caller>,
    began: Duration,
}

impl Callers {
    /// As many sessions as asked for; `driver` forces one.
    pub(crate) fn new(
        (framework, device): (&Framework, Arc<dyn Simulation>),
        driver: Option<&str>,
        goal: Goal,
        (sessions, way, size): (usize, Way, usize),
    ) -> Callers {
        let began = device.time().now();
        let callers = (0..sessions).map(|_| {
            let builder = framework.session(ALGORITHM, &KEY).unwrap().goal(goal);
            let builder = match driver {
                Some(driver) => builder.driver(driver),
                None => builder,
            };
            Caller {
                session: builder.open().unwrap(),
                way,
                size,
                now: began,
                worked: Duration::ZERO,
                done: 0,
                under_way: VecDeque::new(),
                idle: Vec::new(),
                data: vec![0; size * way.batch()],
            }
        });
        let callers = callers.collect();
        Callers {
            device,
            callers,
            began,
        }
    }

    /// Steps until the callers together have spent the time up to `end`; `look` sees each moment.
    pub(crate) fn run_until(&mut self, end: Duration, mut look: impl FnMut(Mark)) {
        let mut mark = self.mark();
        let end = self.began + end / self.callers.len() as u32;
        loop {
            let next = self.callers.iter_mut().min_by_key(|c| c.now);
            let next = next.expect("a caller");
            if next.now >= end {
                return;
            }
            let before = (next.now, next.worked, next.done);
            next.step(&*self.device);
            mark.time += (next.now - before.0).as_nanos() as f64;
            mark.worked += (next.worked - before.1).as_nanos() as f64;
            mark.done += (next.done - before.2) as f64;
            if next.done > before.2 {
                look(mark);
            }
        }
    }

    /// What was done from a while after the start on; `look` sees each moment from the start.
    pub(crate) fn between(
        &mut self,
        from: Duration,
        to: Duration,
        mut look: impl FnMut(Mark),
    ) -> Mark {
        self.run_until(from, &mut look);
        let before = self.mark();
        self.run_until(to, &mut look);
        self.mark().since(before)
    }

    /// What was done so far.
    pub(crate) fn mark(&self) -> Mark {
        let mut mark = Mark::default();
        for caller in &self.callers {
            mark.time += (caller.now - self.began).as_nanos() as f64;
            mark.worked += caller.worked.as_nanos() as f64;
            mark.done += caller.done as f64;
        }
        mark
    }

    /// Takes everything back and leaves the time where the last caller is.
    pub(crate) fn finish(mut self) {
        let time = self.device.time();
        for caller in &mut self.callers {
            for (ticket, _) in caller.under_way.drain(..) {
                time.turn_to(caller.now);
                drop(ticket.wait());
                caller.now = time.now();
            }
        }
        let last = self.callers.iter().map(|c| c.now).max();
        time.turn_to(last.expect("a caller"));
    }
}
