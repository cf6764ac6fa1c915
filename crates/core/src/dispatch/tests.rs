use std::time::Duration;

use super::choice::{Candidates, decide};
use super::*;
use crate::VirtualTime;

const ENCRYPT: Direction = Direction::Encrypt;

fn shape(mode: Mode, requests: usize, size: usize) -> Shape {
    Shape {
        mode,
        direction: ENCRYPT,
        requests,
        bytes: requests * size,
    }
}

/// A driver of fixed cost and rate.
fn cost(fixed: f32, bytes_per_ns: f32, shape: &Shape) -> Cost {
    Cost::inline(fixed * shape.requests as f32 + shape.bytes as f32 / bytes_per_ns)
}

/// A simulated machine: software at once, a device with a start-up cost.
struct Machine {
    software: (f32, f32),
    device: (f32, f32),
    dispatch: Dispatch,
    clock: VirtualTime,
    time: f64,
    switches: u32,
    last: usize,
}

impl Machine {
    fn new(software: (f32, f32), device: (f32, f32)) -> Self {
        let clock = VirtualTime::new();
        let dispatch = Dispatch::new(vec![DriverFacts::default(); 2], clock.clock());
        dispatch.set_eligible(1, true);
        Machine {
            software,
            device,
            dispatch,
            clock,
            time: 0.0,
            switches: 0,
            last: 0,
        }
    }

    fn price(&self, driver: usize, shape: Shape) -> Cost {
        let (fixed, rate) = if driver == BASE {
            self.software
        } else {
            self.device
        };
        cost(fixed, rate, &shape)
    }

    /// One sampled batch; returns the driver that served.
    fn step(&mut self, shape: Shape) -> usize {
        let chosen = usize::from(self.dispatch.cell(Goal::Latency, &shape).best);
        self.switches += u32::from(chosen != self.last);
        self.last = chosen;
        let explored = self.dispatch.explore(&shape, chosen, |_| 0);
        let driver = explored.unwrap_or(chosen);
        let seen = self.price(driver, shape);
        self.time += f64::from(seen.period);
        self.clock.work(Duration::from_nanos(seen.period as u64));
        self.dispatch.learn(
            driver,
            &shape,
            seen,
            Some(StandsFor::batches(1.0)),
            explored.is_some(),
        );
        chosen
    }

    /// What calibration would have learned of callers that wait and encrypt.
    fn calibrate(&self) {
        for driver in [BASE, 1] {
            let mut models = Models::default();
            for (c, &count) in COUNTS.iter().enumerate() {
                for (s, &size) in SIZES.iter().enumerate() {
                    let seen = self.price(driver, shape(Mode::Wait, count as usize, size as usize));
                    models[0][0].set(c, s, seen, 5);
                }
            }
            self.dispatch.set_models(driver, models);
        }
    }
}

#[test]
fn nothing_known_means_the_base() {
    let dispatch = Dispatch::new(vec![DriverFacts::default(); 3], VirtualTime::new().clock());
    for goal in GOALS {
        for mode in MODES {
            let cell = dispatch.cell(goal, &shape(mode, 1, 1 << 20));
            assert_eq!(usize::from(cell.best), BASE);
        }
    }
    assert_eq!(
        dispatch.explore(&shape(Mode::Wait, 1, 16), BASE, |_| 0),
        None
    );
}

#[test]
fn calibrated_models_put_the_crossover_where_it_is() {
    let machine = Machine::new((20.0, 4.0), (5000.0, 8.0));
    machine.calibrate();
    // 20 + x/4 = 5000 + x/8 at x = 39,840.
    for size in [16, 100, 1400, 16384, 32768, 49152, 65536, 1 << 20] {
        let here = shape(Mode::Wait, 1, size);
        let found = usize::from(machine.dispatch.cell(Goal::Latency, &here).best);
        let better = usize::from(machine.price(1, here).period < machine.price(0, here).period);
        assert_eq!(found, better, "{size}");
    }
    let switch = machine
        .dispatch
        .last_switch(Goal::Latency, &shape(Mode::Wait, 1, 1 << 20));
    let switch = switch.expect("the device took over large requests");
    assert_eq!((switch.from, switch.to), (0, 1));
}

#[test]
fn a_driver_for_longer_work_is_neither_chosen_nor_tried_for_shorter_work_of_who_waits() {
    let mut machine = Machine::new((20.0, 4.0), (0.0, 8.0));
    machine.dispatch.facts[1].least_work = [5000, 0];
    let serving = |machine: &mut Machine, here: Shape| {
        let trials = (0..3000).filter(|_| {
            let before = machine.dispatch.estimate(1, &here).1;
            machine.step(here);
            machine.dispatch.estimate(1, &here).1 != before
        });
        let tried = trials.count();
        (machine.step(here), tried > 0)
    };
    // 20 + 16384/4 = 4116 ns, and 20 + 32768/4 = 8212 ns.
    assert_eq!(
        serving(&mut machine, shape(Mode::Wait, 1, 16384)),
        (0, false)
    );
    assert_eq!(
        serving(&mut machine, shape(Mode::Submit, 1, 16384)),
        (1, true)
    );
    assert_eq!(
        serving(&mut machine, shape(Mode::Wait, 1, 32768)),
        (1, true)
    );
    assert_eq!(machine.step(shape(Mode::Wait, 1, 16384)), 0);
}

/// A class has batches of 16 to 31 requests, and the table is for one in the middle.
#[test]
fn the_shortest_batches_of_a_class_may_be_too_little_for_a_driver() {
    let mut machine = Machine::new((0.0, 18.0), (0.0, 30.0));
    machine.dispatch.facts[1].least_work = [5000, 0];
    machine.calibrate();
    let serving = |requests| {
        let decided = machine
            .dispatch
            .decision(Goal::Latency, &shape(Mode::Wait, requests, 4096));
        decided.serving()
    };
    // 16 requests take software 3641 ns, 21 take 4779, 23 take 5234.
    assert_eq!([16, 21, 23, 31].map(serving), [BASE, BASE, 1, 1]);
}

/// A class has requests of 4096 to 5119 bytes.
#[test]
fn a_class_is_decided_for_the_batches_that_it_has_seen() {
    let mut machine = Machine::new((0.0, 4.0), (540.0, 8.0));
    machine.calibrate();
    // x/4 = 540 + x/8 at x = 4320, which is below the middle of the class.
    let short = shape(Mode::Wait, 1, 4096);
    assert_eq!(machine.step(short), 1);
    assert_eq!(machine.step(short), BASE);
    let long = shape(Mode::Wait, 1, 5000);
    let chosen: Vec<_> = (0..50).map(|_| machine.step(long)).collect();
    assert_eq!((chosen[0], chosen[49]), (BASE, 1));
    assert!(machine.switches <= 3, "{}", machine.switches);
}

#[test]
fn what_the_caller_does_between_batches_is_no_work_for_a_driver() {
    let machine = Machine::new((20.0, 4.0), (0.0, 8.0));
    let mut dispatch = machine.dispatch;
    dispatch.facts[1].least_work = [5000, 2000];
    let here = shape(Mode::Submit, 1, 4096);
    // Software takes 1000 ns of every 3000; the other driver was measured by a caller that did less.
    let cost = |latency, period| Cost {
        latency,
        period,
        cpu: 0.0,
    };
    for _ in 0..100 {
        dispatch.learn(1, &here, cost(1000.0, 1500.0), None, false);
        dispatch.learn(BASE, &here, cost(1000.0, 3000.0), None, false);
    }
    assert_eq!(dispatch.cell(Goal::Latency, &here).serving(), BASE);
    // Work that takes software long enough is for the driver.
    for _ in 0..100 {
        machine.clock.work(Duration::from_micros(200));
        dispatch.learn(BASE, &here, cost(2500.0, 3000.0), None, false);
    }
    assert_eq!(dispatch.cell(Goal::Latency, &here).serving(), 1);
}

#[test]
fn a_better_driver_is_found_without_calibration_and_at_bounded_cost() {
    let mut machine = Machine::new((20.0, 4.0), (5000.0, 8.0));
    let here = shape(Mode::Wait, 1, 1 << 20);
    let steps = (1..1000).find(|_| {
        machine.step(here);
        usize::from(machine.dispatch.cell(Goal::Latency, &here).best) == 1
    });
    assert!(steps.is_some_and(|n| n < 300), "{steps:?}");
}

#[test]
fn trying_a_hopeless_driver_costs_one_percent_at_most() {
    let mut machine = Machine::new((20.0, 4.0), (400_000.0, 0.1));
    let here = shape(Mode::Wait, 1, 1400);
    let mut served = 0.0;
    for _ in 0..300_000 {
        assert_eq!(machine.step(here), BASE);
        served += f64::from(machine.price(BASE, here).period);
    }
    assert!(
        machine.time <= served * 1.011,
        "{} against {served}",
        machine.time
    );
}

#[test]
fn a_device_that_slows_down_is_left_and_taken_again_without_oscillation() {
    let mut machine = Machine::new((20.0, 4.0), (5000.0, 16.0));
    let here = shape(Mode::Wait, 1, 1 << 20);
    while machine.step(here) != 1 {}
    machine.switches = 0;
    machine.device = (50_000.0, 1.6);
    let left = (0..).find(|_| machine.step(here) == BASE).unwrap();
    assert!(left < 20, "{left} batches on a device ten times slower");
    for _ in 0..200 {
        machine.step(here);
    }
    assert_eq!(machine.switches, 1);
}

#[test]
fn drivers_of_the_same_cost_do_not_take_turns() {
    let mut machine = Machine::new((20.0, 4.0), (20.0, 4.02));
    let here = shape(Mode::Wait, 16, 1400);
    for i in 0..5000 {
        machine.software.0 = 20.0 + (i % 3) as f32;
        machine.step(here);
    }
    assert!(machine.switches <= 2, "{}", machine.switches);
}

#[test]
fn a_forbidden_driver_is_left_at_once() {
    let mut machine = Machine::new((20.0, 1.0), (20.0, 16.0));
    let here = shape(Mode::Wait, 1, 1 << 20);
    while machine.step(here) != 1 {}
    machine.dispatch.set_eligible(1, false);
    assert_eq!(
        machine.dispatch.cell(Goal::Latency, &here),
        TableCell::default()
    );
    machine.dispatch.set_eligible(1, true);
    assert_eq!(machine.dispatch.cell(Goal::Latency, &here).best, 1);
}

#[test]
fn goals_differ_where_they_should() {
    let fast = Some(Cost {
        latency: 100.0,
        period: 100.0,
        cpu: 100.0,
    });
    let frees = Some(Cost {
        latency: 300.0,
        period: 105.0,
        cpu: 5.0,
    });
    let slow = Some(Cost {
        latency: 900.0,
        period: 400.0,
        cpu: 1.0,
    });
    let mut costs = Candidates::default();
    costs[..3].copy_from_slice(&[fast, frees, slow]);
    let best = |goal| decide(goal, Mode::Wait, &costs, TableCell::default()).best;
    assert_eq!(best(Goal::Latency), 0);
    assert_eq!(best(Goal::Throughput), 0);
    assert_eq!(best(Goal::Cpu), 1);
}

#[test]
fn an_interruption_counts_once_and_not_for_each_batch_that_a_sample_stands_for() {
    let dispatch = Dispatch::new(vec![DriverFacts::default(); 2], VirtualTime::new().clock());
    let shape = shape(Mode::Wait, 1, 256);
    let many = Some(StandsFor::batches(500.0));
    for _ in 0..100 {
        dispatch.learn(BASE, &shape, Cost::inline(1e3), many, false);
    }
    let before = dispatch.spent.load(Ordering::Relaxed);
    assert_eq!(before, 100 * 500_000);
    // Ten milliseconds of others, and 499 batches as usual.
    dispatch.learn(BASE, &shape, Cost::inline(10e6), many, false);
    let counted = dispatch.spent.load(Ordering::Relaxed) - before;
    assert_eq!(counted, 10_000_000 + 499_000);
}

#[test]
fn batches_that_were_not_timed_count_as_no_more_than_the_time_that_has_passed() {
    let dispatch = Dispatch::new(vec![DriverFacts::default(); 2], VirtualTime::new().clock());
    let shape = shape(Mode::Wait, 1, 16);
    // The timed call takes 1000 ns, and all 500 took 200,000.
    let stands_for = StandsFor {
        batches: 500.0,
        longest: 200_000.0,
    };
    dispatch.learn(BASE, &shape, Cost::inline(1e3), Some(stands_for), false);
    assert_eq!(dispatch.spent.load(Ordering::Relaxed), 201_000);
    dispatch.learn(BASE, &shape, Cost::inline(1e3), None, false);
    assert_eq!(dispatch.spent.load(Ordering::Relaxed), 201_000);
}

#[test]
fn where_writing_takes_long_a_change_is_written_for_its_class_at_once_and_for_others_later() {
    let machine = Machine::new((20.0, 4.0), (3000.0, 8.0));
    machine.calibrate();
    let dispatch = &machine.dispatch;
    let (here, near) = (shape(Mode::Wait, 1, 4096), shape(Mode::Wait, 1, 5200));
    let best = |shape: &Shape| usize::from(dispatch.cell(Goal::Latency, shape).best);
    assert_eq!((best(&here), best(&near)), (BASE, BASE));
    // A millisecond, so the next writing is due after 200 ms of work.
    dispatch.learned.lock().unwrap().writing = 1_000_000;
    for _ in 0..8 {
        machine.clock.work(Duration::from_millis(1));
        dispatch.learn(
            1,
            &here,
            Cost::inline(100.0),
            Some(StandsFor::batches(1.0)),
            true,
        );
    }
    assert_eq!((best(&here), best(&near)), (1, BASE));
    let many = Some(StandsFor::batches(100_000.0));
    dispatch.learn(BASE, &here, machine.price(BASE, here), many, false);
    assert_eq!((best(&here), best(&near)), (1, BASE));
    dispatch.learn(BASE, &here, machine.price(BASE, here), many, false);
    assert_eq!((best(&here), best(&near)), (1, 1));
}
