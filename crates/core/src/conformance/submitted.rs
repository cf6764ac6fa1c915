//! Requests of a caller that does not wait: each is finished once, in its own place, by the
//! driver itself, and soon.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::case::{Case, Draw};
use crate::algorithm::{Algorithm, Kind};
use crate::selftest::Random;
use crate::{
    Batch, Config, Direction, Driver, Framework, OwnedRequest, Payload, Session, Ticket, Transform,
    Unavailable,
};

/// Requests of the batches that are submitted one after the other.
const BATCHES: [usize; 8] = [1, 4, 64, 2, 1, 16, 33, 3];
/// The longest request.
const LONGEST: usize = 1536;
/// How long a batch may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a session has beside the driver: the kernels.
struct Kernels;

impl Driver for Kernels {
    fn name(&self) -> &str {
        "kernels of the conformance kit"
    }

    fn version(&self) -> String {
        String::new()
    }

    fn priority(&self) -> i32 {
        0
    }

    fn transform(
        &self,
        algorithm: &'static Algorithm,
        key: &[u8],
    ) -> Result<Box<dyn Transform>, Unavailable> {
        Ok((algorithm.software)(key))
    }
}

/// How many requests were run; `Err` names the first that went wrong.
pub(super) fn run(
    driver: &Arc<dyn Driver>,
    algorithm: &'static Algorithm,
    key_len: usize,
) -> Result<usize, String> {
    let mut random = Random(0x5ab5 + key_len as u64);
    let key = random.bytes(key_len);
    let config = Config {
        verify: Some(0),
        ..Config::default()
    };
    let framework = Framework::builder(Arc::new(Kernels))
        .driver(driver.clone())
        .config(config)
        .build()
        .map_err(|error| error.to_string())?;
    let opened = framework.session(algorithm.name, &key);
    let Ok(session) = opened.and_then(|builder| builder.driver(driver.name()).open()) else {
        // The self-test, which is told by itself, has refused it.
        return Ok(0);
    };
    let mut requests = 0;
    for direction in [Direction::Encrypt, Direction::Decrypt] {
        match several(&session, algorithm, &key, direction, &mut random) {
            Ok(run) => requests += run,
            Err(problem) => {
                // A flight that never lands would hold up whoever closes the session.
                std::mem::forget(session);
                return Err(format!("submitted: {problem}"));
            }
        }
    }
    let totals = framework
        .statistics(driver.name(), algorithm.name)
        .map_err(|error| error.to_string())?;
    match totals.retries {
        0 => Ok(requests),
        retries => Err(format!(
            "submitted: {retries} of {requests} requests were forgotten or given up"
        )),
    }
}

/// Batches one after the other, all under way before the first is waited for, as far as there
/// is room.
fn several(
    session: &Session,
    algorithm: &Algorithm,
    key: &[u8],
    direction: Direction,
    random: &mut Random,
) -> Result<usize, String> {
    let mut under_way: Vec<(Ticket, Vec<Case>)> = Vec::new();
    let mut requests = 0;
    for count in BATCHES {
        let mut cases: Vec<Case> = (0..count)
            .map(|_| {
                let len = random.next() as usize % LONGEST;
                let len = len.max(algorithm.min_len).next_multiple_of(algorithm.block);
                let draw = Draw {
                    direction,
                    len,
                    scattered: false,
                };
                Case::new(algorithm, key, draw, random)
            })
            .collect();
        let mut batch = Batch::new(direction);
        for case in &cases {
            batch.push(owned(algorithm, case));
        }
        let started = Instant::now();
        while !batch.is_empty() {
            let ticket = session
                .submit(&mut batch)
                .map_err(|error| error.to_string())?;
            let taken: Vec<Case> = cases.drain(..ticket.taken()).collect();
            match taken.is_empty() {
                false => under_way.push((ticket, taken)),
                true if started.elapsed() > PATIENCE => {
                    return Err(format!("it takes nothing for {PATIENCE:?}"));
                }
                true => land(&mut under_way)?,
            }
        }
        requests += count;
    }
    while !under_way.is_empty() {
        land(&mut under_way)?;
    }
    Ok(requests)
}

fn owned(algorithm: &Algorithm, case: &Case) -> OwnedRequest {
    let (input, tag) = case.given();
    let payload = match algorithm.kind {
        Kind::Mac => Payload::Mac(input),
        _ if input.len().is_multiple_of(3) => Payload::Copy {
            output: vec![0xdd; input.len()],
            input,
        },
        _ => Payload::InPlace(input),
    };
    let request = OwnedRequest::new(payload).iv(case.iv.clone());
    request.aad(case.aad.clone()).tag(tag)
}

/// Waits for the oldest batch and judges it.
fn land(under_way: &mut Vec<(Ticket, Vec<Case>)>) -> Result<(), String> {
    if under_way.is_empty() {
        std::thread::yield_now();
        return Ok(());
    }
    let (mut ticket, cases) = under_way.remove(0);
    let started = Instant::now();
    let batch = loop {
        match ticket.poll() {
            Ok(batch) => break batch,
            Err(_) if started.elapsed() > PATIENCE => {
                let requests = cases.len();
                return Err(format!(
                    "a batch of {requests} requests was not finished within {PATIENCE:?}"
                ));
            }
            Err(back) => ticket = back,
        }
        std::thread::yield_now();
    };
    if batch.len() != cases.len() {
        let (found, given) = (batch.len(), cases.len());
        return Err(format!("of {given} requests {found} came back"));
    }
    for (place, (request, case)) in batch.requests().iter().zip(&cases).enumerate() {
        let found: &[u8] = match &request.payload {
            Payload::InPlace(data) | Payload::Copy { output: data, .. } => data,
            _ => &[],
        };
        case.judge_owned(request.status(), found, &request.tag)
            .map_err(|why| format!("request {} of {}: {why}", place + 1, cases.len()))?;
    }
    Ok(())
}
