//! `rust-peers [--seconds S] [--block MS] [--json FILE]` measures each candidate for S
//! seconds per cell (0.25 unless given), in turns of MS milliseconds (10 unless given;
//! fewer on a busy machine), and prints a table; the record goes to FILE.

use std::error::Error;
use std::fs::File;
use std::time::Duration;

use cipherlane_measure::interleave::{Plan, measure};
use cipherlane_measure::machine::Machine;
use cipherlane_measure::recorder::Recorder;
use rust_peers::contest::{KERNELS, Operation};
use rust_peers::table;

const SIZES: [usize; 6] = [16, 64, 256, 1400, 16 << 10, 1 << 20];

fn main() -> Result<(), Box<dyn Error>> {
    let (mut seconds, mut block, mut json) = (0.25, 10.0, None);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let value = arguments
            .next()
            .ok_or(format!("{argument} needs a value"))?;
        match argument.as_str() {
            "--seconds" => seconds = value.parse()?,
            "--block" => block = value.parse()?,
            "--json" => json = Some(value),
            _ => {
                return Err(
                    format!("{argument} is no option; use --seconds, --block or --json").into(),
                );
            }
        }
    }
    let plan = Plan {
        time: Duration::try_from_secs_f64(seconds)?,
        block: Duration::try_from_secs_f64(block / 1e3)?,
        ..Plan::default()
    };
    let mut recorder = Recorder::new(KERNELS);
    for operation in Operation::ALL {
        for batch in [1, 16] {
            for size in SIZES.map(|size| operation.fit(size)) {
                let candidates = match batch {
                    1 => operation.candidates::<1>(size),
                    _ => operation.candidates::<16>(size),
                };
                let measurement = measure(&plan, &candidates, |_| ())?;
                recorder.add(&operation.case(batch), size as u64, &measurement);
                eprint!(".");
            }
        }
    }
    eprintln!();
    let record = recorder.finish(Machine::detect());
    if let Some(path) = json {
        record.write_json(File::create(path)?)?;
    }
    print!("{}", table::text(&record));
    Ok(())
}
