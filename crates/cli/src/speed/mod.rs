//! `cipherlane speed`: the table of `openssl speed`, with every driver side by side.
//!
//! | file | what it holds |
//! |---|---|
//! | `arguments`, `asked` | options and definition files; what they come to |
//! | `lineup` | drivers that can be measured, and why the others cannot |
//! | `work`, `waiting`, `submitting` | what one operation is, and the two kinds of caller |
//! | `instruction_sets`, `turn` | software with every instruction set, each in a process of its own |
//! | `memory` | a caller's memory, which all drivers use in turn |
//! | `auto` | what `auto` has to know first, and whether it kept its promise |
//! | `table`, `short`, `unit` | what is printed, or the short answer; GB/s, cycles, nanoseconds |
//! | `reasoning` | `--profile`: why drivers are slower than the fastest one |
//! | `outputs`, `markdown` | JSON, CSV, HTML and Markdown |

mod arguments;
mod asked;
mod auto;
mod instruction_sets;
mod lineup;
mod markdown;
mod memory;
pub(crate) mod outputs;
mod reasoning;
mod short;
mod submitting;
mod table;
mod turn;
mod unit;
mod waiting;
mod work;

use std::collections::BTreeMap;
use std::time::Duration;

use cipherlane_core::{Config, Framework, Health};
use cipherlane_drivers::{af_alg, dma};
use cipherlane_measure::interleave::{Plan, Progress};
use cipherlane_measure::machine::Machine;
use cipherlane_measure::others::Watch;
use cipherlane_measure::recorder::Recorder;
use cipherlane_measure::run::Measurement;
use cipherlane_measure::subject::Candidate;
use indicatif::{ProgressBar, ProgressStyle};

pub(crate) use self::arguments::SpeedArgs;
use self::asked::Asked;
use self::auto::Promise;
use self::instruction_sets::InstructionSets;
use self::lineup::Lineup;
pub(crate) use self::lineup::key;
use self::outputs::Outputs;
use self::reasoning::Reasoning;
pub(crate) use self::submitting::Submitting;
pub(crate) use self::waiting::Waiting;
use self::work::Cell;
pub(crate) use self::work::Work;
use crate::failure::Failure;
use crate::options::start_learning;
use crate::output;
use crate::profile::reasons::Reasons;

/// The longest warm-up of a driver in a cell.
const WARM_UP: Duration = Duration::from_millis(30);

pub(crate) fn run(args: &SpeedArgs, mut config: Config) -> Result<(), Failure> {
    if let Some(set) = &args.turns_with {
        return turn::serve(set);
    }
    // A driver that the user forces is one to look at; `auto` is what happens without force.
    let forced = config.force.take();
    let mut asked = Asked::new(args, forced.as_deref())?;
    // Of a device the bill matters as much as the speed.
    asked.verbose |= asked
        .drivers
        .iter()
        .any(|name| name.starts_with(dma::PREFIX));
    let outputs = Outputs::new(args)?;
    // A device that is named is one to choose from, too, and one of the kernel's is looked for.
    let named = asked.drivers.iter().filter(|name| {
        [dma::PREFIX, af_alg::PREFIX]
            .iter()
            .any(|prefix| name.starts_with(prefix))
    });
    config.auto.extend(named.cloned());
    config
        .calibration_seconds
        .get_or_insert(auto::calibration_seconds(&asked));
    let framework = start_learning(config.clone())?;
    let lineup = Lineup::new(&framework, &asked)?;
    let cells = work::cells(&asked, &lineup, Machine::detect().memory_bytes)?;
    // For the short answer nobody has named a driver or a size.
    let notes = lineup.notes.iter().chain(&cells.notes);
    for note in notes.filter(|_| !asked.short) {
        eprintln!("cipherlane: {note}");
    }
    if lineup.has_auto() {
        auto::learn(&framework, &config, &asked)?;
    }
    let mut sets = args
        .instruction_sets
        .then(InstructionSets::start)
        .transpose()?;
    let sets_measured = sets.as_ref().map_or(1, InstructionSets::len);
    let by = match &sets {
        Some(sets) => format!("{} instruction sets", sets.len()),
        None => format!("up to {} drivers", lineup.most_drivers()),
    };
    eprintln!(
        "cipherlane: {} cells by {by}, {:.3} s each: about {}",
        cells.cells.len(),
        asked.seconds,
        in_words(expected(&asked, &lineup, &cells.cells) * sets_measured as u32),
    );

    let mut reasons = Reasoning::start(args.profile)?;
    let watch = Watch::start();
    let base = sets.as_ref().map(|sets| sets.base().to_owned());
    let mut recorder = Recorder::new(base.unwrap_or_else(|| lineup.base.clone()));
    let mut failed = BTreeMap::new();
    let mut promise = Promise::new(&framework, &lineup);
    let style = ProgressStyle::with_template("{wide_bar} {percent} % {eta} {msg}");
    let bar = ProgressBar::new(1000 * cells.cells.len() as u64)
        .with_style(style.expect("the template is constant"));
    let finished: Result<(), Failure> =
        cells
            .cells
            .iter()
            .enumerate()
            .try_for_each(|(index, cell)| {
                let case = cell.case();
                bar.set_message(format!("{}, {}", case.title(), cell.size));
                let progress = |at: Progress| {
                    bar.set_position((1000 * index + 1000 * at.round / at.rounds.max(1)) as u64);
                };
                let plan = plan(&asked, cell);
                let mut measured = match &mut sets {
                    Some(sets) => {
                        let key_len = asked.choices[cell.choice].key_len;
                        sets.measure(&plan, cell, key_len, progress)?
                    }
                    None => {
                        let candidates = candidates(cell, index, &lineup);
                        reasons.measure(&plan, cell, &candidates, progress)?
                    }
                };
                if asked.short {
                    measured.leave_out_disturbed();
                }
                leave_out_failed(&framework, &mut measured, &mut failed)?;
                recorder.add(&case, cell.size as u64, &measured);
                reasons.ask(cell, &measured);
                promise.add(cell, &measured);
                Ok(())
            });
    bar.finish_and_clear();
    finished?;

    let record = recorder.finish(Machine {
        others: watch.finish(),
        ..output::machine()
    });
    for (driver, health) in &failed {
        eprintln!(
            "cipherlane: warning: driver '{driver}' is left out where software did its work: \
             {health}"
        );
    }
    let reasons = reasons.finish()?;
    if !outputs.take_stdout() {
        let mut text = match asked.short {
            true => short::text(&record, asked.unit),
            false => table::text(&record, &asked, &promise),
        };
        text += &reasons.as_ref().map(Reasons::text).unwrap_or_default();
        output::show(&text)?;
    }
    outputs.write(&record, reasons.as_ref(), &promise, &asked)
}

fn plan(asked: &Asked, cell: &Cell) -> Plan {
    Plan {
        time: Duration::from_secs_f64(asked.seconds),
        block: asked.block,
        warm_up: Duration::from_secs_f64(asked.seconds).min(WARM_UP),
        threads: cell.threads,
        ..Plan::default()
    }
}

/// Leaves out the drivers that were set aside meanwhile: software did their work. Of each the
/// reason is noted.
fn leave_out_failed(
    framework: &Framework,
    measured: &mut Measurement,
    failed: &mut BTreeMap<String, String>,
) -> Result<(), Failure> {
    for name in framework.driver_names() {
        let health = framework.health(name)?;
        if health != Health::Working {
            measured.runs.retain(|run| run.name != name);
            failed
                .entry(name.to_owned())
                .or_insert_with(|| health.to_string());
        }
    }
    Ok(())
}

/// One candidate per driver, each with the session that was opened for the algorithm.
fn candidates<'l>(cell: &Cell, serial: usize, lineup: &'l Lineup) -> Vec<Candidate<'l>> {
    let sessions = lineup.sessions(cell.choice);
    let serial = serial as u64;
    let pause = Duration::from_micros(cell.pause.unwrap_or(0));
    let candidate = |(name, session): &'l (String, cipherlane_core::Session)| {
        let work: Work = cell.work;
        match cell.depth {
            None => Candidate::new(name.clone(), move |thread| {
                let caller = Waiting::new(session, work, serial, thread)?;
                Ok(caller.pausing(pause))
            }),
            Some(depth) => Candidate::new(name.clone(), move |thread| {
                Submitting::new(session, work, depth, serial, thread)
            }),
        }
    };
    sessions.iter().map(candidate).collect()
}

/// What it is all going to take, when operations are shorter than blocks.
fn expected(asked: &Asked, lineup: &Lineup, cells: &[Cell]) -> Duration {
    let blocks = |cell: &Cell| {
        let plan = plan(asked, cell);
        // Each block is run in for a twentieth of its length.
        let each = plan.time + plan.time / 20 + plan.warm_up;
        each * lineup.sessions(cell.choice).len() as u32
    };
    cells.iter().map(blocks).sum()
}

fn in_words(duration: Duration) -> String {
    let seconds = duration.as_secs_f64().ceil() as u64;
    match (seconds / 60, seconds % 60) {
        (0, seconds) => format!("{seconds} s"),
        (minutes, seconds) => format!("{minutes} min {seconds} s"),
    }
}
