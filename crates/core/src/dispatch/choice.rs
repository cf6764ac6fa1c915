//! Which driver is the best for a goal, given what each is estimated to cost.

use super::model::Cost;
use super::submit_depth::SubmitDepth;
use super::table::{Pace, TableCell};
use super::{BASE, Goal, Mode};
use crate::stats::MAX_DRIVERS;

/// A driver takes over only where it is better by this factor, so that two of about the
/// same cost do not take turns.
const HYSTERESIS: f32 = 0.99;
/// Another driver than the base is counted as dearer by this factor: a gain that small is
/// lost again on the way to it.
const DETOUR_FACTOR: f32 = 1.02;
/// A device that adds less than this share to what is done at home is not worth its risk.
const MIN_DEVICE_GAIN: f32 = 0.02;
/// This part of what should be done at home is done there however short the queue is.
const FIXED_HOME_PART: f32 = 0.9;
/// Goal cpu keeps this share of the best throughput.
const CPU_GOAL_THROUGHPUT: f32 = 0.9;

/// Estimated costs by driver; `None` where a driver may not serve or nothing is known.
pub(super) type Candidates = [Option<Cost>; MAX_DRIVERS];

/// What a driver is judged by.
pub(crate) fn price(goal: Goal, mode: Mode, cost: &Cost) -> f32 {
    match (goal, mode) {
        (Goal::Latency | Goal::Throughput, Mode::Wait) => cost.latency,
        (Goal::Latency | Goal::Throughput, Mode::Submit) => cost.period,
        (Goal::Cpu, _) => cost.cpu,
    }
}

/// The cheapest driver for the goal, the runner-up, and the gain; the one that serves
/// now keeps its place unless the new one is clearly better.
pub(super) fn decide(goal: Goal, mode: Mode, costs: &Candidates, old: TableCell) -> TableCell {
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

/// The device to consider beside `home`, if any, and what the decision between them will
/// rest on.
pub(super) fn rival(
    goal: Goal,
    mode: Mode,
    home: &Cost,
    devices: &Candidates,
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
        // It cannot occupy the device for longer than it takes in all.
        service: cost.period.min(cost.latency) as u32,
        home: price(Goal::Throughput, mode, home) as u32,
        core: cost.cpu as u32,
    };
    let worth = match mode {
        Mode::Wait => u64::from(pace.latency) <= limit(goal, &pace),
        // Submitting takes less of the core than the work does, and what that gives at the
        // device's pace is worth having.
        Mode::Submit => home.period - cost.cpu >= MIN_DEVICE_GAIN * measure(&cost),
    };
    worth.then_some((driver, pace))
}

/// The longest that a device may take so that its caller loses nothing by waiting for it, in
/// nanoseconds.
pub(super) fn limit(goal: Goal, pace: &Pace) -> u64 {
    let home = u64::from(pace.home);
    match goal {
        Goal::Latency | Goal::Throughput => home - home / 256,
        // Whatever spares the core and is not much slower; or is so much faster that home
        // would not keep up.
        Goal::Cpu if pace.core < pace.home => (home as f32 / CPU_GOAL_THROUGHPUT) as u64,
        Goal::Cpu => (home as f32 * CPU_GOAL_THROUGHPUT) as u64,
    }
}

/// What a caller that does not wait should do with its next batch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Plan {
    /// The device cannot help.
    Home,
    /// To the device, and this share of all batches at home however idle the device is.
    Device(f32),
    /// This share of all batches at home, and the others too while the device has enough to
    /// be busy with.
    Both(f32),
}

/// Whether home and device together, the device alone, or home alone is the best for a caller
/// that has `depth` batches under way.
///
/// Let x of them be done at home. They go round in the time of the slowest of three: the
/// core, which does x of them and submits the others; the device, which serves the others,
/// those of other callers between them; and the latency of a single one.
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
    // The round is the shortest where core and device take the same time.
    let x = depth * (service - core) / (home - core + service);
    let x = x.clamp(0.0, depth - 1.0);
    // Batches come whole: one at home must not take so long that the device runs dry.
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

/// Whether one more caller that waits for the device gets more done than it would at home, the
/// device having so much to do, in nanoseconds.
///
/// Callers that wait leave the device idle for part of the time, if they are few; once they
/// are enough to keep it busy, another one adds nothing.
pub(super) fn adds(pace: &Pace, backlog: u64) -> bool {
    let [home, latency, service] =
        [pace.home, pace.latency, pace.service].map(|ns| ns.max(1) as f32);
    let others = (backlog as f32 / service - 0.125).ceil().max(0.0);
    1.0 / service - others / latency >= 1.0 / home
}

/// What a device must have to do so that it does not run dry while a batch is done at home,
/// in nanoseconds.
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
        // Of this one nothing is known yet: it may have any number of batches under way.
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
        // Much faster: a batch at home now and then would only keep it waiting.
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
        // Two callers keep it busy; a third would only stand in the queue.
        let device = pace(10_000, 5000, 20_000, 100);
        assert!(adds(&device, 0) && adds(&device, 5000));
        assert!(!adds(&device, 10_000));
    }
}
