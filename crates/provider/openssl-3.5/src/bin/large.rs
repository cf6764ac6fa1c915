//! What dedicated cores gain on large calls, against the provider without them and against
//! OpenSSL's own ciphers, in turns in one process. `CIPHERLANE_PROVIDER` names a release
//! build. Run it away from the dedicated cores (`taskset`).
//!
//! `large CORES [SECONDS]` measures each way for that number of seconds (1 unless given).

use std::error::Error;
use std::time::Duration;

use cipherlane_measure::interleave::{Plan, measure};
use cipherlane_measure::machine::Machine;
use cipherlane_measure::subject::{Candidate, Failure};
use openssl_3_5::message::Message;
use openssl_3_5::{Cipher, Lib};

const DEFAULT: &str = "default";
const ALONE: &str = "cipherlane";
const SHARED: &str = "with cores";
const VARIABLE: &str = "CIPHERLANE_CORES";

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let cores = arguments.next().ok_or("name the cores, like 1-3")?;
    let seconds = arguments.next().map_or(Ok(1.0), |text| text.parse())?;
    let plan = Plan {
        time: Duration::try_from_secs_f64(seconds)?,
        ..Plan::default()
    };
    // SAFETY: no other thread was started.
    unsafe { std::env::remove_var(VARIABLE) };
    let (default, alone) = (Lib::theirs(), Lib::ours());
    // SAFETY: as above; providers start threads with the first large call.
    unsafe { std::env::set_var(VARIABLE, &cores) };
    let folder = tempfile::tempdir()?;
    let shared = Lib::ours_apart(folder.path());
    let machine = Machine::detect();
    println!("{}, {}, {}", machine.cpu, machine.kernel, machine.date);
    println!("GB/s of one caller, and of one with core {cores} beside it:\n");
    println!(
        "{:12} {:>9} {DEFAULT:>11} {ALONE:>11} {SHARED:>11}  cores",
        "", ""
    );
    for name in ["AES-128-CTR", "AES-128-GCM", "AES-128-XTS", "AES-128-ECB"] {
        let ciphers = [&default, &alone, &shared].map(|lib| lib.cipher(name));
        for kib in [256, 512, 1024, 4096, 16384] {
            let subject = |cipher| move |_| calls(cipher, kib << 10);
            let candidates = [
                Candidate::new(DEFAULT, subject(&ciphers[0])),
                Candidate::new(ALONE, subject(&ciphers[1])),
                Candidate::new(SHARED, subject(&ciphers[2])),
            ];
            let measurement = measure(&plan, &candidates, |_| ())?;
            let rate = |name| {
                let run = measurement.run(name).and_then(|run| run.rate());
                run.map_or(f64::NAN, |rate| rate.median * (kib << 10) as f64 / 1e9)
            };
            let ratio = measurement.ratio(SHARED, ALONE);
            let ratio = ratio.map_or(String::new(), |ratio| {
                format!(
                    "x{:.2} ({:.2} to {:.2})",
                    ratio.median, ratio.low, ratio.high
                )
            });
            println!(
                "{name:12} {kib:5} KiB {:11.1} {:11.1} {:11.1}  {ratio}",
                rate(DEFAULT),
                rate(ALONE),
                rate(SHARED),
            );
        }
    }
    Ok(())
}

/// One call after another under one key, each as a message of its own.
fn calls(cipher: &Cipher, len: usize) -> Result<impl FnMut(u64) -> Result<(), Failure>, Failure> {
    let key: Vec<u8> = (0..cipher.key_len() as u8).collect();
    let mut message = Message::new(cipher, true, &key).map_err(|refused| refused.0)?;
    let iv = vec![0; cipher.iv_len()];
    let input = vec![0x5a; len];
    let mut output = vec![0; len + 16];
    Ok(move |operations| {
        for _ in 0..operations {
            let run = message.begin(&iv);
            run.and_then(|()| message.update(&input, &mut output))
                .map_err(|refused| refused.0)?;
        }
        Ok(())
    })
}
