//! The table as Markdown, for a README or an issue.

use cipherlane_measure::record::Record;
use cipherlane_measure::units as human;

use super::asked::Unit;
use super::table::{drivers, is_best, sizes};

/// The machine, and a table per case: sizes across, drivers down, the best in bold.
pub(super) fn text(record: &Record, title: &str, unit: Unit) -> String {
    let mut text = format!(
        "## {}\n\n{}.\n",
        plain(title),
        plain(&record.machine.headline())
    );
    for cells in record.cells.chunk_by(|a, b| a.case() == b.case()) {
        let sizes = sizes(cells);
        let heads: Vec<String> = sizes.iter().map(|&size| human::size(size)).collect();
        text += &format!(
            "\n**{}**\n\n| {} | {} |\n|---|{}\n",
            plain(&cells[0].case().title()),
            unit.head(),
            heads.join(" | "),
            "---:|".repeat(sizes.len())
        );
        for driver in drivers(cells) {
            let figures = sizes.iter().map(|&size| {
                let at_size = cells.iter().filter(|cell| cell.size == size);
                let Some(cell) = at_size.clone().find(|cell| cell.driver == driver) else {
                    return String::new();
                };
                let noisy = if cell.noisy { " ~" } else { "" };
                match is_best(cell, at_size) {
                    true => format!("**{}**{noisy}", unit.figure(cell)),
                    false => format!("{}{noisy}", unit.figure(cell)),
                }
            });
            let figures: Vec<String> = figures.collect();
            text += &format!("| {} | {} |\n", plain(driver), figures.join(" | "));
        }
    }
    text + "\n~ is noisy: others had the processor, or it spreads over plus or minus 5 %.\n"
}

/// Without the characters that Markdown takes for its own.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for character in text.chars() {
        if "\\`*_[]<>|#".contains(character) {
            plain.push('\\');
        }
        plain.push(character);
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_names() {
        assert_eq!(plain("dma:a_b|c"), "dma:a\\_b\\|c");
        assert_eq!(plain("gcm(aes), 16"), "gcm(aes), 16");
    }
}
