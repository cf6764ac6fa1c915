//! Draws the phases of two recordings as SVG:
//! `cargo run --example why -- TITLE NAME-OF-A A.json NAME-OF-B B.json > figure.svg`

use std::error::Error;
use std::path::Path;

use cipherlane_profile::diff::Diff;
use cipherlane_profile::page::figure;
use cipherlane_profile::recording::Recording;
use cipherlane_profile::rules::Rules;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [title, name_a, a, name_b, b] = &words[..] else {
        return Err("give TITLE NAME-OF-A A.json NAME-OF-B B.json".into());
    };
    let (a, b) = (
        Recording::open(Path::new(a))?,
        Recording::open(Path::new(b))?,
    );
    let diff = Diff::new(&a, &b, &Rules::built_in());
    let day = b.machine.date.split('T').next().unwrap_or_default();
    let note = format!("{}, {} processors, {day}", b.machine.cpu, b.machine.cpus);
    print!("{}", figure(&diff, title, [name_a, name_b], &note));
    Ok(())
}
