//! Drivers of which only the times are real: what they cost is worked in virtual time, what
//! they compute is computed during the self-test only.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use cipherlane_core::{Direction, Flight, Request, Status, Transform, VirtualTime};
use cipherlane_test_driver::TestDriver;

/// Nanoseconds as a time.
pub(crate) fn ns(nanoseconds: f64) -> Duration {
    Duration::from_nanos(nanoseconds.round() as u64)
}

/// Where a simulation's drivers live.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) time: VirtualTime,
    /// Whether results are computed: for the self-test, not for millions of requests.
    pub(crate) computing: Arc<AtomicBool>,
}

impl World {
    pub(crate) fn new() -> World {
        World {
            time: VirtualTime::new(),
            computing: Arc::new(AtomicBool::new(true)),
        }
    }

    fn results(&self, kernel: &dyn Transform, direction: Direction, requests: &mut [Request<'_>]) {
        match self.computing.load(Ordering::Relaxed) {
            true => kernel.run(direction, requests),
            false => requests.iter_mut().for_each(|r| r.set_status(Status::Done)),
        }
    }
}

/// Nanoseconds of a batch: of the call, of each request, of each byte.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Price {
    pub(crate) call: f64,
    pub(crate) request: f64,
    pub(crate) byte: f64,
}

impl Price {
    pub(crate) fn of(&self, requests: usize, bytes: usize) -> f64 {
        self.call + self.request * requests as f64 + self.byte * bytes as f64
    }
}

/// A number that shows no pattern.
fn scatter(n: u64) -> u64 {
    n.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29) >> 16
}

/// The caller's core.
pub(crate) fn software(world: &World, price: Price) -> Arc<TestDriver> {
    let world = world.clone();
    let driver = TestDriver::new("software").priority(100);
    Arc::new(driver.wrap(move |kernel| SoftwareTransform {
        world: world.clone(),
        price,
        kernel,
    }))
}

struct SoftwareTransform {
    world: World,
    price: Price,
    kernel: Box<dyn Transform>,
}

impl Transform for SoftwareTransform {
    fn run(&self, direction: Direction, requests: &mut [Request<'_>]) {
        let bytes = requests.iter().map(Request::len).sum();
        self.world
            .time
            .work(ns(self.price.of(requests.len(), bytes)));
        self.world.results(&*self.kernel, direction, requests);
    }
}

/// What a device does to a request beside serving it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Temper {
    /// Nothing.
    Even,
    /// One request in the first number takes the second number of times as long.
    Jitter(u64, f64),
    /// With k requests queued, each takes 1 + (k / this number)² times as long.
    Collapse(f64),
    /// Serves this number of requests and hangs from then on.
    Dies(u64),
    /// Says that it is idle when it is not, and is this number of times slower after its first
    /// forty requests.
    Lies(f64),
}

/// A device that serves first in, first out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    pub(crate) name: &'static str,
    /// Nanoseconds that a request spends on its way there and back, others beside it.
    pub(crate) latency: f64,
    /// Nanoseconds that it occupies the device.
    pub(crate) service: Price,
    /// Nanoseconds of the caller's core to submit and to complete.
    pub(crate) core: Price,
    pub(crate) temper: Temper,
    /// Nanoseconds after which the driver gives a request up.
    pub(crate) timeout: f64,
}

#[derive(Default)]
struct Queue {
    /// When what is queued will have been served.
    free_at: Duration,
    /// When each request that is not served yet will be.
    ends: VecDeque<Duration>,
    /// When each submitted batch ends, and whether well.
    flights: VecDeque<(Duration, bool, Flight)>,
    served: u64,
}

/// The device, with dials that a test may turn while it works.
pub(crate) struct Device {
    pub(crate) world: World,
    settings: Mutex<Settings>,
    /// A thousandth part of the factor that all service takes longer by.
    pub(crate) slowdown: AtomicU64,
    queue: Mutex<Queue>,
}

impl Device {
    pub(crate) fn new(world: &World, settings: Settings) -> Arc<Device> {
        Arc::new(Device {
            world: world.clone(),
            settings: Mutex::new(settings),
            slowdown: AtomicU64::new(1000),
            queue: Mutex::default(),
        })
    }

    pub(crate) fn settings(&self) -> Settings {
        *self.settings.lock().unwrap()
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap()
    }

    /// As it was before its first request.
    pub(crate) fn reset(&self) {
        let mut queue = self.queue();
        assert!(queue.flights.is_empty());
        *queue = Queue::default();
    }

    /// Others' work keeps the device busy for the time `busy`.
    pub(crate) fn flood(&self, busy: Duration) {
        let now = self.world.time.now();
        let mut queue = self.queue();
        queue.free_at = queue.free_at.max(now) + busy;
    }

    /// Puts a batch in the queue: when it will be done, and whether well.
    fn accept(&self, requests: usize, bytes: usize) -> (Duration, bool) {
        let settings = self.settings();
        let now = self.world.time.now();
        let mut queue = self.queue();
        while queue.ends.front().is_some_and(|&end| end <= now) {
            queue.ends.pop_front();
        }
        // Admission does not count.
        queue.served += u64::from(!self.world.computing.load(Ordering::Relaxed));
        let mut service = settings.service.of(requests, bytes);
        service *= self.slowdown.load(Ordering::Relaxed) as f64 / 1000.0;
        match settings.temper {
            Temper::Jitter(one_in, factor) => {
                // One of this number in a row, any of them.
                let (group, place) = (queue.served / one_in, queue.served % one_in);
                if scatter(group) % one_in == place {
                    service *= factor;
                }
            }
            Temper::Collapse(many) => {
                service *= 1.0 + (queue.ends.len() as f64 / many).powi(2);
            }
            Temper::Lies(factor) if queue.served > 40 => service *= factor,
            _ => {}
        }
        let begins = queue.free_at.max(now);
        let dead = match settings.temper {
            Temper::Dies(after) => queue.served > after,
            _ => false,
        };
        if dead {
            return (now + ns(settings.timeout), false);
        }
        queue.free_at = begins + ns(service);
        let end = queue.free_at + ns(settings.latency);
        queue.ends.push_back(end);
        (end, true)
    }

    /// The caller's core hands a batch over.
    fn hand_over(&self, requests: usize, bytes: usize) {
        let core = self.settings().core;
        self.world.time.work(ns(core.of(requests, bytes)));
    }

    /// The interrupt handler: lands what has ended by now, each at its moment.
    pub(crate) fn land(&self) -> bool {
        let mut now = self.world.time.now();
        let mut any = false;
        loop {
            let (end, well, mut flight) = {
                let mut queue = self.queue();
                match queue.flights.front() {
                    Some(&(end, ..)) if end <= now => queue.flights.pop_front().unwrap(),
                    _ => return any,
                }
            };
            self.world.time.turn_to(end);
            let status = match well {
                true => Status::Done,
                false => Status::Untouched,
            };
            flight.with_requests(|requests| {
                requests.iter_mut().for_each(|r| r.set_status(status));
            });
            flight.finish();
            // What was given up is done again by the caller that the handler interrupts.
            now += self.world.time.now() - end;
            self.world.time.turn_to(now);
            any = true;
        }
    }
}

/// The device as a driver.
pub(crate) fn driver_of(device: &Arc<Device>) -> Arc<TestDriver> {
    let (waited_for, keyed) = (device.clone(), device.clone());
    let driver = TestDriver::new("device")
        .priority(300)
        .patience(move || ns(waited_for.settings().timeout))
        .wrap(move |kernel| DmaTransform {
            device: keyed.clone(),
            kernel,
        });
    Arc::new(driver)
}

struct DmaTransform {
    device: Arc<Device>,
    kernel: Box<dyn Transform>,
}

impl DmaTransform {
    fn end(&self, direction: Direction, well: bool, requests: &mut [Request<'_>]) {
        match well {
            true => self
                .device
                .world
                .results(&*self.kernel, direction, requests),
            false => requests
                .iter_mut()
                .for_each(|r| r.set_status(Status::Untouched)),
        }
    }
}

impl Transform for DmaTransform {
    fn run(&self, direction: Direction, requests: &mut [Request<'_>]) {
        let bytes = requests.iter().map(Request::len).sum();
        self.device.hand_over(requests.len(), bytes);
        let (end, well) = self.device.accept(requests.len(), bytes);
        self.device.world.time.sleep_until(end);
        self.end(direction, well, requests);
    }

    fn submit(&self, _: Direction, mut flight: Flight) -> Result<(), Flight> {
        let (requests, bytes) = flight.with_requests(|requests| {
            let bytes = requests.iter().map(|r| r.len()).sum();
            (requests.len(), bytes)
        });
        self.device.hand_over(requests, bytes);
        let (end, well) = self.device.accept(requests, bytes);
        self.device.queue().flights.push_back((end, well, flight));
        Ok(())
    }

    fn assist(&self) -> bool {
        let first = self.device.queue().flights.front().map(|f| f.0);
        first.is_some_and(|end| {
            self.device.world.time.sleep_until(end);
            self.device.land()
        })
    }
}
