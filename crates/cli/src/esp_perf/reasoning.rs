//! `--profile`: threads are recorded while they take turns. Numbers of packets per call are compared
//! with the fastest one of the same threads, and several threads with one of them alone.

use cipherlane_measure::run::Measurement;
use cipherlane_measure::units::times;

use super::arguments::{Asked, Direction};
use super::cells::name;
use super::traffic::Traffic;
use super::transforms::Entry;
use crate::profile::reasons::{Pair, Profiler};

/// One measurement, whose teams have the numbers from `first` on.
pub(super) struct Group<'g> {
    pub(super) asked: &'g Asked,
    pub(super) case: String,
    pub(super) size: String,
    pub(super) measured: &'g Measurement,
    pub(super) first: u32,
}

/// A team: threads, and packets per call.
type Team = (usize, usize);

impl<'g> Group<'g> {
    pub(super) fn new(
        asked: &'g Asked,
        entry: &Entry,
        direction: Direction,
        traffic: &Traffic,
        measured: &'g Measurement,
        first: u32,
    ) -> Self {
        Group {
            asked,
            case: format!("{}, {}", entry.name, direction.name()),
            size: traffic.title(),
            measured,
            first,
        }
    }

    /// Tells what was done, and asks for the reasons.
    pub(super) fn ask(&self, profiler: &mut Profiler) {
        for (run, number) in self.measured.runs.iter().zip(self.first..) {
            profiler.done(number, run.operations());
        }
        for &threads in &self.asked.threads {
            let rate = |packets: usize| {
                let run = self.measured.run(&name(threads, packets))?;
                Some(run.rate()?.median)
            };
            let numbers = self.asked.multipackets.iter().copied();
            let rates = numbers.filter_map(|packets| Some((packets, rate(packets)?)));
            let rates: Vec<(usize, f64)> = rates.collect();
            let Some(&(best, _)) = rates.iter().max_by(|a, b| a.1.total_cmp(&b.1)) else {
                continue;
            };
            for &(packets, _) in rates.iter().filter(|(packets, _)| *packets != best) {
                self.pair(profiler, (threads, packets), (threads, best));
            }
            if threads > 1 {
                self.pair(profiler, (threads, best), (1, best));
            }
        }
    }

    fn pair(&self, profiler: &mut Profiler, slower: Team, faster: Team) {
        let names = [slower, faster].map(|(threads, packets)| name(threads, packets));
        let number = |name: &str| {
            let mut runs = self.measured.runs.iter();
            runs.position(|run| run.name == name).unwrap_or(0) as u32 + self.first
        };
        let Some(ratio) = self.measured.ratio(&names[1], &names[0]) else {
            return;
        };
        // What a thread takes for a packet.
        let each = slower.0 as f64 / faster.0 as f64;
        let (least, median) = (ratio.low * each, ratio.median * each);
        let comparison = match slower.0 == faster.0 {
            true => format!(
                "Why {} is {} times slower than {} packets per call at {}, {} threads",
                match slower.1 {
                    1 => "1 packet per call".to_owned(),
                    packets => format!("{packets} packets per call"),
                },
                times(median),
                faster.1,
                self.size,
                slower.0
            ),
            false => format!(
                "Why each of {} threads is {} times slower than one alone at {}, {} packets per \
                 call",
                slower.0,
                times(median),
                self.size,
                slower.1
            ),
        };
        profiler.ask(Pair {
            case: self.case.clone(),
            place: self.size.clone(),
            each: "packet",
            slower: (names[0].clone(), number(&names[0])),
            faster: (names[1].clone(), number(&names[1])),
            times: (least, median),
            comparison,
        });
    }
}
