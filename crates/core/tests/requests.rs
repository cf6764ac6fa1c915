//! What a caller that waits sees: results, refusals, limits.

mod common;

use cipherlane_core::{Algorithm, Direction, Error, Request, Session, Status};
use common::{AEAD, shared_framework as framework};

const ENCRYPT: Direction = Direction::Encrypt;
const DECRYPT: Direction = Direction::Decrypt;

/// Every algorithm; under Miri, which interprets every instruction, one of each kind.
fn algorithms() -> impl Iterator<Item = &'static Algorithm> {
    let few = |a: &&Algorithm| {
        !cfg!(miri) || [AEAD, "hmac(sha256)", "cnt(gost28147-param-z)"].contains(&a.name)
    };
    Algorithm::all().iter().copied().filter(few)
}

fn session(name: &str, key_len: usize) -> Session {
    let key: Vec<u8> = (0..key_len as u8).collect();
    framework().session(name, &key).unwrap().open().unwrap()
}

#[test]
fn every_algorithm_makes_a_round_trip_by_every_shape_of_request() {
    for algorithm in algorithms().filter(|a| a.kind != cipherlane_core::Kind::Mac) {
        let session = session(algorithm.name, algorithm.key_lengths()[0]);
        let iv = vec![9; algorithm.iv_len];
        let plain: Vec<u8> = (0..480u32).map(|i| i as u8).collect();
        let mut tag = vec![0; session.tag_len()];
        let mut flat = plain.clone();
        let request = Request::in_place(&mut flat).iv(&iv).tag(&mut tag);
        let aad = vec![1; algorithm.aad.fit(0)];
        session.process(ENCRYPT, &mut [request.aad(&aad)]).unwrap();
        let clear = ["ecb(cipher_null)", "rfc4543("];
        let clear = clear.iter().any(|part| algorithm.name.contains(part));
        assert_eq!(flat == plain, clear, "{}", algorithm.name);

        let mut tag2 = vec![0; tag.len()];
        let mut apart = vec![0; 480];
        let request = Request::new(&plain, &mut apart)
            .iv(&iv)
            .tag(&mut tag2)
            .aad(&aad);
        session.process(ENCRYPT, &mut [request]).unwrap();
        assert_eq!((&apart, &tag2), (&flat, &tag), "{}", algorithm.name);

        let (a, rest) = plain.split_at(7);
        let (b, c) = rest.split_at(300);
        let input = [a, b, &[], c];
        let mut parts = [vec![0; 100], vec![0; 379], vec![0; 1]];
        let mut output: Vec<&mut [u8]> = parts.iter_mut().map(|p| p.as_mut_slice()).collect();
        let mut tag3 = vec![0; tag.len()];
        let request = Request::scatter(&input, &mut output)
            .iv(&iv)
            .tag(&mut tag3)
            .aad(&aad);
        session.process(ENCRYPT, &mut [request]).unwrap();
        assert_eq!(
            (parts.concat(), &tag3),
            (flat.clone(), &tag),
            "{}",
            algorithm.name
        );

        let mut segments: Vec<&mut [u8]> = parts.iter_mut().map(|p| p.as_mut_slice()).collect();
        let request = Request::scatter_in_place(&mut segments)
            .iv(&iv)
            .tag(&mut tag3)
            .aad(&aad);
        session.process(DECRYPT, &mut [request]).unwrap();
        assert_eq!(parts.concat(), plain, "{}", algorithm.name);
    }
}

#[test]
fn a_forged_message_is_refused_and_wiped_even_scattered() {
    let session = session("gcm(aes)", 16);
    let (mut data, mut tag) = ([7u8; 100], [0u8; 16]);
    let request = Request::in_place(&mut data).iv(&[1; 12]).tag(&mut tag);
    session.process(ENCRYPT, &mut [request]).unwrap();
    tag[15] ^= 1;
    let mut parts = [data[..33].to_vec(), data[33..].to_vec()];
    let mut segments: Vec<&mut [u8]> = parts.iter_mut().map(|p| p.as_mut_slice()).collect();
    let request = Request::scatter_in_place(&mut segments)
        .iv(&[1; 12])
        .tag(&mut tag);
    let error = session.process(DECRYPT, &mut [request]).unwrap_err();
    assert!(matches!(error, Error::BadTag { .. }), "{error}");
    assert!(parts.concat().iter().all(|&b| b == 0));
    let request = Request::in_place(&mut data).iv(&[1; 12]).tag(&mut tag);
    assert!(session.process(DECRYPT, &mut [request]).is_err());
    assert_eq!(data, [0; 100]);
}

#[test]
fn macs_are_made_and_compared() {
    let session = session("hmac(sha256)", 32);
    let (message, mut mac) = (b"what do ya want".as_slice(), [0u8; 32]);
    session
        .process(ENCRYPT, &mut [Request::mac(message).tag(&mut mac)])
        .unwrap();
    let mut copy = mac;
    session
        .process(DECRYPT, &mut [Request::mac(message).tag(&mut copy)])
        .unwrap();
    let pieces = [&message[..3], &message[3..]];
    session
        .process(DECRYPT, &mut [Request::mac_scatter(&pieces).tag(&mut copy)])
        .unwrap();
    copy[0] ^= 0x80;
    assert!(
        session
            .process(DECRYPT, &mut [Request::mac(message).tag(&mut copy)])
            .is_err()
    );
    // A MAC writes nothing: a request with an output is a mistake, and its data stays.
    let mut data = *b"message";
    let request = Request::in_place(&mut data).tag(&mut mac);
    let error = session.process(ENCRYPT, &mut [request]).unwrap_err();
    assert!(matches!(error, Error::OutputLength { .. }), "{error}");
    assert_eq!(&data, b"message");
}

#[test]
fn broken_rules_are_refused_by_name_and_the_rest_of_the_batch_is_done() {
    let session = session("cbc(aes)", 16);
    let mut data = [[0u8; 32]; 4];
    let [a, b, c, d] = &mut data;
    let mut requests = [
        Request::in_place(a).iv(&[0; 16]),
        Request::in_place(&mut b[..31]).iv(&[0; 16]),
        Request::in_place(c).iv(&[0; 12]),
        Request::in_place(d).iv(&[0; 16]),
    ];
    let error = session
        .process(ENCRYPT, &mut requests)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("cbc(aes)") && error.contains("31") && error.contains("16"),
        "{error}"
    );
    let statuses = requests.each_ref().map(Request::status);
    assert_eq!(
        statuses,
        [
            Status::Done,
            Status::NotBlockMultiple,
            Status::IvLength,
            Status::Done
        ]
    );
    let words = session.error(&requests[2]).unwrap().to_string();
    assert!(
        words.contains("12 bytes") && words.contains("16"),
        "{words}"
    );
    assert!(session.error(&requests[0]).is_none());
    assert_eq!((data[0], data[1], data[2]), (data[3], [0; 32], [0; 32]));
    assert!(matches!(
        session.process(ENCRYPT, &mut []),
        Err(Error::EmptyBatch)
    ));
}

#[test]
fn lengths_of_keys_tags_ivs_and_additional_data_are_checked() {
    let framework = framework();
    for algorithm in Algorithm::all() {
        for len in [0, 1, 15, 17, 33, 65, 1000] {
            let known = algorithm.key_lengths().contains(&len);
            let any = matches!(algorithm.keys, cipherlane_core::KeyLengths::Any { .. }) && len > 0;
            let key: Vec<u8> = (0..len).map(|i| i as u8).collect();
            let opened = framework.session(algorithm.name, &key);
            assert_eq!(opened.is_ok(), known || any, "{} {len}", algorithm.name);
        }
    }
    let gcm = |tag| {
        framework
            .session("gcm(aes)", &[1; 16])
            .unwrap()
            .tag_len(tag)
            .open()
    };
    assert!(gcm(3).is_err() && gcm(17).is_err() && gcm(0).is_err() && gcm(12).is_ok());
    let ctr = framework
        .session("ctr(aes)", &[1; 16])
        .unwrap()
        .tag_len(16)
        .open();
    assert!(ctr.unwrap_err().to_string().contains("no tag"));
    let esp = session("rfc4106(gcm(aes))", 20);
    for (aad, right) in [(8, true), (12, true), (0, false), (9, false), (16, false)] {
        let (mut data, mut tag, aad) = ([0; 16], [0; 16], vec![0; aad]);
        let request = Request::in_place(&mut data)
            .iv(&[0; 8])
            .aad(&aad)
            .tag(&mut tag);
        assert_eq!(
            esp.process(ENCRYPT, &mut [request]).is_ok(),
            right,
            "{}",
            aad.len()
        );
    }
    let mut data = [0; 16];
    let request = Request::in_place(&mut data).iv(&[0; 300]);
    assert!(
        session("ctr(aes)", 16)
            .process(ENCRYPT, &mut [request])
            .is_err()
    );
    let request = Request::in_place(&mut data).iv(&[0; 16]).aad(b"x");
    let error = session("ctr(aes)", 16)
        .process(ENCRYPT, &mut [request])
        .unwrap_err();
    assert!(matches!(error, Error::AadLength { .. }), "{error}");
}

#[test]
fn an_iv_of_any_length_takes_the_place_of_the_one_before() {
    let bytes: Vec<u8> = (1..=20).collect();
    for before in [0, 5, 8, 12, 16, 20] {
        for len in 0..=20 {
            let mut request = Request::mac(&[]).iv(&bytes[..before]);
            request.set_iv(&bytes[..len]);
            let kept = len.min(16);
            assert_eq!(request.iv_bytes(), &bytes[..kept]);
            assert_eq!(request.iv_block()[..kept], bytes[..kept]);
            assert_eq!(
                request.iv_block()[kept..],
                [0; 16][kept..],
                "{before} {len}"
            );
        }
    }
}

#[test]
fn unknown_names_are_answered_with_the_known_ones() {
    let error = framework()
        .session("cbc(des)", &[0; 8])
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("cbc(des)") && error.contains("cbc(aes)"),
        "{error}"
    );
    let builder = framework().session("cbc(aes)", &[0; 16]).unwrap();
    let error = builder.driver("qat").open().unwrap_err().to_string();
    assert!(error.contains("qat") && error.contains("base"), "{error}");
}

#[test]
fn empty_payloads_are_fine_where_the_algorithm_allows_them() {
    for algorithm in algorithms() {
        let session = session(algorithm.name, algorithm.key_lengths()[0]);
        let iv = vec![0; algorithm.iv_len];
        let mut tag = vec![0; session.tag_len()];
        let mut nothing = [0u8; 0];
        let request = match algorithm.kind {
            cipherlane_core::Kind::Mac => Request::mac(&nothing),
            _ => Request::in_place(&mut nothing),
        };
        let aad = vec![1; algorithm.aad.fit(0)];
        let request = request.iv(&iv).aad(&aad).tag(&mut tag);
        let result = session.process(ENCRYPT, &mut [request]);
        assert_eq!(result.is_ok(), algorithm.min_len == 0, "{}", algorithm.name);
        // GOST 28147-89's MAC of nothing is zero.
        let zero = tag.is_empty() || algorithm.name.starts_with("imit(");
        assert_eq!(tag.iter().all(|&b| b == 0), zero, "{}", algorithm.name);
    }
}

#[test]
fn limits_of_xts_and_gcm_hold_without_touching_memory() {
    let mut byte = 0u8;
    // SAFETY: both are refused by length before anything is read or written.
    let huge =
        |len: usize| unsafe { Request::from_raw(&byte, len, &raw const byte as *mut u8, len) };
    let xts = session("xts(aes)", 32);
    for len in [0, 15, (16 << 20) + 1] {
        assert!(
            xts.process(ENCRYPT, &mut [huge(len).iv(&[0; 16])]).is_err(),
            "{len}"
        );
    }
    let gcm = session("gcm(aes)", 16);
    let mut tag = [0; 16];
    let over = ((1usize << 32) - 2) * 16 + 1;
    let request = huge(over).iv(&[0; 12]).tag(&mut tag);
    let error = gcm
        .process(ENCRYPT, &mut [request])
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("gcm(aes)") && error.contains("another IV"),
        "{error}"
    );
    byte += 1;
    assert_eq!(byte, 1);
    let key = [3; 32];
    let equal = framework().session("xts(aes)", &key).unwrap_err();
    assert!(matches!(equal, Error::KeyHalvesEqual { .. }), "{equal}");
}

#[test]
fn regions_that_overlap_in_part_are_refused() {
    let session = session("ctr(aes)", 16);
    let mut memory = [1u8; 64];
    let start = memory.as_mut_ptr();
    for (input, output, right) in [(0, 0, true), (0, 1, false), (16, 0, false), (0, 32, true)] {
        // SAFETY: both regions lie in `memory`; a partial overlap is refused unread.
        let request = unsafe { Request::from_raw(start.add(input), 32, start.add(output), 32) };
        let result = session.process(ENCRYPT, &mut [request.iv(&[0; 16])]);
        assert_eq!(result.is_ok(), right, "{input} {output}");
        let refused = matches!(result, Err(Error::Overlap { .. }));
        assert_eq!(refused, !right, "{input} {output}");
    }
}

#[test]
fn one_session_serves_many_threads() {
    let session = session(AEAD, 32);
    let (threads, rounds) = if cfg!(miri) { (3u8, 2u32) } else { (8, 500) };
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let session = &session;
            scope.spawn(move || {
                for i in 0..rounds {
                    let mut data = vec![thread; i as usize % 300];
                    let (mut tag, mut iv) = ([0; 16], [thread; 12]);
                    iv[..4].copy_from_slice(&i.to_le_bytes());
                    let seal = Request::in_place(&mut data).iv(&iv).tag(&mut tag);
                    session.process(ENCRYPT, &mut [seal]).unwrap();
                    let open = Request::in_place(&mut data).iv(&iv).tag(&mut tag);
                    session.process(DECRYPT, &mut [open]).unwrap();
                    assert!(data.iter().all(|&b| b == thread));
                }
            });
        }
    });
}

#[test]
fn debug_output_shows_no_key() {
    let builder = framework().session("ctr(aes)", &[0xab; 16]).unwrap();
    let texts = [
        format!("{builder:?}"),
        format!("{:?}", builder.open().unwrap()),
    ];
    for text in texts {
        assert!(text.contains("ctr(aes)"), "{text}");
        assert!(
            !text.contains("171") && !text.to_lowercase().contains("abab"),
            "{text}"
        );
    }
}

/// RFC 9058 section 4.1: a nonce is a bit shorter than a block. If the first bit were dropped,
/// nonces 05.. and 85.. would give one key stream.
#[test]
#[cfg_attr(miri, ignore = "the arithmetic of MGM takes minutes")]
fn an_mgm_nonce_with_its_first_bit_set_is_refused() {
    for (name, len) in [("mgm(kuznyechik)", 16), ("mgm(magma)", 8)] {
        let session = session(name, 32);
        let seal = |first: u8| {
            let mut iv = vec![7; len];
            iv[0] = first;
            let (mut data, mut tag) = ([1u8; 40], vec![0; session.tag_len()]);
            let request = Request::in_place(&mut data).iv(&iv).tag(&mut tag);
            let sealed = session.process(ENCRYPT, &mut [request]);
            (sealed, data)
        };
        assert!(seal(0x05).0.is_ok() && seal(0x7f).0.is_ok());
        for first in [0x80, 0x85, 0xff] {
            let (sealed, data) = seal(first);
            let error = sealed.expect_err(name).to_string();
            assert!(error.contains("first bit"), "{error}");
            assert_eq!(data, [1; 40], "{name}: it was touched");
        }
    }
}

/// RFC 9058 section 4.1: additional data and payload together have less than 2^(n/2) bits.
#[test]
#[cfg_attr(miri, ignore = "the arithmetic of MGM takes minutes")]
fn an_mgm_message_ends_where_its_counters_would_wrap() {
    let session = session("mgm(magma)", 32);
    let over = vec![0u8; 1 << 29];
    let (mut data, mut tag) = ([1u8; 8], [0; 8]);
    let request = Request::in_place(&mut data)
        .iv(&[1; 8])
        .aad(&over)
        .tag(&mut tag);
    let error = session.process(ENCRYPT, &mut [request]).unwrap_err();
    assert!(matches!(error, Error::TooLong { .. }), "{error}");
    let request = Request::in_place(&mut data)
        .iv(&[1; 8])
        .aad(&over[8..])
        .tag(&mut tag);
    let error = session.process(ENCRYPT, &mut [request]).unwrap_err();
    assert!(matches!(error, Error::TooLong { .. }), "{error}");
    assert_eq!(data, [1; 8]);
}
