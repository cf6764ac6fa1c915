//! Which ciphers the provider takes: a program that is given the provider must not become
//! slower by it.
//!
//! A figure is the ratio of the provider's speed to that of OpenSSL's default provider, with the
//! 95 % interval of its median. A difference counts only where the whole interval lies on its
//! side of 1: what the noise explains is neither a loss nor a gain.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::units;

/// Bytes of the messages that are measured.
const SIZES: [usize; 6] = [16, 64, 256, 1400, 8192, 16384];

/// Bytes of those that have a context of their own.
const NEW_SIZES: [usize; 2] = [64, 1400];

/// Where programs spend their bytes: packets, and the records of TLS.
const SPENT: [usize; 2] = [1400, 16384];

/// A cipher must be ahead by this at the sizes where bytes are spent.
const AHEAD: f64 = 1.02;
/// It may be behind by this at most, at any size.
const BEHIND: f64 = 0.98;

/// What is done to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Way {
    Encrypt,
    Decrypt,
}

impl Way {
    pub(super) const BOTH: [Way; 2] = [Way::Encrypt, Way::Decrypt];

    pub(super) fn name(self) -> &'static str {
        match self {
            Way::Encrypt => "enc",
            Way::Decrypt => "dec",
        }
    }
}

/// How a program keeps contexts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Contexts {
    /// One for all messages.
    #[default]
    Kept,
    /// One for each message, with its key.
    New,
}

/// What is measured each way.
pub(super) fn columns() -> impl Iterator<Item = (Contexts, usize)> {
    let kept = SIZES.map(|bytes| (Contexts::Kept, bytes));
    let new = NEW_SIZES.map(|bytes| (Contexts::New, bytes));
    kept.into_iter().chain(new)
}

/// How fast the provider is with messages of one size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Figure {
    pub(super) way: Way,
    #[serde(default)]
    pub(super) contexts: Contexts,
    pub(super) bytes: usize,
    /// The median of its speed over the default provider's, and the interval of that median.
    pub(super) ratio: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

impl Figure {
    /// Whether the noise explains the difference.
    pub(super) fn is_open(&self) -> bool {
        self.low <= 1.0 && self.high >= 1.0
    }

    fn is_ahead(&self) -> bool {
        self.ratio >= AHEAD && !self.is_open()
    }

    fn is_behind(&self) -> bool {
        self.ratio < BEHIND && !self.is_open()
    }

    /// Whether more rounds may change what it says.
    pub(super) fn is_close(&self) -> bool {
        self.is_open() || (BEHIND - 0.03..AHEAD + 0.03).contains(&self.ratio)
    }
}

/// Why a cipher is left to the default provider.
#[derive(Debug, PartialEq)]
pub(crate) enum Left<'a> {
    /// It cannot be measured.
    Problem(&'a str),
    /// The figure that is furthest behind.
    Behind(&'a Figure),
    /// Neither way is ahead where bytes are spent.
    NoGain,
}

impl fmt::Display for Left<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Left::Problem(problem) => f.write_str(problem),
            Left::Behind(figure) => {
                let size = units::size(figure.bytes as u64);
                write!(f, "{:.2} at {size}", figure.ratio)?;
                match figure.contexts {
                    Contexts::Kept => Ok(()),
                    Contexts::New => f.write_str(" in new contexts"),
                }
            }
            Left::NoGain => write!(f, "even from {} B", SPENT[0]),
        }
    }
}

/// A cipher and how it was measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Cipher {
    pub(crate) name: String,
    /// None where the default provider does not have the cipher, or there is a problem.
    pub(super) figures: Vec<Figure>,
    /// Why it could not be measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) problem: Option<String>,
}

impl Cipher {
    pub(super) fn figure(&self, way: Way, contexts: Contexts, bytes: usize) -> Option<&Figure> {
        self.figures.iter().find(|figure| {
            figure.way == way && figure.contexts == contexts && figure.bytes == bytes
        })
    }

    /// `Err` has the reason why it is left to the default provider.
    pub(crate) fn judge(&self) -> Result<(), Left<'_>> {
        if let Some(problem) = &self.problem {
            return Err(Left::Problem(problem));
        }
        let behind = self.figures.iter().filter(|figure| figure.is_behind());
        if let Some(worst) = behind.min_by(|a, b| a.ratio.total_cmp(&b.ratio)) {
            return Err(Left::Behind(worst));
        }
        // One way may be even: a chain of CBC cannot be faster than its blocks one by one.
        let gains = |way| {
            SPENT.iter().all(|&bytes| {
                self.figure(way, Contexts::Kept, bytes)
                    .is_some_and(Figure::is_ahead)
            })
        };
        match self.figures.is_empty() || Way::BOTH.into_iter().any(gains) {
            true => Ok(()),
            false => Err(Left::NoGain),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cipher with these ratios for encryption and for decryption, all with little noise.
    fn cipher(encrypt: [f64; 6], decrypt: [f64; 6]) -> Cipher {
        let figures = |way, ratios: [f64; 6]| {
            SIZES
                .into_iter()
                .zip(ratios)
                .map(move |(bytes, ratio)| Figure {
                    way,
                    contexts: Contexts::Kept,
                    bytes,
                    ratio,
                    low: ratio - 0.005,
                    high: ratio + 0.005,
                })
        };
        let both = figures(Way::Encrypt, encrypt).chain(figures(Way::Decrypt, decrypt));
        Cipher {
            name: "AES-128-CBC".to_owned(),
            figures: both.collect(),
            problem: None,
        }
    }

    #[test]
    fn what_is_ahead_and_nowhere_behind_is_taken() {
        let fast = [1.1, 1.2, 1.5, 2.0, 3.0, 4.0];
        assert_eq!(cipher(fast, fast).judge(), Ok(()));
        let even = [1.0; 6];
        assert_eq!(
            cipher(even, fast).judge(),
            Ok(()),
            "a chain cannot be faster"
        );
        assert_eq!(
            cipher([0.985; 6], fast).judge(),
            Ok(()),
            "less than 2 % behind"
        );
    }

    #[test]
    fn what_is_behind_at_one_size_is_left_with_the_reason() {
        let fast = [1.1, 1.2, 1.5, 2.0, 3.0, 4.0];
        let slow = cipher(fast, [1.1, 0.94, 0.96, 2.0, 3.0, 4.0]);
        assert_eq!(slow.judge(), Err(Left::Behind(&slow.figures[7])));
        assert_eq!(slow.judge().unwrap_err().to_string(), "0.94 at 64 B");
        let mut new = cipher(fast, fast);
        new.figures.push(Figure {
            contexts: Contexts::New,
            ..slow.figures[7]
        });
        let reason = new.judge().unwrap_err().to_string();
        assert_eq!(reason, "0.94 at 64 B in new contexts");
        let mut noisy = cipher(fast, [1.1, 0.94, 1.5, 2.0, 3.0, 4.0]);
        noisy.figures[7].high = 1.02;
        assert_eq!(noisy.judge(), Ok(()), "the noise explains it");
    }

    #[test]
    fn what_gains_nothing_where_bytes_are_spent_is_left() {
        let short = [1.5, 1.5, 1.3, 1.01, 1.0, 1.0];
        let short = cipher(short, short);
        assert_eq!(short.judge(), Err(Left::NoGain));
        assert_eq!(short.judge().unwrap_err().to_string(), "even from 1400 B");
        let once = [1.0, 1.0, 1.0, 1.5, 1.0, 1.0];
        assert!(cipher(once, once).judge().is_err());
        let mut noisy = cipher([1.03; 6], [1.0; 6]);
        assert_eq!(noisy.judge(), Ok(()));
        noisy.figures[5].low = 0.99;
        assert!(noisy.judge().is_err());
    }

    #[test]
    fn what_the_default_provider_lacks_is_taken_and_a_problem_is_not() {
        let mut alone = cipher([0.0; 6], [0.0; 6]);
        alone.figures.clear();
        assert_eq!(alone.judge(), Ok(()));
        alone.problem = Some("refused".to_owned());
        assert_eq!(alone.judge(), Err(Left::Problem("refused")));
    }
}
