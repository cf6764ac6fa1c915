use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::{BETWEEN_SAMPLES, FIRST_SAMPLE_EVERY};
use crate::{
    Algorithm, Clock, Direction, Driver, Framework, Load, Request, Session, Transform, Unavailable,
    VirtualTime,
};

/// A driver whose helpers sleep for ever, if it has a delay; it takes a nanosecond per byte.
struct Sleeper {
    name: &'static str,
    delay_ns: u32,
    time: VirtualTime,
    /// Whether helpers were asked for, for a trial.
    called: Arc<AtomicBool>,
    /// Whether it was given work.
    worked: Arc<AtomicBool>,
}

struct Timed {
    kernel: Box<dyn Transform>,
    time: VirtualTime,
    worked: Arc<AtomicBool>,
}

impl Transform for Timed {
    fn run(&self, direction: Direction, requests: &mut [Request<'_>]) {
        let bytes: usize = requests.iter().map(Request::len).sum();
        self.time.work(Duration::from_nanos(50 + bytes as u64));
        self.worked.store(true, Ordering::Relaxed);
        self.kernel.run(direction, requests);
    }
}

impl Driver for Sleeper {
    fn name(&self) -> &str {
        self.name
    }
    fn version(&self) -> String {
        "1".to_owned()
    }
    fn priority(&self) -> i32 {
        100
    }
    fn transform(
        &self,
        algorithm: &'static Algorithm,
        key: &[u8],
    ) -> Result<Box<dyn Transform>, Unavailable> {
        Ok(Box::new(Timed {
            kernel: (algorithm.software)(key),
            time: self.time.clone(),
            worked: self.worked.clone(),
        }))
    }
    fn load(&self) -> Load {
        Load {
            queued_bytes: 0,
            delay_ns: self.delay_ns,
        }
    }
    fn missed(&self, nanoseconds: u32) {
        let is_asked = nanoseconds == u32::MAX;
        self.called.fetch_or(is_asked, Ordering::Relaxed);
    }
}

/// A base and a sleeper: that one is the second.
fn framework(clock: Clock, time: &VirtualTime) -> (Framework, Arc<Sleeper>) {
    let driver = |name, delay_ns| {
        Arc::new(Sleeper {
            name,
            delay_ns,
            time: time.clone(),
            called: Arc::default(),
            worked: Arc::default(),
        })
    };
    let sleeper = driver("sleeper", 50_000);
    let framework = Framework::builder(driver("base", 0))
        .driver(sleeper.clone())
        .clock(clock)
        .build()
        .unwrap();
    (framework, sleeper)
}

fn encrypt(session: &Session, data: &mut [u8]) {
    let mut request = [Request::in_place(data).iv(&[1; 16])];
    session.process(Direction::Encrypt, &mut request).unwrap();
}

/// A thread that awaits helpers times every batch. It must not do so for batches of other sessions,
/// nor for ever.
#[test]
fn short_batches_are_not_all_timed_after_a_trial_was_put_off() {
    let time = VirtualTime::new();
    let (framework, sleeper) = framework(time.clock(), &time);
    let called = &sleeper.called;
    let open = |driver: Option<&str>| {
        let builder = framework.session("ctr(aes)", &[7; 16]).unwrap();
        match driver {
            Some(name) => builder.driver(name).open().unwrap(),
            None => builder.open().unwrap(),
        }
    };
    let (auto, base) = (open(None), open(Some("base")));
    let mut large = vec![0; 1 << 20];
    for others in [true, false] {
        called.store(false, Ordering::Relaxed);
        let mut batches = 0;
        while !(called.load(Ordering::Relaxed) && BETWEEN_SAMPLES.get() == 0) {
            encrypt(&auto, &mut large);
            batches += 1;
            assert!(batches < 10_000, "no trial was put off");
        }
        let session = if others { &base } else { &auto };
        for _ in 0..4 {
            encrypt(session, &mut [0; 64]);
        }
        let between = BETWEEN_SAMPLES.get();
        assert!(between >= FIRST_SAMPLE_EVERY / 2, "{others}: {between}");
    }
}

/// A session that finds helpers asleep puts its trial off and calls them. Where another one of the same
/// thread does so too before the first is at work again, neither may begin anew each time.
#[test]
fn sessions_that_take_turns_make_their_trials() {
    let time = VirtualTime::new();
    let (framework, sleeper) = framework(time.clock(), &time);
    let open = || framework.session("ctr(aes)", &[7; 16]).unwrap().open();
    let sessions = [open().unwrap(), open().unwrap()];
    // The self-test of the algorithm was its first work.
    sleeper.worked.store(false, Ordering::Relaxed);
    let mut data = vec![0; 1 << 20];
    for session in sessions.iter().cycle().take(10_000) {
        encrypt(session, &mut data);
        if sleeper.worked.load(Ordering::Relaxed) {
            assert!(sleeper.called.load(Ordering::Relaxed));
            return;
        }
    }
    panic!("no trial in 10,000 batches");
}
