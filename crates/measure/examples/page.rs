//! Makes the page of an earlier JSON record:
//! `cargo run -p cipherlane-measure --example page -- TITLE < speed.json > speed.html`

use std::error::Error;

use cipherlane_measure::record::Record;
use cipherlane_measure::report;

fn main() -> Result<(), Box<dyn Error>> {
    let title = std::env::args().nth(1).unwrap_or_else(|| "Speed".into());
    let record: Record = serde_json::from_reader(std::io::stdin())?;
    print!("{}", report::html(&record, &title));
    Ok(())
}
