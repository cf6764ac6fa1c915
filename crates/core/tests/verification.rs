//! A driver that lies: one in some requests is computed again, and the first difference ends
//! the driver's use.

mod common;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use cipherlane_core::{
    Batch, Config, Direction, Framework, Health, Kind, OwnedRequest, Payload, Request, Session,
    Status,
};
use common::{Fault, Rogue, base};

const ENCRYPT: Direction = Direction::Encrypt;

/// A framework that verifies one in `verify`, with a rogue of that kind.
fn rig(fault: Fault, verify: u64) -> (Framework, Arc<Rogue>) {
    let (rogue, _, _) = Rogue::new(fault);
    let config = Config {
        verify: Some(verify),
        ..Config::default()
    };
    let builder = Framework::builder(base()).driver(rogue.driver());
    (builder.config(config).build().unwrap(), rogue)
}

fn session(framework: &Framework, algorithm: &str, driver: &str) -> Session {
    let key = vec![
        1;
        cipherlane_core::Algorithm::find(algorithm)
            .unwrap()
            .key_lengths()[0]
    ];
    let builder = framework.session(algorithm, &key).unwrap();
    builder.driver(driver).open().unwrap()
}

fn health(framework: &Framework) -> Health {
    let rows = framework.rows();
    let row = rows.into_iter().find(|row| row.driver == "rogue").unwrap();
    row.health
}

/// Encrypts `requests` requests, one at a time.
fn work(session: &Session, requests: usize) -> Vec<u8> {
    let mut data = [0; 100];
    for _ in 0..requests {
        data = [7; 100];
        let request = Request::in_place(&mut data).iv(&[0; 16]);
        session.process(ENCRYPT, &mut [request]).unwrap();
    }
    data.to_vec()
}

#[test]
fn the_first_wrong_result_ends_the_drivers_use_and_is_kept() {
    let (framework, rogue) = rig(Fault::FlipBit, 16);
    let open = session(&framework, "ctr(aes)", "rogue");
    let right = work(&session(&framework, "ctr(aes)", "base"), 1);
    assert_eq!(work(&open, 100), right);
    framework.finish_verification();
    assert_eq!(health(&framework), Health::Working);
    rogue.armed.store(true, Ordering::Relaxed);
    let runs = rogue.runs.load(Ordering::Relaxed);
    // The sixteenth at the latest is picked; what is already served stays served.
    for _ in 0..16 {
        work(&open, 1);
        framework.finish_verification();
    }
    let served = rogue.runs.load(Ordering::Relaxed) - runs;
    assert!((1..=16).contains(&served));
    assert_eq!(
        work(&open, 10),
        right,
        "a session that is open is served by software"
    );
    assert_eq!(rogue.runs.load(Ordering::Relaxed) - runs, served);
    let Health::Quarantined { mismatch } = health(&framework) else {
        panic!("{}", health(&framework))
    };
    assert_eq!(mismatch.algorithm, "ctr(aes)");
    assert_eq!(mismatch.input, [7; 100]);
    assert_eq!(mismatch.expected.output, right);
    let (found, expected) = (&mismatch.found.output, &mismatch.expected.output);
    assert_eq!(found[0] ^ expected[0], 1);
    assert_eq!(found[1..], expected[1..]);
    // For every algorithm, and said to be.
    for row in framework.rows().iter().filter(|r| r.driver == "rogue") {
        let reason = row.not_used_because.as_ref().unwrap().to_string();
        assert!(
            reason.contains("quarantined: encrypting 100 bytes"),
            "{reason}"
        );
    }
    let again = framework.session("gcm(aes)", &[1; 16]).unwrap();
    let error = again.driver("rogue").open().unwrap_err().to_string();
    assert!(
        error.contains("quarantined") && error.contains("wrong byte 0"),
        "{error}"
    );
}

/// What a listing of drivers in JSON writes down of somebody's data.
#[test]
fn data_is_serialised_only_where_the_settings_ask_for_it() {
    for mismatch_data in [None, Some(false), Some(true)] {
        let (rogue, _, _) = Rogue::new(Fault::FlipBit);
        let config = Config {
            verify: Some(1),
            mismatch_data,
            ..Config::default()
        };
        let builder = Framework::builder(base()).driver(rogue.driver());
        let framework = builder.config(config).build().unwrap();
        let open = session(&framework, "ctr(aes)", "rogue");
        rogue.armed.store(true, Ordering::Relaxed);
        let right = work(&open, 1);
        framework.finish_verification();
        let json = serde_json::to_string(&framework.rows()).unwrap();
        assert!(json.contains("wrong byte 0"), "{json}");
        let hex = |bytes: &[u8]| -> String { bytes.iter().map(|b| format!("{b:02x}")).collect() };
        let asked = mismatch_data == Some(true);
        assert_eq!(json.contains(&hex(&[7; 100])), asked, "plaintext");
        assert_eq!(json.contains(&hex(&right[1..])), asked, "ciphertext");
    }
}

#[test]
fn a_wrong_tag_accepted_is_found() {
    let (framework, rogue) = rig(Fault::IgnoreTag, 1);
    // Good when it was admitted, bad now.
    let open = session(&framework, "gcm(aes)", "rogue");
    rogue.armed.store(true, Ordering::Relaxed);
    let (mut data, mut tag) = ([1; 32], [2; 16]);
    let request = Request::in_place(&mut data).iv(&[0; 12]).tag(&mut tag);
    open.process(Direction::Decrypt, &mut [request]).unwrap();
    framework.finish_verification();
    let words = health(&framework).to_string();
    assert!(
        words.contains("decrypting 32 bytes by gcm(aes) it accepted a wrong tag"),
        "{words}"
    );
}

#[test]
fn submitted_and_scattered_requests_and_macs_are_verified_too() {
    for algorithm in ["cbc(aes)", "hmac(sha256)"] {
        for submitted in [true, false] {
            let (framework, rogue) = rig(Fault::FlipBit, 8);
            let open = session(&framework, algorithm, "rogue");
            let is_mac = open.algorithm().kind == Kind::Mac;
            rogue.armed.store(true, Ordering::Relaxed);
            if submitted {
                let mut batch = Batch::new(ENCRYPT);
                for _ in 0..8 {
                    let payload = match is_mac {
                        true => Payload::Mac(vec![5; 64]),
                        false => Payload::ScatterInPlace(vec![vec![5; 33], vec![5; 31]]),
                    };
                    let iv = vec![0; open.algorithm().iv_len];
                    let tag = vec![0; open.tag_len()];
                    batch.push(OwnedRequest::new(payload).iv(iv).tag(tag));
                }
                drop(open.submit(&mut batch).unwrap().wait());
            } else {
                for _ in 0..8 {
                    let (mut one, mut two) = ([5; 33], [5; 31]);
                    let mut tag = vec![0; open.tag_len()];
                    let (mut list, iv) = ([&mut one[..], &mut two[..]], [0; 16]);
                    let whole = [5; 64];
                    let request = match is_mac {
                        true => Request::mac(&whole),
                        false => Request::scatter_in_place(&mut list).iv(&iv),
                    };
                    open.process(ENCRYPT, &mut [request.tag(&mut tag)]).unwrap();
                }
            }
            framework.finish_verification();
            let what = format!("{algorithm} {submitted}: {}", health(&framework));
            assert!(
                matches!(health(&framework), Health::Quarantined { .. }),
                "{what}"
            );
        }
    }
}

#[test]
fn what_a_driver_gives_up_is_no_lie_and_verification_can_be_turned_off() {
    let (framework, rogue) = rig(Fault::GiveUp, 1);
    let open = session(&framework, "ctr(aes)", "rogue");
    rogue.armed.store(true, Ordering::Relaxed);
    work(&open, 3);
    framework.finish_verification();
    assert_eq!(health(&framework), Health::Working);
    let (framework, rogue) = rig(Fault::FlipBit, 0);
    let open = session(&framework, "ctr(aes)", "rogue");
    rogue.armed.store(true, Ordering::Relaxed);
    work(&open, 10_000);
    framework.finish_verification();
    assert_eq!(health(&framework), Health::Working);
}

/// A driver that is right is never found wrong, whatever the threads do.
#[test]
fn a_right_driver_keeps_working() {
    let (framework, _) = rig(Fault::None, 1);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let open = session(&framework, "gcm(aes)", "rogue");
                for round in 0..100u8 {
                    let (mut data, mut tag) = (vec![round; 50], [0; 16]);
                    let mut run = |direction, data: &mut [u8]| {
                        let request = Request::in_place(data).iv(&[round; 12]).tag(&mut tag);
                        let mut requests = [request];
                        let _ = open.process(direction, &mut requests);
                        requests[0].status()
                    };
                    assert_eq!(run(ENCRYPT, &mut data), Status::Done);
                    let spoilt = round % 3 == 0;
                    data[0] ^= u8::from(spoilt);
                    let status = run(Direction::Decrypt, &mut data);
                    assert_eq!(status == Status::BadTag, spoilt);
                }
            });
        }
    });
    framework.finish_verification();
    assert_eq!(health(&framework), Health::Working);
}
