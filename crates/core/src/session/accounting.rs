//! What a session does with flights: their place in a device's queue, what they cost, and what is
//! learned when they land.

use std::sync::atomic::Ordering;

use super::Inner;
use super::flight::{Purpose, Route};
use crate::Direction;
use crate::dispatch::model::Cost;
use crate::dispatch::queue::{Found, Queue};
use crate::dispatch::submit_depth::SubmitDepth;
use crate::dispatch::{BASE, Mode, Shape, StandsFor};
use crate::request::Request;

/// Mean nanoseconds from one batch that is learned from to the next, where batches are shorter: 200
/// times what the learning costs.
const LEARN_EVERY: u64 = 200_000;
/// The most batches for which one stands.
const MAX_SHARE: u64 = 1024;

impl Inner {
    /// Whether a driver has nobody else than the caller for a batch whose caller does not wait.
    #[inline]
    pub(super) fn runs_here(&self, driver: usize, shape: &Shape) -> bool {
        driver == BASE
            || !self.dispatch.is_device(driver) && !shape.is_for_helpers(self.transform(driver))
    }

    /// Notes that a batch is about to go to a driver.
    pub(super) fn depart(&self, driver: usize, purpose: Purpose, shape: &Shape, now: u64) -> Route {
        let queued = self.dispatch.is_device(driver).then(|| {
            let known = self.dispatch.expected(driver, shape);
            let queue = &self.framework.shared.entries[driver].queue;
            queue.begin(now, known)
        });
        let has_helpers = driver != BASE && queued.is_none();
        let entry = &self.framework.shared.entries[driver];
        Route {
            driver,
            purpose,
            slept: has_helpers && entry.driver.load().delay_ns > 0,
            queued,
        }
    }

    /// A device had no room for a batch.
    pub(crate) fn turned_back(&self, route: &Route) {
        if let Some(queued) = &route.queued {
            self.framework.shared.entries[route.driver]
                .queue
                .cancel(queued);
        }
    }

    /// Charges the ledger with time that the caller's core spent on a device, beside the time that
    /// the batches are charged with.
    pub(crate) fn spend(&self, driver: usize, nanoseconds: u64) {
        if self.alone.is_none() && self.dispatch.is_device(driver) {
            self.dispatch.ledger.lose(nanoseconds);
        }
    }

    pub(crate) fn is_device(&self, driver: usize) -> bool {
        self.dispatch.is_device(driver)
    }

    /// What a driver has under way, if it is a device.
    pub(crate) fn queue(&self, driver: usize) -> &Queue {
        &self.framework.shared.entries[driver].queue
    }

    /// The last flight of a caller has landed.
    pub(super) fn ring_if_closing(&self) {
        // Whoever closes looks every millisecond, should the bell ring a moment too early.
        if self.is_closing.load(Ordering::Relaxed) {
            self.idle.1.notify_all();
        }
    }

    /// Learns from a flight of a driver that is no device.
    fn landed_at_home(&self, landed: &Landed<'_>, shape: &Shape, ended: u64) {
        let (driver, purpose) = (landed.route.driver, landed.route.purpose);
        let elapsed = ended.saturating_sub(landed.started);
        // Beside a device the caller shares its batches by the time of each of them.
        let alone = !self.dispatch.has_devices();
        let submit_depth = landed.submit_depth;
        let between = alone.then(|| submit_depth.idle_at_home(landed.started, ended));
        let counts = match (purpose, alone) {
            (Purpose::Work, true) => submit_depth.counts(|| self.learn_after(landed, ended)),
            _ => Some(1),
        };
        let Some(counted) = counts else { return };
        // The work of a caller that has no choice pays for no trial of others.
        let stands_for = self
            .alone
            .is_none()
            .then(|| StandsFor::batches(counted as f32));
        let cost = || Cost {
            latency: elapsed as f32,
            period: match between {
                Some(between) if landed.depth == 1 => {
                    self.period_at_home(landed, shape, elapsed, between)
                }
                // By Little's law, results come that often.
                _ => elapsed as f32 / landed.depth as f32,
            },
            cpu: 0.0,
        };
        match purpose {
            Purpose::Work if alone && landed.route.slept => {
                if let Some(stands_for) = stands_for {
                    self.dispatch.count_estimated(driver, shape, stands_for);
                }
            }
            Purpose::WarmUp => self.dispatch.charge_warm_up(driver, shape, cost()),
            _ => {
                let explored = purpose == Purpose::Trial;
                (self.dispatch).learn(driver, shape, cost(), stands_for, explored);
            }
        }
    }

    /// After how many batches the next one is learned from. The number varies, so that callers whose
    /// batches alternate have each kind learned from.
    fn learn_after(&self, landed: &Landed<'_>, ended: u64) -> u32 {
        let often = LEARN_EVERY / landed.submit_depth.interval().max(1);
        // What interrupts a driver delays all batches under way, and counts once so.
        let mean = often.clamp(landed.depth.max(1).into(), MAX_SHARE);
        let varied = ended.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        (mean / 2 + varied % mean) as u32
    }

    /// Nanoseconds from one result to the next, where a driver has one batch at a time of a caller that
    /// does not wait. The driver has nothing to do while the caller deals with results and the next
    /// batch, and drivers with a queue have, so this time is added. A caller that does more than that
    /// between batches pauses or works, and then what was known of the base stands in for it; so it
    /// does in a trial of the base, where the batch before was another driver's.
    fn period_at_home(
        &self,
        landed: &Landed<'_>,
        shape: &Shape,
        elapsed: u64,
        between: u64,
    ) -> f32 {
        let (driver, purpose) = (landed.route.driver, landed.route.purpose);
        let follows = purpose == Purpose::Work || driver != BASE;
        if follows && (1..elapsed).contains(&between) {
            return (elapsed + between) as f32;
        }
        if driver != BASE {
            return elapsed as f32;
        }
        let (known, _) = self.dispatch.estimate(BASE, shape);
        let longer = known.map_or(1.0, |known| known.period / known.latency);
        elapsed as f32 * longer.clamp(1.0, 2.0)
    }

    /// Finishes what the driver gave up and learns from the flight.
    pub(crate) fn landed(&self, landed: Landed<'_>, requests: &mut [Request<'_>]) {
        let Landed {
            route, direction, ..
        } = landed;
        let driver = route.driver;
        let ended = self.now();
        let queue = &self.framework.shared.entries[driver].queue;
        let seen = route.queued.as_ref().map(|queued| {
            let seen = queue.end(ended, queued, landed.found);
            landed.submit_depth.finished(queue.finished());
            seen
        });
        let well = self.settle(driver, direction, requests);
        if requests.is_empty() {
            return;
        }
        let bytes = requests.iter().map(Request::len).sum();
        let shape = Shape {
            mode: Mode::Submit,
            direction,
            requests: requests.len(),
            bytes,
        };
        let elapsed = ended.saturating_sub(landed.started);
        let stats = &self.framework.shared.stats;
        stats.time(driver, self.algorithm_index, elapsed);
        let explored = route.purpose == Purpose::Trial;
        match seen {
            Some(seen) => {
                let cost = match well {
                    true => Cost {
                        latency: seen.latency,
                        period: seen.service,
                        cpu: (landed.core + queue.landing()) as f32,
                    },
                    false => Cost::default(),
                };
                // The caller's time was charged as it was spent.
                let spent = self.alone.is_none().then_some(0.0);
                let interval = landed.submit_depth.interval() as f32;
                self.dispatch
                    .learn_device(driver, &shape, cost, spent, explored, interval);
            }
            None if self.alone.is_none() || self.forced => {
                self.landed_at_home(&landed, &shape, ended);
            }
            // There is nothing to learn; the next time is as far away as elsewhere.
            None => drop((landed.submit_depth).counts(|| self.learn_after(&landed, ended))),
        }
        self.framework.revive();
    }
}

/// What is known of a flight as it lands.
pub(crate) struct Landed<'a> {
    pub(crate) route: &'a Route,
    pub(crate) direction: Direction,
    /// Nanoseconds, by the framework's clock.
    pub(crate) started: u64,
    /// Flights of its caller that shared its driver's time when it started, itself included.
    pub(crate) depth: u32,
    /// How its caller works.
    pub(crate) submit_depth: &'a SubmitDepth,
    /// Nanoseconds that the caller's core spent on submitting it.
    pub(crate) core: u64,
    pub(crate) found: Found,
}
