//! The drivers that can be measured for each algorithm, and why the others cannot.

use cipherlane_core::{Error, Framework, Session};

use super::asked::{AUTO, Asked, BASE};
use crate::failure::Failure;

/// Sessions by algorithm and driver, with their keys set.
#[derive(Debug)]
pub(super) struct Lineup {
    /// By algorithm asked for: the drivers that serve it, in the order asked for.
    sessions: Vec<Vec<(String, Session)>>,
    /// The driver that others are compared with.
    pub(super) base: String,
    /// Drivers left out, in words.
    pub(super) notes: Vec<String>,
}

impl Lineup {
    pub(super) fn new(framework: &Framework, asked: &Asked) -> Result<Lineup, Failure> {
        let present = framework.driver_names();
        let mut drivers = asked.drivers.clone();
        let known = |name: &String| name == AUTO || present.contains(&name.as_str());
        if !asked.drivers_named {
            drivers.retain(known);
        }
        if let Some(name) = drivers.iter().find(|name| !known(name)) {
            return Err(Failure::Usage(format!(
                "unknown driver '{name}': use {AUTO}, or of those present {}",
                present.join(", ")
            )));
        }
        let mut left_out = Vec::new();
        let mut sessions = Vec::new();
        for choice in &asked.choices {
            let mut of_choice = Vec::new();
            for name in &drivers {
                let builder = framework.session(choice.algorithm.name, &key(choice.key_len))?;
                let opened = match name.as_str() {
                    AUTO => builder.open(),
                    name => builder.driver(name).open(),
                };
                match opened {
                    Ok(session) => of_choice.push((name.clone(), session)),
                    Err(Error::DriverUnusable { reason, .. }) => {
                        left_out.push((name.as_str(), reason.to_string(), choice.algorithm.name));
                    }
                    Err(error) => return Err(error.into()),
                }
            }
            sessions.push(of_choice);
        }
        let notes = notes(&drivers, &left_out, asked.choices.len());
        if sessions.iter().all(Vec::is_empty) {
            return Err(Failure::Runtime(format!(
                "no driver is left to measure: {}",
                notes.join("; ")
            )));
        }
        let base = match drivers.iter().any(|name| name == BASE) {
            true => BASE.to_owned(),
            false => sessions
                .iter()
                .flatten()
                .map(|(name, _)| name.clone())
                .next()
                .unwrap_or_default(),
        };
        Ok(Lineup {
            sessions,
            base,
            notes,
        })
    }

    /// The drivers that serve an algorithm, by its place among those asked for.
    pub(super) fn sessions(&self, choice: usize) -> &[(String, Session)] {
        &self.sessions[choice]
    }

    /// The same for every algorithm in turn.
    pub(super) fn all(&self) -> impl Iterator<Item = &[(String, Session)]> {
        self.sessions.iter().map(Vec::as_slice)
    }

    pub(super) fn has_auto(&self) -> bool {
        self.sessions.iter().flatten().any(|(name, _)| name == AUTO)
    }

    pub(super) fn most_drivers(&self) -> usize {
        self.sessions.iter().map(Vec::len).max().unwrap_or_default()
    }
}

/// A key for measuring; the halves of an XTS key differ.
pub(crate) fn key(len: usize) -> Vec<u8> {
    (0..len).map(|index| index as u8 ^ 0x5a).collect()
}

/// One note for each driver and reason.
fn notes(drivers: &[String], left_out: &[(&str, String, &str)], algorithms: usize) -> Vec<String> {
    let mut notes = Vec::new();
    for driver in drivers {
        let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
        for (name, reason, algorithm) in left_out {
            if name != driver {
                continue;
            }
            match reasons.iter_mut().find(|(known, _)| known == reason) {
                Some((_, affected)) => affected.push(algorithm),
                None => reasons.push((reason, vec![algorithm])),
            }
        }
        for (reason, affected) in reasons {
            notes.push(match affected.len() == algorithms {
                true => format!("driver '{driver}' is left out: {reason}"),
                false => format!(
                    "driver '{driver}' is left out for {}: {reason}",
                    affected.join(", ")
                ),
            });
        }
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_told_once() {
        let drivers = ["cores".to_owned(), "openssl".to_owned()];
        let none = "no cores".to_owned();
        let left_out = [
            ("cores", none.clone(), "gcm(aes)"),
            ("openssl", "not offered".to_owned(), "gcm(aes)"),
            ("cores", none, "ctr(aes)"),
        ];
        assert_eq!(
            notes(&drivers, &left_out, 2),
            [
                "driver 'cores' is left out: no cores",
                "driver 'openssl' is left out for gcm(aes): not offered"
            ]
        );
    }

    #[test]
    fn halves_of_a_key_differ() {
        let key = key(64);
        assert_ne!(key[..32], key[32..]);
    }
}
