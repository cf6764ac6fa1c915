//! Standard output: text, JSON and tables. Whoever closes it early, as `head` does, is no error.
//!
//! Text keeps to the width of the terminal, 80 columns at least, and to 80 where there is none.
//! It has weight and colour where the reader's terminal shows them: `--color` and `NO_COLOR`
//! decide (`anstream`).

use std::io::{Write, stdout};

use anstyle::Style;
use cipherlane_kernels::cpu;
use cipherlane_measure::machine::Machine;
use clap::{Args, ColorChoice};
use comfy_table::{
    Attribute, Cell, CellAlignment, Color, ContentArrangement, LineStyle, Table, presets,
};
use serde::Serialize;

use crate::failure::Failure;

/// Columns where there is no terminal to ask, and the fewest that text is made for.
const WIDTH: usize = 80;
/// Longer lines of prose are hard to read.
const PROSE: usize = 100;

/// The sentence that answers.
pub(crate) const STRONG: Style = Style::new().bold();

/// The option of every command that prints results.
#[derive(Args, Debug)]
pub(crate) struct JsonFlag {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// A result with the name of its form, which docs/schemas/ describes.
#[derive(Serialize)]
struct Document<'v, T> {
    /// `cipherlane/NAME`: docs/schemas/NAME.json.
    schema: String,
    /// Grows when a field changes its meaning or goes. New fields may come at any time.
    version: u32,
    #[serde(flatten)]
    value: &'v T,
}

/// The version of every form so far.
const VERSION: u32 = 1;

/// Prints bytes as they are, which are text for the most part.
pub(crate) fn print(bytes: impl AsRef<[u8]>) -> Result<(), Failure> {
    stdout()
        .write_all(bytes.as_ref())
        .map_err(|error| Failure::io("write", "to standard output", &error))
}

/// Prints text with weight and colour, or without where the reader cannot show them.
pub(crate) fn show(text: &str) -> Result<(), Failure> {
    anstream::stdout()
        .write_all(text.as_bytes())
        .map_err(|error| Failure::io("write", "to standard output", &error))
}

/// Decides for the whole program whether text has weight and colour.
pub(crate) fn choose_color(choice: ColorChoice) {
    let choice = match choice {
        ColorChoice::Auto => anstream::ColorChoice::Auto,
        ColorChoice::Always => anstream::ColorChoice::Always,
        ColorChoice::Never => anstream::ColorChoice::Never,
    };
    choice.write_global();
}

/// Text in a style.
pub(crate) fn styled(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

/// Prints a value as JSON; `schema` is the name of its form.
pub(crate) fn json(schema: &str, value: &impl Serialize) -> Result<(), Failure> {
    print(to_json(schema, value))
}

/// A value as JSON, with a newline at the end; `schema` is the name of its form.
pub(crate) fn to_json(schema: &str, value: &impl Serialize) -> String {
    let document = Document {
        schema: format!("cipherlane/{schema}"),
        version: VERSION,
        value,
    };
    serde_json::to_string_pretty(&document).expect("results are plain data") + "\n"
}

/// This machine, with the instruction sets that the kernels use.
pub(crate) fn machine() -> Machine {
    Machine {
        instructions: cpu::features().into_iter().map(str::to_owned).collect(),
        ..Machine::detect()
    }
}

/// The first lines of what a command prints: the machine, and the instruction sets used on it.
pub(crate) fn headline(machine: &Machine) -> String {
    wrap("", &machine.headline())
}

/// Columns of the terminal.
pub(crate) fn width() -> usize {
    let size = terminal_size::terminal_size_of(stdout());
    size.map_or(WIDTH, |(columns, _)| usize::from(columns.0).max(WIDTH))
}

/// An empty table with a header; `numbers` are the columns to align right. Its columns are as
/// wide as their longest cell: prose does not belong into them.
pub(crate) fn table(header: &[&str], numbers: &[usize]) -> Table {
    let mut table = Table::new();
    let bold = |head: &&str| Cell::new(head).add_attribute(Attribute::Bold);
    table
        .load_style(presets::NOTHING.header_separator(LineStyle::none().fill('─').junction('─')))
        .set_content_arrangement(ContentArrangement::Disabled)
        .enforce_styling()
        .set_header(header.iter().map(bold));
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 1));
        if numbers.contains(&index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// A table of numbers that is cut into several, one below the other, where it is wider than the
/// terminal. The first `lead` columns, which name the rows, are repeated.
pub(crate) fn panels(header: &[String], rows: &[Vec<Cell>], lead: usize) -> String {
    let widest = |column: usize| {
        let cells = rows.iter().map(|row| row[column].content());
        let cells = cells.chain([header[column].clone()]);
        let lines = cells.map(|cell| cell.lines().map(shown).max().unwrap_or(0));
        lines.max().unwrap_or(0) + 2
    };
    let fixed: usize = (0..lead).map(widest).sum();
    let mut panels: Vec<Vec<usize>> = vec![Vec::new()];
    let mut used = fixed;
    for column in lead..header.len() {
        let wide = widest(column);
        // Behind the last column there is nothing.
        if used + wide > width() + 2 && panels.last().is_some_and(|panel| !panel.is_empty()) {
            panels.push(Vec::new());
            used = fixed;
        }
        used += wide;
        panels.last_mut().expect("one at least").push(column);
    }
    let panels = panels.iter().map(|panel| {
        let columns: Vec<usize> = (0..lead).chain(panel.iter().copied()).collect();
        let head: Vec<&str> = columns.iter().map(|&at| header[at].as_str()).collect();
        let numbers: Vec<usize> = (lead..columns.len()).collect();
        let mut table = table(&head, &numbers);
        for row in rows {
            table.add_row(columns.iter().map(|&at| row[at].clone()));
        }
        table.trim_fmt() + "\n"
    });
    panels.collect::<Vec<_>>().join("\n")
}

/// The best of several.
pub(crate) fn good(text: impl ToString) -> Cell {
    let cell = Cell::new(text.to_string());
    cell.fg(Color::Green).add_attribute(Attribute::Bold)
}

/// What does not work.
pub(crate) fn bad(text: impl ToString) -> Cell {
    Cell::new(text.to_string()).fg(Color::Red)
}

/// Columns that text takes on a terminal, its styles aside.
fn shown(text: &str) -> usize {
    anstream::adapter::strip_str(text)
        .map(|part| part.chars().count())
        .sum()
}

/// Text in lines of the terminal's width, at most 100 columns, where its words allow that, each
/// after `indent`.
pub(crate) fn wrap(indent: &str, text: &str) -> String {
    wrap_to(width().min(PROSE), indent, text)
}

fn wrap_to(width: usize, indent: &str, text: &str) -> String {
    let mut lines = String::new();
    let mut line = indent.to_owned();
    for word in text.split_whitespace() {
        let begun = line.len() > indent.len();
        if begun && shown(&line) + 1 + shown(word) > width {
            lines.push_str(&line);
            lines.push('\n');
            line = indent.to_owned();
        } else if begun {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines + &line + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_between_words() {
        assert_eq!(wrap_to(100, "  ", "one two"), "  one two\n");
        let wrapped = wrap_to(100, "  ", &"word ".repeat(50));
        let lengths: Vec<usize> = wrapped.lines().map(str::len).collect();
        assert_eq!(lengths, [96, 96, 61]);
        assert_eq!(wrap_to(80, "", &"x".repeat(150)).trim_end().len(), 150);
        let styled = format!("{} two", styled(STRONG, "one"));
        assert_eq!(wrap_to(7, "", &styled).lines().count(), 1);
    }

    #[test]
    fn a_table_that_is_too_wide_is_cut_and_its_names_are_repeated() {
        let header: Vec<String> = (0..12).map(|column| format!("column{column:02}")).collect();
        let row: Vec<Cell> = header.iter().map(Cell::new).collect();
        let rows = vec![row.clone(), row];
        let text = anstream::adapter::strip_str(&panels(&header, &rows, 1)).to_string();
        assert!(
            text.lines().all(|line| line.chars().count() <= WIDTH),
            "{text}"
        );
        assert_eq!(text.matches("column00").count(), 3 * 2);
        assert_eq!(text.matches("column11").count(), 3);
    }

    #[test]
    fn json_says_what_it_is() {
        #[derive(Serialize)]
        struct Plain {
            one: u32,
        }
        let value: serde_json::Value =
            serde_json::from_str(&to_json("plain", &Plain { one: 1 })).unwrap();
        assert_eq!(value["schema"], "cipherlane/plain");
        assert_eq!((&value["version"], &value["one"]), (&1.into(), &1.into()));
    }
}
