//! Calibration, the profile file, and `why`.

mod common;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cipherlane_core::{
    Algorithm, Batch, Config, Direction, Framework, Goal, Load, Mode, NotUsedBecause, OwnedRequest,
    Payload, Question, Request, ServedBecause, Transform,
};
use cipherlane_test_driver::TestDriver;
use common::{Fault, Rogue, base};

fn build(config: Config) -> Result<Framework, cipherlane_core::Error> {
    let (rogue, _, _) = Rogue::new(Fault::None);
    Framework::builder(base())
        .driver(rogue.driver())
        .config(config)
        .build()
}

fn question(size: usize) -> Question {
    Question {
        algorithm: Algorithm::find("ctr(aes)").unwrap(),
        key_len: 16,
        goal: Goal::Latency,
        mode: Mode::Wait,
        direction: Direction::Encrypt,
        requests: 1,
        size,
    }
}

#[test]
fn what_is_calibrated_is_kept_in_the_file_and_read_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("deep/profile.json");
    let config = || Config {
        profile: Some(path.clone()),
        calibration_seconds: Some(0.05),
        ..Config::default()
    };
    let framework = build(config()).unwrap();
    let before = framework.explain(question(16384)).unwrap();
    assert_eq!(
        (before.served_by.as_str(), before.candidates[0].samples),
        ("base", 0)
    );
    assert!(
        before.reason == ServedBecause::NothingMeasured,
        "{}",
        before.reason
    );
    let mut steps = Vec::new();
    let what = [(Algorithm::find("ctr(aes)").unwrap(), 16)];
    framework
        .calibrate(&what, &mut |s| steps.push((s.driver.to_owned(), s.done)))
        .unwrap();
    for driver in ["base", "rogue"] {
        assert!(steps.iter().any(|(name, _)| name == driver), "{driver}");
    }
    assert!(
        steps.is_sorted_by(|a, b| a.1 <= b.1) && steps.iter().all(|s| (0.0..1.0).contains(&s.1))
    );
    let learned = framework.explain(question(16384)).unwrap();
    assert!(
        learned
            .candidates
            .iter()
            .all(|c| c.samples > 0 && c.latency_ns.is_some())
    );
    framework.save_profile().unwrap();

    let again = build(config()).unwrap().explain(question(16384)).unwrap();
    let estimates = |w: &cipherlane_core::Why| -> Vec<_> {
        w.candidates
            .iter()
            .map(|c| c.latency_ns.unwrap() as u32)
            .collect()
    };
    assert_eq!(estimates(&again), estimates(&learned));
    let row = build(config())
        .unwrap()
        .rows()
        .into_iter()
        .find(|r| r.algorithm == "ctr(aes)");
    assert!(row.unwrap().gigabytes_per_second.unwrap() > 0.01);
}

#[test]
fn a_damaged_profile_is_an_error_with_a_remedy_and_an_old_one_is_ignored() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("profile.json");
    let config = || Config {
        profile: Some(path.clone()),
        ..Config::default()
    };
    std::fs::write(&path, "{\"format\": 1, \"proc").unwrap();
    let error = build(config()).unwrap_err().to_string();
    assert!(
        error.contains("profile.json") && error.contains("calibrate"),
        "{error}"
    );
    std::fs::write(&path, "{\"format\": 0, \"processors\": []}").unwrap();
    build(config()).unwrap();
    // Not to be overwritten: it is something else.
    for text in ["{\"format\": 3}", "{}", "[]", "7"] {
        std::fs::write(&path, text).unwrap();
        let error = build(config()).unwrap_err().to_string();
        assert!(error.contains("not a profile"), "{text}: {error}");
    }
}

#[test]
fn why_names_everybody_and_says_who_is_forced() {
    let config = Config {
        force: Some("rogue".into()),
        ..Config::default()
    };
    let why = build(config).unwrap().explain(question(64)).unwrap();
    assert_eq!(why.served_by, "rogue");
    assert_eq!(why.reason, ServedBecause::Forced("rogue".to_owned()));
    let base = &why.candidates[0];
    let forced = NotUsedBecause::Forced("rogue".to_owned());
    assert_eq!(base.not_used_because, Some(forced));
    let text = serde_json::to_string(&why).unwrap();
    assert!(text.contains("\"served_by\":\"rogue\""), "{text}");
}

#[test]
fn why_says_that_work_is_too_little_for_a_driver() {
    let longer = TestDriver::new("longer").least_work(Duration::from_secs(3600));
    let config = Config {
        calibration_seconds: Some(0.02),
        ..Config::default()
    };
    let framework = Framework::builder(base())
        .driver(Arc::new(longer))
        .config(config)
        .build()
        .unwrap();
    let what = [(Algorithm::find("ctr(aes)").unwrap(), 16)];
    framework.calibrate(&what, &mut |_| ()).unwrap();
    let why = framework.explain(question(16384)).unwrap();
    assert_eq!(why.served_by, "base");
    assert_eq!(why.reason, ServedBecause::NoOtherUsable);
    let hour = 3600 * 1_000_000_000;
    let too_little = NotUsedBecause::TooLittleWork(hour);
    assert_eq!(why.candidates[1].not_used_because, Some(too_little));
}

/// Helps with batches alone, and says what it ran.
struct Batches {
    kernel: Box<dyn Transform>,
    ran: Arc<Mutex<Vec<usize>>>,
}

impl Transform for Batches {
    fn run(&self, direction: Direction, requests: &mut [Request<'_>]) {
        self.ran.lock().unwrap().push(requests.len());
        self.kernel.run(direction, requests);
    }

    fn shares(&self, _: Direction, requests: usize) -> bool {
        requests > 1
    }

    fn hands_over(&self, _: Direction, requests: usize, _: usize) -> bool {
        requests > 1
    }
}

#[test]
fn what_cannot_be_shared_is_not_given_to_helpers() {
    let ran = Arc::new(Mutex::new(Vec::new()));
    let ran_too = ran.clone();
    let helping = TestDriver::new("helping").wrap(move |kernel| Batches {
        kernel,
        ran: ran_too.clone(),
    });
    let slow = TestDriver::new("slow").wrap(|kernel| Noting {
        kernel,
        ran: Arc::default(),
        name: "slow",
    });
    let config = Config {
        calibration_seconds: Some(0.05),
        ..Config::default()
    };
    let framework = Framework::builder(Arc::new(slow))
        .driver(Arc::new(helping))
        .config(config)
        .build()
        .unwrap();
    let what = [(Algorithm::find("ctr(aes)").unwrap(), 16)];
    framework.calibrate(&what, &mut |_| ()).unwrap();
    let batch = Question {
        requests: 2,
        ..question(16384)
    };
    assert_eq!(framework.explain(batch).unwrap().served_by, "helping");
    let alone = framework.explain(question(16384)).unwrap();
    assert_eq!(alone.served_by, "slow");
    let reason = &alone.candidates[1].not_used_because;
    assert_eq!(*reason, Some(NotUsedBecause::StaysWhole));

    ran.lock().unwrap().clear();
    let session = framework.session("ctr(aes)", &[1; 16]).unwrap();
    let session = session.open().unwrap();
    let mut data = [[0; 16384]; 2];
    for _ in 0..40 {
        let [first, second] = &mut data;
        let mut requests = [Request::in_place(first), Request::in_place(second)];
        requests
            .iter_mut()
            .for_each(|request| request.set_iv(&[7; 16]));
        session.process(Direction::Encrypt, &mut requests).unwrap();
        let mut alone = [Request::in_place(&mut data[0]).iv(&[7; 16])];
        session.process(Direction::Encrypt, &mut alone).unwrap();
    }
    for _ in 0..40 {
        let mut batch = Batch::new(Direction::Encrypt);
        batch.push(OwnedRequest::new(Payload::InPlace(vec![0; 16384])).iv(vec![7; 16]));
        session.submit(&mut batch).unwrap().wait();
    }
    let ran = ran.lock().unwrap();
    assert!(
        !ran.is_empty() && ran.iter().all(|&requests| requests == 2),
        "{ran:?}"
    );
}

/// Says who ran each batch.
struct Noting {
    kernel: Box<dyn Transform>,
    ran: Arc<Mutex<Vec<&'static str>>>,
    name: &'static str,
}

impl Transform for Noting {
    fn run(&self, direction: Direction, requests: &mut [Request<'_>]) {
        self.ran.lock().unwrap().push(self.name);
        if self.name == "slow" {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.kernel.run(direction, requests);
    }
}

#[test]
fn who_does_not_wait_tries_a_driver_by_batches_that_follow_one_another() {
    let ran = Arc::new(Mutex::new(Vec::new()));
    let noting = |name: &'static str| {
        let ran = ran.clone();
        Arc::new(TestDriver::new(name).wrap(move |kernel| Noting {
            kernel,
            ran: ran.clone(),
            name,
        }))
    };
    let framework = Framework::builder(noting("base"))
        .driver(noting("slow"))
        .build()
        .unwrap();
    let session = framework.session("ctr(aes)", &[1; 16]).unwrap();
    let session = session.open().unwrap();
    ran.lock().unwrap().clear();
    let mut batch = Batch::new(Direction::Encrypt);
    batch.push(OwnedRequest::new(Payload::InPlace(vec![0; 256 << 10])).iv(vec![0; 16]));
    for _ in 0..20_000 {
        batch = session.submit(&mut batch).unwrap().wait();
        let ran = ran.lock().unwrap();
        let last = ran.len().saturating_sub(1);
        if ran.contains(&"slow") && ran[last] == "base" {
            break;
        }
    }
    let ran = ran.lock().unwrap();
    let series = ran.chunk_by(|a, b| a == b).find(|runs| runs[0] == "slow");
    // One at least that wakes the driver, and four that count.
    assert!(series.expect("it is tried").len() >= 5, "{ran:?}");
}

/// Says of each batch whether the helpers were awake.
struct Helped {
    kernel: Box<dyn Transform>,
    looks: Arc<AtomicU32>,
    awake: Arc<Mutex<Vec<bool>>>,
}

impl Transform for Helped {
    fn run(&self, direction: Direction, requests: &mut [Request<'_>]) {
        let awake = self.looks.load(Ordering::Relaxed) == 0;
        self.awake.lock().unwrap().push(awake);
        self.kernel.run(direction, requests);
    }
}

#[test]
fn who_does_not_wait_tries_helpers_that_are_awake() {
    // How often somebody has still to look before the helpers are there; the largest number if nobody
    // has called them.
    let looks = Arc::new(AtomicU32::new(u32::MAX));
    let awake = Arc::new(Mutex::new(Vec::new()));
    let (looked, called, seen) = (looks.clone(), looks.clone(), looks.clone());
    let awake_too = awake.clone();
    let helpers = TestDriver::new("helpers")
        .load(move || {
            let left = match looked.load(Ordering::Relaxed) {
                u32::MAX => u32::MAX,
                left => left.saturating_sub(1),
            };
            looked.store(left, Ordering::Relaxed);
            Load {
                queued_bytes: 0,
                delay_ns: if left > 0 { 1_000_000_000 } else { 0 },
            }
        })
        .missed(move |_| {
            if called.load(Ordering::Relaxed) == u32::MAX {
                called.store(20, Ordering::Relaxed);
            }
        })
        .wrap(move |kernel| Helped {
            kernel,
            looks: seen.clone(),
            awake: awake_too.clone(),
        });
    let framework = Framework::builder(base())
        .driver(Arc::new(helpers))
        .build()
        .unwrap();
    let session = framework.session("ctr(aes)", &[1; 16]).unwrap();
    let session = session.open().unwrap();
    // The self-test has had the driver, too.
    looks.store(u32::MAX, Ordering::Relaxed);
    awake.lock().unwrap().clear();
    let mut batch = Batch::new(Direction::Encrypt);
    batch.push(OwnedRequest::new(Payload::InPlace(vec![0; 256 << 10])).iv(vec![0; 16]));
    for _ in 0..20_000 {
        batch = session.submit(&mut batch).unwrap().wait();
        if awake.lock().unwrap().len() >= 5 {
            break;
        }
    }
    let awake = awake.lock().unwrap();
    assert!(awake.len() >= 5, "they are not tried");
    assert!(awake.iter().all(|&awake| awake), "{awake:?}");
}
