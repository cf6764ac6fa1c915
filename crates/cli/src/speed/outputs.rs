//! JSON, CSV, HTML and Markdown: whole files, or one of them to standard output.

use std::io;
use std::path::{Path, PathBuf};

use cipherlane_measure::record::Record;
use cipherlane_measure::report;
use serde::Serialize;

use super::arguments::SpeedArgs;
use super::asked::Asked;
use super::auto::Promise;
use super::markdown;
use crate::failure::Failure;
use crate::interrupt;
use crate::output;
use crate::profile::reasons::Reasons;

/// Where results go besides the table.
#[derive(Debug)]
pub(super) struct Outputs {
    outputs: Vec<(Format, PathBuf)>,
}

/// The record, and why drivers are slower where that was asked for.
#[derive(Debug, Serialize)]
struct Results<'r> {
    #[serde(flatten)]
    record: &'r Record,
    #[serde(skip_serializing_if = "Option::is_none")]
    profile: Option<&'r Reasons>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Json,
    Csv,
    Html,
    Markdown,
}

impl Outputs {
    /// Finds out what cannot be written, before minutes are spent.
    pub(super) fn new(args: &SpeedArgs) -> Result<Outputs, Failure> {
        let formats = [
            (Format::Json, &args.json),
            (Format::Csv, &args.csv),
            (Format::Html, &args.html),
            (Format::Markdown, &args.markdown),
        ];
        let outputs: Vec<(Format, PathBuf)> = formats
            .into_iter()
            .filter_map(|(format, path)| Some((format, path.clone()?)))
            .collect();
        if outputs.iter().filter(|(_, path)| is_stdout(path)).count() > 1 {
            return Err(Failure::Usage(
                "only one of --json, --csv, --html and --markdown can be '-'; name files for the others"
                    .to_owned(),
            ));
        }
        for (_, path) in outputs.iter().filter(|(_, path)| !is_stdout(path)) {
            cipherlane_files::check(path).map_err(|error| Failure::path("write", path, &error))?;
        }
        Ok(Outputs { outputs })
    }

    /// Whether one goes to standard output, in place of the table.
    pub(super) fn take_stdout(&self) -> bool {
        self.outputs.iter().any(|(_, path)| is_stdout(path))
    }

    pub(super) fn write(
        &self,
        record: &Record,
        profile: Option<&Reasons>,
        promise: &Promise,
        asked: &Asked,
    ) -> Result<(), Failure> {
        for (format, path) in &self.outputs {
            let failed = |error: io::Error| Failure::path("write", path, &error);
            let mut bytes = Vec::new();
            match format {
                Format::Json => {
                    let results = Results { record, profile };
                    bytes = output::to_json("speed", &results).into_bytes();
                }
                Format::Csv => record.write_csv(&mut bytes).map_err(failed)?,
                Format::Html => {
                    let why = profile.map(Reasons::html).unwrap_or_default();
                    let page = report::html_with(record, &asked.title, &why.short, &why.long);
                    bytes = page.into_bytes();
                }
                Format::Markdown => {
                    let kept = promise.text();
                    let text = markdown::text(record, &asked.title, asked.unit, kept.as_deref());
                    bytes = text.into_bytes();
                }
            }
            write_whole(path, &bytes)?;
        }
        Ok(())
    }
}

/// Whether `path` stands for standard output.
pub(crate) fn is_stdout(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Writes a file as a whole or not at all; a stream, such as standard output, as it goes.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    if is_stdout(path) {
        return output::print(bytes);
    }
    interrupt::watch();
    cipherlane_files::write(path, bytes).map_err(|error| Failure::path("write", path, &error))
}
