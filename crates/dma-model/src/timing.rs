//! When a device is done: pure arithmetic on times, with no clock and no memory.

use std::collections::VecDeque;

use cipherlane_core::Direction;

use super::settings::Settings;

/// A request as the timing sees it.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    /// Which way.
    pub direction: Direction,
    /// Bytes fetched and worked on.
    pub bytes: u64,
    /// Bytes written back.
    pub written: u64,
    /// Descriptors fetched.
    pub descriptors: u32,
}

/// The stages of a device and until when each is taken: fetch, engines, write-back.
#[derive(Clone, Debug)]
pub struct Timing {
    settings: Settings,
    /// Until when the bus to the device is taken.
    inbound: f64,
    /// The same from the device; unused where there is one bus.
    outbound: f64,
    /// By direction, until when each engine is taken.
    engines: [Vec<f64>; 2],
    /// Completion times of what is in the device.
    inside: VecDeque<f64>,
    random: u64,
}

impl Timing {
    /// An idle device.
    pub fn new(settings: &Settings) -> Self {
        let engines = |direction| vec![0.0; settings.way(direction).engines as usize];
        Timing {
            inbound: 0.0,
            outbound: 0.0,
            engines: [engines(Direction::Encrypt), engines(Direction::Decrypt)],
            inside: VecDeque::new(),
            random: settings.behaviour.seed,
            settings: settings.clone(),
        }
    }

    /// Takes a request whose doorbell rings at `now_ns`, and says when its result and its
    /// completion are in host memory. Requests are fetched in the order of these calls.
    pub fn submit(&mut self, now_ns: u64, work: Work) -> u64 {
        let now = now_ns as f64;
        let Settings {
            link, behaviour, ..
        } = &self.settings;
        let way = self.settings.way(work.direction);
        self.inside.retain(|&done| done > now);
        let mut factor = behaviour.factor(now);
        if let Some(collapse) = behaviour.collapse
            && self.inside.len() >= collapse.above as usize
        {
            factor *= collapse.factor;
        }
        if behaviour.jitter > 0.0 {
            factor *= 1.0 + behaviour.jitter * exponential(&mut self.random);
        }
        let bytes = work.bytes as f64;
        let fetch = factor
            * (f64::from(work.descriptors) * link.descriptor_ns
                + bytes * 1e9 / link.inbound_bytes_per_second);
        let compute = factor * (way.request_ns + bytes * 1e9 / way.bytes_per_second);
        let write = factor * (work.written as f64 * 1e9 / link.outbound_bytes_per_second);

        let fetched = Stage::take(&mut self.inbound, now + link.latency_ns * factor, fetch);
        let engines = &mut self.engines[work.direction as usize];
        let engine = engines.iter_mut().min_by(|a, b| a.total_cmp(b));
        let engine = engine.expect("a way has an engine or more");
        let computed = fetched.then(engine, compute, link.overlap);
        let outbound = match link.half_duplex {
            true => &mut self.inbound,
            false => &mut self.outbound,
        };
        let done = computed.then(outbound, write, link.overlap).end;
        self.inside.push_back(done);
        done.ceil() as u64
    }

    /// Forgets everything under way, as a reset does.
    pub fn reset(&mut self) {
        (self.inbound, self.outbound) = (0.0, 0.0);
        self.engines.iter_mut().for_each(|way| way.fill(0.0));
        self.inside.clear();
    }
}

/// When a stage works on a request.
#[derive(Clone, Copy)]
struct Stage {
    start: f64,
    end: f64,
}

impl Stage {
    /// Takes a stage that is `free` from then on, for `duration`.
    fn take(free: &mut f64, ready: f64, duration: f64) -> Stage {
        let start = free.max(ready);
        let end = start + duration;
        *free = end;
        Stage { start, end }
    }

    /// The next stage, which begins before this one ends where they overlap, and cannot end
    /// before it.
    fn then(self, free: &mut f64, duration: f64, overlap: f64) -> Stage {
        let ready = self.end - overlap * (self.end - self.start);
        let mut next = Stage::take(free, ready, duration);
        next.end = next.end.max(self.end);
        *free = next.end;
        next
    }
}

/// Exponentially distributed with mean 1, by SplitMix64.
fn exponential(state: &mut u64) -> f64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    let uniform = ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64;
    -(1.0 - uniform).ln()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Change, Collapse};

    /// 100 ns latency, 1 GB/s each way, one engine of 1 GB/s and 50 ns.
    fn plain() -> Settings {
        let mut s = Settings::preset("pcie-modern").unwrap();
        (s.link.latency_ns, s.link.descriptor_ns) = (100.0, 0.0);
        s.link.inbound_bytes_per_second = 1e9;
        s.link.outbound_bytes_per_second = 1e9;
        (s.link.overlap, s.link.half_duplex) = (0.0, false);
        for way in [&mut s.encrypt, &mut s.decrypt] {
            (way.engines, way.request_ns, way.bytes_per_second) = (1, 50.0, 1e9);
        }
        s
    }

    fn work(direction: Direction, bytes: u64) -> Work {
        Work {
            direction,
            bytes,
            written: bytes,
            descriptors: 3,
        }
    }

    const ENCRYPT: Direction = Direction::Encrypt;

    #[test]
    fn stages_follow_each_other_and_requests_overlap_in_them() {
        let mut timing = Timing::new(&plain());
        assert_eq!(
            timing.submit(1000, work(ENCRYPT, 1000)),
            1000 + 100 + 1000 + 1050 + 1000
        );
        // The second is fetched meanwhile, and waits for the engine only.
        assert_eq!(timing.submit(1000, work(ENCRYPT, 1000)), 4150 + 1050);
        // The other direction has an engine of its own, and shares the buses.
        assert_eq!(
            timing.submit(1000, work(Direction::Decrypt, 1000)),
            5200 + 1000
        );
        timing.reset();
        assert_eq!(timing.submit(9000, work(ENCRYPT, 0)), 9150);
    }

    #[test]
    fn overlap_half_duplex_and_more_engines() {
        let mut settings = plain();
        settings.link.overlap = 1.0;
        let mut timing = Timing::new(&settings);
        assert_eq!(timing.submit(0, work(ENCRYPT, 1000)), 100 + 1050);
        settings.link.overlap = 0.5;
        let mut timing = Timing::new(&settings);
        assert_eq!(
            timing.submit(0, work(ENCRYPT, 1000)),
            100 + 500 + 525 + 1000
        );
        settings = plain();
        settings.link.half_duplex = true;
        let mut timing = Timing::new(&settings);
        assert_eq!(timing.submit(0, work(ENCRYPT, 1000)), 3150);
        assert_eq!(timing.submit(0, work(ENCRYPT, 1000)), 3150 + 3050);
        settings = plain();
        settings.encrypt.engines = 2;
        let mut timing = Timing::new(&settings);
        assert_eq!(timing.submit(0, work(ENCRYPT, 1000)), 3150);
        assert_eq!(timing.submit(0, work(ENCRYPT, 1000)), 4150);
    }

    #[test]
    fn changes_collapse_and_jitter() {
        let mut settings = plain();
        settings.behaviour.changes = vec![Change {
            at_ns: 500,
            factor: 10.0,
        }];
        let mut timing = Timing::new(&settings);
        assert_eq!(timing.submit(0, work(ENCRYPT, 0)), 150);
        assert_eq!(timing.submit(500, work(ENCRYPT, 0)), 2000);
        settings = plain();
        settings.behaviour.collapse = Some(Collapse {
            above: 1,
            factor: 2.0,
        });
        let mut timing = Timing::new(&settings);
        assert_eq!(timing.submit(0, work(ENCRYPT, 0)), 150);
        assert_eq!(timing.submit(0, work(ENCRYPT, 0)), 300);
        assert_eq!(timing.submit(400, work(ENCRYPT, 0)), 550);
        settings = plain();
        settings.behaviour.jitter = 0.5;
        let run = |settings: &Settings| -> Vec<u64> {
            let mut timing = Timing::new(settings);
            let times = (1..2001).map(|i| i * 1_000_000);
            times
                .map(|now| timing.submit(now, work(ENCRYPT, 1000)) - now)
                .collect()
        };
        let times = run(&settings);
        assert_eq!(times, run(&settings));
        let mean = times.iter().sum::<u64>() as f64 / times.len() as f64;
        assert!((mean / 3150.0 - 1.5).abs() < 0.05, "{mean}");
        assert!(times.iter().all(|&t| t >= 3150));
        settings.behaviour.seed = 1;
        assert_ne!(times, run(&settings));
    }
}
