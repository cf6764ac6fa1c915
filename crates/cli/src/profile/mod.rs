//! `cipherlane profile`: where the time of each byte goes, and what two runs differ in.
//!
//! | file | what it holds |
//! |---|---|
//! | `arguments` | options |
//! | `recording` | records, until the command ends or the user interrupts |
//! | `statistics` | bytes of work as the provider and the gateway count them |
//! | `summary` | one recording as text and JSON |
//! | `compare` | two recordings as text and JSON |
//! | `reasons`, `told` | `--profile` of the commands that measure; what it finds as text, JSON, HTML |

mod arguments;
mod compare;
pub(crate) mod reasons;
mod recording;
mod statistics;
mod summary;
mod told;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use cipherlane_profile::Error;
use cipherlane_profile::recording::Recording;
use cipherlane_profile::rules::Rules;
use cipherlane_profile::{page, pprof, script};

pub(crate) use self::arguments::ProfileArgs;
use self::arguments::{DiffArgs, ProfileCommand, ShowArgs};
use crate::failure::Failure;
use crate::output;
use crate::speed::outputs::{is_stdout, write_whole};

/// Does what the arguments say.
pub(crate) fn run(args: &ProfileArgs) -> Result<ExitCode, Failure> {
    match &args.command {
        None => recording::run(&args.record),
        Some(ProfileCommand::Show(args)) => show(args).map(|()| ExitCode::SUCCESS),
        Some(ProfileCommand::Diff(args)) => diff(args).map(|()| ExitCode::SUCCESS),
    }
}

fn show(args: &ShowArgs) -> Result<(), Failure> {
    let rules = rules(args.rules.as_deref())?;
    let recording = Recording::open(&args.recording)?;
    if let Some(path) = &args.html {
        write_whole(path, page::html(&recording, &rules).as_bytes())?;
    }
    if let Some(path) = &args.pprof {
        write_whole(path, &pprof::encode(&recording))?;
    }
    if args.script {
        let mut text = Vec::new();
        script::write(&recording, &mut text).expect("memory takes everything");
        return output::print(&text);
    }
    let written = [&args.html, &args.pprof];
    let is_taken = written.into_iter().flatten().any(|path| is_stdout(path));
    match args.output.json {
        true => output::json("profile", &summary::Summary::new(&recording, &rules)),
        // Standard output has what was written there.
        false if is_taken => Ok(()),
        false => output::show(&summary::text(&recording, &rules)),
    }
}

fn diff(args: &DiffArgs) -> Result<(), Failure> {
    let rules = rules(args.rules.as_deref())?;
    let (a, b) = (Recording::open(&args.a)?, Recording::open(&args.b)?);
    let diff = cipherlane_profile::diff::Diff::new(&a, &b, &rules);
    if let Some(path) = &args.html {
        write_whole(path, page::diff(&a, &b, &diff, &rules).as_bytes())?;
    }
    match (args.output.json, &args.html) {
        (true, _) => output::json("profile-diff", &diff),
        (false, Some(path)) if is_stdout(path) => Ok(()),
        (false, _) => output::show(&compare::text(&a, &b, &diff)),
    }
}

/// The rules, with those of the user before them.
fn rules(own: Option<&Path>) -> Result<Rules, Failure> {
    let rules = Rules::built_in();
    Ok(match own {
        Some(path) => rules.and_file(path)?,
        None => rules,
    })
}

/// Finds out what cannot be written, before anything is recorded.
fn check(paths: &[Option<&PathBuf>]) -> Result<(), Failure> {
    for path in paths.iter().flatten().filter(|path| !is_stdout(path)) {
        cipherlane_files::check(path).map_err(|error| Failure::path("write", path, &error))?;
    }
    Ok(())
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let message = error.to_string();
        match error {
            Error::Rules { .. } | Error::Start { .. } | Error::NoProcess(_) => {
                Failure::Usage(message)
            }
            Error::Io { path, source } => Failure::path("read", &path, &source),
            _ => Failure::Runtime(message),
        }
    }
}
