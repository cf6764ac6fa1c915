//! Draws the throughput of one case of an earlier JSON record as SVG:
//! `cargo run --example figure -- CASE < speed.json > figure.svg`

use std::error::Error;

use cipherlane_measure::record::Record;
use cipherlane_measure::report;

fn main() -> Result<(), Box<dyn Error>> {
    let wanted = std::env::args().nth(1).unwrap_or_default();
    let record: Record = serde_json::from_reader(std::io::stdin())?;
    let mut cases = record.cells.iter().map(|cell| cell.case());
    let Some(case) = cases.find(|case| case.title() == wanted) else {
        return Err(format!("the record has no case '{wanted}'").into());
    };
    let mut chart = report::throughput(&record, &case);
    let machine = &record.machine;
    let day = machine.date.split('T').next().unwrap_or_default();
    chart.title = format!("Throughput of {wanted}");
    chart.note = format!("{}, {day}. {}", machine.cpu, chart.note);
    print!("{}", chart.alone());
    Ok(())
}
