//! `cipherlane esp-perf`: what one ESP SA does on any number of threads.
//!
//! | file | what it holds |
//! |---|---|
//! | `arguments` | options, and what they come to |
//! | `transforms`, `traffic` | transforms by name; packets of a size, a mix, a capture |
//! | `lane` | a thread's packets, put back before every pass, and the SA of all threads |
//! | `sealed` | sealed packets as a capture, and Wireshark's key table |
//! | `reasoning` | `--profile`: why some are slower than others |
//! | `cells` | the results, as JSON and CSV have them |
//! | `table`, `charts`, `outputs` | what is printed; SVG and HTML; files |

mod arguments;
mod cells;
mod charts;
mod lane;
mod outputs;
mod reasoning;
mod sealed;
mod table;
mod traffic;
mod transforms;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cipherlane_core::{Config, Framework};
use cipherlane_esp::{OutboundSa, Verdict};
use cipherlane_measure::machine::Machine;
use cipherlane_measure::others::Watch;
use cipherlane_measure::run::Measurement;
use cipherlane_measure::teams::{Plan, Team, measure};
use cipherlane_measure::watcher::{Unwatched, Watcher};
use indicatif::{ProgressBar, ProgressStyle};

pub(crate) use self::arguments::EspPerfArgs;
use self::arguments::{Asked, Direction};
use self::cells::{Results, cells, name};
use self::lane::{Association, Lane, WINDOW};
use self::outputs::Outputs;
use self::reasoning::Group;
use self::traffic::Traffic;
use self::transforms::Entry;
use crate::failure::Failure;
use crate::options::start;
use crate::output;
use crate::profile::reasons::{Profiler, Reasons};

/// What a shell says of a program that Ctrl-C ended.
const INTERRUPTED: u8 = 128 + signal_hook::consts::SIGINT as u8;

pub(crate) fn run(args: &EspPerfArgs, config: Config) -> Result<ExitCode, Failure> {
    let asked = Asked::new(args)?;
    let outputs = Outputs::new(args)?;
    let framework = start(config)?;
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        // The first ends the measurement in order, a second the program at once.
        let failed = |error| Failure::io("handle", "signals", &error);
        signal_hook::flag::register_conditional_default(signal, interrupted.clone())
            .map_err(failed)?;
        signal_hook::flag::register(signal, interrupted.clone()).map_err(failed)?;
    }
    let watch = Watch::start();
    let mut profiler = args.profile.then(Profiler::of_this_process).transpose()?;
    let cells = measure_all(&asked, &framework, profiler.as_mut(), &interrupted)?;
    let results = Results {
        machine: Machine {
            others: watch.finish(),
            ..output::machine()
        },
        cells,
        profile: profiler.map(Profiler::finish).transpose()?,
    };
    if !outputs.take_stdout() {
        let reasons = results.profile.as_ref().map(Reasons::text);
        output::show(&(table::text(&results) + &reasons.unwrap_or_default()))?;
    }
    outputs.write(&results)?;
    if let Some(path) = &args.write_pcap {
        let entry = asked.transforms[0];
        match sealed::write(path, &framework, entry, &asked.traffics[0])? {
            Some(line) => eprintln!("cipherlane: esp_sa line for Wireshark: {line}"),
            None => eprintln!(
                "cipherlane: Wireshark's ESP key table has no {}",
                entry.name
            ),
        }
    }
    if interrupted.load(Ordering::Relaxed) {
        eprintln!("cipherlane: interrupted; what was measured until then is all there is");
        return Ok(ExitCode::from(INTERRUPTED));
    }
    Ok(ExitCode::SUCCESS)
}

fn measure_all(
    asked: &Asked,
    framework: &Framework,
    mut profiler: Option<&mut Profiler>,
    interrupted: &AtomicBool,
) -> Result<Vec<cells::Cell>, Failure> {
    let plan = Plan {
        time: asked.time,
        block: asked.block,
        seed: 1,
    };
    let groups = asked.transforms.len() * asked.directions.len() * asked.traffics.len();
    let style = ProgressStyle::with_template("{wide_bar} {percent} % {eta} {msg}");
    let bar = ProgressBar::new((groups * plan.rounds()) as u64)
        .with_style(style.expect("the template is constant"));
    let mut all = Vec::new();
    for &entry in &asked.transforms {
        for &direction in &asked.directions {
            for traffic in &asked.traffics {
                if interrupted.load(Ordering::Relaxed) {
                    break;
                }
                let title = traffic.title();
                bar.set_message(format!("{}, {}, {title}", entry.name, direction.name()));
                let goes_on = |_| {
                    bar.inc(1);
                    !interrupted.load(Ordering::Relaxed)
                };
                let group = (entry, direction, traffic);
                let teams = asked.threads.len() * asked.multipackets.len();
                let first = profiler
                    .as_mut()
                    .map_or(0, |profiler| profiler.numbers(teams));
                let watched = profiler.as_ref().map(|profiler| profiler.watch(first));
                let watcher: &dyn Watcher = match &watched {
                    Some(watched) => watched,
                    None => &Unwatched,
                };
                let measured = measure_group(asked, &plan, framework, group, watcher, goes_on)?;
                if let Some(profiler) = &mut profiler {
                    Group::new(asked, entry, direction, traffic, &measured, first).ask(profiler);
                }
                all.extend(cells(asked, entry, direction, traffic, &measured));
            }
        }
    }
    bar.finish_and_clear();
    Ok(all)
}

/// All numbers of threads and of packets per call for one transform, direction and traffic.
fn measure_group(
    asked: &Asked,
    plan: &Plan,
    framework: &Framework,
    (entry, direction, traffic): (&Entry, Direction, &Traffic),
    watcher: &dyn Watcher,
    goes_on: impl FnMut(usize) -> bool,
) -> Result<Measurement, Failure> {
    let failed = |error: &dyn std::fmt::Display| {
        Failure::Runtime(format!(
            "{}, {}, {}: {error}",
            entry.name,
            direction.name(),
            traffic.title()
        ))
    };
    let parameters = entry.parameters(0x1000, WINDOW);
    let sealer = OutboundSa::new(framework, parameters.clone()).map_err(|error| failed(&error))?;
    let association = Association::new(framework, parameters, direction);
    let association = association.map_err(|error| failed(&error))?;
    let rooms = (sealer.head_room(), sealer.tail_room());
    let room = rooms.0 + rooms.1;
    let threads = *asked.threads.last().expect("one at least");
    let packets = lane::packets(traffic, room, threads);
    let (teams, multipackets) = teams(asked);
    let mut memory: Vec<Vec<u8>> = (0..threads)
        .map(|_| lane::memory(traffic, packets, room))
        .collect();
    let mut lanes: Vec<Lane<'_, '_>> = memory
        .iter_mut()
        .map(|memory| Lane::new(&association, &multipackets, traffic, memory, rooms))
        .collect();
    if direction == Direction::Open {
        seal_across(&sealer, &mut lanes).map_err(|verdict| failed(&verdict))?;
    }
    measure(
        plan,
        &teams,
        &mut lanes,
        || association.renew(),
        watcher,
        goes_on,
    )
    .map_err(|error| failed(&error))
}

/// A team for each number of threads and of packets per call, and the latter by team.
fn teams(asked: &Asked) -> (Vec<Team>, Vec<usize>) {
    let numbers = asked.threads.iter().flat_map(|&threads| {
        let multipackets = asked.multipackets.iter();
        multipackets.map(move |&multipacket| (threads, multipacket))
    });
    let team = |(threads, multipacket)| Team {
        name: name(threads, multipacket),
        members: threads,
    };
    numbers
        .map(|(threads, multipacket)| (team((threads, multipacket)), multipacket))
        .unzip()
}

/// Seals the packets of all lanes, a run of each by turns, so that their numbers rise in all
/// lanes alike, and has them kept so.
fn seal_across(sealer: &OutboundSa, lanes: &mut [Lane<'_, '_>]) -> Result<(), String> {
    let mut runs: Vec<_> = lanes.iter_mut().map(Lane::runs).collect();
    while let Some(turn) = runs
        .iter_mut()
        .map(Iterator::next)
        .collect::<Option<Vec<_>>>()
    {
        for run in turn {
            sealer.seal(run);
            let wrong = run
                .iter()
                .find(|packet| packet.verdict() != Verdict::Sealed);
            if let Some(packet) = wrong {
                return Err(format!(
                    "a packet of {} bytes cannot be sealed: {:?}",
                    packet.len(),
                    packet.verdict()
                ));
            }
        }
    }
    drop(runs);
    lanes.iter_mut().for_each(Lane::keep);
    Ok(())
}
