//! Collects measurements, and makes the record of them.

use crate::crossover::{Crossover, Outcome, Point};
use crate::machine::Machine;
use crate::record::{Case, Cell, CrossoverEntry, Ratio, Record};
use crate::run::{Measurement, Run};
use crate::stats::Interval;

/// Collects measurements into a [`Record`].
#[derive(Clone, Debug, Default)]
pub struct Recorder {
    cells: Vec<Cell>,
    curves: Vec<Curve>,
    base: String,
}

/// The ratios of one driver to the base in one case.
#[derive(Clone, Debug)]
struct Curve {
    case: Case,
    driver: String,
    points: Vec<Point>,
}

impl Recorder {
    /// `base` names the candidate that the others are compared with.
    pub fn new(base: impl Into<String>) -> Self {
        Self {
            base: base.into(),
            ..Self::default()
        }
    }

    /// Adds the candidates measured together in `case` at `size` bytes a
    /// request (not 0), and returns their cells. Sizes come in any order.
    pub fn add(&mut self, case: &Case, size: u64, measurement: &Measurement) -> &[Cell] {
        let first = self.cells.len();
        for run in &measurement.runs {
            self.cells.extend(Cell::from_run(case, size, run));
            if run.name == self.base {
                continue;
            }
            let Some(ratio) = measurement.ratio(&run.name, &self.base) else {
                continue;
            };
            let base = measurement.run(&self.base);
            let noisy = run.noisy() || base.is_some_and(Run::noisy);
            let point = Point { size, ratio, noisy };
            let known = self
                .curves
                .iter_mut()
                .find(|curve| curve.case == *case && curve.driver == run.name);
            match known {
                Some(curve) => curve.points.push(point),
                None => self.curves.push(Curve {
                    case: case.clone(),
                    driver: run.name.clone(),
                    points: vec![point],
                }),
            }
        }
        &self.cells[first..]
    }

    /// The record, crossovers included.
    pub fn finish(self, machine: Machine) -> Record {
        let base = self.base;
        let crossovers = self.curves.into_iter().map(|curve| {
            let found = Crossover::find(&curve.points);
            CrossoverEntry {
                sentence: found.sentence(&curve.driver, &base),
                shape: found.shape,
                ratios: found.points().map(Ratio::from).collect(),
                crossings: found.crossings,
                case: curve.case,
                driver: curve.driver,
                base: base.clone(),
            }
        });
        Record {
            machine,
            cells: self.cells,
            crossovers: crossovers.collect(),
        }
    }
}

impl Cell {
    /// `None` for a run without blocks or operations, or of requests without bytes.
    fn from_run(case: &Case, size: u64, run: &Run) -> Option<Self> {
        let operations = run.operations();
        if operations == 0 || size == 0 {
            return None;
        }
        let requests = operations * case.batch;
        let per_request = run.usage().per_operation(requests);
        let bytes = (size * case.batch) as f64;
        let Interval { low, median, high } = run.rate()?;
        let nanoseconds = |q| run.latency.quantile(q).unwrap_or(1e9 / median) / case.batch as f64;
        let (typical_operations, typical) = run.typical_usage();
        let typical = typical.per_operation(typical_operations * case.batch);
        let per_gb = |seconds: f64| seconds * 1e9 / size as f64;
        Some(Self {
            algorithm: case.algorithm.clone(),
            keybits: case.keybits,
            direction: case.direction.clone(),
            driver: run.name.clone(),
            size,
            batch: case.batch,
            threads: case.threads,
            bytes_per_second: median * bytes,
            ci_low: low * bytes,
            ci_high: high * bytes,
            ns_per_request_p50: nanoseconds(0.5),
            ns_per_request_p99: nanoseconds(0.99),
            user_seconds_per_gb: per_gb(typical.user_seconds),
            system_seconds_per_gb: per_gb(typical.system_seconds),
            voluntary_switches_per_request: per_request.voluntary_switches,
            involuntary_switches_per_request: per_request.involuntary_switches,
            page_faults_per_request: per_request.page_faults,
            noisy: run.noisy(),
            depth: case.depth,
            pause_us: case.pause_us,
        })
    }
}

impl From<(&Point, Outcome)> for Ratio {
    fn from((point, outcome): (&Point, Outcome)) -> Self {
        Self {
            size: point.size,
            ratio: point.ratio.median,
            ci_low: point.ratio.low,
            ci_high: Some(point.ratio.high).filter(|high| high.is_finite()),
            outcome,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::time::Duration;

    use super::*;
    use crate::counters::Usage;
    use crate::crossover::Shape;
    use crate::latency::Latency;
    use crate::run::{Block, ResourceUse};

    pub(crate) fn case() -> Case {
        Case {
            algorithm: "authenc(hmac(sha256),cbc(aes))".into(),
            keybits: 128,
            direction: "encrypt".into(),
            batch: 4,
            threads: 2,
            depth: None,
            pause_us: None,
        }
    }

    /// Eight blocks of 1000 operations at that rate, each costing 20 ms of
    /// user time, 10 ms of system time and a switch an operation.
    pub(crate) fn run(name: &str, rate: f64) -> Run {
        let usage = Usage {
            user: Duration::from_millis(20),
            system: Duration::from_millis(10),
            voluntary_switches: 1000,
            involuntary_switches: 0,
            page_faults: 4,
            ..Usage::default()
        };
        let block = Block {
            operations: 1000,
            rate,
            resources: ResourceUse {
                usage,
                steal: Duration::ZERO,
            },
            disturbed: false,
        };
        let mut latency = Latency::default();
        latency.record(Duration::from_nanos(2000));
        Run {
            name: name.into(),
            blocks: vec![block; 8],
            latency,
        }
    }

    pub(crate) fn record() -> Record {
        let mut recorder = Recorder::new("software");
        for (size, engine) in [(1024, 50.0), (64, 10.0), (256, 200.0)] {
            let measurement = Measurement {
                runs: vec![run("software", 100.0), run("engine", engine)],
            };
            assert_eq!(recorder.add(&case(), size, &measurement).len(), 2);
        }
        recorder.finish(Machine::detect())
    }

    #[test]
    fn figures_are_by_request_and_by_gigabyte() {
        let record = record();
        let cell = &record.cells[0];
        assert_eq!((cell.driver.as_str(), cell.size), ("software", 1024));
        // 100 operations per second of 4 requests of 1024 bytes.
        assert_eq!(cell.bytes_per_second, 409_600.0);
        assert_eq!((cell.ci_low, cell.ci_high), (409_600.0, 409_600.0));
        // 20 ms for 4,096,000 bytes.
        assert!((cell.user_seconds_per_gb - 0.02e9 / 4_096_000.0).abs() < 1e-9);
        assert!((cell.system_seconds_per_gb - 0.01e9 / 4_096_000.0).abs() < 1e-9);
        assert!((cell.load() - 0.003).abs() < 1e-12);
        assert_eq!(cell.voluntary_switches_per_request, 0.25);
        assert_eq!(cell.page_faults_per_request, 0.001);
        assert!((cell.ns_per_request_p50 - 500.0).abs() < 1.0);
        assert!(!cell.noisy);
        assert_eq!(cell.case(), case());
    }

    #[test]
    fn crossovers_are_found_whatever_the_order_of_sizes() {
        let record = record();
        let [entry] = &record.crossovers[..] else {
            panic!("{:?}", record.crossovers);
        };
        assert_eq!(
            (entry.driver.as_str(), entry.shape),
            ("engine", Shape::WinsBetween)
        );
        let sizes: Vec<u64> = entry.ratios.iter().map(|ratio| ratio.size).collect();
        assert_eq!(sizes, [64, 256, 1024]);
        assert!(
            entry
                .sentence
                .starts_with("engine beats software only between")
        );
        assert_eq!(
            entry.case.title(),
            "authenc(hmac(sha256),cbc(aes)), 128-bit key, encrypt, 4 requests per batch, 2 threads"
        );
        let not_waiting = Case {
            depth: Some(8),
            pause_us: Some(20),
            ..case()
        };
        assert!(
            not_waiting
                .title()
                .ends_with("2 threads, not waiting, 8 under way, 20 us between calls")
        );
    }

    #[test]
    fn nothing_measured_makes_no_cell_and_no_figure_out_of_nothing() {
        let mut idle = run("software", 1.0);
        idle.blocks.clear();
        let measurement = Measurement { runs: vec![idle] };
        let mut recorder = Recorder::new("software");
        assert!(recorder.add(&case(), 16, &measurement).is_empty());
        assert!(recorder.finish(Machine::detect()).crossovers.is_empty());
    }
}
