//! Whether the accelerator helps: at each size, for each kind of caller, and in one sentence.

use cipherlane_measure::record::{Case, Cell, Record};
use cipherlane_measure::units;
use serde::Serialize;

use super::host::BASE;
use super::workload::Workload;

/// Faster by less than this share is no help: nobody would notice it.
const NOTICED: f64 = 0.03;
/// The least processor time freed that is worth an accelerator, as a share of the time that software
/// takes, and of a core. A device that does little frees little, however cheap its driver is.
const WORTHWHILE_SHARE: f64 = 0.1;
const WORTH_CORES: f64 = 0.01;

/// What a size comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Verdict {
    /// The device leaves such requests to software.
    NotTaken,
    /// Slower, and the processor works as hard.
    NoHelp,
    /// Not faster, but the processor has time for other things.
    FreesProcessor,
    /// Faster than this machine alone.
    Faster,
}

/// One way of doing it, a request of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Figures {
    pub(super) bytes_per_second: f64,
    /// From the call to the results, divided by the requests of the batch.
    pub(super) latency_ns: f64,
    /// Of all threads.
    pub(super) processor_ns: f64,
    /// Cores kept busy meanwhile.
    pub(super) load: f64,
    pub(super) context_switches: f64,
}

/// A size.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Row {
    pub(super) size: u64,
    /// Share of the workload's requests.
    pub(super) share: f64,
    pub(super) software: Figures,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cores: Option<Figures>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) device: Option<Figures>,
    /// Throughput of the device over that of the best of this machine.
    pub(super) times: f64,
    /// Share of a core that software would need for what the device does, less what the
    /// driver needs.
    pub(super) frees_cores: f64,
    pub(super) verdict: Verdict,
    pub(super) sentence: String,
}

/// A kind of caller.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Forecast {
    #[serde(flatten)]
    pub(super) case: Case,
    pub(super) rows: Vec<Row>,
    /// From which size on the device is the faster one, in words.
    pub(super) crossover: String,
    pub(super) verdict: String,
    /// Of the whole mix, where the workload is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) mix: Option<Mix>,
}

/// A mix of sizes, one request after the other.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Mix {
    pub(super) name: String,
    /// Software alone.
    pub(super) software_bytes_per_second: f64,
    /// The device for all sizes that it takes, software for the others.
    pub(super) device_bytes_per_second: f64,
    /// Each size by whichever is faster, as `auto` does with the goal latency.
    pub(super) best_bytes_per_second: f64,
    /// Processor time of the device's way over that of software.
    pub(super) processor_share: f64,
    pub(super) sentence: String,
}

impl From<&Cell> for Figures {
    fn from(cell: &Cell) -> Figures {
        let seconds_per_gb = cell.user_seconds_per_gb + cell.system_seconds_per_gb;
        Figures {
            bytes_per_second: cell.bytes_per_second,
            latency_ns: cell.ns_per_request_p50,
            processor_ns: seconds_per_gb * cell.size as f64,
            load: cell.load(),
            context_switches: cell.voluntary_switches_per_request,
        }
    }
}

/// A forecast for each case of the record.
pub(super) fn forecasts(record: &Record, driver: &str, workload: &Workload) -> Vec<Forecast> {
    let cases = record.cells.chunk_by(|a, b| a.case() == b.case());
    cases
        .map(|cells| {
            let sizes = cells.chunk_by(|a, b| a.size == b.size);
            let rows: Vec<Row> = sizes
                .filter_map(|cells| Row::new(cells, driver, workload))
                .collect();
            let case = cells[0].case();
            let crossover = record
                .crossovers
                .iter()
                .find(|entry| entry.case == case && entry.driver == driver);
            Forecast {
                verdict: verdict(&rows.iter().collect::<Vec<_>>()),
                mix: workload.mix.as_ref().map(|name| Mix::new(name, &rows)),
                crossover: crossover.map_or_else(
                    || format!("{driver} takes none of these requests."),
                    |entry| entry.sentence.clone(),
                ),
                rows,
                case,
            }
        })
        .collect()
}

/// Of all cases: each size by the kind of caller that gains most.
pub(super) fn overall(forecasts: &[Forecast]) -> String {
    let mut best: Vec<&Row> = Vec::new();
    for row in forecasts.iter().flat_map(|forecast| &forecast.rows) {
        let gain = |row: &Row| (row.verdict, row.times);
        match best.iter_mut().find(|known| known.size == row.size) {
            Some(known) if gain(row) > gain(known) => *known = row,
            Some(_) => {}
            None => best.push(row),
        }
    }
    best.sort_by_key(|row| row.size);
    verdict(&best)
}

impl Row {
    /// `None` if software was not measured.
    fn new(cells: &[Cell], driver: &str, workload: &Workload) -> Option<Row> {
        let figures = |name: &str| cells.iter().find(|c| c.driver == name).map(Figures::from);
        let software = figures(BASE)?;
        let device = figures(driver);
        let cores = cells
            .iter()
            .find(|cell| ![BASE, driver].contains(&cell.driver.as_str()))
            .map(Figures::from);
        let size = cells[0].size;
        let best = cores.map_or(software.bytes_per_second, |cores| {
            cores.bytes_per_second.max(software.bytes_per_second)
        });
        let share = workload
            .shares
            .iter()
            .find(|(known, _)| *known as u64 == size)
            .map_or(0.0, |&(_, share)| share);
        let times = device.map_or(0.0, |device| device.bytes_per_second / best);
        let frees = |device: Figures| {
            (software.processor_ns - device.processor_ns) * 1e-9 * device.bytes_per_second
                / size as f64
        };
        let frees_cores = device.map_or(0.0, frees);
        let verdict = match device {
            None => Verdict::NotTaken,
            Some(_) if times >= 1.0 + NOTICED => Verdict::Faster,
            Some(device)
                if device.processor_ns <= (1.0 - WORTHWHILE_SHARE) * software.processor_ns
                    && frees_cores >= WORTH_CORES =>
            {
                Verdict::FreesProcessor
            }
            Some(_) => Verdict::NoHelp,
        };
        let mut row = Row {
            size,
            share,
            software,
            cores,
            device,
            times,
            frees_cores,
            verdict,
            sentence: String::new(),
        };
        row.sentence = row.in_words();
        Some(row)
    }

    fn in_words(&self) -> String {
        let Some(device) = self.device else {
            return "not taken: software does it".to_owned();
        };
        let work = match device.processor_ns / self.software.processor_ns {
            share if share <= 0.995 => {
                format!("takes {:.0} % of software's processor time", share * 100.0)
            }
            share => format!(
                "takes {} times software's processor time",
                units::times(share)
            ),
        };
        match self.verdict {
            Verdict::NotTaken | Verdict::NoHelp if self.times > 1.0 - NOTICED => {
                format!("does not help: as fast as software, {work}")
            }
            Verdict::NotTaken | Verdict::NoHelp => format!(
                "does not help: {} times slower, {work}",
                units::times(1.0 / self.times)
            ),
            Verdict::FreesProcessor => format!(
                "{}, but gives no more than {}: {work}",
                freed(self.frees_cores),
                units::rate(device.bytes_per_second)
            ),
            Verdict::Faster => format!("helps: {} times as fast, {work}", units::times(self.times)),
        }
    }

    fn helps(&self) -> bool {
        self.verdict >= Verdict::FreesProcessor
    }
}

/// Processor time that others can use, in words. What is more than a core is no time that
/// software would have had, but work that it could not have done.
pub(super) fn freed(cores: f64) -> String {
    match cores {
        cores if cores > 1.0 => format!("does the work of {cores:.1} cores"),
        cores => format!("frees {:.0} % of a core", cores.max(0.0) * 100.0),
    }
}

/// The verdict over sizes in ascending order.
fn verdict(rows: &[&Row]) -> String {
    let helping: Vec<&&Row> = rows.iter().filter(|row| row.helps()).collect();
    let Some(first) = helping.first() else {
        return match rows.iter().all(|row| row.verdict == Verdict::NotTaken) {
            true => "It takes none of these sizes.".to_owned(),
            false => "It does not help at any of these sizes: software is as fast or faster, \
                      and the processor has as much to do with the device as without."
                .to_owned(),
        };
    };
    let last = helping[helping.len() - 1];
    let size = |row: &Row| units::size(row.size);
    let mut parts = Vec::new();
    if first.size > rows[0].size {
        parts.push(format!("does not help below {}", size(first)));
    }
    if last.size < rows[rows.len() - 1].size {
        parts.push(format!("does not help above {}", size(last)));
    }
    let between = rows
        .iter()
        .filter(|row| !row.helps() && (first.size..last.size).contains(&row.size));
    let between: Vec<String> = between.map(|row| size(row)).collect();
    if !between.is_empty() {
        parts.push(format!("does not help at {}", between.join(", ")));
    }
    let faster: Vec<&&&Row> = helping
        .iter()
        .filter(|row| row.verdict == Verdict::Faster)
        .collect();
    match faster.iter().max_by(|a, b| a.times.total_cmp(&b.times)) {
        Some(most) => parts.push(format!(
            "is faster from {} on, {} times at {}",
            size(faster[0]),
            units::times(most.times),
            size(most)
        )),
        None => parts.push("is never faster".to_owned()),
    }
    let freed = helping.iter().map(|row| row.frees_cores * 100.0);
    let (least, most) = freed.fold((f64::MAX, f64::MIN), |(least, most), freed| {
        (least.min(freed), most.max(freed))
    });
    if most > 100.0 {
        parts.push(format!(
            "does the work of up to {:.1} cores of this machine",
            most / 100.0
        ));
    } else if most >= 0.5 {
        let where_it_helps = match helping.len() == rows.len() {
            true => "",
            false => " where it helps",
        };
        parts.push(match most - least.max(0.0) < 1.0 {
            true => format!("frees {most:.0} % of a core{where_it_helps}"),
            false => format!(
                "frees {:.0} to {most:.0} % of a core{where_it_helps}",
                least.max(0.0)
            ),
        });
    }
    format!("It {}.", parts.join("; "))
}

impl Mix {
    fn new(name: &str, rows: &[Row]) -> Mix {
        let sum =
            |of: &dyn Fn(&Row) -> f64| -> f64 { rows.iter().map(|row| row.share * of(row)).sum() };
        let bytes = sum(&|row| row.size as f64);
        let seconds = |row: &Row, figures: Figures| row.size as f64 / figures.bytes_per_second;
        let by_device = |row: &Row| row.device.unwrap_or(row.software);
        let software = bytes / sum(&|row| seconds(row, row.software));
        let device = bytes / sum(&|row| seconds(row, by_device(row)));
        let best = bytes / sum(&|row| seconds(row, by_device(row)).min(seconds(row, row.software)));
        let processor_share =
            sum(&|row| by_device(row).processor_ns) / sum(&|row| row.software.processor_ns);
        let sentence = format!(
            "{name} as a whole: {} by software, {} by the device with {:.0} % of software's \
             processor time, {} with each size where it is faster.",
            units::rate(software),
            units::rate(device),
            processor_share * 100.0,
            units::rate(best)
        );
        Mix {
            name: name.to_owned(),
            software_bytes_per_second: software,
            device_bytes_per_second: device,
            best_bytes_per_second: best,
            processor_share,
            sentence,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(bytes_per_second: f64, processor_ns: f64) -> Figures {
        Figures {
            bytes_per_second,
            latency_ns: 1.0,
            processor_ns,
            load: 1.0,
            context_switches: 0.0,
        }
    }

    fn row(size: u64, verdict: Verdict, times: f64, frees_cores: f64) -> Row {
        Row {
            size,
            share: 0.5,
            software: figures(1e9, 1000.0),
            cores: None,
            device: Some(figures(times * 1e9, 500.0)),
            times,
            frees_cores,
            verdict,
            sentence: String::new(),
        }
    }

    #[test]
    fn the_verdict_names_the_sizes_and_what_is_freed() {
        let none = [row(16, Verdict::NoHelp, 0.1, 0.0)];
        assert!(verdict(&none.iter().collect::<Vec<_>>()).contains("not help at any"));
        let some = [
            row(16, Verdict::NoHelp, 0.1, -0.1),
            row(1024, Verdict::FreesProcessor, 0.5, 0.3),
            row(8192, Verdict::Faster, 2.0, 0.9),
        ];
        assert_eq!(
            verdict(&some.iter().collect::<Vec<_>>()),
            "It does not help below 1 KiB; is faster from 8 KiB on, 2 times at 8 KiB; frees 30 \
             to 90 % of a core where it helps."
        );
        let hole = [&some[1], &some[0], &some[2]].map(Clone::clone);
        let mut hole = hole.to_vec();
        hole[1].size = 2048;
        assert!(verdict(&hole.iter().collect::<Vec<_>>()).contains("not help at 2 KiB"));
    }

    #[test]
    fn little_is_not_called_much() {
        let cell = |driver: &str, bytes_per_second: f64, seconds_per_gb: f64| Cell {
            algorithm: "cbc(aes)".to_owned(),
            keybits: 128,
            direction: "encrypt".to_owned(),
            driver: driver.to_owned(),
            size: 16,
            batch: 1,
            threads: 1,
            bytes_per_second,
            ci_low: bytes_per_second,
            ci_high: bytes_per_second,
            ns_per_request_p50: 1.0,
            ns_per_request_p99: 1.0,
            user_seconds_per_gb: seconds_per_gb,
            system_seconds_per_gb: 0.0,
            voluntary_switches_per_request: 0.0,
            involuntary_switches_per_request: 0.0,
            page_faults_per_request: 0.0,
            noisy: false,
            depth: None,
            pause_us: None,
        };
        let workload = Workload {
            mix: None,
            shares: vec![(16, 1.0)],
        };
        let row = |device: f64, seconds_per_gb: f64| {
            let cells = [cell(BASE, 1e9, 1.0), cell("dma:x", device, seconds_per_gb)];
            Row::new(&cells, "dma:x", &workload).unwrap()
        };
        // 3 kB/s, however little of the processor it takes.
        let slow = row(3e3, 0.1);
        assert_eq!(slow.verdict, Verdict::NoHelp);
        assert!(
            slow.sentence.starts_with("does not help"),
            "{}",
            slow.sentence
        );
        assert_eq!(row(0.5e9, 0.1).verdict, Verdict::FreesProcessor);
        // As much as 30 cores: not '3000 % of a core'.
        let fast = row(31e9, 0.01);
        let said = verdict(&[&fast]);
        assert!(said.contains("does the work of up to 30.7 cores"), "{said}");
        assert_eq!(freed(0.3), "frees 30 % of a core");
    }

    #[test]
    fn a_mix_takes_the_time_of_its_parts() {
        let mut rows = [
            row(1000, Verdict::NoHelp, 0.5, 0.0),
            row(1000, Verdict::Faster, 2.0, 0.5),
        ];
        rows[1].device = Some(figures(2e9, 0.0));
        let mix = Mix::new("IMIX", &rows);
        assert!((mix.software_bytes_per_second / 1e9 - 1.0).abs() < 1e-9);
        // 2 µs and 0.5 µs for 2000 bytes; software does the first in 1 µs.
        assert!((mix.device_bytes_per_second / 0.8e9 - 1.0).abs() < 1e-9);
        assert!((mix.best_bytes_per_second / (2e9 / 1.5) - 1.0).abs() < 1e-9);
        assert!((mix.processor_share - 0.25).abs() < 1e-9);
    }
}
