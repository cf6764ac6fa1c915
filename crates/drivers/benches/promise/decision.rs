//! What a decision costs: a request through `auto` against the same through the driver that
//! `auto` chooses. Drivers only move virtual time on, so the processor's time is dispatch.

use std::hint::black_box;
use std::slice::from_mut;
use std::time::{Duration, Instant};

use cipherlane_core::{
    Batch, Clock, Direction, Goal, OwnedRequest, Payload, Request, Session, Ticket,
};

use crate::callers::{ALGORITHM, KEY, Way};
use crate::cells::{Bench, Cell, DEVICES};
use crate::model::Device;
use crate::simulation::Simulation;

/// Calls a block, and blocks.
const CALLS: u32 = 100;
const BLOCKS: usize = 2000;
/// Bytes that are worth a device.
const LARGE: usize = 4 << 10;

fn session(bench: &Bench<Device>, driver: Option<&str>) -> Session {
    let builder = bench.framework.session(ALGORITHM, &KEY).expect("a key");
    let builder = match driver {
        Some(driver) => builder.driver(driver),
        None => builder,
    };
    builder.goal(Goal::Throughput).open().expect("a session")
}

/// Nanoseconds of a call.
fn nanoseconds(mut call: impl FnMut()) -> f64 {
    let started = Instant::now();
    (0..CALLS).for_each(|_| call());
    started.elapsed().as_nanos() as f64 / f64::from(CALLS)
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// The median difference between `auto` and the driver that it chooses, in turns; at home each
/// block begins at the same moment.
fn decision(bench: &Bench<Device>, driver: &str, size: usize) -> f64 {
    let sessions = [session(bench, None), session(bench, Some(driver))];
    let mut data = vec![0; size];
    let time = bench.device.time();
    let began = time.now();
    let mut block = |session: &Session| {
        if driver == "software" {
            time.turn_to(began);
        }
        nanoseconds(|| {
            let mut request = Request::in_place(black_box(&mut data)).iv(&[0; 16]);
            let done = session.process(Direction::Encrypt, from_mut(&mut request));
            done.expect("a right request");
        })
    };
    let served = |bench: &Bench<Device>| {
        let totals = bench.framework.statistics(driver, ALGORITHM);
        totals.expect("a driver").requests
    };
    let before = served(bench);
    let mut differences: Vec<f64> = (0..BLOCKS)
        .map(|_| block(&sessions[0]) - block(&sessions[1]))
        .collect();
    let all = 2 * BLOCKS as u64 * u64::from(CALLS);
    assert!(
        served(bench) - before > all * 98 / 100,
        "'{driver}' should serve"
    );
    median(&mut differences)
}

/// Gives the device work for some milliseconds.
fn occupy(bench: &Bench<Device>) -> (Session, Vec<Ticket>) {
    let session = session(bench, Some("device"));
    let tickets = (0..64).map(|_| {
        let mut batch = Batch::new(Direction::Encrypt);
        let request = OwnedRequest::new(Payload::InPlace(vec![0; 1 << 20]));
        batch.push(request.iv(vec![0; 16]));
        session.submit(&mut batch).expect("a right batch")
    });
    let tickets = tickets.collect();
    (session, tickets)
}

pub(crate) fn print() {
    let fast = DEVICES[0];
    let bench = Bench::new(fast);
    let trained = |size| {
        let cell = Cell {
            device: fast.name,
            size,
            way: Way::Wait { batch: 1 },
            sessions: 1,
            goal: Goal::Throughput,
        };
        let mut callers = bench.callers(None, &cell);
        callers.run_until(Duration::from_millis(300), |_| {});
        callers.finish();
    };
    trained(LARGE);
    let small = decision(&bench, "software", 16);
    println!("{small:6.1}  too small for the device");
    let away = decision(&bench, "device", LARGE);
    println!("{away:6.1}  to the device, and what its ledger takes afterwards");
    let (session, tickets) = occupy(&bench);
    let home = decision(&bench, "software", LARGE);
    println!("{home:6.1}  at home, the device being too busy");
    drop(tickets);
    bench.device.interrupts();
    drop(session);
    let clock = Clock::default();
    let mut looks: Vec<f64> = (0..BLOCKS)
        .map(|_| {
            nanoseconds(|| {
                black_box(clock.now());
            })
        })
        .collect();
    let look = median(&mut looks);
    println!("{look:6.1}  a look at the machine's clock, beside the latter two");
}
