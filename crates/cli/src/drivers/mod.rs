//! `cipherlane drivers`: what there is, like /proc/crypto.
//!
//! | file | what it holds |
//! |---|---|
//! | `matrix` | every algorithm by every driver, a word each |
//! | `detail` | one algorithm, or everything, with the figures |
//! | `reasons` | why a driver does not serve, each reason once |

mod detail;
mod matrix;
mod reasons;

use cipherlane_core::{Framework, Row};
use clap::Args;
use serde::Serialize;

use crate::algorithms;
use crate::failure::Failure;
use crate::output::{self, JsonFlag};
use crate::suggest;

/// List drivers and algorithms: who serves what, how fast as far as it is known, and why not
///
/// Without an algorithm: a table of algorithms by drivers. With one: what each driver does with
/// it. A driver serves an algorithm after a self-test.
#[derive(Args, Debug)]
pub(crate) struct DriversArgs {
    /// Algorithms by CryptoAPI or OpenSSL name, in detail
    #[arg(value_name = "ALG", value_parser = suggest::algorithms(), hide_possible_values = true)]
    algorithms: Vec<String>,
    /// Every driver with every algorithm, in detail
    #[arg(long, conflicts_with = "algorithms")]
    all: bool,
    #[command(flatten)]
    json: JsonFlag,
}

/// For `--json`.
#[derive(Serialize)]
struct Listing {
    rows: Vec<Row>,
}

pub(crate) fn run(args: &DriversArgs, framework: &Framework) -> Result<(), Failure> {
    let named = args.algorithms.iter();
    let named: Vec<&str> = named
        .map(|name| Ok(algorithms::find(name, None)?.algorithm.name))
        .collect::<Result<_, Failure>>()?;
    let mut rows = framework.rows();
    if !named.is_empty() {
        rows.retain(|row| named.contains(&row.algorithm));
    }
    if args.json.json {
        return output::json("drivers", &Listing { rows });
    }
    let head = output::headline(&output::machine());
    let text = match (args.all, named.is_empty()) {
        (true, _) => detail::by_driver_text(&rows),
        (false, false) => detail::by_algorithm(&rows, &named),
        (false, true) => matrix::text(&rows),
    };
    output::show(&format!("{head}\n{text}"))
}

/// The rows of each driver, in the order of the drivers.
fn by_driver(rows: &[Row]) -> Vec<Vec<&Row>> {
    let mut groups: Vec<Vec<&Row>> = Vec::new();
    for row in rows {
        match groups
            .iter_mut()
            .find(|group| group[0].driver == row.driver)
        {
            Some(group) => group.push(row),
            None => groups.push(vec![row]),
        }
    }
    groups
}
