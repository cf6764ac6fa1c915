//! Standard output: text, JSON and tables. Whoever closes it early, as `head` does, is no error.

use std::io::{IsTerminal, Write, stdout};

use clap::Args;
use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table, presets};
use serde::Serialize;

use crate::failure::Failure;

/// Columns where there is no terminal to ask.
const WIDTH: u16 = 100;

/// The option of every command that prints results.
#[derive(Args, Debug)]
pub(crate) struct JsonFlag {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Prints text as it is.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    stdout()
        .write_all(text.as_bytes())
        .map_err(|error| Failure::io("write", "to standard output", &error))
}

/// Prints a value as JSON.
pub(crate) fn json(value: &impl Serialize) -> Result<(), Failure> {
    print(&(to_json(value) + "\n"))
}

/// A value as JSON.
pub(crate) fn to_json(value: &impl Serialize) -> String {
    serde_json::to_string_pretty(value).expect("results are plain data")
}

/// An empty table with a header; `numbers` are the columns to align right.
pub(crate) fn table(header: &[&str], numbers: &[usize]) -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING.header_separator(LineStyle::none().fill('─').junction('─')))
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_header(header.to_vec());
    if !stdout().is_terminal() {
        table.set_width(WIDTH);
    }
    for &number in numbers {
        if let Some(column) = table.column_mut(number) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}
