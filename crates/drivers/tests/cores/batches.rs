//! Batches, mixed in size, from one caller and from several.

use std::sync::Arc;

use cipherlane_core::{Algorithm, Direction, OwnedRequest, Session};

use super::{Random, assert_same, framework, process, request, same, session};

fn mixed(algorithm: &Algorithm, count: usize, random: &mut Random) -> Vec<OwnedRequest> {
    (0..count)
        .map(|i| {
            let size = match random.below(20) {
                0 => random.below(600_000),
                1..4 => random.below(20_000),
                _ => random.below(1500),
            };
            request(algorithm, size, i % 3 == 0, random)
        })
        .collect()
}

fn compare(algorithm: &Algorithm, sessions: [&Session; 2], requests: Vec<OwnedRequest>) {
    let [cores, software] = sessions;
    let mut expected: Vec<_> = requests.iter().map(same).collect();
    let mut found = requests;
    for direction in [Direction::Encrypt, Direction::Decrypt] {
        if direction == Direction::Decrypt {
            expected = expected.iter().map(super::turned).collect();
            found = found.iter().map(super::turned).collect();
        }
        process(software, direction, &mut expected).unwrap();
        process(cores, direction, &mut found).unwrap();
        assert_same(algorithm, &found, &expected);
    }
}

#[test]
fn mixed_batches_of_every_algorithm() {
    let framework = framework();
    let mut random = Random(5);
    for algorithm in Algorithm::all() {
        let key_len = algorithm.key_lengths()[0];
        let cores = session(&framework, algorithm, key_len, "cores");
        let software = session(&framework, algorithm, key_len, "software");
        for count in [1, 2, 7, 8, 16, 17, 64, 100, 200] {
            let batch = mixed(algorithm, count, &mut random);
            compare(algorithm, [&cores, &software], batch);
        }
    }
}

#[test]
fn many_large_requests_in_one_batch() {
    let framework = framework();
    let mut random = Random(6);
    for name in ["gcm(aes)", "cbc(aes)", "rfc7539(chacha20,poly1305)"] {
        let algorithm = Algorithm::find(name).unwrap();
        let key_len = algorithm.key_lengths()[0];
        let cores = session(&framework, algorithm, key_len, "cores");
        let software = session(&framework, algorithm, key_len, "software");
        for count in [3, 30, 90, 150] {
            let batch = (0..count)
                .map(|i| {
                    let size = if i % 2 == 0 { 100_000 } else { 50 };
                    request(algorithm, size, false, &mut random)
                })
                .collect();
            compare(algorithm, [&cores, &software], batch);
        }
    }
}

#[test]
fn callers_share_a_session() {
    let framework = framework();
    let algorithm = Algorithm::find("gcm(aes)").unwrap();
    let cores = session(&framework, algorithm, 16, "cores");
    let software = session(&framework, algorithm, 16, "software");
    std::thread::scope(|scope| {
        for seed in 0..6 {
            let (cores, software) = (Arc::clone(&cores), Arc::clone(&software));
            scope.spawn(move || {
                let mut random = Random(100 + seed);
                for round in 0..30 {
                    let batch = match round % 3 {
                        0 => vec![request(algorithm, random.below(700_000), true, &mut random)],
                        _ => {
                            let count = 1 + random.below(60);
                            mixed(algorithm, count, &mut random)
                        }
                    };
                    compare(algorithm, [&cores, &software], batch);
                }
            });
        }
    });
}
