//! The device on a thread of its own, in real time: callers and tickets from several threads.

use std::sync::Arc;
use std::time::Duration;

use cipherlane_core::{Batch, Direction, Framework, OwnedRequest, Payload, Request, Status};
use cipherlane_drivers::dma::model::FaultKind;
use cipherlane_drivers::dma::{Completions, Dma, Settings, model};
use cipherlane_drivers::software::Software;

use crate::rig::{bytes, device, encrypted, inject};

const ENCRYPT: Direction = Direction::Encrypt;

fn framework(settings: &Settings, device: model::Settings) -> (Framework, Arc<Dma>) {
    let driver = Arc::new(Dma::modelled("test", settings, device));
    let builder = Framework::builder(Arc::new(Software)).driver(driver.clone());
    (builder.build().unwrap(), driver)
}

/// A caller that waits and one that does not, each on a thread.
fn work(framework: &Framework, seed: u8, rounds: usize) {
    let key = bytes(seed, 16);
    let builder = framework.session("gcm(aes)", &key).unwrap();
    let session = builder.driver("dma:test").open().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..rounds {
                let plain = bytes(round as u8, 16 + round * 37 % 5000);
                let (want, want_tag) = encrypted("gcm(aes)", &key, &[7; 12], b"aad", &plain);
                let mut data = vec![plain.clone(); 1 + round % 5];
                let mut tags = vec![[0; 16]; data.len()];
                let requests = data.iter_mut().zip(&mut tags);
                let mut requests: Vec<_> = requests
                    .map(|(d, t)| Request::in_place(d).iv(&[7; 12]).aad(b"aad").tag(t))
                    .collect();
                session.process(ENCRYPT, &mut requests).unwrap();
                drop(requests);
                assert!(data.iter().all(|d| *d == want) && tags.iter().all(|t| *t == want_tag[..]));
            }
        });
        scope.spawn(|| {
            for round in 0..rounds {
                let plain = bytes(round as u8, 16 + round * 91 % 3000);
                let (want, _) = encrypted("gcm(aes)", &key, &[7; 12], &[], &plain);
                let mut tickets = Vec::new();
                for _ in 0..3 {
                    let mut batch = Batch::new(ENCRYPT);
                    for _ in 0..4 {
                        let request = OwnedRequest::new(Payload::InPlace(plain.clone()));
                        batch.push(request.iv(vec![7; 12]).tag(vec![0; 16]));
                    }
                    while !batch.is_empty() {
                        tickets.push(session.submit(&mut batch).unwrap());
                    }
                }
                let landed = tickets.into_iter().flat_map(|t| t.wait().into_requests());
                let landed: Vec<_> = landed.collect();
                assert_eq!(landed.len(), 12);
                for request in landed {
                    assert_eq!(request.status(), Status::Done);
                    assert!(matches!(&request.payload, Payload::InPlace(d) if *d == want));
                }
            }
        });
    });
}

#[test]
fn callers_and_tickets_of_several_threads_share_a_device() {
    for completions in [
        Completions::Interrupt,
        Completions::Poll,
        Completions::Adaptive,
    ] {
        let settings = Settings {
            completions,
            timeout_ms: 60_000,
            ..Settings::default()
        };
        let (framework, driver) = framework(&settings, device(|d| d.rules.ring = 64));
        std::thread::scope(|scope| {
            for seed in 0..3 {
                let framework = &framework;
                scope.spawn(move || work(framework, seed, 40));
            }
        });
        let totals = framework.statistics("dma:test", "gcm(aes)").unwrap();
        assert_eq!((totals.errors, totals.retries), (0, 0), "{completions:?}");
        assert!(totals.requests >= 3 * 40 * 13, "{totals:?}");
        let incidents = driver.incidents();
        assert_eq!((incidents.resets, incidents.spurious_completions), (0, 0));
        if completions == Completions::Interrupt {
            assert!(incidents.interrupts > 0);
        }
    }
}

/// A device that hangs is reset; the ticket that nobody waits for lands all the same.
#[test]
fn a_ticket_lands_though_nobody_waits_and_the_device_hangs() {
    let settings = Settings {
        timeout_ms: 50,
        ..Settings::default()
    };
    let (framework, driver) = framework(&settings, device(|_| {}));
    let key = bytes(1, 16);
    let builder = framework.session("ctr(aes)", &key).unwrap();
    let session = builder.driver("dma:test").open().unwrap();
    inject(&driver, FaultKind::Hang, 0, Duration::ZERO);
    let mut batch = Batch::new(ENCRYPT);
    batch.push(OwnedRequest::new(Payload::InPlace(bytes(2, 500))).iv(vec![0; 16]));
    let ticket = session.submit(&mut batch).unwrap();
    while !ticket.is_done() {
        std::thread::yield_now();
    }
    let (want, _) = encrypted("ctr(aes)", &key, &[0; 16], &[], &bytes(2, 500));
    let landed = ticket.wait();
    assert!(matches!(&landed.requests()[0].payload, Payload::InPlace(d) if *d == want));
    assert_eq!(driver.incidents().resets, 1);
}

#[test]
fn a_forked_child_leaves_the_device_to_its_parent() {
    let (framework, driver) = framework(&Settings::default(), device(|_| {}));
    let key = bytes(1, 16);
    let builder = framework.session("ctr(aes)", &key).unwrap();
    let session = builder.driver("dma:test").open().unwrap();
    let plain = bytes(2, 100);
    let (want, _) = encrypted("ctr(aes)", &key, &[0; 16], &[], &plain);
    let works = || {
        let mut data = plain.clone();
        let request = Request::in_place(&mut data).iv(&[0; 16]);
        session.process(ENCRYPT, &mut [request]).is_ok() && data == want
    };
    assert!(works());
    // SAFETY: the child only encrypts and leaves.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let ok = works() && works();
        // SAFETY: without running what belongs to the parent.
        unsafe { libc::_exit(if ok { 0 } else { 1 }) };
    }
    let mut status = 0;
    // SAFETY: our own child.
    unsafe { libc::waitpid(child, &mut status, 0) };
    assert_eq!(status, 0);
    assert!(works());
    drop(session);
    assert_eq!(driver.incidents().resets, 0);
}
