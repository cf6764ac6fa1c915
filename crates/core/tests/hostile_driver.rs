//! Drivers and callers that lie, in safe code: memory stays sound whatever they do, nothing
//! hangs, and a panic of theirs is a panic and nothing worse. What these tests cannot see by
//! themselves, Miri and the address sanitizer see while they run.
#![forbid(unsafe_code)]

mod common;

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use cipherlane_core::{
    Algorithm, Batch, Direction, Flight, Framework, OwnedRequest, Payload, PieceState, Request,
    Session, Status, Transform,
};
use cipherlane_test_driver::TestDriver;
use common::{AEAD, AEAD_KEY, base};

const DIRECTIONS: [Direction; 2] = [Direction::Encrypt, Direction::Decrypt];

/// What a [`hostile`] driver does once it is armed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trick {
    /// Puts an empty request in the place of each.
    Empties,
    /// Puts a longer one there, without IV, additional data and tag.
    Grows,
    /// Puts a scatter list there.
    Scatters,
    /// Puts one there that has no output.
    TakesOutput,
    /// Turns the order of the requests round.
    Reverses,
    /// Says that all is done, and has done nothing.
    Lies,
    /// Gives every request another status, whether it makes sense or not.
    Babbles,
    /// Panics before it has done anything.
    Panics,
    /// Panics when it has done one half.
    PanicsHalfway,
    /// Runs other requests by the same session.
    Reenters,
    /// Gives back another flight than it was given.
    GivesBackAnother,
    /// Finishes flights when it is polled, the last one first.
    FinishesInReverse,
    /// Panics while it looks at the requests of a flight, and goes on.
    PanicsInside,
}

const TRICKS: [Trick; 13] = [
    Trick::Empties,
    Trick::Grows,
    Trick::Scatters,
    Trick::TakesOutput,
    Trick::Reverses,
    Trick::Lies,
    Trick::Babbles,
    Trick::Panics,
    Trick::PanicsHalfway,
    Trick::Reenters,
    Trick::GivesBackAnother,
    Trick::FinishesInReverse,
    Trick::PanicsInside,
];

#[derive(Default)]
struct Shared {
    armed: AtomicBool,
    session: OnceLock<Arc<Session>>,
    kept: Mutex<Vec<Flight>>,
}

/// The driver `hostile`, which works until it is armed.
fn hostile(trick: Trick, shared: &Arc<Shared>) -> Arc<TestDriver> {
    let shared = shared.clone();
    Arc::new(
        TestDriver::new("hostile").wrap(move |kernel| HostileTransform {
            trick,
            kernel,
            shared: shared.clone(),
        }),
    )
}

struct HostileTransform {
    trick: Trick,
    kernel: Box<dyn Transform>,
    shared: Arc<Shared>,
}

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// Memory that lives for ever.
fn leaked(len: usize) -> &'static mut [u8] {
    Box::leak(vec![0x5a; len].into_boxed_slice())
}

impl HostileTransform {
    fn is_armed(&self) -> bool {
        self.shared.armed.load(Ordering::Relaxed)
    }

    fn again(&self) {
        let Some(session) = self.shared.session.get() else {
            return;
        };
        DEPTH.set(DEPTH.get() + 1);
        if DEPTH.get() < 4 {
            let (mut data, mut tag) = ([1; 40], [0; 16]);
            let request = Request::in_place(&mut data).iv(&[2; 12]).tag(&mut tag);
            let _ = session.process(Direction::Encrypt, &mut [request]);
            if let Ok(ticket) = session.submit(&mut batch(2)) {
                drop(ticket.wait());
            }
        }
        DEPTH.set(DEPTH.get() - 1);
    }
}

impl Transform for HostileTransform {
    fn run(&self, direction: Direction, requests: &mut [Request<'_>]) {
        if !self.is_armed() {
            return self.kernel.run(direction, requests);
        }
        match self.trick {
            Trick::Empties => requests.fill_with(|| Request::in_place(&mut [])),
            Trick::Grows => requests.fill_with(|| Request::in_place(leaked(3000))),
            Trick::Scatters => {
                for request in requests.iter_mut() {
                    let segments = vec![leaked(7), leaked(0), leaked(300)];
                    *request = Request::scatter_in_place(Box::leak(segments.into_boxed_slice()));
                }
            }
            Trick::TakesOutput => requests.fill_with(|| Request::mac(leaked(50))),
            Trick::Reverses => {
                requests.reverse();
                self.kernel.run(direction, requests);
            }
            Trick::Lies => requests.iter_mut().for_each(|r| r.set_status(Status::Done)),
            Trick::Babbles => {
                let statuses = [
                    Status::Pending,
                    Status::BadTag,
                    Status::IvLength,
                    Status::OutputLength,
                    Status::Overlap,
                    Status::Failed,
                    Status::Untouched,
                    Status::Done,
                ];
                for (request, status) in requests.iter_mut().zip(statuses.into_iter().cycle()) {
                    request.set_status(status);
                }
            }
            Trick::Panics => panic!("a panic to order"),
            Trick::PanicsHalfway => {
                let half = requests.len() / 2;
                self.kernel.run(direction, &mut requests[..half]);
                panic!("a panic to order");
            }
            Trick::Reenters => {
                self.again();
                self.kernel.run(direction, requests);
                self.again();
            }
            _ => self.kernel.run(direction, requests),
        }
    }

    fn submit(&self, direction: Direction, mut flight: Flight) -> Result<(), Flight> {
        let mut kept = self.shared.kept.lock().unwrap();
        match self.trick {
            _ if !self.is_armed() => {}
            Trick::GivesBackAnother => {
                kept.push(flight);
                // The first is kept until the second comes, which is kept for the third.
                return match kept.len() {
                    1 => Ok(()),
                    _ => Err(kept.remove(0)),
                };
            }
            Trick::FinishesInReverse => {
                kept.push(flight);
                return Ok(());
            }
            Trick::PanicsInside => {
                let inside = || flight.with_requests(|_| panic!("a panic to order"));
                assert!(catch_unwind(AssertUnwindSafe(inside)).is_err());
            }
            _ => {}
        }
        drop(kept);
        flight.with_requests(|requests| self.run(direction, requests));
        flight.finish();
        Ok(())
    }

    fn poll(&self) {
        while let Some(mut flight) = {
            let mut kept = self.shared.kept.lock().unwrap();
            kept.pop()
        } {
            let direction = flight.direction();
            flight.with_requests(|requests| self.kernel.run(direction, requests));
            flight.finish();
        }
    }

    fn assist(&self) -> bool {
        self.poll();
        false
    }
}

fn batch(requests: usize) -> Batch {
    let mut batch = Batch::new(Direction::Encrypt);
    for i in 0..requests {
        let payload = match i % 4 {
            0 => Payload::InPlace(vec![1; 40 + i]),
            1 => Payload::Copy {
                input: vec![2; 40 + i],
                output: vec![0; 40 + i],
            },
            2 => Payload::ScatterInPlace(vec![vec![3; 10], vec![], vec![4; 30]]),
            _ => Payload::Scatter {
                input: vec![vec![5; 33], vec![6; 7]],
                output: vec![vec![0; 1], vec![0; 39]],
            },
        };
        let request = OwnedRequest::new(payload).iv(vec![9; 12]).aad(vec![1; 5]);
        batch.push(request.tag(vec![0; 16]));
    }
    batch
}

/// Requests of a caller that waits: in place, apart, and scattered.
fn process(session: &Session, direction: Direction) {
    let mut places = [[1u8; 64]; 3];
    let (input, mut output) = (vec![2u8; 100], vec![0u8; 100]);
    let (mut head, mut tail) = ([3u8; 20], [4u8; 30]);
    let mut segments: [&mut [u8]; 2] = [&mut head, &mut tail];
    let mut tags = [[0; 16]; 5];
    let mut tag = tags.iter_mut();
    let mut requests: Vec<_> = places.iter_mut().map(|p| Request::in_place(p)).collect();
    requests.push(Request::new(&input, &mut output));
    requests.push(Request::scatter_in_place(&mut segments));
    let mut requests: Vec<_> = requests
        .into_iter()
        .map(|request| request.iv(&[8; 12]).aad(b"header").tag(tag.next().unwrap()))
        .collect();
    let _ = session.process(direction, &mut requests);
    for request in &requests {
        let _ = (
            request.status(),
            session.error(request),
            request.aad_bytes(),
        );
    }
    drop(requests);
    // The caller's memory is the caller's again.
    places.iter_mut().flatten().for_each(|byte| *byte ^= 1);
    output.push(1);
    head.swap_with_slice(&mut tail[..20]);
    assert_eq!(head.len() + tail.len() + tags.len(), 55);
}

#[test]
fn a_driver_that_lies_harms_nobodys_memory() {
    for trick in TRICKS {
        let shared = Arc::new(Shared::default());
        let framework = Framework::builder(base()).driver(hostile(trick, &shared));
        let framework = framework.build().unwrap();
        let session = framework.session(AEAD, AEAD_KEY).unwrap();
        let session = Arc::new(session.driver("hostile").open().unwrap());
        if trick == Trick::Reenters {
            let _ = shared.session.set(session.clone());
        }
        shared.armed.store(true, Ordering::Relaxed);
        let rounds = if cfg!(miri) { 1 } else { 20 };
        for _ in 0..rounds {
            for direction in DIRECTIONS {
                let _ = catch_unwind(AssertUnwindSafe(|| process(&session, direction)));
            }
            let mut tickets = Vec::new();
            for _ in 0..3 {
                let mut batch = batch(6);
                let submit = || session.submit(&mut batch);
                if let Ok(Ok(ticket)) = catch_unwind(AssertUnwindSafe(submit)) {
                    tickets.push(ticket);
                }
                // What stays in the batch is whole.
                assert!(batch.requests().iter().all(|r| r.len() >= 40), "{trick:?}");
            }
            // One ticket is let go of; the others are waited for in any order.
            tickets.pop();
            for ticket in tickets {
                let landed = catch_unwind(AssertUnwindSafe(|| ticket.wait()));
                let landed = landed.unwrap_or_else(|_| panic!("{trick:?}: no results"));
                for request in landed.into_requests() {
                    assert!(request.len() >= 40 && request.tag.len() == 16, "{trick:?}");
                }
            }
        }
        shared.armed.store(false, Ordering::Relaxed);
        process(&session, Direction::Encrypt);
        let landed = session.submit(&mut batch(4)).unwrap().wait();
        assert!(landed.requests().iter().all(|r| r.status() == Status::Done));
    }
}

#[test]
fn a_flight_that_is_given_back_must_be_the_one_that_was_given() {
    let shared = Arc::new(Shared::default());
    let framework = Framework::builder(base()).driver(hostile(Trick::GivesBackAnother, &shared));
    let framework = framework.build().unwrap();
    let session = framework.session(AEAD, AEAD_KEY).unwrap();
    let session = session.driver("hostile").open().unwrap();
    shared.armed.store(true, Ordering::Relaxed);
    let (mut one, mut other) = (batch(3), batch(5));
    let first = session.submit(&mut one).unwrap();
    let second = session.submit(&mut other).unwrap();
    assert_eq!(
        (one.len(), other.len()),
        (0, 0),
        "each ticket has its batch"
    );
    assert_eq!((first.taken(), second.taken()), (3, 5));
    // The first was dropped by the session, and so was finished or has failed; the second
    // is finished by the driver, which still has it.
    let first = first.wait();
    assert_eq!(first.len(), 3);
    assert_ne!(first.requests()[1].status(), Status::Pending);
    let second = second.wait();
    assert!(second.len() == 5 && second.requests().iter().all(|r| r.status() == Status::Done));
}

/// Requests that no session would let through.
fn odd_requests<'a>(
    len: usize,
    (input, output): (&'a [u8], &'a mut [u8]),
    segments: &'a mut [&'static mut [u8]],
    shape: usize,
) -> Request<'a> {
    match shape {
        0 => Request::in_place(&mut output[..len]),
        1 => Request::new(&input[..len], output),
        2 => Request::new(input, &mut output[..len]),
        3 => Request::mac(&input[..len]),
        4 => Request::scatter_in_place(segments),
        _ => Request::new(&[], output),
    }
}

/// The algorithms whose transforms are tried. Miri, which needs seconds for a block, has one of
/// each kind of transform.
fn tried() -> impl Iterator<Item = &'static Algorithm> {
    const BY_MIRI: [&str; 4] = ["cbc(aes)", "ctr(aes)", "gcm(aes)", "hmac(sha256)"];
    let all = Algorithm::all().iter().copied();
    all.filter(|algorithm| !cfg!(miri) || BY_MIRI.contains(&algorithm.name))
}

#[test]
fn kernels_take_any_request_and_panic_at_worst() {
    let lengths: &[usize] = match cfg!(miri) {
        true => &[17],
        false => &[0, 1, 7, 8, 15, 16, 17, 31, 33, 64, 100, 255, 256, 1000],
    };
    // Lengths of IV, additional data and tag.
    let arounds: &[usize] = if cfg!(miri) {
        &[0, 12]
    } else {
        &[0, 1, 5, 12, 20, 300]
    };
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    for algorithm in tried() {
        let transform = (algorithm.software)(&vec![7; algorithm.key_lengths()[0]]);
        for &len in lengths {
            for shape in 0..6 {
                for &around in arounds {
                    for direction in DIRECTIONS {
                        let input = vec![1; len.max(64)];
                        let mut outputs = [vec![2; len.max(40)], vec![3; len.max(40)]];
                        let (mut tags, aad) = ([vec![0; around], vec![0; around]], vec![4; around]);
                        let iv = &input[..around.min(16)];
                        let mut segments = [[leaked(3), leaked(len)], [leaked(0), leaked(len)]];
                        let memory = outputs.iter_mut().zip(&mut segments).zip(&mut tags);
                        let mut requests: Vec<_> = memory
                            .map(|((output, segments), tag)| {
                                odd_requests(len, (&input, output), segments, shape)
                                    .iv(iv)
                                    .aad(&aad)
                                    .tag(tag)
                            })
                            .collect();
                        // One by itself, then both.
                        for count in [1, 2] {
                            let run = || transform.run(direction, &mut requests[..count]);
                            let _ = catch_unwind(AssertUnwindSafe(run));
                        }
                    }
                }
            }
        }
    }
    std::panic::set_hook(hook);
}

#[test]
fn pieces_of_any_size_and_place_panic_at_worst() {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let lengths: &[usize] = match cfg!(miri) {
        true => &[17],
        false => &[0, 1, 16, 17, 48, 1000],
    };
    let starts: &[usize] = match cfg!(miri) {
        true => &[1, 16, usize::MAX],
        false => &[0, 1, 16, 1 << 20, usize::MAX / 2, usize::MAX],
    };
    for algorithm in tried() {
        let transform = (algorithm.software)(&vec![7; algorithm.key_lengths()[0]]);
        let Some(split) = transform.split() else {
            continue;
        };
        for &len in lengths {
            for &start in starts {
                for direction in DIRECTIONS {
                    let (mut data, mut tag) = (vec![1; len], vec![0; 16]);
                    let mut request = Request::in_place(&mut data).iv(&[1; 16]).tag(&mut tag);
                    let mut states = [PieceState::default(); 3];
                    let _ = catch_unwind(AssertUnwindSafe(|| {
                        split.prepare(direction, &request, &|i| start.wrapping_mul(i), &mut states);
                    }));
                    let _ = catch_unwind(AssertUnwindSafe(|| {
                        split.piece(direction, &[1; 16], start, request.data(), &mut states[1]);
                    }));
                    let _ = catch_unwind(AssertUnwindSafe(|| {
                        split.join(direction, &mut request, &states);
                    }));
                }
            }
        }
    }
    std::panic::set_hook(hook);
}
