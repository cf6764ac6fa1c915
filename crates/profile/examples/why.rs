//! Draws the phases of two recordings as SVG, of all time or of that with a processor:
//! `cargo run --example why -- all|processor TITLE NAME-OF-A A.json NAME-OF-B B.json > figure.svg`

use std::error::Error;
use std::path::Path;

use cipherlane_profile::diff::Diff;
use cipherlane_profile::page::{Times, figure};
use cipherlane_profile::recording::Recording;
use cipherlane_profile::rules::Rules;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [times, title, name_a, a, name_b, b] = &words[..] else {
        return Err("give all|processor TITLE NAME-OF-A A.json NAME-OF-B B.json".into());
    };
    let times = match times.as_str() {
        "all" => Times::All,
        "processor" => Times::Processor,
        other => return Err(format!("'{other}' is neither 'all' nor 'processor'").into()),
    };
    let (a, b) = (
        Recording::open(Path::new(a))?,
        Recording::open(Path::new(b))?,
    );
    let diff = Diff::new(&a, &b, &Rules::built_in());
    let day = b.machine.date.split('T').next().unwrap_or_default();
    let note = format!("{}, {} processors, {day}", b.machine.cpu, b.machine.cpus);
    print!("{}", figure(&diff, times, title, [name_a, name_b], &note));
    Ok(())
}
