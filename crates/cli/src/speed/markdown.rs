//! The table as Markdown, for a README or an issue.

use cipherlane_measure::record::Record;
use cipherlane_measure::units as human;

use super::asked::Unit;
use super::table::{drivers, is_best, sizes};

/// The machine, and a table per case: sizes across, drivers down, the best in bold. Then what is said
/// of `auto`, if it was measured.
pub(super) fn text(record: &Record, title: &str, unit: Unit, kept: Option<&str>) -> String {
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
    text += "\n~ is noisy: others had the processor, or it spreads over plus or minus 5 %.\n";
    text + &kept.map(verdict).unwrap_or_default()
}

/// A sentence, and a list of the cells that are told below it.
fn verdict(kept: &str) -> String {
    let mut text = "\n".to_owned();
    for (number, line) in kept.lines().enumerate() {
        text += match number {
            0 => "",
            1 => "\n- ",
            _ => "- ",
        };
        text += &plain(line.trim());
        text.push('\n');
    }
    text
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

    #[test]
    fn cells_are_a_list_below_the_sentence() {
        let kept = "auto is short in 2:\n  91 % of a_b: here\n  92 % of c: there\n";
        assert_eq!(
            verdict(kept),
            "\nauto is short in 2:\n\n- 91 % of a\\_b: here\n- 92 % of c: there\n"
        );
        assert_eq!(verdict("auto keeps it.\n"), "\nauto keeps it.\n");
    }
}
