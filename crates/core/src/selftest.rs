//! Admission of a driver, an algorithm at a time: known answers, a corrupted bit that
//! must be noticed, and a differential run against the naive reference.

use crate::algorithm::{Algorithm, Kind, KnownAnswer, Sample};
use crate::request::{Request, Status};
use crate::{Clock, Direction, Driver, Transform, Unavailable};

/// Payload sizes of the differential run: around blocks, lanes and a packet.
const SIZES: [usize; 9] = [0, 1, 15, 16, 17, 63, 64, 257, 1400];

/// Bytes of the request that must be cut well; no multiple of a block.
const LARGE: usize = (640 << 10) + 27;

/// Bytes of a small request.
const SMALL: usize = 64;

/// Small requests in a batch.
const SOME: usize = 8;

/// Why a self-test did not pass.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The driver took no key.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    /// It was wrong; in words, with the case.
    #[error("{0}")]
    Wrong(String),
}

impl From<String> for Failure {
    fn from(problem: String) -> Self {
        Failure::Wrong(problem)
    }
}

impl Failure {
    /// The same with the case that it happened in.
    fn within(self, case: impl std::fmt::Display) -> Self {
        match self {
            Failure::Wrong(problem) => Failure::Wrong(format!("self-test: {case}: {problem}")),
            unavailable => unavailable,
        }
    }
}

/// What a device was seen to take, in nanoseconds: for a batch, for each request in it, and
/// for each byte.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FirstSight {
    batch: f32,
    request: f32,
    byte: f32,
}

impl FirstSight {
    /// A batch.
    pub(crate) fn expected(&self, requests: usize, bytes: usize) -> f32 {
        self.batch + self.request * requests as f32 + self.byte * bytes as f32
    }
}

/// Times a driver that was found to be right, before it is trusted with anything: on a small
/// request, on some of them, and on the largest that it takes, the best of a few.
pub(crate) fn first_sight(
    driver: &dyn Driver,
    algorithm: &'static Algorithm,
    clock: &Clock,
) -> Result<FirstSight, Failure> {
    let mut random = Random(0xf125);
    let mut lengths = algorithm.key_lengths().into_iter();
    let taken = lengths.find(|&len| driver.takes_key(algorithm, len));
    let key = random.bytes(taken.ok_or_else(no_usual_key)?);
    let transform = driver.transform(algorithm, &key)?;
    let iv = algorithm.fit_iv(random.bytes(algorithm.iv_len));
    let aad = random.bytes(algorithm.aad.fit(8));
    let tag_len = algorithm.tag_len();
    let time = |requests: usize, size: usize| {
        let size = size / algorithm.block * algorithm.block;
        let mut data = vec![0; size * requests];
        let mut tags = vec![0; tag_len.max(1) * requests];
        let mut batch: Vec<Request<'_>> = data
            .chunks_exact_mut(size)
            .zip(tags.chunks_exact_mut(tag_len.max(1)))
            .map(|(data, tag)| {
                let request = match algorithm.kind {
                    Kind::Mac => Request::mac(data),
                    _ => Request::in_place(data),
                };
                request.iv(&iv).aad(&aad).tag(&mut tag[..tag_len])
            })
            .collect();
        let mut best = f32::INFINITY;
        for _ in 0..3 {
            batch.iter_mut().for_each(|r| r.set_status(Status::Pending));
            let before = clock.now();
            transform.run(Direction::Encrypt, &mut batch);
            best = best.min((clock.now() - before).as_nanos() as f32);
            if batch.iter().any(|r| r.status() != Status::Done) {
                return Err(format!(
                    "self-test: it gave up {requests} x {size} bytes when it was timed"
                ));
            }
        }
        Ok(best)
    };
    let (one, some) = (time(1, SMALL)?, time(SOME, SMALL)?);
    let mut large = LARGE.min(transform.max_len());
    let long = loop {
        match time(1, large) {
            Ok(long) => break long,
            // It may have no room for one so large.
            Err(_) if large > 4 * SMALL => large /= 2,
            Err(problem) => return Err(problem.into()),
        }
    };
    let request = (some - one).max(0.0) / (SOME - 1) as f32;
    Ok(FirstSight {
        batch: (one - request).max(0.0),
        request,
        byte: (long - one).max(0.0) / large as f32,
    })
}

/// Whether there is a key length that a driver can be tested with.
pub(crate) fn takes_a_key(driver: &dyn Driver, algorithm: &Algorithm) -> Result<(), Unavailable> {
    let mut lengths = algorithm.key_lengths().into_iter();
    match lengths.any(|key_len| driver.takes_key(algorithm, key_len)) {
        true => Ok(()),
        false => Err(no_usual_key()),
    }
}

fn no_usual_key() -> Unavailable {
    Unavailable::KeyRefused("it takes none of the usual key lengths".to_owned())
}

/// Runs the self-test. `Err` names the case that failed, for the user.
pub(crate) fn run(driver: &dyn Driver, algorithm: &'static Algorithm) -> Result<(), Failure> {
    let taken = |key_len: &usize| driver.takes_key(algorithm, *key_len);
    takes_a_key(driver, algorithm)?;
    for answer in algorithm.known_answers {
        if !taken(&(answer.key.len() / 2)) {
            continue;
        }
        known_answer(driver, algorithm, answer).map_err(|failure| failure.within(answer.source))?;
        // Miri, which interprets every instruction, is for the paths and not for the arithmetic.
        if cfg!(miri) {
            return Ok(());
        }
    }
    for (i, key_len) in algorithm.key_lengths().into_iter().enumerate() {
        if !taken(&key_len) {
            continue;
        }
        differential(driver, algorithm, key_len, 0x5eed + i as u64).map_err(|failure| {
            failure.within(format_args!("{} key bits", algorithm.key_bits(key_len)))
        })?;
    }
    Ok(())
}

/// Input, and the output and tag that it should give.
struct Case {
    iv: Vec<u8>,
    aad: Vec<u8>,
    plaintext: Vec<u8>,
    ciphertext: Vec<u8>,
    tag: Vec<u8>,
}

fn known_answer(
    driver: &dyn Driver,
    algorithm: &'static Algorithm,
    answer: &KnownAnswer,
) -> Result<(), Failure> {
    let transform = driver.transform(algorithm, &hex(answer.key))?;
    let case = Case {
        iv: hex(answer.iv),
        aad: hex(answer.aad),
        plaintext: hex(answer.plaintext),
        ciphertext: hex(answer.ciphertext),
        tag: hex(answer.tag),
    };
    check(&*transform, algorithm, &case)?;
    Ok(notices_corruption(&*transform, algorithm, &case)?)
}

/// Both directions, in place and out of place.
fn check(transform: &dyn Transform, algorithm: &Algorithm, case: &Case) -> Result<(), String> {
    for direction in [Direction::Encrypt, Direction::Decrypt] {
        for in_place in [true, false] {
            let (status, output, tag) = once(transform, algorithm, direction, case, in_place);
            let way = match direction {
                Direction::Encrypt => "encrypting",
                Direction::Decrypt => "decrypting",
            };
            let want = match direction {
                Direction::Encrypt => &case.ciphertext,
                Direction::Decrypt => &case.plaintext,
            };
            let right = algorithm.kind == Kind::Mac || output == *want;
            if status != Status::Done || !right || tag != case.tag {
                let outcome = match status {
                    Status::Untouched | Status::Pending => "gave no result",
                    Status::Failed => "failed",
                    _ => "gave a wrong result",
                };
                return Err(format!(
                    "{way} {} bytes {} {outcome}",
                    case.plaintext.len(),
                    if in_place { "in place" } else { "out of place" },
                ));
            }
        }
    }
    Ok(())
}

/// A test that cannot fail proves nothing: one flipped bit must show.
fn notices_corruption(
    transform: &dyn Transform,
    algorithm: &Algorithm,
    case: &Case,
) -> Result<(), String> {
    let mut bad = Case {
        iv: case.iv.clone(),
        aad: case.aad.clone(),
        plaintext: case.plaintext.clone(),
        ciphertext: case.ciphertext.clone(),
        tag: case.tag.clone(),
    };
    let at = case.plaintext.len() / 2;
    bad.plaintext[at] ^= 0x10;
    if check(transform, algorithm, &bad).is_ok() {
        return Err("a flipped bit of the input went unnoticed".to_owned());
    }
    if algorithm.kind == Kind::Cipher {
        return Ok(());
    }
    bad.plaintext[at] ^= 0x10;
    bad.tag[0] ^= 0x01;
    let (status, output, _) = once(transform, algorithm, Direction::Decrypt, &bad, true);
    match status {
        Status::BadTag if output.iter().all(|&b| b == 0) || algorithm.kind == Kind::Mac => Ok(()),
        Status::BadTag => Err("the output of a forged message was not wiped".to_owned()),
        _ => Err("a flipped bit of the tag went unnoticed".to_owned()),
    }
}

/// Runs one request: status, output, and tag (the given one when decrypting).
fn once(
    transform: &dyn Transform,
    algorithm: &Algorithm,
    direction: Direction,
    case: &Case,
    in_place: bool,
) -> (Status, Vec<u8>, Vec<u8>) {
    let input = match (algorithm.kind, direction) {
        (Kind::Mac, _) | (_, Direction::Encrypt) => &case.plaintext,
        (_, Direction::Decrypt) => &case.ciphertext,
    };
    let mut tag = match direction {
        Direction::Encrypt => vec![0; case.tag.len()],
        Direction::Decrypt => case.tag.clone(),
    };
    let mut output = if in_place {
        input.clone()
    } else {
        vec![0xa5; input.len()]
    };
    let mut requests = [match (algorithm.kind, in_place) {
        (Kind::Mac, _) => Request::mac(input),
        (_, true) => Request::in_place(&mut output),
        (_, false) => Request::new(input, &mut output),
    }
    .iv(&case.iv)
    .aad(&case.aad)
    .tag(&mut tag)];
    transform.run(direction, &mut requests);
    let status = requests[0].status();
    (status, output, tag)
}

fn differential(
    driver: &dyn Driver,
    algorithm: &'static Algorithm,
    key_len: usize,
    seed: u64,
) -> Result<(), Failure> {
    let mut random = Random(seed);
    let key = random.bytes(key_len);
    let transform = driver.transform(algorithm, &key)?;
    let sizes = SIZES
        .iter()
        .filter(|&&size| size % algorithm.block == 0 && size >= algorithm.min_len);
    let cases: Vec<Case> = sizes
        .map(|&size| {
            let iv = algorithm.fit_iv(random.bytes(algorithm.iv_len));
            let aad = random.bytes(algorithm.aad.fit(size % 29));
            let plaintext = random.bytes(size);
            let direction = Direction::Encrypt;
            let sample = Sample {
                direction,
                key: &key,
                iv: &iv,
                aad: &aad,
                data: &plaintext,
            };
            let (ciphertext, tag) = (algorithm.reference)(sample);
            Case {
                iv,
                aad,
                plaintext,
                ciphertext,
                tag,
            }
        })
        .collect();
    for case in &cases {
        check(&*transform, algorithm, case)?;
    }
    batch(&*transform, algorithm, &cases)?;
    Ok(large(&*transform, algorithm, &key, &mut random)?)
}

/// A request large enough to be cut into pieces, against the kernel, which the reference
/// has judged on smaller ones.
fn large(
    transform: &dyn Transform,
    algorithm: &'static Algorithm,
    key: &[u8],
    random: &mut Random,
) -> Result<(), String> {
    let mut case = Case {
        iv: algorithm.fit_iv(random.bytes(algorithm.iv_len)),
        aad: random.bytes(algorithm.aad.fit(8)),
        plaintext: random.bytes(LARGE / algorithm.block * algorithm.block),
        ciphertext: Vec::new(),
        tag: vec![0; algorithm.tag_len()],
    };
    let kernel = (algorithm.software)(key);
    let (_, ciphertext, tag) = once(&*kernel, algorithm, Direction::Encrypt, &case, true);
    (case.ciphertext, case.tag) = (ciphertext, tag);
    match once(transform, algorithm, Direction::Encrypt, &case, true) {
        // Too large for the driver: it says so, and the session runs it in software.
        (Status::Untouched, ..) => Ok(()),
        _ => check(transform, algorithm, &case),
    }
}

/// All cases in one batch, which kernels and drivers may run side by side.
fn batch(transform: &dyn Transform, algorithm: &Algorithm, cases: &[Case]) -> Result<(), String> {
    if algorithm.kind == Kind::Mac {
        return Ok(());
    }
    let mut data: Vec<_> = cases
        .iter()
        .map(|c| (c.plaintext.clone(), c.tag.clone()))
        .collect();
    let mut requests: Vec<_> = data
        .iter_mut()
        .zip(cases)
        .map(|((data, tag), c)| Request::in_place(data).iv(&c.iv).aad(&c.aad).tag(tag))
        .collect();
    transform.run(Direction::Encrypt, &mut requests);
    let done = requests.iter().all(|r| r.status() == Status::Done);
    drop(requests);
    let right = data
        .iter()
        .zip(cases)
        .all(|((d, t), c)| *d == c.ciphertext && *t == c.tag);
    match done && right {
        true => Ok(()),
        false => Err("requests of one batch gave wrong results".to_owned()),
    }
}

/// SplitMix64: the same test data on every machine. Not for keys that protect anything.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn bytes(&mut self, len: usize) -> Vec<u8> {
        let words = std::iter::repeat_with(|| self.next().to_le_bytes());
        words.flatten().take(len).collect()
    }
}

fn hex(text: &str) -> Vec<u8> {
    let digit = |c: u8| {
        (c as char)
            .to_digit(16)
            .expect("known answers are hexadecimal") as u8
    };
    text.as_bytes()
        .chunks_exact(2)
        .map(|pair| digit(pair[0]) << 4 | digit(pair[1]))
        .collect()
}
