//! What the matrix shows, in a few lines.

use std::fmt;

use crate::cells::Outcome;

/// Of the better one's throughput, `auto` must reach this share.
pub(crate) const REACH: f64 = 0.97;
/// And never be further behind software in total than this.
pub(crate) const BEHIND: f64 = 0.03;
/// Where software and device together reach this multiple of the better one, `auto` must be better
/// than either too.
pub(crate) const TOGETHER: f64 = 1.15;

/// The cells of one or more devices.
pub(crate) struct Summary<'a>(pub(crate) &'a [Outcome]);

impl Summary<'_> {
    fn count(&self, f: impl Fn(&Outcome) -> bool) -> usize {
        self.0.iter().filter(|outcome| f(outcome)).count()
    }

    /// Cells where both together would be much better than either, and of these the ones in
    /// which `auto` is no better than either.
    pub(crate) fn spills(&self) -> (usize, usize) {
        let spills = |o: &Outcome| o.together >= TOGETHER;
        (
            self.count(spills),
            self.count(|o| spills(o) && o.reached() < 1.005),
        )
    }

    /// Sorted by what `auto` reached, the worst first.
    pub(crate) fn by_reach(&self) -> Vec<&Outcome> {
        let mut sorted: Vec<&Outcome> = self.0.iter().collect();
        sorted.sort_by(|a, b| a.reached().total_cmp(&b.reached()));
        sorted
    }

    /// Sorted by how far `auto` was behind software, the worst first.
    pub(crate) fn by_lag(&self) -> Vec<&Outcome> {
        let mut sorted: Vec<&Outcome> = self.0.iter().collect();
        sorted.sort_by(|a, b| b.behind.total_cmp(&a.behind));
        sorted
    }
}

impl fmt::Display for Summary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reach = self.by_reach();
        let median = reach[reach.len() / 2].reached();
        let (spills, missed) = self.spills();
        let (regret, time) = self.0.iter().fold((0.0, 0.0), |(regret, time), o| {
            (regret + o.regret, time + o.time)
        });
        writeln!(
            f,
            "{:5} cells: of the better one's throughput worst {:.3}, median {median:.3}; \
             below {REACH}: {}",
            self.0.len(),
            reach[0].reached(),
            self.count(|o| o.reached() < REACH),
        )?;
        writeln!(
            f,
            "      behind software in total at most {:.2} %; total regret {:.2} % of the time",
            self.by_lag()[0].behind * 100.0,
            regret / time * 100.0,
        )?;
        writeln!(
            f,
            "      both together much better than either in {spills} cells, `auto` no better \
             in {missed} of them"
        )?;
        write!(f, "      worst: {}", reach[0])
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cell = &self.cell;
        write!(
            f,
            "{}, {} B, {:?}, {} sessions, {:?}: ns per batch software {:.0}, device {:.0}, \
             auto {:.0}: {:.3}, behind {:.4}, together {:.3}",
            cell.device,
            cell.size,
            cell.way,
            cell.sessions,
            cell.goal,
            self.software.pace(),
            self.device.pace(),
            self.auto.pace(),
            self.reached(),
            self.behind,
            self.together,
        )
    }
}
