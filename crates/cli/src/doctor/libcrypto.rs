//! How fast this system's libcrypto is beside the kernels of Cipherlane, measured in turns.

use std::time::{Duration, Instant};

use cipherlane_core::{Config, Session};
use cipherlane_measure::stats::{Interval, Verdict, paired_ratio};

use crate::failure::Failure;
use crate::options::start;

const ALGORITHM: &str = "gcm(aes)";

/// Bytes of a request: a TLS record.
const SIZE: usize = 16 << 10;

/// Pairs of blocks, and how long a block takes.
const PAIRS: usize = 40;
const BLOCK: Duration = Duration::from_millis(4);

/// How many times as long libcrypto takes; 1 where it is not slower. `Err`: why that could not be
/// measured.
pub(super) fn times_slower(config: &Config) -> Result<f64, String> {
    let ratio = measure(config).map_err(|failure| failure.to_string())?;
    match ratio.verdict() {
        Verdict::Faster { times, .. } => Ok(times),
        Verdict::Slower { .. } => Ok(1.0),
        Verdict::WithinNoise => Err("this machine is too busy to tell".to_owned()),
    }
}

/// Rates of Cipherlane by rates of libcrypto.
fn measure(config: &Config) -> Result<Interval, Failure> {
    let mut config = config.clone();
    config.force = None;
    // What is measured here is not what was learned of other work.
    config.profile = None;
    let framework = start(config)?;
    let session = |driver| {
        framework
            .session(ALGORITHM, &[7; 32])?
            .driver(driver)
            .open()
    };
    let sessions = [session("software")?, session("openssl")?];
    let mut rates = [Vec::new(), Vec::new()];
    let mut data = vec![0; SIZE];
    for pair in 0..PAIRS {
        // Each is first in every second pair.
        for which in [pair % 2, 1 - pair % 2] {
            rates[which].push(rate(&sessions[which], &mut data)?);
        }
    }
    paired_ratio(&rates[0], &rates[1])
        .ok_or_else(|| Failure::Runtime("no time passed while it was measured".to_owned()))
}

/// Requests per second in a block.
fn rate(session: &Session, data: &mut [u8]) -> Result<f64, Failure> {
    let mut tag = [0; 16];
    let mut count = 0u64;
    let begin = Instant::now();
    while begin.elapsed() < BLOCK {
        // The result is thrown away, so that the nonce may be the same.
        session.seal(&[0; 12], b"", data, &mut tag)?;
        count += 1;
    }
    Ok(count as f64 / begin.elapsed().as_secs_f64())
}
