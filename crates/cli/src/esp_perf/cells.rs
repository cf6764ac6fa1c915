//! The results: a cell for each combination, in the form that `--json` writes.

use std::io;

use cipherlane_measure::machine::Machine;
use cipherlane_measure::run::Measurement;
use serde::Serialize;

use super::arguments::{Asked, Direction};
use super::traffic::Traffic;
use super::transforms::Entry;
use crate::profile::reasons::Reasons;

/// All results on one machine.
#[derive(Debug, Serialize)]
pub(super) struct Results {
    pub(super) machine: Machine,
    pub(super) cells: Vec<Cell>,
    /// Why some are slower than others, where that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) profile: Option<Reasons>,
}

/// One transform, direction, number of threads, packets per call, and size.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Cell {
    pub(super) transform: &'static str,
    pub(super) direction: &'static str,
    pub(super) threads: usize,
    pub(super) multipacket: usize,
    /// Bytes of a packet, `imix`, or `pcap`.
    pub(super) size: String,
    /// The median of the blocks.
    pub(super) packets_per_second: f64,
    /// Of the packets carried.
    pub(super) bytes_per_second: f64,
    /// Times what one thread does alone with as many packets per call.
    pub(super) effective_threads: f64,
    /// Times what the same threads do with one packet per call.
    pub(super) multipacket_efficiency: f64,
    /// 95 % confidence interval of the bytes per second.
    pub(super) ci_low: f64,
    pub(super) ci_high: f64,
    /// A quarter of the blocks or more were disturbed, or the interval is wide.
    pub(super) noisy: bool,
}

/// The name of a team.
pub(super) fn name(threads: usize, multipacket: usize) -> String {
    format!("{threads} threads, {multipacket} packets per call")
}

/// The cells of one measurement.
pub(super) fn cells(
    asked: &Asked,
    entry: &Entry,
    direction: Direction,
    traffic: &Traffic,
    measured: &Measurement,
) -> Vec<Cell> {
    let mut cells = Vec::new();
    for &threads in &asked.threads {
        for &multipacket in &asked.multipackets {
            let own = name(threads, multipacket);
            let Some((run, rate)) = measured.run(&own).and_then(|run| Some((run, run.rate()?)))
            else {
                continue;
            };
            let ratio = |base: &str| measured.ratio(&own, base).map_or(1.0, |ratio| ratio.median);
            let bytes = traffic.mean();
            cells.push(Cell {
                transform: entry.name,
                direction: direction.name(),
                threads,
                multipacket,
                size: traffic.name().to_owned(),
                packets_per_second: rate.median,
                bytes_per_second: rate.median * bytes,
                effective_threads: ratio(&name(1, multipacket)),
                multipacket_efficiency: ratio(&name(threads, 1)),
                ci_low: rate.low * bytes,
                ci_high: rate.high * bytes,
                noisy: run.noisy(),
            });
        }
    }
    cells
}

impl Results {
    pub(super) fn write_csv(&self, mut to: impl io::Write) -> io::Result<()> {
        writeln!(
            to,
            "transform,direction,threads,multipacket,size,packets_per_second,bytes_per_second,\
             effective_threads,multipacket_efficiency,ci_low,ci_high,noisy"
        )?;
        for cell in &self.cells {
            writeln!(
                to,
                "{},{},{},{},{},{},{},{},{},{},{},{}",
                cell.transform,
                cell.direction,
                cell.threads,
                cell.multipacket,
                cell.size,
                cell.packets_per_second,
                cell.bytes_per_second,
                cell.effective_threads,
                cell.multipacket_efficiency,
                cell.ci_low,
                cell.ci_high,
                cell.noisy
            )?;
        }
        Ok(())
    }

    /// The cells in groups of one transform and direction each.
    pub(super) fn groups(&self) -> impl Iterator<Item = &[Cell]> {
        self.cells
            .chunk_by(|a, b| (a.transform, a.direction) == (b.transform, b.direction))
    }
}
