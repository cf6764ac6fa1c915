//! The `cores` driver: worker threads on cores that the user dedicates.
//!
//! | file | idea |
//! |---|---|
//! | `settings` | which cores, which priority, how long to spin |
//! | `crew` | one pool a process, made at first use; a fork makes another |
//! | `worker` | a pinned thread that does pieces, looks for more, and sleeps |
//! | `pool` | slots with tasks: publishing, finishing, landing |
//! | `held` | what a thread holds of a pool, and the death of a worker |
//! | `wakes`, `calls` | which worker to wake, and when that pays |
//! | `task`, `cutting` | requests in pieces, and how they are cut |
//! | `lines` | the cache lines of requests go from core to core all at once |
//! | `course` | which piece a thread takes next, so that caches keep what they have |
//! | `first`, `pace` | how fast one core is: measured once per algorithm, and learned from calls |
//! | `contest` | a worker that does not have its core for itself rests |
//! | `claim`, `sleep` | the words that threads agree by, modelled with loom |
//!
//! # How it works
//! A call becomes a task of at most 64 pieces: ranges of a large request where the
//! algorithm can be split, groups of consecutive requests otherwise. The task is
//! published in one of 64 slots. A piece belongs to whoever clears its bit in the slot's
//! word by compare-and-swap. A bit set, unlike a counter, lets each thread go through a
//! range of its own, and lets a dying worker put back what it had claimed; and as nothing
//! of a task is read before a claim, no generation count is needed.
//!
//! A caller that waits works too, so with all workers asleep or busy it does what it
//! would have done anyway, and it leaves only when all pieces are finished, so its task
//! lives on its stack and nothing is allocated. A caller that does not wait leaves the
//! task in a box, and whoever finishes the last piece joins the pieces and lands the
//! flight. Nothing queues without bound: without a free slot a waiting caller works
//! alone, and a submitted batch goes back to its owner.
//!
//! An idle worker looks for work for `spin_us`, then sleeps. Waking it takes tens of
//! microseconds, so a caller wakes workers at once only for work that is longer than
//! that. For shorter work it works alone, adds up what it lost by that, and wakes a worker
//! when the sum would have paid for it: a steady stream of middling requests gets its helper.
//! A caller that pauses between calls for longer than the worker looks for work wakes none,
//! since the worker would be asleep again at the next call.
//!
//! A worker that panics settles its piece while it unwinds: not begun, it goes back to be
//! claimed; begun, its request is given up (`Untouched` where the input is elsewhere, so
//! that the session runs it again, `Failed` where it was overwritten). Then the worker
//! begins anew.

mod calls;
mod claim;
mod contest;
mod course;
mod crew;
mod cutting;
mod fault;
mod first;
mod held;
mod lines;
#[cfg(all(test, loom))]
mod models;
mod pace;
mod pool;
mod settings;
mod sleep;
mod sync;
mod task;
mod transform;
mod wakes;
mod worker;

use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use cipherlane_core::{
    Algorithm, Config, Direction, Driver, Error, Load, Mode, Request, Transform, Unavailable,
};

use self::crew::Crew;
#[doc(hidden)]
pub use self::fault::Fault;
pub use self::settings::{Settings, VARIABLE};

/// Shares work between the waiting caller and worker threads on dedicated cores.
pub struct Cores {
    crew: Arc<Crew>,
}

impl Cores {
    /// With the settings `[drivers.cores]` of a configuration. No thread is started before
    /// the first work.
    pub fn new(config: &Config) -> Result<Self, Error> {
        Ok(Self::with_fault(Settings::new(config)?, Fault::default()))
    }

    /// For tests: workers die as told.
    #[doc(hidden)]
    pub fn with_fault(settings: Settings, fault: Fault) -> Self {
        Cores {
            crew: Arc::new(Crew::new(settings, fault)),
        }
    }

    /// Runs requests of a caller that waits, together with the workers, with a kernel that
    /// need not outlive the call; requests are as for [`Transform::run`], and so are their
    /// statuses afterwards. `alone_ns` is about what one core would take, in nanoseconds:
    /// it decides how fine the pieces are, and whether to wake a worker. The first call in a
    /// process starts the workers.
    pub fn run(
        &self,
        kernel: &dyn Transform,
        direction: Direction,
        requests: &mut [Request<'_>],
        alone_ns: u64,
    ) {
        let cost = (cutting::cost(requests), alone_ns);
        let mut watch = pace::Watch::default();
        transform::share(
            self.crew.pool(),
            kernel,
            direction,
            requests,
            cost,
            &mut watch,
        );
    }

    /// How many workers have died and begun anew.
    pub fn restarts(&self) -> u64 {
        let pool = self.crew.present();
        pool.map_or(0, |pool| pool.restarts.load(Ordering::Relaxed))
    }
}

impl fmt::Debug for Cores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cores")
            .field("settings", &self.crew.settings)
            .finish_non_exhaustive()
    }
}

impl Driver for Cores {
    fn name(&self) -> &str {
        "cores"
    }

    fn version(&self) -> String {
        let Settings {
            cores,
            realtime,
            spin,
        } = &self.crew.settings;
        let realtime = realtime.map_or(String::new(), |p| format!(" realtime {p}"));
        format!(
            "{} cores {cores:?} spin {} us{realtime}",
            env!("CARGO_PKG_VERSION"),
            spin.as_micros()
        )
    }

    fn priority(&self) -> i32 {
        200
    }

    fn probe(&self) -> Result<(), Unavailable> {
        match self.crew.settings.cores.is_empty() {
            true => Err(Unavailable::Absent(format!(
                "no cores are dedicated to it; name some with --cores 1-3, {VARIABLE}=1-3, or \
                 cores = \"1-3\" under [drivers.cores]"
            ))),
            false => Ok(()),
        }
    }

    fn transform(
        &self,
        algorithm: &'static Algorithm,
        key: &[u8],
    ) -> Result<Box<dyn Transform>, Unavailable> {
        let kernel = Arc::new((algorithm.software)(key));
        let first = self.crew.firsts.of(algorithm);
        let shared = transform::Shared::new(self.crew.clone(), kernel, first);
        Ok(Box::new(shared))
    }

    fn load(&self) -> Load {
        let Some(pool) = self.crew.present() else {
            return Load::default();
        };
        Load {
            queued_bytes: pool.queued_bytes(),
            delay_ns: match pool.worker_count() {
                // All rest: there is nobody to share with.
                0 => u32::MAX,
                workers => pool.wakes.delay_now(workers),
            },
        }
    }

    fn missed(&self, nanoseconds: u32) {
        if let Some(pool) = self.crew.present() {
            pool.wakes.lose(nanoseconds);
        }
    }

    /// Shorter work is done as software does it.
    fn least_work(&self, mode: Mode) -> Duration {
        Duration::from_nanos(match mode {
            Mode::Wait => transform::LEAST_NS,
            Mode::Submit => transform::LEAST_TRIED_NS,
        })
    }

    fn notes(&self) -> Vec<String> {
        let Some(pool) = self.crew.present() else {
            return Vec::new();
        };
        let notes = pool.notes.lock().unwrap_or_else(PoisonError::into_inner);
        notes.clone()
    }
}
