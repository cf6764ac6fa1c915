//! The `cores` driver with one worker, of which only the times are real: the worker looks for
//! work, sleeps, is called, loses its core to other work, and rests. When it is called is decided
//! by the driver's own code.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use cipherlane_core::{
    Algorithm, Config, Direction, Driver, Framework, Load, Request, Status, Transform, Unavailable,
    VirtualTime,
};

use cipherlane_measure::random::Random;

use crate::callers::{ALGORITHM, KEY};
use crate::calls::Calls;
use crate::cells::Bench;
use crate::model::{Price, World, ns, software};
use crate::simulation::Simulation;

/// Nanoseconds that an idle worker looks for work.
const SPIN: f64 = 50e3;
/// Nanoseconds of work that a piece should take. Less than twice as much is not shared.
const PIECE: f64 = 2500.0;

/// What a worker and its core are like. All times are nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Nature {
    pub(crate) name: &'static str,
    /// What one core takes.
    pub(crate) software: Price,
    /// From a call to the worker's first look for work.
    pub(crate) wake: f64,
    /// Of the caller's core, to call the worker.
    pub(crate) call: f64,
    /// Of the caller's core, to publish a task and take it back.
    pub(crate) share: f64,
    /// The worker's core does other work this often, and for this long.
    pub(crate) other: Option<(f64, f64)>,
    /// How long the worker rests after it has lost its core.
    pub(crate) rest: f64,
}

/// The worker's state, in nanoseconds of virtual time.
struct Worker {
    calls: Calls,
    /// It can work from here on.
    awake_from: f64,
    /// It sleeps from here on if it is given no work.
    sleeps_at: f64,
    /// It works for another caller until here.
    busy_until: f64,
    rests_until: f64,
    /// Processor time that it has used before it was last called.
    used: f64,
}

impl Worker {
    /// It sleeps, and nothing is known of its wake-up.
    fn new() -> Worker {
        Worker {
            calls: Calls::new(SPIN as u64),
            awake_from: 0.0,
            sleeps_at: 0.0,
            busy_until: 0.0,
            rests_until: 0.0,
            used: 0.0,
        }
    }
}

/// The driver.
pub(crate) struct Workers {
    world: World,
    pub(crate) nature: Nature,
    worker: Mutex<Worker>,
    /// How often the worker was called.
    pub(crate) called: AtomicU64,
}

impl Workers {
    fn worker(&self) -> MutexGuard<'_, Worker> {
        self.worker.lock().unwrap()
    }

    fn now(&self) -> f64 {
        self.world.time.now().as_nanos() as f64
    }

    /// The caller calls the worker.
    fn call(&self, worker: &mut Worker) {
        self.world.time.work(ns(self.nature.call));
        worker.used += worker.sleeps_at - worker.awake_from;
        worker.awake_from = self.now() + self.nature.wake;
        worker.sleeps_at = worker.awake_from + SPIN;
        worker.calls.learn(self.nature.wake as u64);
        self.called.fetch_add(1, Ordering::Relaxed);
    }

    /// Processor time of the worker so far.
    pub(crate) fn used(&self) -> f64 {
        let worker = self.worker();
        worker.used + worker.sleeps_at - worker.awake_from
    }

    /// The time that other work on the worker's core takes away, next after a moment. It begins at
    /// random, the same in every run, so that no caller keeps in step with it.
    fn other_work(&self, from: f64) -> Option<(f64, f64)> {
        let (every, taken) = self.nature.other?;
        let begin = |turn: f64| {
            let part = Random::new(turn as u64).below(1 << 20) as f64 / (1 << 21) as f64;
            every * (turn + part)
        };
        let turn = (from / every).floor();
        let begin = match from < begin(turn) + taken {
            true => begin(turn),
            false => begin(turn + 1.0),
        };
        Some((begin, begin + taken))
    }

    /// Nanoseconds that a caller takes who begins now and shares `work` nanoseconds of work.
    fn shared(&self, worker: &mut Worker, work: f64) -> f64 {
        let now = self.now();
        let start = now.max(worker.awake_from).max(worker.busy_until) - now;
        let mut time = if start < work {
            (work + start) / 2.0
        } else {
            work
        };
        if let Some((lost, back)) = self.other_work(now + start)
            && lost < now + time
        {
            // The caller does the rest, and waits for the piece that the worker has in hand.
            let done = (lost - now - start).max(0.0);
            time = match lost > now + start {
                true => (work - done).max(back - now + PIECE),
                false => work,
            };
            worker.rests_until = back + self.nature.rest;
        }
        worker.busy_until = now + time;
        worker.sleeps_at = worker.sleeps_at.max(now + time + SPIN);
        time
    }

    fn run(&self, work: f64) {
        let (time, nature) = (&self.world.time, &self.nature);
        let mut worker = self.worker();
        let now = self.now();
        if work < 2.0 * PIECE || now < worker.rests_until {
            return time.work(ns(work));
        }
        if now >= worker.sleeps_at {
            let called = match worker.calls.at_once(1, work as u64) {
                0 => worker.calls.lose(now as u64, (work / 2.0) as u32),
                _ => {
                    worker.calls.called();
                    true
                }
            };
            if !called {
                return time.work(ns(work));
            }
            self.call(&mut worker);
        }
        let shared = self.shared(&mut worker, work);
        time.work(ns(nature.share + shared));
    }
}

struct SharedTransform {
    workers: Arc<Workers>,
    kernel: Box<dyn Transform>,
}

/// The driver as a framework takes it. Its load and what it missed are the simulation itself,
/// and so it is no driver for tests with some answers of its own.
struct Cores(Arc<Workers>);

impl Driver for Cores {
    fn name(&self) -> &str {
        "cores"
    }
    fn version(&self) -> String {
        "1".to_owned()
    }
    fn priority(&self) -> i32 {
        200
    }
    fn transform(
        &self,
        algorithm: &'static Algorithm,
        key: &[u8],
    ) -> Result<Box<dyn Transform>, Unavailable> {
        Ok(Box::new(SharedTransform {
            workers: self.0.clone(),
            kernel: (algorithm.software)(key),
        }))
    }
    fn load(&self) -> Load {
        let (worker, now) = (self.0.worker(), self.0.now());
        let delay = if now < worker.rests_until {
            f64::from(u32::MAX)
        } else if now >= worker.sleeps_at {
            worker.calls.delay().into()
        } else {
            (worker.awake_from - now).max(0.0)
        };
        Load {
            queued_bytes: 0,
            delay_ns: delay as u32,
        }
    }
    fn missed(&self, nanoseconds: u32) {
        let mut worker = self.0.worker();
        let now = self.0.now();
        if now >= worker.sleeps_at && worker.calls.lose(now as u64, nanoseconds) {
            self.0.call(&mut worker);
        }
    }
}

impl Transform for SharedTransform {
    fn run(&self, direction: Direction, requests: &mut [Request<'_>]) {
        let bytes = requests.iter().map(Request::len).sum();
        let workers = &self.workers;
        workers.run(workers.nature.software.of(requests.len(), bytes));
        match workers.world.computing.load(Ordering::Relaxed) {
            true => self.kernel.run(direction, requests),
            false => requests.iter_mut().for_each(|r| r.set_status(Status::Done)),
        }
    }
}

impl Simulation for Workers {
    fn name(&self) -> &'static str {
        self.nature.name
    }

    fn driver(&self) -> &str {
        "cores"
    }

    fn time(&self) -> &VirtualTime {
        &self.world.time
    }

    fn software(&self) -> Price {
        self.nature.software
    }

    fn learning(&self) -> Duration {
        Duration::from_millis(60)
    }

    fn renew(&self) {
        *self.worker() = Worker::new();
        self.called.store(0, Ordering::Relaxed);
    }
}

impl Bench<Workers> {
    pub(crate) fn workers(nature: Nature) -> Bench<Workers> {
        let world = World::new();
        let workers = Arc::new(Workers {
            world: world.clone(),
            nature,
            worker: Mutex::new(Worker::new()),
            called: AtomicU64::new(0),
        });
        let config = Config {
            verify: Some(0),
            ..Config::default()
        };
        let framework = Framework::builder(software(&world, nature.software))
            .driver(Arc::new(Cores(workers.clone())))
            .clock(world.time.clock())
            .config(config)
            .build()
            .unwrap();
        drop(framework.session(ALGORITHM, &KEY).unwrap().open().unwrap());
        world.computing.store(false, Ordering::Relaxed);
        Bench {
            framework,
            device: workers,
        }
    }
}
