//! How a device departs from its settings: noise, overload, changes, and faults to order.

use serde::Deserialize;

/// How a device departs from its settings. The default does not.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Behaviour {
    /// Of the noise: the same seed gives the same times.
    pub seed: u64,
    /// Each request takes longer by this part of its time on average, exponentially
    /// distributed.
    pub jitter: f64,
    /// What happens under load.
    pub collapse: Option<Collapse>,
    /// Changes of speed, in ascending order of time.
    pub changes: Vec<Change>,
    /// Faults to order.
    pub faults: Vec<Fault>,
}

/// A device that loses more by waiting requests than it gains by serving them.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Collapse {
    /// With more requests than this in the device...
    pub above: u32,
    /// ...each takes this number of times as long.
    pub factor: f64,
}

/// A change of speed.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// On the device's clock.
    pub at_ns: u64,
    /// Everything takes this number of times as long as the settings say.
    pub factor: f64,
}

/// A fault, and which requests it strikes.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// What goes wrong.
    pub kind: FaultKind,
    /// The number of requests that are served well before.
    #[serde(default)]
    pub after: u64,
    /// Then this number of them is struck.
    #[serde(default = "once")]
    pub count: u64,
    /// For [`FaultKind::LateDma`]: how much later it writes.
    #[serde(default = "late")]
    pub delay_ns: u64,
}

fn once() -> u64 {
    1
}

fn late() -> u64 {
    3_000_000_000
}

/// What goes wrong with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultKind {
    /// The result and the completion are written, but no interrupt is raised.
    LostInterrupt,
    /// It is swallowed, and so is everything after it until a reset.
    Hang,
    /// It is swallowed; the device goes on with the others.
    Lost,
    /// An interrupt is raised at once, when nothing is done yet.
    SpuriousInterrupt,
    /// The device resets itself: what is in it is lost, and so are the keys.
    Reset,
    /// The device falls off the bus: nothing works any more, a reset neither.
    Gone,
    /// Only half of the output is written, and the completion says so.
    ShortWrite,
    /// One bit of the output is wrong.
    WrongResult,
    /// Half of the output is written, then the device reports an error.
    HalfWritten,
    /// The device reports an error and writes nothing.
    Refused,
    /// The completion's number names no slot there is.
    GarbageCompletion,
    /// The producer index of the completion ring jumps ahead of what the ring can hold.
    GarbageIndex,
    /// It is reported twice.
    DoubleCompletion,
    /// Before its completion, one is reported for a request never made.
    UnknownCompletion,
    /// It hangs, ignores the first reset, and writes its output much later.
    LateDma,
}

impl Behaviour {
    /// `Err` names the setting that makes no sense.
    pub(super) fn check(&self) -> Result<(), String> {
        let factors = self.changes.iter().map(|c| c.factor);
        let factors = factors.chain(self.collapse.map(|c| c.factor));
        if let Some(factor) = factors.into_iter().find(|f| !(1e-3..=1e6).contains(f)) {
            return Err(format!("behaviour: factor = {factor}: give 0.001 to 1e6"));
        }
        if !(0.0..=1e3).contains(&self.jitter) {
            return Err(format!(
                "behaviour.jitter = {}: give 0 to 1000",
                self.jitter
            ));
        }
        if !self.changes.is_sorted_by_key(|c| c.at_ns) {
            return Err("behaviour.changes: put them in ascending order of at_ns".to_owned());
        }
        Ok(())
    }

    /// How many times as long everything takes at a time.
    pub(super) fn factor(&self, now_ns: f64) -> f64 {
        let passed = self.changes.iter().rev();
        let mut passed = passed.skip_while(|c| c.at_ns as f64 > now_ns);
        passed.next().map_or(1.0, |c| c.factor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_found_by_time_and_nonsense_is_refused() {
        let text = "changes = [{at_ns = 100, factor = 10.0}, {at_ns = 200, factor = 1.0}]";
        let behaviour: Behaviour = toml::from_str(text).unwrap();
        behaviour.check().unwrap();
        let factors = [99.0, 100.0, 199.0, 200.0].map(|now| behaviour.factor(now));
        assert_eq!(factors, [1.0, 10.0, 10.0, 1.0]);
        for wrong in [
            "jitter = -1.0",
            "changes = [{at_ns = 0, factor = 0.0}]",
            "changes = [{at_ns = 2, factor = 1.0}, {at_ns = 1, factor = 1.0}]",
            "collapse = {above = 1, factor = nan}",
        ] {
            let behaviour: Behaviour = toml::from_str(wrong).unwrap();
            assert!(behaviour.check().is_err(), "{wrong}");
        }
    }
}
