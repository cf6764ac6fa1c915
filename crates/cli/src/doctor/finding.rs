//! What a check says.

use serde::Serialize;

/// What keeps the machine from encrypting fast.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Finding {
    /// The check that found it.
    pub(super) check: &'static str,
    /// In a sentence with its full stop.
    pub(super) what: String,
    /// How much slower it makes what it concerns, where that was measured here and now.
    pub(super) times_slower: Option<f64>,
    /// The same as it usually is, for the order of findings.
    #[serde(skip)]
    pub(super) guess: f64,
    /// What was seen, and where. Without a full stop, as the next.
    pub(super) evidence: String,
    pub(super) remedy: String,
    pub(super) command: Option<String>,
}

impl Finding {
    /// By which findings are put in order.
    pub(super) fn weight(&self) -> f64 {
        self.times_slower.unwrap_or(self.guess)
    }
}

/// The answer of a check.
#[derive(Debug)]
pub(super) enum Outcome {
    Fine,
    Found(Finding),
    /// It cannot be told here; why, without a full stop.
    Unknown(String),
}

impl Outcome {
    /// Nothing if `seen` is empty, or else what `finding` makes of it.
    pub(super) fn of(seen: &[String], finding: impl FnOnce(String) -> Finding) -> Self {
        match seen {
            [] => Outcome::Fine,
            seen => Outcome::Found(finding(list(seen))),
        }
    }
}

/// The first of many, and how many more.
fn list(seen: &[String]) -> String {
    const SHOWN: usize = 8;
    match seen.len() {
        0..=SHOWN => seen.join(", "),
        count => format!("{} and {} more", seen[..SHOWN].join(", "), count - SHOWN),
    }
}

#[cfg(test)]
impl Outcome {
    #[track_caller]
    pub(super) fn found(self) -> Finding {
        match self {
            Outcome::Found(finding) => finding,
            other => panic!("{other:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_are_cut() {
        let names: Vec<String> = (0..10).map(|n| n.to_string()).collect();
        assert_eq!(list(&names), "0, 1, 2, 3, 4, 5, 6, 7 and 2 more");
        assert_eq!(list(&names[..2]), "0, 1");
    }
}
