//! The command: its arguments, its files, its exit status.

use std::path::PathBuf;
use std::process::ExitCode;

use cipherlane_core::{Config, Error, Framework};
use indicatif::{ProgressBar, ProgressStyle};

use super::direct;
use super::report::Report;
use super::run::run as run_cases;
use crate::failure::Failure;
use crate::options::start;
use crate::output;

/// Run test vectors from files on every driver, and say which fail.
///
/// Takes NIST CAVP response files, Wycheproof JSON and the JSON layouts that vectors/README.md
/// describes; the content tells the format. Every vector is run in place and from one region to
/// another, flat and as scatter lists, alone, in batches, and submitted without waiting; valid
/// tags are also spoilt by one bit. ESP packets, and what no driver has, are run on the library
/// itself. The exit status is 1 if any vector fails.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Files with vectors.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Print the counts and the failures as JSON.
    #[arg(long)]
    json: bool,
}

/// The configuration under which a driver keeps all its work, whatever it gets wrong: with
/// verification it would be set aside at some time, and software would give the other answers.
pub(super) fn judged(config: Config) -> Config {
    let verify = Some(0);
    Config { verify, ..config }
}

/// Runs the command, on the forced driver or on all: success, or status 1 where a vector failed.
pub(crate) fn run(arguments: &Arguments, mut config: Config) -> Result<ExitCode, Failure> {
    let forced = config.force.take();
    let framework = start(judged(config))?;
    let drivers = chosen(&framework, forced.as_deref())?;
    let mut report = Report::default();
    let (mut cases, mut on_library) = (Vec::new(), Vec::new());
    for path in &arguments.files {
        let vectors = super::load(path).map_err(|error| Failure::Usage(error.to_string()))?;
        report.file(&path.display().to_string(), vectors.format, vectors.total());
        vectors
            .skipped
            .iter()
            .for_each(|skipped| report.skipped(skipped));
        cases.extend(vectors.cases);
        on_library.extend(vectors.direct);
    }
    // Draws only on a terminal.
    let bar = ProgressBar::new((cases.len() * drivers.len() + on_library.len()) as u64).with_style(
        ProgressStyle::with_template("{bar:40} {pos}/{len} vectors  {eta}")
            .expect("a template with known fields"),
    );
    run_cases(&framework, &drivers, &cases, &mut report, |done| {
        bar.inc(done as u64)
    });
    direct::run(&framework, &on_library, &mut report, |done| {
        bar.inc(done as u64)
    });
    bar.finish_and_clear();
    match arguments.json {
        true => output::json("check", &report)?,
        false => output::print(report.to_string())?,
    }
    Ok(match report.failed() {
        true => ExitCode::from(1),
        false => ExitCode::SUCCESS,
    })
}

/// The driver named, or all.
fn chosen<'f>(framework: &'f Framework, named: Option<&str>) -> Result<Vec<&'f str>, Error> {
    let known = framework.driver_names();
    let Some(name) = named else { return Ok(known) };
    match known.iter().find(|k| **k == name) {
        Some(found) => Ok(vec![found]),
        None => Err(Error::UnknownDriver {
            name: name.to_owned(),
            known: known.join(", "),
        }),
    }
}
