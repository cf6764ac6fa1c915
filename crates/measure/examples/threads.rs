//! Draws what one SA does on more and more threads, from records of `cipherlane esp-perf --json`:
//! `cargo run --example threads -- SIZE PACKETS FILE... > figure.svg`
//!
//! Each transform and direction is a line: packets of SIZE bytes, at most PACKETS of them per call.

use std::collections::BTreeMap;
use std::error::Error;

use cipherlane_measure::report::{Chart, Labels, Line, Point};
use serde_json::Value;

/// What a line is drawn of: threads, and for each number of packets per call bytes per second.
type Rates = BTreeMap<u64, BTreeMap<u64, f64>>;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut next = || arguments.next().ok_or("SIZE PACKETS FILE...");
    let (size, packets): (String, u64) = (next()?, next()?.parse()?);
    let mut machine = Value::Null;
    let mut lines: BTreeMap<String, Rates> = BTreeMap::new();
    for file in arguments {
        let record: Value = serde_json::from_str(&std::fs::read_to_string(file)?)?;
        machine = record["machine"].clone();
        for cell in record["cells"].as_array().ok_or("no cells")? {
            let text = |name: &str| cell[name].as_str().unwrap_or_default().to_owned();
            let number = |name: &str| cell[name].as_u64().unwrap_or_default();
            if text("size") == size && number("multipacket") <= packets {
                let line = format!("{}, {}", text("transform"), text("direction"));
                let rate = cell["bytes_per_second"].as_f64().ok_or("no rate")?;
                let line = lines.entry(line).or_default();
                let at = line.entry(number("threads")).or_default();
                at.insert(number("multipacket"), rate);
            }
        }
    }
    let lines = lines.into_iter().enumerate();
    let lines = lines.map(|(series, (name, rates))| Line {
        name,
        series,
        points: rates.iter().filter_map(point).collect(),
        ..Line::default()
    });
    let text = |name: &str| machine[name].as_str().unwrap_or_default().to_owned();
    let chart = Chart {
        title: "One SA on many threads".to_owned(),
        note: format!(
            "{}, {} processors, {}. Packets of {size} bytes, {packets} per call or the most \
             measured below that.",
            text("cpu"),
            machine["cpus"],
            text("date").split('T').next().unwrap_or_default(),
        ),
        across: "threads on one SA",
        doublings: true,
        labels: Labels {
            up: |gigabits| format!("{gigabits} Gbit/s"),
            ..Labels::default()
        },
        lines: lines.collect(),
        ..Chart::default()
    };
    print!("{}", chart.alone());
    Ok(())
}

/// With the most packets per call.
fn point((&threads, rates): (&u64, &BTreeMap<u64, f64>)) -> Option<Point> {
    let (_, rate) = rates.last_key_value()?;
    Some(Point {
        x: threads as f64,
        y: rate * 8.0 / 1e9,
        ..Point::default()
    })
}
