//! ESP_GOST-4M-IMIT and ESP_GOST-1K-IMIT: the published packets, the borders of the key tree,
//! what a packet that is not right does to the SA, and many threads.

mod support;

use std::sync::{Arc, Mutex};

use cipherlane_esp::{
    Event, GostSbox, InboundSa, Keys, Malformed, Measure, Mode, OutboundSa, Refusal, SaParameters,
    Suite, Verdict,
};
use serde_json::Value;
use support::{Buffer, SPI, framework, hex, with_packets};

/// Both, with one S-box.
fn both() -> [(Suite, Keys); 2] {
    let keymat: Vec<u8> = (0..68).map(|i| i * 3 + 1).collect();
    let sbox = GostSbox::CryptoProB;
    [
        (Suite::Gost4mImit(sbox), Keys::combined(&keymat[..36])),
        (Suite::Gost1kImit(sbox), Keys::combined(&keymat)),
    ]
}

fn parameters(suite: Suite, keys: &Keys, esn: bool) -> SaParameters {
    let mut parameters = support::parameters(suite, keys, esn);
    parameters.mode = Mode::Transport;
    parameters
}

/// Seals these payloads with numbers from `first` on.
fn sealed_from(parameters: &SaParameters, first: u64, payloads: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut parameters = parameters.clone();
    parameters.resume_after(first - 1);
    let sa = OutboundSa::new(&framework(), parameters.clone()).unwrap();
    let sealed = with_packets(payloads, |packets| {
        packets.iter_mut().for_each(|p| p.set_next_header(17));
        sa.seal(packets);
    });
    let packet = |(verdict, packet)| {
        assert_eq!(verdict, Verdict::Sealed);
        packet
    };
    sealed.into_iter().map(packet).collect()
}

fn open_one(sa: &InboundSa, packet: &[u8]) -> Verdict {
    with_packets(&[packet.to_vec()], |packets| sa.open(packets))[0].0
}

/// The vectors of a file that has the root keys in each of them or once for all.
fn published(text: &str) -> Vec<(SaParameters, Value)> {
    let file: Value = serde_json::from_str(text).unwrap();
    let vectors = file["vectors"].as_array().unwrap().iter();
    let parsed = vectors.map(|vector| {
        let field = |name: &str| match vector[name].as_str() {
            Some(value) => value.to_owned(),
            None => file[name].as_str().unwrap().to_owned(),
        };
        let sbox = match field("sbox").as_str() {
            "A" => GostSbox::CryptoProA,
            "B" | "id-Gost28147-89-CryptoPro-B-ParamSet" => GostSbox::CryptoProB,
            "C" => GostSbox::CryptoProC,
            "D" => GostSbox::CryptoProD,
            "Z" => GostSbox::ParamZ,
            other => panic!("no S-box {other}"),
        };
        let (suite, roots) = match field("transform").as_str() {
            "ESP_GOST-4M-IMIT" => (Suite::Gost4mImit(sbox), field("Kr_e")),
            "ESP_GOST-1K-IMIT" => (Suite::Gost1kImit(sbox), field("Kr_e") + &field("Kr_i")),
            other => panic!("no suite {other}"),
        };
        let keys = Keys::combined(&hex(&(roots + &field("spi_auth_code"))));
        let spi = u32::from_str_radix(&field("spi"), 16).unwrap();
        let mut parameters = SaParameters::new(spi, suite, keys);
        parameters.mode = Mode::Transport;
        parameters.esn = vector["esn"].as_bool().unwrap();
        (parameters, vector.clone())
    });
    parsed.collect()
}

#[test]
fn published_packets_are_opened_alone_and_after_their_neighbours() {
    let framework = framework();
    let files = [
        include_str!("../../../vectors/gost/esp-gost-draft04.json"),
        include_str!("../../../vectors/gost/esp-gost-derived.json"),
    ];
    let mut opened = 0;
    for (mut parameters, vector) in files.into_iter().flat_map(published) {
        let sequence = vector["seq"].as_u64().unwrap();
        let payload = vector["payload"].as_str().or(vector["plaintext"].as_str());
        let payload = hex(payload.unwrap());
        let first = sequence.saturating_sub(1).max(1);
        parameters.resume_after(first - 1);
        let sa = InboundSa::new(&framework, parameters.clone()).unwrap();
        let before = sealed_from(&parameters, first, &[vec![7; 60]]);
        if sequence > 1 {
            assert_eq!(open_one(&sa, &before[0]), Verdict::Accepted);
        }
        let mut buffer = Buffer::new(&hex(vector["packet"].as_str().unwrap()));
        let mut packets = [buffer.packet()];
        sa.open(&mut packets);
        assert_eq!(packets[0].verdict(), Verdict::Accepted, "{vector}");
        assert_eq!(packets[0].content(), payload, "{vector}");
        assert_eq!(packets[0].sequence(), sequence);
        assert_eq!(packets[0].next_header(), 4);
        opened += 1;
    }
    assert!(opened > 30);
}

#[test]
fn a_batch_crosses_every_border_of_the_key_tree() {
    let framework = framework();
    for (suite, keys) in both() {
        for (esn, border) in [
            (false, 64),
            (false, 128),
            (false, 65_536),
            (true, 65_536),
            (true, 1 << 32),
            (true, 5 << 32),
        ] {
            let mut parameters = parameters(suite, &keys, esn);
            let first = border - 40;
            let payloads: Vec<_> = (0..80).map(|i| vec![i as u8; i * 7]).collect();
            let sealed = sealed_from(&parameters, first, &payloads);
            // The same packets, one by one.
            for place in [0, 39, 40, 41, 79] {
                parameters.resume_after(first + place as u64 - 1);
                let sa = InboundSa::new(&framework, parameters.clone()).unwrap();
                assert_eq!(open_one(&sa, &sealed[place]), Verdict::Accepted);
            }
            parameters.resume_after(first - 1);
            let sa = InboundSa::new(&framework, parameters.clone()).unwrap();
            let mut order: Vec<usize> = (0..80).collect();
            order.rotate_left(50);
            order[10..70].reverse();
            let shuffled: Vec<_> = order.iter().map(|&i| sealed[i].clone()).collect();
            let opened = with_packets(&shuffled, |packets| sa.open(packets));
            for (opened, i) in opened.into_iter().zip(order) {
                assert_eq!(opened, (Verdict::Accepted, payloads[i].clone()));
            }
        }
    }
}

#[test]
fn packets_of_every_length() {
    let framework = framework();
    for (suite, keys) in both() {
        for esn in [false, true] {
            let parameters = parameters(suite, &keys, esn);
            let lengths = (0..70).chain([1000, 1006, 1007, 1022, 1023, 1024, 2046, 2047, 9000]);
            let longest = 65_515 - 8 - 8 - 2 - 8;
            let lengths = lengths.chain([longest / 8 * 8 - 2]);
            let payloads: Vec<_> = lengths.map(|len| vec![0x5a; len]).collect();
            let sealed = sealed_from(&parameters, 1, &payloads);
            let sa = InboundSa::new(&framework, parameters.clone()).unwrap();
            let opened = with_packets(&sealed, |packets| sa.open(packets));
            for (opened, payload) in opened.into_iter().zip(payloads) {
                assert_eq!(opened, (Verdict::Accepted, payload));
            }
        }
    }
}

#[test]
fn each_failure_touches_what_the_draft_says() {
    let framework = framework();
    for (suite, keys) in both() {
        let parameters = parameters(suite, &keys, true);
        let sealed = sealed_from(&parameters, 2, &[vec![1; 100]]).remove(0);
        let sa = InboundSa::new(&framework, parameters.clone()).unwrap();
        let flipped = |byte: usize| {
            let mut packet = sealed.clone();
            packet[byte] ^= 1;
            open_one(&sa, &packet)
        };
        let outer = matches!(suite, Suite::Gost1kImit(_));
        let iv = Verdict::Refused(Refusal::Malformed(Malformed::Iv));
        let body = Verdict::Refused(match outer {
            true => Refusal::BadOuterIcv,
            false => Refusal::BadIcv,
        });
        // The sequence number is a part of the sum too.
        for byte in 7..16 {
            assert_eq!(flipped(byte), iv, "byte {byte}");
        }
        for byte in 16..sealed.len() {
            assert_eq!(flipped(byte), body, "byte {byte}");
        }
        assert_eq!(open_one(&sa, &sealed), Verdict::Accepted);
        let statistics = sa.statistics();
        assert_eq!((statistics.packets, statistics.bytes), (1, 100));
        assert!(!sa.is_over());
    }
}

#[test]
fn a_wrong_cipher_key_under_a_right_outer_mac_is_an_invalid_packet() {
    let (suite, keys) = both()[1].clone();
    let mut parameters = parameters(suite, &keys, true);
    let mut wrong = keys.encryption.to_vec();
    wrong[0] ^= 1;
    let mut others = parameters.clone();
    others.keys = Keys::combined(&wrong);
    let sealed = sealed_from(&others, 1, &[b"sixteen known bytes".repeat(4)]).remove(0);
    parameters.keys = keys;
    let sa = InboundSa::new(&framework(), parameters.clone()).unwrap();
    let opened = with_packets(&[sealed], |packets| sa.open(packets));
    assert_eq!(opened[0].0, Verdict::Refused(Refusal::BadIcv));
    assert!(opened[0].1.iter().all(|&byte| byte == 0), "not wiped");
}

#[test]
fn the_sa_ends_with_its_last_forged_packet_and_not_without_a_word() {
    let framework = framework();
    for (suite, keys) in both() {
        let parameters = parameters(suite, &keys, true);
        let sealed = sealed_from(&parameters, 1, &vec![vec![]; 2]);
        let events = Arc::new(Mutex::new(Vec::new()));
        let told = Arc::clone(&events);
        let sa = InboundSa::new(&framework, parameters.clone()).unwrap();
        let sa = sa.with_observer(Box::new(move |event| told.lock().unwrap().push(event)));
        let refused = |icv_byte: usize, count: usize| {
            let mut packet = sealed[0].clone();
            let at = packet.len() - icv_byte;
            packet[at] ^= 1;
            let mut buffers: Vec<_> = (0..32).map(|_| Buffer::new(&packet)).collect();
            let mut left = count;
            while left > 0 {
                let mut packets: Vec<_> = buffers.iter_mut().map(Buffer::packet).collect();
                let batch = left.min(32);
                for place in &mut packets[..batch] {
                    place.content_mut().copy_from_slice(&packet);
                }
                sa.open(&mut packets[..batch]);
                left -= batch;
            }
        };
        if matches!(suite, Suite::Gost1kImit(_)) {
            // The outer MAC fails: that never ends it.
            refused(1, 100_100);
            assert!(!sa.is_over());
            continue;
        }
        refused(1, 99_999);
        assert!(!sa.is_over());
        assert_eq!(open_one(&sa, &sealed[1]), Verdict::Accepted);
        refused(1, 1);
        assert!(sa.is_over());
        let ended = Verdict::Refused(Refusal::TooManyForgeries);
        assert_eq!(open_one(&sa, &sealed[0]), ended);
        // The owner heard of it from the first one on, and in time to replace the SA.
        let told = events.lock().unwrap();
        let (soft, hard) = (
            Event::Soft(Measure::Forgeries),
            Event::Hard(Measure::Forgeries),
        );
        let (first, others) = told.split_first().unwrap();
        assert!(matches!(first, Event::Forgeries { total: 1..=32, .. }));
        let once: Vec<_> = others
            .iter()
            .filter(|event| !matches!(event, Event::Forgeries { .. }))
            .collect();
        assert_eq!(once, [&soft, &hard]);
    }
}

#[test]
fn padding_of_zeros_is_opened_too() {
    // The draft's second example is padded so, with five bytes.
    let text = include_str!("../../../vectors/gost/esp-gost-draft04.json");
    let (parameters, vector) = published(text).remove(1);
    assert_eq!(vector["trailer"], "00000000000504");
    let mut parameters = parameters;
    parameters.resume_after(vector["seq"].as_u64().unwrap() - 1);
    let sa = InboundSa::new(&framework(), parameters.clone()).unwrap();
    let packet = hex(vector["packet"].as_str().unwrap());
    assert_eq!(open_one(&sa, &packet), Verdict::Accepted);
}

/// Threads that seal with one SA and open with another, across keys of every level.
#[test]
fn racing_threads_share_one_key_tree() {
    let framework = framework();
    for (suite, keys) in both() {
        let mut parameters = parameters(suite, &keys, true);
        parameters.resume_after((1 << 32) - 1501);
        parameters.replay_window = Some(65_536);
        let outbound = OutboundSa::new(&framework, parameters.clone()).unwrap();
        let inbound = InboundSa::new(&framework, parameters.clone()).unwrap();
        let work = |thread: usize| {
            for round in 0..60 {
                let count = [1, 16, 5, 32][(thread + round) % 4];
                let payloads = vec![vec![thread as u8; 40 + round]; count];
                let sealed = with_packets(&payloads, |packets| {
                    packets.iter_mut().for_each(|p| p.set_next_header(17));
                    outbound.seal(packets);
                });
                let sealed: Vec<_> = sealed.into_iter().map(|(_, packet)| packet).collect();
                for opened in with_packets(&sealed, |packets| inbound.open(packets)) {
                    assert_eq!(opened, (Verdict::Accepted, payloads[0].clone()));
                }
            }
        };
        std::thread::scope(|scope| {
            for thread in 0..4 {
                scope.spawn(move || work(thread));
            }
        });
        assert!(inbound.highest_sequence() > 1 << 32);
        assert_eq!(inbound.spi(), SPI);
    }
}
