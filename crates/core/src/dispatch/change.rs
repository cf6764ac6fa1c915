//! Whether samples that are far from an estimate are noise, or show that the cost has changed.

/// This many surprising samples in a row show a change of the cost. A device needs more of them,
/// since its times vary more.
const SURPRISES_OF_DEVICE: u8 = 4;
const SURPRISES: u8 = 2;
/// Microseconds for which all samples of a driver that is no device must have been surprising. A hypervisor,
/// or a neighbour on the same core, makes all work slower for a shorter time, again and again: on a Xeon
/// 1.4 times slower for half a millisecond.
const LASTING: u32 = 3000;
/// A node has had few samples while each of them counts at least this much.
const STEP_OF_FEW_SAMPLES: f32 = 1.0 / 4.0;
/// After a change a node moves by this share of the difference.
const CHANGED_STEP: f32 = 0.75;
/// A sample is surprising if its distance from the estimate is more than this many times the usual
/// distance, plus the margin.
const SURPRISE_FACTOR: f32 = 3.0;
const SURPRISE_MARGIN: f32 = 0.1;
/// A sample moves the usual distance by this share of the difference.
const SPREAD_STEP: f32 = 1.0 / 16.0;
/// The usual distance of a sample from the estimate that is assumed before it is known.
const ASSUMED_SPREAD: f32 = 0.1;

/// What a sample far from the estimate is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Outliers {
    /// One slow batch among many is caused by the driver itself and belongs to its cost, as with a device.
    Count,
    /// A slow batch is assumed to be caused by an interrupt or a preemption, and so are several within some
    /// milliseconds. The sample was seen at this time, in nanoseconds of the framework's clock.
    Noise(u64),
}

/// Tells noise from a change of the cost.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChangeDetector {
    /// Mean distance of a sample from the estimate: of the logarithm of their ratio.
    spread: f32,
    /// The number of surprising samples in a row; below zero if the samples were smaller than the
    /// estimate.
    in_a_row: i8,
    /// When the first of these was seen: microseconds of the framework's clock, of which this number holds
    /// an hour.
    since: u32,
    /// Where outliers count, the sum of the differences of samples that were surprising and have not been
    /// counted yet. Where they are noise, the sum of the distances of the samples in a row until these show
    /// a change: only when they turn out not to do they show how far samples usually are.
    held_back: f32,
}

impl Default for ChangeDetector {
    fn default() -> Self {
        ChangeDetector {
            spread: ASSUMED_SPREAD,
            in_a_row: 0,
            since: 0,
            held_back: 0.0,
        }
    }
}

impl ChangeDetector {
    /// How far the estimate should move, as a share of itself, after a sample that is `ratio` times
    /// the estimate; and whether the cost has changed. `step` is the share of the difference
    /// that a usual sample counts for.
    pub(super) fn judge(&mut self, ratio: f32, step: f32, outliers: Outliers) -> (f32, bool) {
        let (outliers_count, now) = match outliers {
            Outliers::Count => (true, 0),
            Outliers::Noise(now) => (false, (now / 1000) as u32),
        };
        let off = ratio - 1.0;
        let far = ratio.ln().abs();
        let surprising = far > SURPRISE_FACTOR * self.spread + SURPRISE_MARGIN;
        if !surprising || outliers_count {
            self.spread += (far - self.spread) * SPREAD_STEP;
        }
        if !surprising {
            self.end_row(outliers_count);
            // The samples that were held back do not show a change. They still belong to the mean if
            // the driver itself caused them.
            let held = std::mem::take(&mut self.held_back);
            return (step * (off + held), false);
        }
        let sign = if off > 0.0 { 1 } else { -1 };
        if self.in_a_row.signum() != sign {
            self.end_row(outliers_count);
            self.since = now;
        }
        self.in_a_row = self.in_a_row.saturating_add(sign);
        if sign < 0 && !outliers_count && step >= STEP_OF_FEW_SAMPLES {
            // Something disturbed the samples before, since no disturbance makes work faster.
            *self = ChangeDetector::default();
            return (off, true);
        }
        let (enough, lasting) = match outliers_count {
            true => (SURPRISES_OF_DEVICE, 0),
            false => (SURPRISES, LASTING),
        };
        if self.in_a_row.unsigned_abs() < enough || now.wrapping_sub(self.since) < lasting {
            self.held_back += if outliers_count { off } else { far };
            return (0.0, false);
        }
        self.held_back = 0.0;
        self.spread = ASSUMED_SPREAD;
        (CHANGED_STEP * off, true)
    }

    /// Notes that the cost is what it was before the samples that were surprising in a row.
    fn end_row(&mut self, outliers_count: bool) {
        let count = std::mem::take(&mut self.in_a_row).unsigned_abs();
        if !outliers_count && self.held_back > 0.0 {
            let mean = std::mem::take(&mut self.held_back) / f32::from(count);
            self.spread += (mean - self.spread) * (1.0 - (1.0 - SPREAD_STEP).powi(count.into()));
        }
    }
}
