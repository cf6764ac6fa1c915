//! JSON, CSV, HTML and SVG: whole files, or one of the first three to standard output.

use std::path::{Path, PathBuf};

use super::arguments::EspPerfArgs;
use super::cells::Results;
use super::charts;
use crate::failure::Failure;
use crate::output;
use crate::speed::outputs::{is_stdout, write_whole};

/// Where results go besides the table.
#[derive(Debug)]
pub(super) struct Outputs {
    files: Vec<(Format, PathBuf)>,
    charts: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug)]
enum Format {
    Json,
    Csv,
    Html,
}

impl Outputs {
    /// Finds out what cannot be written, before minutes are spent.
    pub(super) fn new(args: &EspPerfArgs) -> Result<Outputs, Failure> {
        let files = [
            (Format::Json, &args.json),
            (Format::Csv, &args.csv),
            (Format::Html, &args.html),
        ];
        let files: Vec<(Format, PathBuf)> = files
            .into_iter()
            .filter_map(|(format, path)| Some((format, path.clone()?)))
            .collect();
        if files.iter().filter(|(_, path)| is_stdout(path)).count() > 1 {
            return Err(Failure::Usage(
                "only one of --json, --csv and --html can be '-'; name files for the others"
                    .to_owned(),
            ));
        }
        let paths = files.iter().map(|(_, path)| path).chain(&args.write_pcap);
        for path in paths.filter(|path| !is_stdout(path)) {
            cipherlane_files::check(path).map_err(|error| Failure::path("write", path, &error))?;
        }
        if let Some(dir) = &args.svg {
            std::fs::create_dir_all(dir)
                .map_err(|error| Failure::path("make the directory", dir, &error))?;
        }
        Ok(Outputs {
            files,
            charts: args.svg.clone(),
        })
    }

    /// Whether one goes to standard output, in place of the table.
    pub(super) fn take_stdout(&self) -> bool {
        self.files.iter().any(|(_, path)| is_stdout(path))
    }

    pub(super) fn write(&self, results: &Results) -> Result<(), Failure> {
        for (format, path) in &self.files {
            let text = match format {
                Format::Json => output::to_json("esp-perf", results),
                Format::Csv => csv(results),
                Format::Html => charts::page(results),
            };
            write_whole(path, text.as_bytes())?;
        }
        match &self.charts {
            Some(dir) => write_charts(results, dir),
            None => Ok(()),
        }
    }
}

fn csv(results: &Results) -> String {
    let mut bytes = Vec::new();
    results
        .write_csv(&mut bytes)
        .expect("memory takes all that is written");
    String::from_utf8_lossy(&bytes).into_owned()
}

fn write_charts(results: &Results, dir: &Path) -> Result<(), Failure> {
    for group in results.groups() {
        for (kind, svg) in [
            ("rates", charts::rates(group).alone()),
            ("threads", charts::threads(group).alone()),
            ("multipacket", charts::multipackets(group).alone()),
        ] {
            let name = format!("{}-{}-{kind}.svg", group[0].transform, group[0].direction);
            write_whole(&dir.join(name), svg.as_bytes())?;
        }
    }
    Ok(())
}
