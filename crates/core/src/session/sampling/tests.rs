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
}

struct Timed(Box<dyn Transform>, VirtualTime);

impl Transform for Timed {
    fn run(&self, direction: Direction, requests: &mut [Request<'_>]) {
        let bytes: usize = requests.iter().map(Request::len).sum();
        self.1.work(Duration::from_nanos(50 + bytes as u64));
        self.0.run(direction, requests);
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
        let kernel = (algorithm.software)(key);
        Ok(Box::new(Timed(kernel, self.time.clone())))
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

fn framework(clock: Clock, time: &VirtualTime, called: &Arc<AtomicBool>) -> Framework {
    let driver = |name, delay_ns| {
        Arc::new(Sleeper {
            name,
            delay_ns,
            time: time.clone(),
            called: called.clone(),
        })
    };
    Framework::builder(driver("base", 0))
        .driver(driver("sleeper", 50_000))
        .clock(clock)
        .build()
        .unwrap()
}

fn encrypt(session: &Session, data: &mut [u8]) {
    let mut request = [Request::in_place(data).iv(&[1; 16])];
    session.process(Direction::Encrypt, &mut request).unwrap();
}

/// A thread that awaits helpers times every batch. It must not do so for batches of other sessions,
/// nor for ever.
#[test]
fn short_batches_are_not_all_timed_after_a_trial_was_put_off() {
    let (time, called) = (VirtualTime::new(), Arc::new(AtomicBool::new(false)));
    let framework = framework(time.clock(), &time, &called);
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
