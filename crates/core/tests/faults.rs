//! Drivers that misbehave: refused at admission, rescued at work, suspended in the end.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use cipherlane_core::{
    Algorithm, Config, Direction, Error, Framework, Health, NotAdmitted, NotUsedBecause, Request,
    SelfTest, Status, Unavailable,
};
use cipherlane_test_driver::TestDriver;
use common::{Fault, Rogue, base, with_rogue};

const ENCRYPT: Direction = Direction::Encrypt;

/// A rogue that misbehaves from the start.
fn born_bad(fault: Fault) -> Framework {
    let (rogue, armed, _) = Rogue::new(fault);
    armed.store(true, Ordering::Relaxed);
    Framework::builder(base())
        .driver(rogue.driver())
        .build()
        .unwrap()
}

#[test]
fn a_wrong_driver_is_not_admitted_and_stays_listed_with_its_reason() {
    for fault in [
        Fault::FlipBit,
        Fault::GiveUp,
        Fault::Forget,
        Fault::HalfWrite,
    ] {
        let framework = born_bad(fault);
        let rows = framework.rows();
        let row = rows
            .iter()
            .find(|r| r.driver == "rogue" && r.algorithm == "ctr(aes)")
            .unwrap();
        assert_eq!(row.self_test, SelfTest::Failed, "{fault:?}");
        let Some(NotUsedBecause::NotAdmitted(NotAdmitted::SelfTest(found))) = &row.not_used_because
        else {
            panic!("{row:?}");
        };
        assert!(found.contains("SP 800-38A"), "{found}");
        let error = framework
            .session("ctr(aes)", &[1; 16])
            .unwrap()
            .driver("rogue")
            .open();
        assert!(matches!(
            error,
            Err(Error::DriverUnusable {
                reason: NotAdmitted::SelfTest(_),
                ..
            })
        ));
        framework
            .session("ctr(aes)", &[1; 16])
            .unwrap()
            .open()
            .unwrap();
    }
    let rows = born_bad(Fault::IgnoreTag).rows();
    for row in rows.iter().filter(|r| r.driver == "rogue") {
        let reason = &row.not_used_because;
        let tagless = Algorithm::find(row.algorithm).unwrap().tags.is_empty();
        assert_eq!(
            row.self_test == SelfTest::Passed,
            tagless,
            "{} {reason:?}",
            row.algorithm
        );
    }
}

/// To ask a driver may load a library, or open a device that hangs.
#[test]
fn a_driver_that_auto_may_not_choose_is_asked_nothing_until_it_is_named() {
    let runs = Arc::new(AtomicUsize::new(0));
    let rogue = Arc::new(Rogue {
        armed: Arc::new(AtomicBool::new(false)),
        fault: Fault::None,
        runs: runs.clone(),
        automatic: false,
    });
    let framework = Framework::builder(base()).driver(rogue.driver());
    let framework = framework.build().unwrap();
    let session = |driver: Option<&str>| {
        let builder = framework.session("ctr(aes)", &[1; 16]).unwrap();
        match driver {
            Some(name) => builder.driver(name).open().unwrap(),
            None => builder.open().unwrap(),
        }
    };
    session(None).apply(&[2; 16], &mut [3; 64]).unwrap();
    assert_eq!(runs.load(Ordering::Relaxed), 0);
    session(Some("rogue"));
    assert!(runs.load(Ordering::Relaxed) > 0, "the self-test");
}

/// A device whose keys are all in use when it is to be tested is not set aside for good.
#[test]
fn a_driver_without_room_for_the_self_test_is_tested_another_time() {
    let is_full = Arc::new(AtomicBool::new(true));
    let full = is_full.clone();
    let crowded = TestDriver::new("crowded").transform(move |algorithm, key| {
        match full.load(Ordering::Relaxed) {
            true => Err(Unavailable::NoRoom("all its keys are in use".to_owned())),
            false => Ok((algorithm.software)(key)),
        }
    });
    let framework = Framework::builder(base()).driver(Arc::new(crowded));
    let framework = framework.build().unwrap();
    let named = || {
        let session = framework.session("ctr(aes)", &[1; 16]).unwrap();
        session.driver("crowded").open()
    };
    let refused = named().unwrap_err();
    assert!(
        matches!(
            &refused,
            Error::DriverUnusable { reason: NotAdmitted::Unavailable(Unavailable::NoRoom(why)), .. }
                if why == "all its keys are in use"
        ),
        "{refused}"
    );
    is_full.store(false, Ordering::Relaxed);
    named().unwrap();
}

#[test]
fn what_a_driver_gives_up_or_forgets_is_finished_in_software() {
    for fault in [Fault::GiveUp, Fault::Forget] {
        let (framework, armed, runs) = with_rogue(fault);
        let session = framework.session("cbc(aes)", &[1; 16]).unwrap();
        let session = session.driver("rogue").open().unwrap();
        let plain = [3u8; 64];
        let mut want = plain;
        let request = Request::in_place(&mut want).iv(&[2; 16]);
        session.process(ENCRYPT, &mut [request]).unwrap();
        armed.store(true, Ordering::Relaxed);
        let before = runs.load(Ordering::Relaxed);
        let mut data = [plain; 3];
        let mut requests: Vec<_> = data
            .iter_mut()
            .map(|d| Request::in_place(d).iv(&[2; 16]))
            .collect();
        session.process(ENCRYPT, &mut requests).unwrap();
        drop(requests);
        assert_eq!(data, [want; 3]);
        assert!(runs.load(Ordering::Relaxed) > before);
        assert_eq!(
            framework.statistics("rogue", "cbc(aes)").unwrap().retries,
            3
        );
    }
}

#[test]
fn a_half_written_request_is_an_error_that_names_the_driver() {
    let (framework, armed, _) = with_rogue(Fault::HalfWrite);
    let session = framework
        .session("cbc(aes)", &[1; 16])
        .unwrap()
        .driver("rogue")
        .open()
        .unwrap();
    armed.store(true, Ordering::Relaxed);
    let mut data = [0; 32];
    let mut requests = [Request::in_place(&mut data).iv(&[2; 16])];
    let error = session
        .process(ENCRYPT, &mut requests)
        .unwrap_err()
        .to_string();
    assert_eq!(requests[0].status(), Status::Failed);
    assert!(
        error.contains("rogue") && error.contains("cbc(aes)"),
        "{error}"
    );
    assert_eq!(framework.statistics("rogue", "cbc(aes)").unwrap().errors, 1);
}

#[test]
fn a_driver_that_keeps_failing_is_suspended_and_said_to_be() {
    let (framework, armed, runs) = with_rogue(Fault::GiveUp);
    let session = framework
        .session("ctr(aes)", &[1; 16])
        .unwrap()
        .open()
        .unwrap();
    let forced = framework
        .session("ctr(aes)", &[1; 16])
        .unwrap()
        .driver("rogue")
        .open()
        .unwrap();
    armed.store(true, Ordering::Relaxed);
    let mut data = [0; 64];
    for _ in 0..20 {
        forced
            .process(ENCRYPT, &mut [Request::in_place(&mut data).iv(&[0; 16])])
            .unwrap();
    }
    let row = |framework: &Framework| {
        let mut rows = framework.rows().into_iter();
        rows.find(|r| r.driver == "rogue" && r.algorithm == "ctr(aes)")
            .unwrap()
    };
    let suspended = row(&framework);
    assert!(
        matches!(suspended.health, Health::Suspended { .. }),
        "{suspended:?}"
    );
    assert!(matches!(
        suspended.not_used_because,
        Some(NotUsedBecause::Unhealthy(Health::Suspended { .. }))
    ));
    let before = runs.load(Ordering::Relaxed);
    for _ in 0..5000 {
        session
            .process(ENCRYPT, &mut [Request::in_place(&mut data).iv(&[0; 16])])
            .unwrap();
    }
    // `auto` leaves it alone while it rests (the rest may end during this test).
    assert!(runs.load(Ordering::Relaxed) <= before + 50);
}

#[test]
fn a_driver_that_recovers_is_not_thereby_allowed() {
    let (armed, runs) = (Arc::default(), Arc::default());
    let rogue = Arc::new(Rogue {
        armed: Arc::clone(&armed),
        fault: Fault::GiveUp,
        runs: Arc::clone(&runs),
        automatic: false,
    });
    let builder = Framework::builder(base()).driver(rogue.driver());
    let framework = builder.build().unwrap();
    let open = |driver: Option<&str>| {
        let builder = framework.session("ctr(aes)", &[1; 16]).unwrap();
        let builder = match driver {
            Some(name) => builder.driver(name),
            None => builder,
        };
        builder.open().unwrap()
    };
    let mut data = [0; 64];
    let mut process = |session: &cipherlane_core::Session, requests: usize| {
        for _ in 0..requests {
            let request = Request::in_place(&mut data).iv(&[0; 16]);
            session.process(ENCRYPT, &mut [request]).unwrap();
        }
    };
    let forced = open(Some("rogue"));
    armed.store(true, Ordering::Relaxed);
    process(&forced, 10);
    armed.store(false, Ordering::Relaxed);
    std::thread::sleep(std::time::Duration::from_millis(150));
    // Sampled requests among these see that the rest is over.
    process(&forced, 10_000);
    let before = runs.load(Ordering::Relaxed);
    process(&open(None), 500_000);
    assert_eq!(runs.load(Ordering::Relaxed), before);
}

#[test]
fn the_user_can_disable_and_force_drivers() {
    let build = |config| {
        let (rogue, _, runs) = Rogue::new(Fault::None);
        let framework = Framework::builder(base())
            .driver(rogue.driver())
            .config(config)
            .build();
        (framework, runs)
    };
    let (framework, _) = build(Config {
        disable: vec!["rogue".into()],
        ..Config::default()
    });
    let framework = framework.unwrap();
    let rows = framework.rows();
    let row = rows.iter().find(|r| r.driver == "rogue").unwrap();
    assert_eq!(
        row.not_used_because,
        Some(NotUsedBecause::NotAdmitted(NotAdmitted::Disabled))
    );
    let builder = framework.session("ctr(aes)", &[1; 16]).unwrap();
    let refused = builder.driver("rogue").open().unwrap_err();
    assert!(
        matches!(
            refused,
            Error::DriverUnusable {
                reason: NotAdmitted::Disabled,
                ..
            }
        ),
        "{refused}"
    );

    let (framework, runs) = build(Config {
        force: Some("rogue".into()),
        ..Config::default()
    });
    let framework = framework.unwrap();
    let session = framework
        .session("ctr(aes)", &[1; 16])
        .unwrap()
        .open()
        .unwrap();
    let before = runs.load(Ordering::Relaxed);
    let mut data = [0; 64];
    session
        .process(ENCRYPT, &mut [Request::in_place(&mut data).iv(&[0; 16])])
        .unwrap();
    assert_eq!(runs.load(Ordering::Relaxed), before + 1);
    let rows = framework.rows();
    let base = rows.iter().find(|r| r.driver == "base").unwrap();
    let forced = NotUsedBecause::Forced("rogue".to_owned());
    assert_eq!(base.not_used_because, Some(forced));

    for config in [
        Config {
            force: Some("qat".into()),
            ..Config::default()
        },
        Config {
            disable: vec!["qat".into()],
            ..Config::default()
        },
        Config {
            auto: vec!["qat".into()],
            ..Config::default()
        },
    ] {
        let error = build(config).0.unwrap_err().to_string();
        assert!(error.contains("qat") && error.contains("rogue"), "{error}");
    }
}
