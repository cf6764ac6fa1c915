//! What every driver over a foreign library must do: the same as software.

use cipherlane_core::{Algorithm, Config, Direction, Error, Framework, Kind, Request, Status};

use crate::skip::skip;

/// The framework with default settings, if `driver`'s library is on this machine.
/// Otherwise says loudly that the test proves nothing here.
pub(crate) fn with(driver: &str) -> Option<Framework> {
    let framework = cipherlane_drivers::framework(Config::default()).unwrap();
    let reason = framework
        .rows()
        .into_iter()
        .find(|row| row.driver == driver)
        .expect("the driver is registered")
        .not_used_because
        .map(|reason| reason.to_string())
        .filter(|reason| reason.contains("apt-get install"));
    match reason {
        None => Some(framework),
        Some(reason) => {
            skip(driver, &reason);
            None
        }
    }
}

/// SplitMix64.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    pub(crate) fn bytes(&mut self, len: usize) -> Vec<u8> {
        std::iter::repeat_with(|| self.next() as u8)
            .take(len)
            .collect()
    }
}

/// A request's memory.
#[derive(Clone)]
pub(crate) struct Message {
    pub(crate) iv: Vec<u8>,
    pub(crate) aad: Vec<u8>,
    pub(crate) data: Vec<u8>,
    pub(crate) tag: Vec<u8>,
}

impl Message {
    pub(crate) fn random(
        random: &mut Random,
        algorithm: &Algorithm,
        tag_len: usize,
        len: usize,
    ) -> Self {
        let len = len.max(algorithm.min_len).next_multiple_of(algorithm.block);
        let aad_len = algorithm.aad.fit(random.below(70));
        let mut iv = random.bytes(algorithm.iv_len);
        // Counters that carry, as far as the front of the block.
        if random.below(4) == 0 {
            let from = random.below(iv.len() + 1);
            iv[from..].fill(0xff);
        }
        let iv = algorithm.fit_iv(iv);
        Message {
            iv,
            aad: random.bytes(aad_len),
            data: random.bytes(len),
            tag: vec![0; tag_len],
        }
    }
}

/// Runs all messages as one batch, every other one out of place.
pub(crate) fn process(
    session: &cipherlane_core::Session,
    direction: Direction,
    messages: &mut [Message],
) -> (Result<(), Error>, Vec<Status>) {
    let mac = session.algorithm().kind == Kind::Mac;
    let inputs: Vec<Vec<u8>> = messages.iter().map(|m| m.data.clone()).collect();
    let mut requests: Vec<_> = messages
        .iter_mut()
        .zip(&inputs)
        .enumerate()
        .map(|(i, (message, input))| {
            let request = match i % 2 {
                _ if mac => Request::mac(&message.data),
                0 => Request::in_place(&mut message.data),
                _ => Request::new(input, &mut message.data),
            };
            request
                .iv(&message.iv)
                .aad(&message.aad)
                .tag(&mut message.tag)
        })
        .collect();
    let result = session.process(direction, &mut requests);
    (result, requests.iter().map(Request::status).collect())
}

/// Random batches on several threads at once, both directions, with forged tags among them.
/// The session is dropped on a thread that never used it.
pub(crate) fn check(framework: &Framework, driver: &str, algorithm: &'static Algorithm) {
    for key_len in algorithm.key_lengths() {
        let mut random = Random(key_len as u64);
        let key = random.bytes(key_len);
        let tag_len = match algorithm.tags {
            [] => 0,
            tags => tags[random.below(tags.len())],
        };
        let open = |driver: &str| {
            let builder = framework.session(algorithm.name, &key).unwrap();
            builder.driver(driver).tag_len(tag_len).open().unwrap()
        };
        let (session, software) = (open(driver), open("software"));
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (session, software) = (&session, &software);
                scope.spawn(move || {
                    let mut random = Random(thread * 1000 + key_len as u64);
                    for _ in 0..25 {
                        batch(&mut random, session, software);
                    }
                });
            }
        });
        std::thread::spawn(move || drop(session)).join().unwrap();
    }
    let totals = framework.statistics(driver, algorithm.name).unwrap();
    assert!(
        totals.requests > 0,
        "{}: nothing ran on {driver}",
        algorithm.name
    );
    assert_eq!(
        totals.retries, 0,
        "{}: {driver} gave requests back",
        algorithm.name
    );
}

fn batch(
    random: &mut Random,
    session: &cipherlane_core::Session,
    software: &cipherlane_core::Session,
) {
    let algorithm = session.algorithm();
    let plain: Vec<_> = (0..1 + random.below(40))
        .map(|_| {
            let most = [20, 300, 9000][random.below(3)];
            let len = random.below(most);
            Message::random(random, algorithm, session.tag_len(), len)
        })
        .collect();
    let mut sealed = plain.clone();
    process(session, Direction::Encrypt, &mut sealed).0.unwrap();
    let mut expected = plain.clone();
    process(software, Direction::Encrypt, &mut expected)
        .0
        .unwrap();
    for (got, want) in sealed.iter().zip(&expected) {
        assert!(
            got.data == want.data,
            "{}: {} bytes",
            algorithm.name,
            want.data.len()
        );
        assert!(
            got.tag == want.tag,
            "{}: tag of {} bytes",
            algorithm.name,
            want.data.len()
        );
    }
    let forged = random.below(sealed.len());
    if session.tag_len() > 0 {
        let at = random.below(session.tag_len());
        sealed[forged].tag[at] ^= 1 << random.below(8);
    }
    let (result, statuses) = process(session, Direction::Decrypt, &mut sealed);
    for (i, (got, want)) in sealed.iter().zip(&plain).enumerate() {
        if session.tag_len() > 0 && i == forged {
            assert!(matches!(result, Err(Error::BadTag { .. })), "{result:?}");
            assert_eq!(statuses[i], Status::BadTag);
            let wiped = got.data.iter().all(|&byte| byte == 0);
            assert!(
                algorithm.kind == Kind::Mac || wiped,
                "a forged message was not wiped"
            );
        } else {
            assert_eq!(statuses[i], Status::Done);
            assert!(
                got.data == want.data,
                "{}: {} bytes",
                algorithm.name,
                want.data.len()
            );
        }
    }
}
