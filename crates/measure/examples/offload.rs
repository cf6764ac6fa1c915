//! Is it worth handing work to a helper thread? A checksum on the caller's own
//! thread, with half of it handed to a helper that sleeps, and with half of it
//! handed to a helper that waits busily.
//!
//! Writes a JSON record to the standard output, or with `--html` a page:
//! `cargo run --release -p cipherlane-measure --example offload -- --html > page.html`

use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::time::Duration;

use cipherlane_measure::interleave::{Plan, measure};
use cipherlane_measure::machine::Machine;
use cipherlane_measure::record::Case;
use cipherlane_measure::recorder::Recorder;
use cipherlane_measure::report;
use cipherlane_measure::subject::{Candidate, Failure, Subject};

/// Adler-32 without its final composition: cannot be vectorised away.
fn checksum(data: &[u8]) -> u64 {
    data.iter()
        .fold((1u32, 0u32), |(a, b), byte| {
            let a = (a + u32::from(*byte)) % 65_521;
            (a, (b + a) % 65_521)
        })
        .1
        .into()
}

/// Computes the first half itself while a helper computes the second.
struct Offload {
    data: Vec<u8>,
    jobs: SyncSender<usize>,
    results: Receiver<u64>,
    busy: bool,
}

impl Offload {
    fn new(size: usize, busy: bool) -> Self {
        let (jobs, inbox) = sync_channel::<usize>(1);
        let (outbox, results) = sync_channel(1);
        std::thread::spawn(move || {
            let data = vec![1; size];
            while let Some(from) = receive(&inbox, busy) {
                if outbox.send(checksum(&data[from..])).is_err() {
                    break;
                }
            }
        });
        Self {
            data: vec![1; size],
            jobs,
            results,
            busy,
        }
    }
}

/// The next message, waited for asleep or for 20 µs awake; `None` at the end.
fn receive<T>(channel: &Receiver<T>, busy: bool) -> Option<T> {
    let start = std::time::Instant::now();
    while busy && start.elapsed() < Duration::from_micros(20) {
        match channel.try_recv() {
            Ok(message) => return Some(message),
            Err(TryRecvError::Disconnected) => return None,
            Err(TryRecvError::Empty) => std::hint::spin_loop(),
        }
    }
    channel.recv().ok()
}

impl Subject for Offload {
    fn run(&mut self, operations: u64) -> Result<(), Failure> {
        for _ in 0..operations {
            let half = self.data.len() / 2;
            self.jobs.send(half)?;
            let own = checksum(&self.data[..half]);
            let other = receive(&self.results, self.busy).ok_or("the helper has ended")?;
            std::hint::black_box(own + other);
        }
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let plan = Plan {
        time: Duration::from_millis(600),
        ..Plan::default()
    };
    let case = Case {
        algorithm: "adler32".into(),
        keybits: 0,
        direction: "digest".into(),
        batch: 1,
        threads: plan.threads,
        depth: None,
        pause_us: None,
    };
    let mut recorder = Recorder::new("caller");
    for size in [16, 64, 256, 1024, 1400, 8192, 16_384, 65_536, 1 << 20] {
        let candidates = [
            Candidate::new("caller", |_| {
                let data = vec![1; size];
                Ok(move |operations: u64| {
                    for _ in 0..operations {
                        std::hint::black_box(checksum(std::hint::black_box(&data)));
                    }
                    Ok(())
                })
            }),
            Candidate::new("helper asleep", |_| Ok(Offload::new(size, false))),
            Candidate::new("helper awake", |_| Ok(Offload::new(size, true))),
        ];
        let measurement = measure(&plan, &candidates, |_| ())?;
        for cell in recorder.add(&case, size as u64, &measurement) {
            eprintln!(
                "{:>8} {:14} {:>12.0} bytes/s  load {:.2}",
                cell.size,
                cell.driver,
                cell.bytes_per_second,
                cell.load()
            );
        }
    }
    let record = recorder.finish(Machine::detect());
    if std::env::args().any(|argument| argument == "--html") {
        println!("{}", report::html(&record, "Is a helper thread worth it?"));
    } else {
        record.write_json(std::io::stdout())?;
    }
    Ok(())
}
