//! The `cores` driver through the public API, against `software`.

#![cfg(not(loom))]

mod batches;
mod death;
mod single;
mod tickets;

use std::sync::Arc;

use cipherlane_core::{
    Algorithm, Config, Direction, Framework, Kind, OwnedRequest, Payload, Session,
};
use cipherlane_drivers::cores::{Cores, Fault, Settings};
use cipherlane_drivers::software::Software;

/// Both cores of a small machine, so that workers also compete with the caller.
fn cores(fault: Fault) -> Arc<Cores> {
    let count = std::thread::available_parallelism().map_or(1, usize::from);
    let cores = (0..count.min(3)).collect();
    Arc::new(Cores::with_fault(
        Settings {
            cores,
            ..Settings::default()
        },
        fault,
    ))
}

fn framework_of(cores: Arc<Cores>) -> Framework {
    let builder = Framework::builder(Arc::new(Software)).driver(cores);
    builder.config(Config::default()).build().unwrap()
}

fn framework() -> Framework {
    framework_of(cores(Fault::default()))
}

fn session(
    framework: &Framework,
    algorithm: &Algorithm,
    key_len: usize,
    driver: &str,
) -> Arc<Session> {
    let key = Random(key_len as u64).bytes(key_len);
    let builder = framework.session(algorithm.name, &key).unwrap();
    Arc::new(builder.driver(driver).open().unwrap())
}

/// A request of the algorithm with `len` bytes, cut down to what it takes.
fn request(algorithm: &Algorithm, len: usize, copy: bool, random: &mut Random) -> OwnedRequest {
    let len = len.max(algorithm.min_len) / algorithm.block * algorithm.block;
    let data = random.bytes(len);
    let payload = match (algorithm.kind, copy) {
        (Kind::Mac, _) => Payload::Mac(data),
        (_, false) => Payload::InPlace(data),
        (_, true) => Payload::Copy {
            output: vec![0; len],
            input: data,
        },
    };
    OwnedRequest::new(payload)
        .iv(algorithm.fit_iv(random.bytes(algorithm.iv_len)))
        .aad(random.bytes(algorithm.aad.fit(len % 40)))
        .tag(vec![0; algorithm.tag_len()])
}

/// A second request like the first.
fn same(request: &OwnedRequest) -> OwnedRequest {
    let payload = match &request.payload {
        Payload::InPlace(data) => Payload::InPlace(data.clone()),
        Payload::Mac(data) => Payload::Mac(data.clone()),
        Payload::Copy { input, output } => Payload::Copy {
            input: input.clone(),
            output: output.clone(),
        },
        other => panic!("not made by these tests: {other:?}"),
    };
    OwnedRequest::new(payload)
        .iv(request.iv.clone())
        .aad(request.aad.clone())
        .tag(request.tag.clone())
}

/// What to decrypt to get `request` back.
fn turned(request: &OwnedRequest) -> OwnedRequest {
    let mut back = same(request);
    if let Payload::Copy { input, output } = &mut back.payload {
        std::mem::swap(input, output);
        output.fill(0);
    }
    back
}

fn output(request: &OwnedRequest) -> &[u8] {
    match &request.payload {
        Payload::InPlace(data) | Payload::Mac(data) => data,
        Payload::Copy { output, .. } => output,
        other => panic!("not made by these tests: {other:?}"),
    }
}

/// Runs owned requests while the caller waits.
fn process(
    session: &Session,
    direction: Direction,
    requests: &mut [OwnedRequest],
) -> Result<(), cipherlane_core::Error> {
    let mut borrowed: Vec<_> = requests.iter_mut().map(borrow).collect();
    session.process(direction, &mut borrowed)
}

fn borrow(request: &mut OwnedRequest) -> cipherlane_core::Request<'_> {
    let borrowed = match &mut request.payload {
        Payload::InPlace(data) => cipherlane_core::Request::in_place(data),
        Payload::Mac(data) => cipherlane_core::Request::mac(data),
        Payload::Copy { input, output } => cipherlane_core::Request::new(input, output),
        other => panic!("not made by these tests: {other:?}"),
    };
    borrowed
        .iv(&request.iv)
        .aad(&request.aad)
        .tag(&mut request.tag)
}

fn assert_same(algorithm: &Algorithm, found: &[OwnedRequest], expected: &[OwnedRequest]) {
    assert_eq!(found.len(), expected.len());
    for (i, (found, expected)) in found.iter().zip(expected).enumerate() {
        let what = format!("{}: request {i}, {} bytes", algorithm.name, found.len());
        assert!(output(found) == output(expected), "{what}: output");
        assert!(found.tag == expected.tag, "{what}: tag");
    }
}

/// SplitMix64: the same data in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        let words = std::iter::repeat_with(|| self.next().to_le_bytes());
        words.flatten().take(len).collect()
    }
}
