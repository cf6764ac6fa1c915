//! Good days: right results in every layout, the model's times, one doorbell a batch.

use cipherlane_core::{
    Algorithm, Batch, Direction, Health, OwnedRequest, Payload, Request, SelfTest, Status,
};
use cipherlane_drivers::dma::{Settings, model};

use crate::rig::{bytes, device, encrypted, rig, rig_with};

const ENCRYPT: Direction = Direction::Encrypt;

#[test]
fn every_preset_passes_the_self_test_of_what_it_offers() {
    for preset in model::Settings::presets() {
        let device = model::Settings::preset(preset).unwrap();
        let offered = device.algorithms.clone();
        let rig = rig(device);
        for row in rig
            .framework
            .rows()
            .iter()
            .filter(|r| r.driver == "dma:test")
        {
            let expected = match offered.iter().any(|name| name == row.algorithm) {
                true => SelfTest::Passed,
                false => SelfTest::NotRun,
            };
            assert_eq!(
                row.self_test, expected,
                "{preset} {}: {row:?}",
                row.algorithm
            );
            assert!(row.notes[0].contains("model"), "{:?}", row.notes);
            let reason = row.not_used_because.as_ref();
            assert!(reason.is_some(), "a model is not chosen unasked");
        }
        assert_eq!(rig.driver.incidents().resets, 0, "{preset}");
        assert_eq!(rig.driver.incidents().spurious_completions, 0, "{preset}");
    }
}

#[test]
fn scatter_lists_reach_an_engine_with_rules() {
    let rig = rig(device(|d| {
        (d.rules.alignment, d.rules.block, d.rules.max_segment) = (4, 16, 256);
    }));
    let (key, iv) = (bytes(1, 16), bytes(2, 16));
    let session = rig.session("cbc(aes)", &key);
    for cuts in [
        &[][..],
        &[7],
        &[16, 1000],
        &[1, 2, 3, 500],
        &[0, 0, 777, 1024],
    ] {
        let data = bytes(3, 1040);
        let (want, _) = encrypted("cbc(aes)", &key, &iv, &[], &data);
        let mut bounds = vec![0];
        bounds.extend(cuts);
        bounds.push(data.len());
        let input: Vec<&[u8]> = bounds.windows(2).map(|w| &data[w[0]..w[1]]).collect();
        let mut memory = vec![0; data.len()];
        let (head, tail) = memory.split_at_mut(333);
        session
            .process(
                ENCRYPT,
                &mut [Request::scatter(&input, &mut [head, tail]).iv(&iv)],
            )
            .unwrap();
        assert!(memory == want, "{cuts:?}");
        let mut parts: Vec<Vec<u8>> = input.iter().map(|part| part.to_vec()).collect();
        let mut slices: Vec<&mut [u8]> = parts.iter_mut().map(Vec::as_mut_slice).collect();
        let request = Request::scatter_in_place(&mut slices).iv(&iv);
        session.process(ENCRYPT, &mut [request]).unwrap();
        assert!(parts.concat() == want, "{cuts:?} in place");
    }
    assert_eq!(rig.retries("cbc(aes)"), 0);
}

#[test]
fn a_waiting_caller_takes_the_time_of_the_model() {
    let device = model::Settings::preset("cyclone-v-soc-aes").unwrap();
    let rig = rig(device.clone());
    let session = rig.session("cbc(aes)", &bytes(1, 16));
    let (input, iv) = (bytes(2, 8192), [0; 16]);
    let mut output = vec![0; input.len()];
    let mut once = || {
        let request = Request::new(&input, &mut output).iv(&iv);
        rig.timed(|| session.process(ENCRYPT, &mut [request]).unwrap())
    };
    once();
    // 400 Mbit/s at 20 ns per byte, and 100.7 us per request.
    let expected = 100_700.0 + 20.0 * 8192.0;
    let found = once() as f64;
    assert!((found / expected - 1.0).abs() < 0.05, "{found} {expected}");
}

#[test]
fn a_batch_rings_once_and_overlaps_in_the_engines() {
    let rig = rig(device(|d| d.host.doorbell_ns = 1e6));
    let session = rig.session("ctr(aes)", &bytes(1, 16));
    let mut data = vec![bytes(2, 4096); 64];
    let mut process = |requests: usize| {
        let mut batch: Vec<_> = data[..requests]
            .iter_mut()
            .map(|d| Request::in_place(d).iv(&[0; 16]))
            .collect();
        rig.timed(|| session.process(ENCRYPT, &mut batch).unwrap())
    };
    process(1);
    let (one, all) = (process(1), process(64));
    assert!(one > 1_000_000 && all < 2_000_000, "{one} {all}");
}

#[test]
fn submitted_batches_land_in_virtual_time() {
    let rig = rig(device(|_| {}));
    let key = bytes(1, 16);
    let session = rig.session("gcm(aes)", &key);
    let plain = bytes(5, 1000);
    let batch = |n: u8| {
        let mut batch = Batch::new(ENCRYPT);
        for i in 0..n {
            let payload = match i % 2 {
                0 => Payload::InPlace(plain.clone()),
                _ => Payload::Copy {
                    input: plain.clone(),
                    output: vec![0; plain.len()],
                },
            };
            let request = OwnedRequest::new(payload).iv(vec![i; 12]).aad(vec![1; 20]);
            batch.push(request.tag(vec![0; 16]));
        }
        batch
    };
    let tickets: Vec<_> = [1, 7, 64, 3]
        .into_iter()
        .map(|n| {
            let mut batch = batch(n);
            let ticket = session.submit(&mut batch).unwrap();
            assert_eq!((ticket.taken(), batch.len()), (usize::from(n), 0));
            ticket
        })
        .collect();
    assert!(tickets.iter().all(|ticket| !ticket.is_done()));
    for ticket in tickets {
        for request in ticket.wait().requests() {
            assert_eq!(request.status(), Status::Done);
            let (want, tag) = encrypted("gcm(aes)", &key, &request.iv, &request.aad, &plain);
            let (Payload::InPlace(found) | Payload::Copy { output: found, .. }) = &request.payload
            else {
                panic!()
            };
            assert!(*found == want && request.tag == tag);
        }
    }
    assert_eq!(rig.retries("gcm(aes)"), 0);
}

/// In waves: the pool holds three of them at a time, and never one that is larger than it.
#[test]
fn a_batch_larger_than_the_pool_is_not_lost() {
    let settings = Settings {
        pool_kib: 128,
        ..Settings::default()
    };
    let rig = rig_with(device(|d| d.rules.bounce_all = true), settings);
    let key = bytes(1, 16);
    let sizes: Vec<usize> = (0..40).map(|i| [16_000, 20, 80_000, 1000][i % 4]).collect();
    let session = rig.session("ctr(aes)", &key);
    let judge = |size: usize, found: &[u8]| {
        let (want, _) = encrypted("ctr(aes)", &key, &[0; 16], &[], &bytes(3, size));
        assert!(found == want, "{size}");
    };
    let mut data: Vec<_> = sizes.iter().map(|&n| bytes(3, n)).collect();
    let mut requests: Vec<_> = data
        .iter_mut()
        .map(|d| Request::in_place(d).iv(&[0; 16]))
        .collect();
    session.process(ENCRYPT, &mut requests).unwrap();
    drop(requests);
    sizes.iter().zip(&data).for_each(|(&n, d)| judge(n, d));
    // Input and output of the largest do not fit together.
    assert_eq!(rig.retries("ctr(aes)"), 10);
    let mut batch = Batch::new(ENCRYPT);
    for &n in &sizes {
        let request = OwnedRequest::new(Payload::InPlace(bytes(3, n)));
        batch.push(request.iv(vec![0; 16]));
    }
    let ticket = session.submit(&mut batch).unwrap();
    assert_eq!(ticket.taken(), sizes.len());
    for (request, &size) in ticket.wait().requests().iter().zip(&sizes) {
        let Payload::InPlace(data) = &request.payload else {
            panic!()
        };
        assert_eq!(request.status(), Status::Done);
        judge(size, data);
    }
    assert_eq!(rig.retries("ctr(aes)"), 20);
}

#[test]
fn a_forged_message_is_refused_and_its_output_wiped() {
    let rig = rig(device(|_| {}));
    let key = bytes(1, 32);
    let session = rig.session("rfc7539(chacha20,poly1305)", &key);
    let (mut data, mut tag) = encrypted(
        "rfc7539(chacha20,poly1305)",
        &key,
        &[3; 12],
        b"aad",
        &[9; 100],
    );
    tag[3] ^= 1;
    let request = Request::in_place(&mut data)
        .iv(&[3; 12])
        .aad(b"aad")
        .tag(&mut tag);
    let mut requests = [request];
    session
        .process(Direction::Decrypt, &mut requests)
        .unwrap_err();
    assert_eq!(requests[0].status(), Status::BadTag);
    assert!(data.iter().all(|&b| b == 0));
}

#[test]
fn what_is_too_large_for_the_device_is_software_s() {
    let rig = rig(device(|d| d.rules.max_request = 2000));
    let key = bytes(1, 16);
    let session = rig.session("ctr(aes)", &key);
    let data = bytes(4, 2001);
    let (want, _) = encrypted("ctr(aes)", &key, &[0; 16], &[], &data);
    let mut output = vec![0; data.len()];
    for _ in 0..20 {
        let request = Request::new(&data, &mut output).iv(&[0; 16]);
        session.process(ENCRYPT, &mut [request]).unwrap();
        assert!(output == want);
        output.fill(0);
    }
    assert_eq!(rig.retries("ctr(aes)"), 20);
    let rows = rig.framework.rows();
    let row = rows.iter().find(|row| row.driver == "dma:test").unwrap();
    assert_eq!(row.health, Health::Working, "a limit is no failure");
}

#[test]
fn keys_come_and_go_within_the_device_s_room() {
    let rig = rig(device(|d| d.rules.sessions = 3));
    let open = |i: u8| {
        let builder = rig.framework.session("ctr(aes)", &[i; 16]).unwrap();
        builder.driver("dma:test").open()
    };
    let mut data = [0; 32];
    for round in 0..4 {
        let sessions: Vec<_> = (0..3).map(|i| open(round * 3 + i).unwrap()).collect();
        for session in &sessions {
            let request = Request::in_place(&mut data).iv(&[0; 16]);
            session.process(ENCRYPT, &mut [request]).unwrap();
        }
        let error = open(99).unwrap_err().to_string();
        assert!(error.contains("holds 3 keys"), "{error}");
    }
    assert_eq!(rig.retries("ctr(aes)"), 0);
}

#[test]
fn all_algorithms_agree_with_the_reference_in_batches() {
    let rig = rig(device(|_| {}));
    for name in model::Settings::preset("pcie-modern").unwrap().algorithms {
        let algorithm = Algorithm::find(&name).unwrap();
        if algorithm.kind == cipherlane_core::Kind::Mac {
            continue;
        }
        let key = bytes(8, algorithm.key_lengths()[0]);
        let session = rig.session(&name, &key);
        let aad = bytes(6, algorithm.aad.fit(301));
        let iv = bytes(7, algorithm.iv_len);
        let mut data: Vec<Vec<u8>> = (1..200).map(|i| bytes(i as u8, i * 16)).collect();
        let want: Vec<_> = data
            .iter()
            .map(|d| encrypted(&name, &key, &iv, &aad, d))
            .collect();
        let mut tags = vec![vec![0; session.tag_len()]; data.len()];
        let mut requests: Vec<_> = data
            .iter_mut()
            .zip(&mut tags)
            .map(|(d, tag)| Request::in_place(d).iv(&iv).aad(&aad).tag(tag))
            .collect();
        session.process(ENCRYPT, &mut requests).unwrap();
        drop(requests);
        for ((data, tag), (want, want_tag)) in data.iter().zip(&tags).zip(&want) {
            assert!(data == want && tag == want_tag, "{name} {}", data.len());
        }
        assert_eq!(rig.retries(&name), 0, "{name}");
    }
}
