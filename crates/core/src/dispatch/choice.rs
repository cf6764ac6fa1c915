//! Which driver is the best for a goal, given the estimated cost of each.

use super::model::Cost;
use super::submit_depth::SubmitDepth;
use super::table::{Pace, TableCell};
use super::{BASE, Goal, Mode};
use crate::stats::MAX_DRIVERS;

/// A driver takes over from another one only where its cost is below this part of the other's.
/// Without that, two drivers of about the same cost would take turns.
const HYSTERESIS: f32 = 0.99;
/// The cost of every driver but the base is multiplied by this: the way to another driver takes
/// time that the estimate does not hold.
const DETOUR_FACTOR: f32 = 1.02;
/// A device must add at least this share to the work that home does; a smaller gain is not worth
/// the risk of a hang.
const MIN_DEVICE_GAIN: f32 = 0.02;
/// This part of home's planned share is done at home even when the device's queue is short.
const FIXED_HOME_PART: f32 = 0.9;
/// The goal `cpu` keeps this share of the best throughput.
const CPU_GOAL_THROUGHPUT: f32 = 0.9;

/// Estimated costs by driver; `None` where a driver may not serve or nothing is known.
pub(super) type Candidates = [Option<Cost>; MAX_DRIVERS];

/// The part of a cost that counts for a goal and a kind of caller.
pub(crate) fn price(goal: Goal, mode: Mode, cost: &Cost) -> f32 {
    match (goal, mode) {
        (Goal::Latency | Goal::Throughput, Mode::Wait) => cost.latency,
        (Goal::Latency | Goal::Throughput, Mode::Submit) => cost.period,
        (Goal::Cpu, _) => cost.cpu,
    }
}

/// The cheapest driver for the goal, the second cheapest, and the difference of their costs. The
/// driver that serves now stays unless another one is better by the [`HYSTERESIS`].
pub(super) fn decide(goal: Goal, mode: Mode, costs: &[Option<Cost>], old: TableCell) -> TableCell {
    let fastest = costs
        .iter()
        .flatten()
        .map(|c| c.period)
        .fold(f32::INFINITY, f32::min);
    let allowed = |cost: &Cost| goal != Goal::Cpu || cost.period <= fastest / CPU_GOAL_THROUGHPUT;
    let of = |driver: usize| {
        let cost = costs.get(driver).copied().flatten().filter(allowed)?;
        let factor = if driver == BASE { 1.0 } else { DETOUR_FACTOR };
        Some(price(goal, mode, &cost) * factor)
    };
    let cheapest = |but: Option<usize>| {
        (0..costs.len())
            .filter(|&driver| Some(driver) != but)
            .filter_map(|driver| Some((driver, of(driver)?)))
            .min_by(|a, b| a.1.total_cmp(&b.1))
    };
    let Some((mut best, mut cost)) = cheapest(None) else {
        return TableCell::default();
    };
    if let Some(current) = of(old.best.into())
        && cost > current * HYSTERESIS
    {
        (best, cost) = (old.best.into(), current);
    }
    let (second, second_cost) = cheapest(Some(best)).unwrap_or((BASE, cost));
    let gain = (second_cost - cost).clamp(0.0, 4e9) as u32;
    TableCell {
        best: best as u8,
        second: second as u8,
        gain,
        ..TableCell::default()
    }
}

/// The device to consider beside `home`, if there is one, and the times that decide between the
/// two for each batch.
pub(super) fn rival(
    goal: Goal,
    mode: Mode,
    home: &Cost,
    devices: &[Option<Cost>],
) -> Option<(usize, Pace)> {
    let known = devices.iter().enumerate();
    let known = known.filter_map(|(driver, cost)| Some((driver, (*cost)?)));
    let measure = |cost: &Cost| match mode {
        Mode::Wait => cost.latency,
        Mode::Submit => cost.period.min(cost.latency),
    };
    let (driver, cost) = known.min_by(|a, b| measure(&a.1).total_cmp(&measure(&b.1)))?;
    let pace = Pace {
        latency: cost.latency as u32,
        // A batch cannot occupy the device for longer than the batch takes.
        service: cost.period.min(cost.latency) as u32,
        home: price(Goal::Throughput, mode, home) as u32,
        core: cost.cpu as u32,
    };
    let worth = match mode {
        Mode::Wait => u64::from(pace.latency) <= limit(goal, &pace),
        // Submitting a batch takes less of the core than computing the batch at home, and the time
        // saved per batch is a worthwhile part of the time that the device needs.
        Mode::Submit => home.period - cost.cpu >= MIN_DEVICE_GAIN * measure(&cost),
    };
    worth.then_some((driver, pace))
}

/// The longest time in nanoseconds that a device may take for a batch without a loss for the
/// caller that waits.
pub(super) fn limit(goal: Goal, pace: &Pace) -> u64 {
    let home = u64::from(pace.home);
    match goal {
        Goal::Latency | Goal::Throughput => home - home / 256,
        // A device that saves time of the core may be a little slower than home. A device that
        // saves none must be faster by as much.
        Goal::Cpu if pace.core < pace.home => (home as f32 / CPU_GOAL_THROUGHPUT) as u64,
        Goal::Cpu => (home as f32 * CPU_GOAL_THROUGHPUT) as u64,
    }
}

/// Where a caller that does not wait should have its next batch computed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Plan {
    /// All at home: the device cannot help.
    Home,
    /// At the device, except for this share of all batches, which is done at home even while the
    /// device is idle.
    Device(f32),
    /// This share of all batches at home. The other batches go to the device while its queue is
    /// short, and are done at home too while the device has enough to do.
    Both(f32),
}

/// Whether home and device together, the device alone, or home alone is the best for a caller
/// that has `depth` batches under way.
///
/// Let x of these batches be done at home. One round of all batches takes as long as the slowest
/// of three: the core, which computes x batches and submits the others; the device, which serves
/// the others and the batches of other callers between them; and the latency of one batch at the
/// device.
pub(super) fn plan(goal: Goal, pace: &Pace, submit_depth: &SubmitDepth) -> Plan {
    let [home, core] = [pace.home, pace.core].map(|ns| ns.max(1) as f32);
    let latency = (pace.latency as f32).max(1.0);
    let service = pace.service.max(1) as f32 * submit_depth.crowd();
    let depth = submit_depth.depth() as f32;
    let round = |x: f32| {
        let core = x * home + (depth - x) * core;
        core.max(latency).max((depth - x) * service)
    };
    if core >= home {
        return Plan::Home;
    }
    // The round is shortest where core and device take the same time.
    let x = depth * (service - core) / (home - core + service);
    let x = x.clamp(0.0, depth - 1.0);
    // Batches are whole: one batch at home must not take longer than the device's queue lasts.
    let both = round(1.0) <= round(0.0);
    let best = if both { round(x) } else { round(0.0) };
    if best >= depth * home {
        return Plan::Home;
    }
    match goal {
        _ if !both => Plan::Device(0.0),
        Goal::Cpu => {
            let least = (depth - best / CPU_GOAL_THROUGHPUT / service).clamp(0.0, x);
            Plan::Device(least / depth)
        }
        Goal::Latency | Goal::Throughput => Plan::Both(x / depth * FIXED_HOME_PART),
    }
}

/// Whether one more caller that waits for the device gets more done than at home, when the device
/// has `backlog` nanoseconds of work.
///
/// A few callers that wait leave the device idle for a part of the time. When the callers are
/// enough to keep the device busy, one more caller adds nothing.
pub(super) fn adds(pace: &Pace, backlog: u64) -> bool {
    let [home, latency, service] =
        [pace.home, pace.latency, pace.service].map(|ns| ns.max(1) as f32);
    let others = (backlog as f32 / service - 0.125).ceil().max(0.0);
    1.0 / service - others / latency >= 1.0 / home
}

/// The nanoseconds of work that a device must have so that the device does not become idle while
/// one batch is done at home.
pub(super) fn enough(pace: &Pace) -> u64 {
    let [home, latency, service] = [pace.home, pace.latency, pace.service].map(u64::from);
    home + home / 4 + latency.max(2 * service)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace(latency: u32, service: u32, home: u32, core: u32) -> Pace {
        Pace {
            latency,
            service,
            home,
            core,
        }
    }

    #[test]
    fn a_caller_that_does_not_wait_uses_what_is_worth_using() {
        // Nothing is known yet of this caller, which may have any number of batches under way.
        let submit_depth = SubmitDepth::default();
        let plan = |goal, pace| plan(goal, &pace, &submit_depth);
        let throughput = Goal::Throughput;
        assert_eq!(plan(throughput, pace(900, 10, 1000, 1000)), Plan::Home);
        assert_eq!(plan(throughput, pace(90_000, 900, 1000, 10)), Plan::Home);
        let Plan::Both(share) = plan(throughput, pace(5000, 2000, 1000, 10)) else {
            panic!("the device does a third")
        };
        assert!(
            (share / FIXED_HOME_PART - 2.0 / 3.0).abs() < 0.01,
            "{share}"
        );
        // The device is much faster: a batch at home would only keep the device waiting.
        assert_eq!(plan(throughput, pace(600, 5, 1000, 1)), Plan::Device(0.0));
        let Plan::Device(share) = plan(Goal::Cpu, pace(5000, 2000, 1000, 10)) else {
            panic!("the device does what it can")
        };
        // Nine tenths of three thirds, less the one that the device does.
        assert!((share - 1.7 / 2.7).abs() < 0.02, "{share}");
    }

    #[test]
    fn a_caller_that_waits_does_so_as_long_as_it_loses_nothing() {
        let both = pace(10_000, 8000, 9000, 100);
        assert!(limit(Goal::Latency, &both) <= 9000);
        assert_eq!(limit(Goal::Cpu, &both), 10_000);
        assert_eq!(limit(Goal::Cpu, &pace(1, 1, 9000, 9500)), 8100);
        // Two callers keep the device busy; a third one would only wait in the queue.
        let device = pace(10_000, 5000, 20_000, 100);
        assert!(adds(&device, 0) && adds(&device, 5000));
        assert!(!adds(&device, 10_000));
    }
}
