//! The record as text: a block a case, sizes across and candidates down.

use cipherlane_measure::crossover::Outcome;
use cipherlane_measure::record::Record;
use cipherlane_measure::units;

/// Everything measured, with how to read it.
pub fn text(record: &Record) -> String {
    let machine = &record.machine;
    let mut text = format!(
        "{}, {} processors, {}, {}\n\
         GB/s of elapsed time, 10^9 bytes of payload, in place, a fresh IV for every message.\n\
         Candidates take turns in short blocks; this is the median. Behind it stands the multiple\n\
         of the kernels, = without a verdict inside the noise. ~ is noisy.\n",
        machine.cpu, machine.cpus, machine.kernel, machine.date
    );
    for cells in record.cells.chunk_by(|a, b| a.case() == b.case()) {
        let case = cells[0].case();
        text += &format!("\n{}\n{:12}", case.title(), "GB/s");
        let by_size: Vec<_> = cells.chunk_by(|a, b| a.size == b.size).collect();
        for cells in &by_size {
            text += &format!("{:>16}", units::size(cells[0].size));
        }
        text += "\n";
        for cell in by_size[0] {
            text += &format!("{:12}", cell.driver);
            let ratios = record
                .crossovers
                .iter()
                .find(|entry| entry.case == case && entry.driver == cell.driver)
                .map(|entry| &entry.ratios);
            for cells in &by_size {
                let Some(at_size) = cells.iter().find(|c| c.driver == cell.driver) else {
                    continue;
                };
                let ratio = ratios.and_then(|r| r.iter().find(|r| r.size == at_size.size));
                let multiple = match ratio {
                    None => String::new(),
                    Some(ratio) if ratio.outcome == Outcome::Open => " =".into(),
                    Some(ratio) => format!(" ×{:.2}", ratio.ratio),
                };
                let noisy = if at_size.noisy { "~" } else { "" };
                let rate = format!("{:.3}{noisy}", at_size.bytes_per_second / 1e9);
                text += &format!("{rate:>10}{multiple:6}");
            }
            text += "\n";
        }
    }
    text
}
