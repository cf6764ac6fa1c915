//! One request at a time, small and large.

use cipherlane_core::{Algorithm, Direction, Kind, Load, OwnedRequest, Session, Status};
use cipherlane_core::{Driver, Payload};
use cipherlane_drivers::cores::Fault;

use super::{Random, cores, framework, framework_of, process, request, same, session, turned};
use super::{assert_same, borrow, output};

const SIZES: [usize; 12] = [
    0,
    1,
    17,
    4095,
    8192,
    12_345,
    16_384,
    65_536,
    65_553,
    200_001,
    (1 << 20) - 1,
    (8 << 20) + 13,
];

/// Encrypts by `driver`; both ways compared with software.
fn both_ways(algorithm: &Algorithm, sessions: [&Session; 2], requests: Vec<OwnedRequest>) {
    let [cores, software] = sessions;
    let mut expected: Vec<_> = requests.iter().map(same).collect();
    let mut found = requests;
    process(software, Direction::Encrypt, &mut expected).unwrap();
    process(cores, Direction::Encrypt, &mut found).unwrap();
    assert_same(algorithm, &found, &expected);
    let mut back: Vec<_> = found.iter().map(turned).collect();
    let mut expected: Vec<_> = found.iter().map(turned).collect();
    process(software, Direction::Decrypt, &mut expected).unwrap();
    process(cores, Direction::Decrypt, &mut back).unwrap();
    assert_same(algorithm, &back, &expected);
}

#[test]
fn every_algorithm_at_every_size_is_as_software() {
    let framework = framework();
    let mut random = Random(1);
    for algorithm in Algorithm::all() {
        for key_len in algorithm.key_lengths() {
            let cores = session(&framework, algorithm, key_len, "cores");
            let software = session(&framework, algorithm, key_len, "software");
            for size in SIZES {
                for copy in [false, true] {
                    let one = vec![request(algorithm, size, copy, &mut random)];
                    both_ways(algorithm, [&cores, &software], one);
                }
            }
        }
    }
}

#[test]
fn lengths_around_the_cuts() {
    let framework = framework();
    let mut random = Random(2);
    for name in ["ctr(aes)", "xts(aes)", "gcm(aes)", "cbc(aes)"] {
        let algorithm = Algorithm::find(name).unwrap();
        let key_len = algorithm.key_lengths()[0];
        let cores = session(&framework, algorithm, key_len, "cores");
        let software = session(&framework, algorithm, key_len, "software");
        for base in [8192_usize, 16_384, 65_536, 1 << 18] {
            for off in [-33_isize, -16, -1, 0, 1, 15, 16, 31, 33, 511, 513] {
                let size = base.checked_add_signed(off).unwrap();
                let one = vec![request(algorithm, size, off % 2 == 0, &mut random)];
                both_ways(algorithm, [&cores, &software], one);
            }
        }
    }
}

#[test]
fn a_forged_message_is_wiped() {
    let framework = framework();
    let mut random = Random(3);
    for algorithm in Algorithm::all() {
        if algorithm.kind == Kind::Cipher {
            continue;
        }
        let cores = session(&framework, algorithm, algorithm.key_lengths()[0], "cores");
        for size in [100, 65_536, 3 << 20] {
            for copy in [false, true] {
                let mut sealed = vec![request(algorithm, size, copy, &mut random)];
                process(&cores, Direction::Encrypt, &mut sealed).unwrap();
                let mut forged = turned(&sealed[0]);
                match &mut forged.payload {
                    Payload::InPlace(data) | Payload::Mac(data) => {
                        let last = data.len() - 1;
                        data[last] ^= 1;
                    }
                    Payload::Copy { input, output } => {
                        input[0] ^= 0x80;
                        output.fill(0x55);
                    }
                    other => panic!("{other:?}"),
                }
                let mut borrowed = [borrow(&mut forged)];
                cores
                    .process(Direction::Decrypt, &mut borrowed)
                    .unwrap_err();
                assert_eq!(borrowed[0].status(), Status::BadTag, "{}", algorithm.name);
                if algorithm.kind != Kind::Mac {
                    assert!(output(&forged).iter().all(|&b| b == 0));
                }
            }
        }
    }
}

#[test]
fn without_cores_it_says_what_to_do() {
    let framework = cipherlane_drivers::framework(cipherlane_core::Config::default()).unwrap();
    let rows = framework.rows();
    let row = rows.iter().find(|r| r.driver == "cores").unwrap();
    let reason = row.not_used_because.as_ref().unwrap().to_string();
    assert!(
        reason.contains("--cores") && reason.contains("CIPHERLANE_CORES"),
        "{reason}"
    );
}

#[test]
fn a_priority_that_is_not_granted_is_a_note() {
    use cipherlane_drivers::cores::{Cores, Settings};
    let cores = std::sync::Arc::new(Cores::with_fault(
        Settings {
            cores: vec![0],
            realtime: Some(1),
            ..Settings::default()
        },
        Fault::default(),
    ));
    let framework = framework_of(cores.clone());
    let algorithm = Algorithm::find("ctr(aes)").unwrap();
    let session = session(&framework, algorithm, 16, "cores");
    let mut one = vec![request(algorithm, 1 << 20, false, &mut Random(4))];
    process(&session, Direction::Encrypt, &mut one).unwrap();
    // Whether it is granted depends on who runs the test; a refusal names the remedy.
    for note in cores.notes() {
        assert!(note.contains("RLIMIT_RTPRIO"), "{note}");
    }
}

#[test]
fn load_counts_what_is_queued() {
    let driver = cores(Fault::default());
    assert_eq!(driver.load(), Load::default());
    let framework = framework_of(driver.clone());
    let algorithm = Algorithm::find("ctr(aes)").unwrap();
    let session = session(&framework, algorithm, 16, "cores");
    let mut one = vec![request(algorithm, 1 << 20, false, &mut Random(4))];
    process(&session, Direction::Encrypt, &mut one).unwrap();
    assert_eq!(driver.load().queued_bytes, 0);
}
