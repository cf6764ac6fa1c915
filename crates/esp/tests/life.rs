//! Sequence numbers to their end, ESN over the end of a half and after an outage, lifetimes,
//! many threads.

mod support;

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cipherlane_core::{Framework, VirtualTime};
use cipherlane_drivers::software::Software;
use cipherlane_esp::{
    Event, InboundSa, IvOrigin, Keys, Lifetime, Measure, OutboundSa, Refusal, SaParameters, Suite,
    Verdict,
};
use support::{SPI, framework, ipv4, with_packets};

fn gcm(esn: bool) -> SaParameters {
    let iv = IvOrigin::Explicit;
    let suite = Suite::AesGcm { icv: 16, iv };
    let mut parameters = SaParameters::new(SPI, suite, Keys::combined(&[9; 20]));
    parameters.esn = esn;
    parameters
}

fn verdicts(results: &[(Verdict, Vec<u8>)]) -> Vec<Verdict> {
    results.iter().map(|(verdict, _)| *verdict).collect()
}

fn contents(results: Vec<(Verdict, Vec<u8>)>) -> Vec<Vec<u8>> {
    results.into_iter().map(|(_, content)| content).collect()
}

/// Events as they were told.
fn heard() -> (Arc<Mutex<Vec<Event>>>, cipherlane_esp::Observer) {
    let events = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&events);
    (
        events,
        Box::new(move |event| told.lock().unwrap().push(event)),
    )
}

#[test]
fn it_stops_before_the_number_wraps() {
    for (esn, last) in [(false, u64::from(u32::MAX)), (true, u64::MAX << 32)] {
        let mut parameters = gcm(esn);
        parameters.resume_after(last - 3);
        let (events, observer) = heard();
        let sa = OutboundSa::new(&framework(), parameters.clone()).unwrap();
        let sa = sa.with_observer(observer);
        let batch = vec![ipv4(40, 0); 5];
        let results = with_packets(&batch, |packets| sa.seal(packets));
        let exhausted = Verdict::Refused(Refusal::SequenceExhausted);
        let sealed = Verdict::Sealed;
        let expected = [sealed, sealed, sealed, exhausted, exhausted];
        assert_eq!(verdicts(&results), expected);
        assert_eq!(results[2].1[4..8], (last as u32).to_be_bytes());
        assert_eq!(results[3].1, batch[3], "what was refused is as it was");
        assert!(sa.is_over());
        let results = with_packets(&batch[..1], |packets| sa.seal(packets));
        assert_eq!(verdicts(&results), [Verdict::Refused(Refusal::Expired)]);
        assert_eq!(*events.lock().unwrap(), [Event::SequenceExhausted]);
    }
}

#[test]
fn with_esn_a_batch_goes_over_the_end_of_a_half_in_any_order() {
    let framework = framework();
    let mut parameters = gcm(true);
    parameters.resume_after(0x7_ffff_ffdf);
    let outbound = OutboundSa::new(&framework, parameters.clone()).unwrap();
    let inbound = InboundSa::new(&framework, parameters.clone()).unwrap();
    let inner: Vec<_> = (0..64).map(|i| ipv4(60, i)).collect();
    let mut sealed = contents(with_packets(&inner, |packets| outbound.seal(packets)));
    assert_eq!(sealed[32][4..8], [0; 4], "the lower half 0 is sent");
    sealed.reverse();
    let opened = with_packets(&sealed, |packets| inbound.open(packets));
    for (opened, inner) in opened.into_iter().zip(inner.iter().rev()) {
        assert_eq!(opened, (Verdict::Accepted, inner.clone()));
    }
    assert_eq!(inbound.highest_sequence(), 0x8_0000_001f);
    let again = with_packets(&sealed, |packets| inbound.open(packets));
    let replayed = Verdict::Refused(Refusal::Replayed);
    assert_eq!(verdicts(&again), [replayed; 64]);
}

#[test]
fn a_wrong_upper_half_is_not_authentic() {
    let framework = framework();
    let mut parameters = gcm(true);
    let inbound = InboundSa::new(&framework, parameters.clone()).unwrap();
    parameters.resume_after(1 << 32 | 4);
    let outbound = OutboundSa::new(&framework, parameters.clone()).unwrap();
    let sealed = contents(with_packets(&[ipv4(40, 0)], |p| outbound.seal(p)));
    let opened = with_packets(&sealed, |packets| inbound.open(packets));
    assert_eq!(verdicts(&opened), [Verdict::Refused(Refusal::BadIcv)]);
}

#[test]
fn lifetimes_by_packets_and_bytes_both_ways() {
    let framework = framework();
    for (measure, soft, hard) in [(Measure::Packets, 3, 5), (Measure::Bytes, 300, 500)] {
        let limit = Lifetime {
            soft: Some(soft),
            hard: Some(hard),
        };
        let mut parameters = gcm(true);
        match measure {
            Measure::Packets => parameters.lifetimes.packets = limit,
            _ => parameters.lifetimes.bytes = limit,
        }
        let batch = vec![ipv4(100, 0); 4];
        let expired = Verdict::Refused(Refusal::Expired);
        let all = [Event::Soft(measure), Event::Hard(measure)];

        let (events, observer) = heard();
        let outbound = OutboundSa::new(&framework, parameters.clone()).unwrap();
        let outbound = outbound.with_observer(observer);
        let first = with_packets(&batch, |packets| outbound.seal(packets));
        assert_eq!(verdicts(&first), [Verdict::Sealed; 4]);
        assert_eq!(*events.lock().unwrap(), all[..1]);
        let second = with_packets(&batch, |packets| outbound.seal(packets));
        assert_eq!(
            verdicts(&second),
            [Verdict::Sealed, expired, expired, expired]
        );
        assert_eq!(*events.lock().unwrap(), all);
        assert!(outbound.is_over());
        let third = with_packets(&batch, |packets| outbound.seal(packets));
        assert_eq!(verdicts(&third), [expired; 4]);
        assert_eq!(outbound.statistics().packets, 5);
        assert_eq!(outbound.statistics().bytes, 500);

        let (events, observer) = heard();
        let inbound = InboundSa::new(&framework, parameters.clone()).unwrap();
        let inbound = inbound.with_observer(observer);
        let unlimited = OutboundSa::new(&framework, gcm(true)).unwrap();
        let sealed = vec![ipv4(100, 0); 8];
        let sealed = contents(with_packets(&sealed, |packets| unlimited.seal(packets)));
        // What is not accepted does not count.
        let mut damaged = sealed[..4].to_vec();
        damaged.iter_mut().for_each(|packet| packet[20] ^= 1);
        with_packets(&damaged, |packets| inbound.open(packets));
        let forged = Event::Forgeries {
            total: 4,
            per_second: 4,
        };
        assert_eq!(std::mem::take(&mut *events.lock().unwrap()), [forged]);
        let first = with_packets(&sealed[..4], |packets| inbound.open(packets));
        assert_eq!(verdicts(&first), [Verdict::Accepted; 4]);
        with_packets(&sealed[..4], |packets| inbound.open(packets));
        assert_eq!(*events.lock().unwrap(), all[..1]);
        let second = with_packets(&sealed[4..], |packets| inbound.open(packets));
        assert_eq!(
            verdicts(&second),
            [Verdict::Accepted, expired, expired, expired]
        );
        assert!(
            second[1..]
                .iter()
                .all(|(_, content)| content.iter().all(|&b| b == 0))
        );
        assert_eq!(*events.lock().unwrap(), all);
        let third = with_packets(&sealed[..1], |packets| inbound.open(packets));
        assert_eq!(verdicts(&third), [expired]);
    }
}

#[test]
fn threads_on_one_sa_send_no_number_and_no_iv_twice_and_accept_everything_once() {
    const THREADS: usize = 8;
    const BATCHES: usize = 40;
    let framework = framework();
    let mut parameters = gcm(true);
    parameters.replay_window = Some(65_536);
    let outbound = OutboundSa::new(&framework, parameters.clone()).unwrap();
    let inbound = InboundSa::new(&framework, parameters.clone()).unwrap();
    let seal = |thread: usize| {
        let lengths = (0..BATCHES).map(|batch| 1 + (thread * 7 + batch * 13) % 64);
        lengths
            .map(|len| {
                let batch = vec![ipv4(40 + len, thread as u8); len];
                contents(with_packets(&batch, |packets| outbound.seal(packets)))
            })
            .collect::<Vec<_>>()
    };
    let seal = &seal;
    let sealed: Vec<Vec<Vec<u8>>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| scope.spawn(move || seal(thread)))
            .collect();
        threads
            .into_iter()
            .flat_map(|t| t.join().unwrap())
            .collect()
    });
    let total: usize = sealed.iter().map(Vec::len).sum();
    let packets = || sealed.iter().flatten();
    let numbers: HashSet<_> = packets().map(|packet| &packet[4..8]).collect();
    let ivs: HashSet<_> = packets().map(|packet| &packet[8..16]).collect();
    assert_eq!((numbers.len(), ivs.len()), (total, total));

    // Every thread offers every batch, each in its own order.
    let accepted: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let (sealed, inbound) = (&sealed, &inbound);
                scope.spawn(move || {
                    let batches = (0..sealed.len()).map(|i| (i * 7 + thread * 31) % sealed.len());
                    let opened = batches.map(|i| with_packets(&sealed[i], |p| inbound.open(p)));
                    let opened = opened.flatten();
                    opened.filter(|(v, _)| *v == Verdict::Accepted).count()
                })
            })
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).sum()
    });
    assert_eq!(accepted, total);
    let statistics = inbound.statistics();
    assert_eq!(statistics.packets, total as u64);
    let replayed = statistics.refused[Refusal::Replayed.index()];
    assert_eq!(replayed, ((THREADS - 1) * total) as u64);
}

#[test]
fn cbc_ivs_do_not_repeat_and_do_not_tell_the_number() {
    let keys = Keys::pair(&[1; 16], &[2; 32]);
    let suite = Suite::AesCbc(cipherlane_esp::Integrity::HmacSha256);
    let parameters = SaParameters::new(SPI, suite, keys);
    let framework = framework();
    let mut ivs = HashSet::new();
    // Two SAs of the same key and the same numbers: their IVs differ all the same.
    for _ in 0..2 {
        let sa = OutboundSa::new(&framework, parameters.clone()).unwrap();
        let batch = vec![ipv4(40, 0); 200];
        let sealed = contents(with_packets(&batch, |packets| sa.seal(packets)));
        ivs.extend(sealed.iter().map(|packet| packet[8..24].to_vec()));
    }
    assert_eq!(ivs.len(), 400);
    // Of 400 x 128 bits about half are set.
    let ones: u32 = ivs.iter().flatten().map(|byte| byte.count_ones()).sum();
    assert!((24_000..27_200).contains(&ones), "{ones}");
}

#[test]
fn lost_numbers_are_counted_once_they_have_left_the_window() {
    let framework = framework();
    let mut parameters = gcm(true);
    parameters.replay_window = Some(32);
    let outbound = OutboundSa::new(&framework, parameters.clone()).unwrap();
    let inbound = InboundSa::new(&framework, parameters.clone()).unwrap();
    let batch = vec![ipv4(40, 0); 200];
    let sealed = contents(with_packets(&batch, |packets| outbound.seal(packets)));
    with_packets(&sealed[..10], |packets| inbound.open(packets));
    with_packets(&sealed[20..], |packets| inbound.open(packets));
    assert_eq!(inbound.statistics().lost, 10);
}

/// A framework whose clock is moved by hand.
fn framework_in(time: &VirtualTime) -> Framework {
    let builder = Framework::builder(Arc::new(Software)).clock(time.clock());
    builder.build().unwrap()
}

#[test]
fn lifetimes_by_seconds_both_ways() {
    let time = VirtualTime::new();
    let framework = framework_in(&time);
    time.turn_to(Duration::from_secs(1000));
    let mut parameters = gcm(true);
    parameters.lifetimes.seconds = Lifetime {
        soft: Some(50),
        hard: Some(60),
    };
    let (sent, observer) = heard();
    let outbound = OutboundSa::new(&framework, parameters.clone()).unwrap();
    let outbound = outbound.with_observer(observer);
    let (received, observer) = heard();
    let inbound = InboundSa::new(&framework, parameters).unwrap();
    let inbound = inbound.with_observer(observer);
    let batch = vec![ipv4(40, 0); 3];
    let through = |verdicts_of: [Verdict; 2]| {
        let sealed = with_packets(&batch, |packets| outbound.seal(packets));
        assert_eq!(verdicts(&sealed), [verdicts_of[0]; 3]);
        let opened = with_packets(&contents(sealed), |packets| inbound.open(packets));
        assert_eq!(verdicts(&opened), [verdicts_of[1]; 3]);
    };
    let fine = [Verdict::Sealed, Verdict::Accepted];
    through(fine);
    time.turn_to(Duration::from_millis(1_049_999));
    through(fine);
    assert!(sent.lock().unwrap().is_empty() && received.lock().unwrap().is_empty());
    time.turn_to(Duration::from_secs(1050));
    // Without traffic the owner asks.
    inbound.check_age();
    let soft = Event::Soft(Measure::Seconds);
    assert_eq!(*received.lock().unwrap(), [soft]);
    through(fine);
    assert_eq!(*sent.lock().unwrap(), [soft]);
    assert_eq!(*received.lock().unwrap(), [soft]);
    time.turn_to(Duration::from_secs(1060));
    assert!(!outbound.is_over());
    let expired = Verdict::Refused(Refusal::Expired);
    through([expired; 2]);
    assert!(outbound.is_over() && inbound.is_over());
    let hard = Event::Hard(Measure::Seconds);
    assert_eq!(*sent.lock().unwrap(), [soft, hard]);
    assert_eq!(*received.lock().unwrap(), [soft, hard]);
}

#[test]
fn forged_packets_are_told_with_their_rate_and_end_the_sa_where_they_must() {
    let time = VirtualTime::new();
    let framework = framework_in(&time);
    let mut parameters = gcm(true);
    parameters.lifetimes.forgeries.hard = Some(50);
    let (events, observer) = heard();
    let outbound = OutboundSa::new(&framework, parameters.clone()).unwrap();
    let inbound = InboundSa::new(&framework, parameters).unwrap();
    let inbound = inbound.with_observer(observer);
    let good = contents(with_packets(&vec![ipv4(40, 0); 2], |p| outbound.seal(p)));
    let mut forged = good[1].clone();
    forged[30] ^= 1;
    let forge = |count: usize| {
        let batch = vec![forged.clone(); count];
        let opened = with_packets(&batch, |packets| inbound.open(packets));
        verdicts(&opened)
    };
    let rate = |total, per_second| Event::Forgeries { total, per_second };
    let soft = Event::Soft(Measure::Forgeries);
    forge(2);
    assert_eq!(*events.lock().unwrap(), [rate(2, 2)]);
    forge(3);
    assert_eq!(*events.lock().unwrap(), [rate(2, 2), soft]);
    time.turn_to(Duration::from_secs(2));
    forge(10);
    let opened = with_packets(&good[..1], |packets| inbound.open(packets));
    assert_eq!(verdicts(&opened), [Verdict::Accepted], "it works on");
    assert_eq!(*events.lock().unwrap(), [rate(2, 2), soft, rate(15, 7)]);
    forge(35);
    let hard = Event::Hard(Measure::Forgeries);
    assert_eq!(events.lock().unwrap().last(), Some(&hard));
    let opened = with_packets(&good[1..], |packets| inbound.open(packets));
    let ended = Verdict::Refused(Refusal::TooManyForgeries);
    assert_eq!(verdicts(&opened), [ended]);
    assert_eq!(forge(1), [ended]);
    let statistics = inbound.statistics();
    assert_eq!(statistics.refused[Refusal::BadIcv.index()], 50);
    assert_eq!(statistics.refused[Refusal::TooManyForgeries.index()], 2);
}

/// Seals `count` packets of a sender that has sent `last` before.
fn sealed_after(
    framework: &Framework,
    parameters: &SaParameters,
    last: u64,
    count: usize,
) -> Vec<Vec<u8>> {
    let mut parameters = parameters.clone();
    parameters.resume_after(last);
    let sa = OutboundSa::new(framework, parameters).unwrap();
    let batch = vec![ipv4(40, 0); count];
    contents(with_packets(&batch, |packets| sa.seal(packets)))
}

fn opened_one_by_one(sa: &InboundSa, packets: &[Vec<u8>]) -> Vec<Verdict> {
    let one = |packet: &Vec<u8>| {
        let opened = with_packets(std::slice::from_ref(packet), |packets| sa.open(packets));
        opened[0].0
    };
    packets.iter().map(one).collect()
}

/// RFC 4303 appendix A3, with each kind of protection.
#[test]
fn a_sender_that_went_on_for_more_than_2_32_numbers_is_found_again() {
    let framework = framework();
    for (suite, keys) in support::suites() {
        let parameters = support::parameters(suite, &keys, true);
        // Of batches of one, of some and of many.
        for (halves, batch) in [(1u64, 1), (1, 32), (3, 7), (15, 32)] {
            let (events, observer) = heard();
            let inbound = InboundSa::new(&framework, parameters.clone()).unwrap();
            let inbound = inbound.with_observer(observer);
            let early = sealed_after(&framework, &parameters, 5000, 1);
            assert_eq!(opened_one_by_one(&inbound, &early), [Verdict::Accepted]);
            let last = (halves << 32) + 100_000;
            let late = sealed_after(&framework, &parameters, last, 64 * 20);
            let mut lost = 0;
            for packets in late.chunks(batch) {
                let opened = with_packets(packets, |packets| inbound.open(packets));
                lost += opened
                    .iter()
                    .filter(|(v, _)| *v != Verdict::Accepted)
                    .count();
            }
            // A trial each 64 failures, and what was with the last of them in a batch.
            let most = (64 + 32) * halves as usize;
            assert!((64..=most).contains(&lost), "{suite:?} {halves}: {lost}");
            assert_eq!(inbound.highest_sequence(), last + 64 * 20);
            let events = events.lock().unwrap();
            let found = events
                .iter()
                .filter(|event| **event == Event::Resynchronized);
            assert_eq!(found.count(), 1, "{suite:?}");
            drop(events);
            // What was lost before stays lost, and nothing is accepted twice.
            let again = opened_one_by_one(&inbound, &late[late.len() - 40..]);
            assert_eq!(again, [Verdict::Refused(Refusal::Replayed); 40]);
        }
    }
}

#[test]
fn a_flood_of_forged_packets_costs_the_peer_no_packet() {
    let parameters = gcm(true);
    let framework = framework();
    let inbound = InboundSa::new(&framework, parameters.clone()).unwrap();
    let good = sealed_after(&framework, &parameters, 0, 200);
    let mut forged = good[199].clone();
    *forged.last_mut().unwrap() ^= 1;
    let mut accepted = 0;
    for packet in &good {
        // Each packet of the peer comes where one is due to be tried.
        opened_one_by_one(&inbound, &vec![forged.clone(); 64]);
        let verdict = opened_one_by_one(&inbound, std::slice::from_ref(packet))[0];
        accepted += usize::from(verdict == Verdict::Accepted);
    }
    assert_eq!(accepted, good.len());
    let refused = inbound.statistics().refused[Refusal::BadIcv.index()];
    assert_eq!(refused as usize, 64 * good.len());
}
