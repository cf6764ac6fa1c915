//! Records, until the command ends, the time is over, or the user interrupts.

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use cipherlane_profile::page;
use cipherlane_profile::record::{Options, Target, record};
use cipherlane_profile::recording::Unit;
use signal_hook::consts::{SIGINT, SIGTERM};

use super::arguments::RecordArgs;
use super::statistics::meter;
use super::{check, rules, summary};
use crate::failure::Failure;
use crate::speed::outputs::write_whole;

/// Samples per second that make sense.
const RATES: std::ops::RangeInclusive<u64> = 1..=20_000;

pub(super) fn run(args: &RecordArgs) -> Result<ExitCode, Failure> {
    let rules = rules(args.rules.as_deref())?;
    let (target, options) = asked(args)?;
    check(&[args.output.as_ref(), args.html.as_ref()])?;
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop))
            .map_err(|error| Failure::Runtime(format!("cannot watch for signals: {error}")))?;
    }
    let recording = record(&target, &options, &stop)?;
    if let Some(path) = &args.output {
        write_whole(path, &recording.to_bytes())?;
    }
    if let Some(path) = &args.html {
        write_whole(path, page::html(&recording, &rules).as_bytes())?;
    }
    // Standard output belongs to the command.
    let mut text = summary::text(&recording, &rules);
    if let Some(path) = &args.output {
        text += &format!(
            "\nThe recording is '{0}': 'cipherlane profile show {0}', 'cipherlane profile diff'.\n",
            path.display()
        );
    }
    anstream::stderr()
        .write_all(text.as_bytes())
        .map_err(|error| Failure::io("write", "to standard error", &error))?;
    match recording.status {
        // What a command does that was told to end says nothing.
        Some(status) if status != 0 && !ended_by_us(args, &stop) => Err(Failure::Runtime(format!(
            "the command ended with status {status}"
        ))),
        _ => Ok(ExitCode::SUCCESS),
    }
}

fn ended_by_us(args: &RecordArgs, stop: &AtomicBool) -> bool {
    args.seconds.is_some() || stop.load(std::sync::atomic::Ordering::Relaxed)
}

fn asked(args: &RecordArgs) -> Result<(Target, Options), Failure> {
    let wrong = |text: &str| Err(Failure::Usage(text.to_owned()));
    let time = match args.seconds {
        None if args.all => return wrong("--all: give --seconds too"),
        None => None,
        Some(seconds) if (0.01..=86_400.0).contains(&seconds) => {
            Some(Duration::from_secs_f64(seconds))
        }
        Some(_) => return wrong("--seconds: give 0.01 to 86400 seconds"),
    };
    if args.rate.is_some_and(|rate| !RATES.contains(&rate)) {
        return wrong("--rate: give 1 to 20000 samples per second");
    }
    let work = match (args.bytes, args.operations) {
        (Some(0), _) | (_, Some(0)) => return wrong("--bytes, --operations: give more than 0"),
        (Some(bytes), _) => Some((bytes as u64, Unit::Byte)),
        (None, Some(operations)) => Some((operations, Unit::Operation)),
        (None, None) => None,
    };
    let target = match (args.pid, args.all) {
        (Some(pid), _) => Target::Process(pid),
        (None, true) => Target::Machine,
        (None, false) => Target::Command(args.command.clone()),
    };
    let options = Options {
        children: args.children,
        time,
        rate: args.rate,
        exact: args.exact,
        meter: match work {
            Some(_) => None,
            None => meter(&target),
        },
        work,
    };
    Ok((target, options))
}
