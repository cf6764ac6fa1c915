//! How much longer a system call takes while it is recorded: in a window the program is slower by it,
//! and machines differ by a factor of two and more.

use std::time::{Duration, Instant};

use perf_event::events::Tracepoint;
use perf_event::{Builder, Clock, SampleFlag};

use super::events::CALLS;
use super::tracepoints::tracepoint;

/// System calls of a turn, and turns: the fastest counts, which nothing has interrupted.
const CALLS_OF_A_TURN: u32 = 100;
const TURNS: usize = 9;

/// Nanoseconds, measured in this thread with its calls recorded and without; `None` where this user may
/// not record any. To be asked before they are recorded anywhere, which makes all calls slower.
pub(super) fn measured() -> Option<u64> {
    let plain = fastest(|| ());
    let recorded = recorded(tracepoint(CALLS)?)?;
    let price = recorded.saturating_sub(plain) / CALLS_OF_A_TURN;
    Some(price.as_nanos() as u64)
}

/// A turn whose calls are recorded as those of the target are.
fn recorded(calls: Tracepoint) -> Option<Duration> {
    let mut builder = Builder::new(calls);
    builder
        .sample_period(1)
        .sample(SampleFlag::TID)
        .sample(SampleFlag::TIME)
        .sample(SampleFlag::CPU)
        .sample(SampleFlag::PERIOD)
        .sample(SampleFlag::RAW)
        .clockid(Clock::MONOTONIC);
    /// Bytes of the ring: more than the records of a turn need.
    const RING: usize = 64 << 10;
    let mut ring = builder.build().ok()?.sampled(RING).ok()?;
    ring.as_counter_mut().enable().ok()?;
    Some(fastest(|| while ring.next_record().is_some() {}))
}

fn fastest(mut between: impl FnMut()) -> Duration {
    let turn = || {
        let begin = Instant::now();
        for _ in 0..CALLS_OF_A_TURN {
            std::hint::black_box(rustix::process::getppid());
        }
        begin.elapsed()
    };
    let turns = (0..TURNS).map(|_| {
        between();
        turn()
    });
    turns.min().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recorded_call_has_a_price_where_calls_may_be_recorded() {
        match measured() {
            Some(price) => assert!((10..100_000).contains(&price), "{price} ns"),
            None => eprintln!("NOT TESTED: no system call may be recorded here"),
        }
    }
}
