//! The short answer: one small table and one sentence, as `cryptsetup benchmark` gives.

use cipherlane_core::Algorithm;
use cipherlane_measure::crossover::Outcome;
use cipherlane_measure::record::{Cell, Record};
use cipherlane_measure::units as human;

use super::asked::Unit;
use super::table::{drivers, is_best, sizes};
use crate::output::{self, wrap};

/// The table, the sentence, and where more is to be had.
pub(super) fn text(record: &Record, unit: Unit) -> String {
    let sizes = sizes(&record.cells);
    let mut header = vec![unit.head().to_owned(), "driver".to_owned()];
    header.extend(sizes.iter().map(|&size| human::size(size)));
    let mut rows = Vec::new();
    for cells in record.cells.chunk_by(|a, b| a.case() == b.case()) {
        for (index, driver) in drivers(cells).into_iter().enumerate() {
            let algorithm = match index {
                0 => title(&cells[0]),
                _ => String::new(),
            };
            let mut row = vec![
                comfy_table::Cell::new(algorithm),
                comfy_table::Cell::new(driver),
            ];
            row.extend(sizes.iter().map(|&size| {
                let at_size = cells.iter().filter(|cell| cell.size == size);
                let cell = at_size.clone().find(|cell| cell.driver == driver);
                cell.map_or_else(
                    || comfy_table::Cell::new(""),
                    |cell| figure(cell, is_best(cell, at_size), unit),
                )
            }));
            rows.push(row);
        }
    }
    let mut text = output::headline(&record.machine) + "\n";
    text += &output::panels(&header, &rows, 2);
    text.push('\n');
    text += &wrap("", &output::styled(output::STRONG, &sentence(record)));
    text += &wrap(
        "",
        "One request at a time, on one core; ~ is noisy. Batches, more sizes, 'auto' and why: \
         'cipherlane speed --full', or name algorithms.",
    );
    text
}

/// The algorithm, and the bits of its key where it takes others too.
fn title(cell: &Cell) -> String {
    let lengths = Algorithm::find(&cell.algorithm).map_or(0, |found| found.key_lengths().len());
    match lengths {
        0 | 1 => cell.algorithm.clone(),
        _ => format!("{}, {} bits", cell.algorithm, cell.keybits),
    }
}

fn figure(cell: &Cell, best: bool, unit: Unit) -> comfy_table::Cell {
    let noisy = if cell.noisy { "~" } else { "" };
    let text = format!("{}{noisy}", unit.figure(cell));
    match best {
        true => output::good(text),
        false => comfy_table::Cell::new(text),
    }
}

/// How each driver compares with the base, over all that was measured.
fn sentence(record: &Record) -> String {
    let mut others: Vec<&str> = Vec::new();
    for entry in &record.crossovers {
        if !others.contains(&entry.driver.as_str()) {
            others.push(&entry.driver);
        }
    }
    let Some(base) = record.crossovers.first().map(|entry| &entry.base) else {
        let only = record.cells.first().map_or("", |cell| &cell.driver);
        return format!("'{only}' is the only driver here to be measured.");
    };
    let parts: Vec<String> = others
        .iter()
        .map(|driver| compared(record, base, driver))
        .collect();
    format!("In short: {}.", parts.join("; "))
}

/// `software is 2.2 to 4.1 times as fast as openssl in 12 of 15 places, without a verdict in 3`.
fn compared(record: &Record, base: &str, driver: &str) -> String {
    let entries = record.crossovers.iter().filter(|e| e.driver == driver);
    let ratios: Vec<_> = entries.flat_map(|entry| &entry.ratios).collect();
    let times = |outcome: Outcome| {
        let of = ratios.iter().filter(|ratio| ratio.outcome == outcome);
        let times = of.map(|ratio| match outcome {
            Outcome::Won => ratio.ratio,
            _ => 1.0 / ratio.ratio,
        });
        let mut times: Vec<f64> = times.collect();
        times.sort_by(f64::total_cmp);
        times
    };
    let range = |times: &[f64]| match times {
        [one] => human::times(*one),
        [least, .., most] if human::times(*least) == human::times(*most) => human::times(*most),
        [least, .., most] => format!("{} to {}", human::times(*least), human::times(*most)),
        [] => String::new(),
    };
    let (lost, won) = (times(Outcome::Lost), times(Outcome::Won));
    let all = ratios.len();
    let open = all - lost.len() - won.len();
    let mut parts = Vec::new();
    for (faster, slower, times) in [(base, driver, &lost), (driver, base, &won)] {
        if !times.is_empty() {
            parts.push(format!(
                "{faster} is {} times as fast as {slower} in {} of {all} places",
                range(times),
                times.len()
            ));
        }
    }
    match (parts.is_empty(), open) {
        (true, _) => {
            format!("no verdict on {driver} and {base}, which were too close or too noisy")
        }
        (false, 0) => parts.join(", "),
        (false, open) => format!("{}, without a verdict in {open}", parts.join(", ")),
    }
}
