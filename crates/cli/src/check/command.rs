//! The command: its arguments, its files, its exit status.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use cipherlane::{Error, Framework};
use indicatif::{ProgressBar, ProgressStyle};

use super::error::VectorError;
use super::report::Report;
use super::run::run;

/// Run test vectors from files on every driver, and say which fail.
///
/// Takes NIST CAVP response files, Wycheproof JSON and the JSON layouts that vectors/README.md
/// describes; the content tells the format. Every vector is run in place and from one region to
/// another, flat and as scatter lists, alone, in batches, and submitted without waiting; valid
/// tags are also spoilt by one bit. The exit status is 1 if any vector fails.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Files with vectors.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Only this driver; may be given again.
    #[arg(long = "driver", value_name = "NAME")]
    drivers: Vec<String>,
    /// Print the counts and the failures as JSON.
    #[arg(long)]
    json: bool,
}

/// Why the command could not do its work.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CheckError {
    /// A file with vectors cannot be used.
    #[error(transparent)]
    Vectors(#[from] VectorError),
    /// The framework refused.
    #[error(transparent)]
    Framework(#[from] Error),
    /// The report could not be written.
    #[error("standard output: {0}")]
    Output(#[from] std::io::Error),
}

/// Runs the command: success, or status 1 where a vector failed.
pub(crate) fn execute(
    framework: &Framework,
    arguments: &Arguments,
) -> Result<ExitCode, CheckError> {
    let drivers = chosen(framework, &arguments.drivers)?;
    let mut report = Report::default();
    let mut cases = Vec::new();
    for path in &arguments.files {
        let vectors = super::load(path)?;
        report.file(&path.display().to_string(), vectors.format, vectors.total());
        vectors
            .skipped
            .iter()
            .for_each(|skipped| report.skipped(skipped));
        cases.extend(vectors.cases);
    }
    // Draws only on a terminal.
    let bar = ProgressBar::new((cases.len() * drivers.len()) as u64).with_style(
        ProgressStyle::with_template("{bar:40} {pos}/{len} vectors  {eta}")
            .expect("a template with known fields"),
    );
    run(framework, &drivers, &cases, &mut report, |done| {
        bar.inc(done as u64)
    });
    bar.finish_and_clear();
    let mut out = std::io::stdout().lock();
    match arguments.json {
        true => {
            serde_json::to_writer_pretty(&mut out, &report).map_err(std::io::Error::from)?;
            writeln!(out)?;
        }
        false => write!(out, "{report}")?,
    }
    Ok(match report.failed() {
        true => ExitCode::from(1),
        false => ExitCode::SUCCESS,
    })
}

/// The drivers named, or all.
fn chosen<'f>(framework: &'f Framework, named: &[String]) -> Result<Vec<&'f str>, Error> {
    let known = framework.driver_names();
    if named.is_empty() {
        return Ok(known);
    }
    named
        .iter()
        .map(|name| {
            let found = known.iter().find(|k| *k == name).copied();
            found.ok_or_else(|| Error::UnknownDriver {
                name: name.clone(),
                known: known.join(", "),
            })
        })
        .collect()
}
