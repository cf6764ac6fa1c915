//! Why a driver does not serve, each reason once.

use cipherlane_core::{Health, Row, SelfTest};

/// What is to be said of a driver besides the figures: its health, why it does not serve, and
/// its notes. `rows` are those of the driver.
pub(super) fn of_driver(rows: &[&Row]) -> Vec<String> {
    let first = rows[0];
    let mut said = Vec::new();
    if first.health != Health::Working {
        said.push(first.health.to_string());
    }
    let mut reasons: Vec<(String, Vec<&Row>)> = Vec::new();
    for row in rows {
        let Some(reason) = &row.not_used_because else {
            continue;
        };
        // What differs in the algorithm's name alone is one reason.
        let general = reason.to_string().replace(row.algorithm, "ALG");
        match reasons.iter_mut().find(|(known, _)| *known == general) {
            Some((_, rows)) => rows.push(row),
            None => reasons.push((general, vec![row])),
        }
    }
    let own = |row: &Row| {
        let reason = row.not_used_because.as_ref();
        reason.map(ToString::to_string).unwrap_or_default()
    };
    for (reason, of) in reasons {
        let missing = of.iter().all(|row| row.self_test == SelfTest::NotRun);
        said.push(match (of.len() == rows.len(), &of[..]) {
            (true, [one]) => own(one),
            (false, [one]) => format!("{}: {}", one.algorithm, own(one)),
            (true, _) => reason,
            // The table shows which.
            (false, _) if missing => format!("where it has a dash: {reason}"),
            (false, of) if of.iter().all(|row| row.self_test == SelfTest::Passed) => {
                format!("where it passed: {reason}")
            }
            (false, of) => {
                let names: Vec<&str> = of.iter().map(|row| row.algorithm).collect();
                format!("{}: {reason}", names.join(", "))
            }
        });
    }
    said.extend(first.notes.iter().cloned());
    said
}
