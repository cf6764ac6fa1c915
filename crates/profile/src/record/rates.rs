//! How often processor time is sampled: as often as the machine takes samples cheaply.
//!
//! A sample is an interrupt of a timer, which on a virtual machine leaves the guest several times. On
//! one with a Zen 3 it took the interrupted program 50 to 90 microseconds, so that 199 samples per
//! second cost each processor 1.2 to 1.8 % of its time. So the recorder first measures what samples
//! take from its own thread. A recording begins with more samples, so that short ones have enough, and
//! goes on with as many as cost little.

use std::time::{Duration, Instant};

use perf_event::events::Software;
use perf_event::{Builder, Clock, SampleFlag};

/// Samples per second at the begin, and the least and the most of them after it. They are no divisors
/// of what timers like.
const FIRST: u64 = 499;
const LEAST: u64 = 49;
const MOST: u64 = 99;
/// The share of each processor's time that samples may cost, by what they cost when they are measured;
/// when they are rare, and the caches have forgotten the interrupt's way, they cost about twice that.
const SHARE: f64 = 0.001;
/// Nanoseconds of each processor that the samples of the begin may cost, and how long it is at most.
const IN_ADVANCE: u64 = 3_000_000;
const LONGEST_BEGIN: u64 = 2_000_000_000;
/// Samples that are taken to measure, their number per second, and how long that lasts at most. No rate
/// above is higher: where the kernel allows fewer (kernel.perf_event_max_sample_rate), nothing is measured.
const MEASURED: usize = 5;
const OFTEN: u64 = 1997;
const LONGEST: Duration = Duration::from_millis(20);
/// No interrupt is shorter.
const INTERRUPT: Duration = Duration::from_micros(1);

/// Samples per second of processor time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rates {
    /// At the begin.
    pub(super) first: u64,
    /// How long that is, in nanoseconds.
    pub(super) first_ns: u64,
    /// After it.
    pub(super) lasting: u64,
}

impl Rates {
    /// As many as the caller says, or as the machine takes cheaply.
    pub(super) fn of(asked: Option<u64>) -> Self {
        match asked {
            Some(rate) => Self::always(rate),
            None => Self::at(price()),
        }
    }

    /// The same number from the begin to the end.
    pub(super) fn always(rate: u64) -> Self {
        Self {
            first: rate,
            first_ns: 0,
            lasting: rate,
        }
    }

    /// For a machine on which a sample takes `price` nanoseconds.
    fn at(price: Option<u64>) -> Self {
        let Some(price) = price.filter(|price| *price > 0) else {
            return Self::always(MOST);
        };
        let affordable = (SHARE * 1e9 / price as f64) as u64;
        Self {
            first: FIRST,
            first_ns: (1_000_000_000 / FIRST * IN_ADVANCE / price).min(LONGEST_BEGIN),
            lasting: affordable.clamp(LEAST, MOST),
        }
    }
}

/// Nanoseconds that a sample takes from the program that it interrupts; `None` where this user may not
/// take any.
fn price() -> Option<u64> {
    let mut builder = Builder::new(Software::CPU_CLOCK);
    builder
        .exclude_kernel(true)
        .sample_frequency(OFTEN)
        .sample(SampleFlag::TIME)
        .clockid(Clock::MONOTONIC);
    /// Bytes of the ring: more than the samples need.
    const RING: usize = 4096;
    let mut ring = builder.build().ok()?.sampled(RING).ok()?;
    ring.as_counter_mut().enable().ok()?;
    let mut gaps = Vec::with_capacity(MEASURED);
    let begin = Instant::now();
    let mut last = begin;
    while gaps.len() < MEASURED && last - begin < LONGEST {
        let now = Instant::now();
        if now - last < INTERRUPT {
            last = now;
            continue;
        }
        if ring.next_record().is_some() {
            gaps.push(now - last);
        }
        last = Instant::now();
    }
    gaps.sort_unstable();
    let median = gaps.get(gaps.len() / 2)?;
    Some(median.as_nanos() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dearer_a_sample_the_fewer_are_taken() {
        let cheap = Rates::at(Some(2_000));
        assert_eq!((cheap.first, cheap.lasting), (499, 99));
        assert_eq!(cheap.first_ns, LONGEST_BEGIN);
        let dear = Rates::at(Some(24_000));
        assert_eq!((dear.first, dear.lasting), (499, 49));
        assert_eq!(dear.first_ns / 1_000_000, 250);
        assert_eq!(Rates::at(Some(u64::MAX)).lasting, 49);
        assert_eq!(Rates::at(None), Rates::always(99));
        assert_eq!(Rates::of(Some(7)), Rates::always(7));
    }

    #[test]
    fn a_sample_has_a_price_where_samples_may_be_taken() {
        match price() {
            Some(price) => assert!((1_000..LONGEST.as_nanos() as u64).contains(&price)),
            None => eprintln!("NOT TESTED: no sample of this program may be taken here"),
        }
    }
}
