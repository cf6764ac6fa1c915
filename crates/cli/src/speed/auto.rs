//! What `auto` has to know before it is measured, and whether it kept its promise: as good as
//! the best of the drivers that it may choose.

use cipherlane_core::{Config, Framework};
use cipherlane_measure::run::Measurement;
use cipherlane_measure::stats::Interval;

use super::asked::{AUTO, Asked, BASE};
use super::lineup::Lineup;
use super::work::Cell;
use crate::algorithms::Choice;
use crate::calibrate::calibrate_lengths;
use crate::failure::Failure;

/// What `auto` promises, as a share of the best driver's throughput.
const PROMISED: f64 = 0.97;
/// How many of the worst cells are told.
const TOLD: usize = 10;

/// Seconds of calibration a driver: enough to measure most of what there is to know.
pub(super) fn calibration_seconds(asked: &Asked) -> f64 {
    (asked.choices.len() as f64).max(2.0)
}

/// Calibrates the algorithms of which something is not known yet, and keeps what was learned.
pub(super) fn learn(framework: &Framework, config: &Config, asked: &Asked) -> Result<(), Failure> {
    let rows = framework.rows();
    let mut unknown = Vec::new();
    for &Choice { algorithm, key_len } in &asked.choices {
        let choosable = rows
            .iter()
            .filter(|row| row.algorithm == algorithm.name && row.not_used_because.is_none());
        // With one driver there is nothing to choose, and so nothing to know.
        if choosable.count() > 1 && !framework.uncalibrated(algorithm, key_len).is_empty() {
            unknown.push((algorithm, key_len));
        }
    }
    if unknown.is_empty() {
        return Ok(());
    }
    let names: Vec<_> = unknown
        .iter()
        .map(|(algorithm, _)| algorithm.name)
        .collect();
    eprintln!(
        "cipherlane: nothing is known yet about {}: calibrating first, at most {:.0} s a driver",
        names.join(", "),
        config.calibration_seconds.unwrap_or(2.0).ceil()
    );
    calibrate_lengths(framework, &unknown)?;
    if config.profile.is_none() {
        eprintln!("cipherlane: what was learned is not kept: give --costs FILE");
    } else if let Err(error) = framework.save_profile() {
        eprintln!("cipherlane: warning: what was learned is not kept: {error}");
    }
    Ok(())
}

/// Collects how `auto` compares with the best of the drivers that it may choose.
#[derive(Debug)]
pub(super) struct Promise {
    /// By algorithm asked for: the drivers measured that `auto` may choose.
    choosable: Vec<Vec<String>>,
    seen: Vec<Seen>,
}

/// One cell.
#[derive(Debug)]
struct Seen {
    place: String,
    /// The best of the others.
    driver: String,
    /// `auto` as a multiple of it.
    ratio: Interval,
}

impl Promise {
    pub(super) fn new(framework: &Framework, lineup: &Lineup) -> Promise {
        let rows = match lineup.has_auto() {
            true => framework.rows(),
            false => Vec::new(),
        };
        let choosable = lineup.all().map(|sessions| {
            let may = |name: &str, algorithm: &str| {
                rows.iter().any(|row| {
                    row.driver == name
                        && row.algorithm == algorithm
                        && row.not_used_because.is_none()
                })
            };
            let measured = sessions.iter();
            measured
                .filter(|(name, session)| name == BASE || may(name, session.algorithm().name))
                .map(|(name, _)| name.clone())
                .collect()
        });
        Promise {
            choosable: choosable.collect(),
            seen: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, cell: &Cell, measured: &Measurement) {
        let others = self.choosable[cell.choice].iter();
        let ratios = others.filter_map(|other| Some((other, measured.ratio(AUTO, other)?)));
        if let Some((driver, ratio)) = ratios.min_by(|a, b| a.1.median.total_cmp(&b.1.median)) {
            self.seen.push(Seen {
                place: format!(
                    "{}, {}",
                    cell.case().title(),
                    cipherlane_measure::units::size(cell.size as u64)
                ),
                driver: driver.clone(),
                ratio,
            });
        }
    }

    /// How often it was kept, and where it was not; `None` if nothing was promised. A cell whose
    /// interval holds the promise has no verdict against `auto`.
    pub(super) fn text(&self) -> Option<String> {
        if self.seen.is_empty() {
            return None;
        }
        let count = |f: fn(&Seen) -> bool| self.seen.iter().filter(|seen| f(seen)).count();
        let kept = count(|seen| seen.ratio.median >= PROMISED);
        let open = count(|seen| seen.ratio.median < PROMISED && seen.ratio.high >= PROMISED);
        let mut text = format!(
            "auto reaches {:.0} % or more of the best driver that it may choose in {kept} of {} \
             cells",
            PROMISED * 100.0,
            self.seen.len(),
        );
        if open > 0 {
            text += &format!("; {open} too noisy for a verdict");
        }
        let mut broken: Vec<&Seen> = self
            .seen
            .iter()
            .filter(|seen| seen.ratio.high < PROMISED)
            .collect();
        if broken.is_empty() {
            return Some(text + ".\n");
        }
        text += &format!("; short of that beyond the noise in {}:\n", broken.len());
        broken.sort_by(|a, b| a.ratio.high.total_cmp(&b.ratio.high));
        for seen in broken.iter().take(TOLD) {
            text += &format!(
                "  {:.0} % of {} (95 %: {:.0} to {:.0} %): {}\n",
                seen.ratio.median * 100.0,
                seen.driver,
                seen.ratio.low * 100.0,
                seen.ratio.high * 100.0,
                seen.place,
            );
        }
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn promise(cells: &[(&str, f64, f64)]) -> Promise {
        let seen = |&(place, median, noise): &(&str, f64, f64)| Seen {
            place: place.to_owned(),
            driver: "cores".to_owned(),
            ratio: Interval {
                low: median - noise,
                median,
                high: median + noise,
            },
        };
        Promise {
            choosable: Vec::new(),
            seen: cells.iter().map(seen).collect(),
        }
    }

    #[test]
    fn only_what_is_certain_is_told_and_the_worst_first() {
        assert!(promise(&[]).text().is_none());
        let kept = promise(&[("good", 1.0, 0.02)]).text().unwrap();
        assert!(kept.contains("in 1 of 1 cells.\n"), "{kept}");
        let cells = [
            ("good", 1.0, 0.02),
            ("noisy", 0.8, 0.4),
            ("near", 0.94, 0.02),
            ("bad", 0.5, 0.02),
        ];
        let text = promise(&cells).text().unwrap();
        assert!(
            text.contains("in 1 of 4 cells; 1 too noisy for a verdict; short of that")
                && text.contains("noise in 2:"),
            "{text}"
        );
        let (bad, near) = (text.find("bad").unwrap(), text.find("near").unwrap());
        assert!(bad < near, "{text}");
        assert!(
            !text.contains("good") && !text.contains("noisy, "),
            "{text}"
        );
    }
}
