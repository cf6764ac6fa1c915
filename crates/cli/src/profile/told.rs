//! Why results are slower than others, as text, JSON and parts of a page.

use std::collections::BTreeMap;

use cipherlane_profile::diff::Row;
use cipherlane_profile::page::{self, Pairs};
use cipherlane_profile::recording::Recording;
use cipherlane_profile::rules::Rules;
use serde::Serialize;

use super::summary::clean;
use crate::output::{self, styled, wrap};

/// Why results are slower than others.
#[derive(Debug, Serialize)]
pub(crate) struct Reasons {
    /// The kernel's event that processor time was sampled by.
    pub(super) event: String,
    /// Samples that were lost.
    pub(super) lost: u64,
    /// What could not be recorded, and what would give it.
    pub(super) missing: Vec<String>,
    pub(super) reasons: Vec<Reason>,
    /// What was recorded of each number.
    #[serde(skip)]
    pub(super) recorded: BTreeMap<u32, Recording>,
}

/// Why one result is slower than another one.
#[derive(Debug, Serialize)]
pub(super) struct Reason {
    pub(super) case: String,
    pub(super) place: String,
    pub(super) slower: String,
    pub(super) faster: String,
    /// Numbers of the faster one and the slower one.
    #[serde(skip)]
    pub(super) numbers: [u32; 2],
    /// How many times as slow.
    pub(super) times: f64,
    /// What times are divided by.
    pub(super) each: &'static str,
    pub(super) sentence: String,
    /// The phase that the advice is for.
    #[serde(skip)]
    pub(super) title: String,
    pub(super) advice: String,
    /// As in `profile diff`: `a` is the faster one, `b` the slower one.
    pub(super) phases: Vec<Row>,
}

impl Reasons {
    /// The sentences by case, and each advice once.
    pub(crate) fn text(&self) -> String {
        let mut text = format!("\n{}\n", styled(output::STRONG, "Why"));
        for of_case in self.reasons.chunk_by(|a, b| a.case == b.case) {
            text += &wrap("", &of_case[0].case);
            for reason in of_case {
                text += &wrap("  ", &clean(&reason.sentence));
            }
        }
        let mut told: Vec<&str> = Vec::new();
        for reason in &self.reasons {
            if !told.contains(&reason.title.as_str()) {
                told.push(&reason.title);
                text += &wrap("", &reason.advice());
            }
        }
        for note in self.notes() {
            text += &wrap("", &clean(&note));
        }
        text
    }

    /// The same for a page, with phases and flame graphs.
    pub(crate) fn html(&self) -> Pairs {
        let advice: Vec<String> = self.reasons.iter().map(Reason::advice).collect();
        let pairs = self.reasons.iter().zip(&advice);
        let pairs: Vec<page::Pair<'_>> = pairs
            .map(|(reason, advice)| page::Pair {
                case: &reason.case,
                place: &reason.place,
                names: [&reason.faster, &reason.slower],
                recordings: reason.numbers.map(|number| &self.recorded[&number]),
                times: reason.times,
                each: reason.each,
                phases: &reason.phases,
                sentence: &reason.sentence,
                advice,
            })
            .collect();
        page::pairs(&pairs, &self.notes(), &Rules::built_in())
    }

    /// What else there is to say.
    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.reasons.is_empty() {
            notes.push(
                "No result is slower than another one for a reason beyond the noise; measure for \
                 longer (--seconds), or while the machine is quiet."
                    .to_owned(),
            );
        }
        if self.lost > 0 {
            let lost = format!("{} samples were lost: the rings were full.", self.lost);
            notes.push(lost);
        }
        let missing = self.missing.iter();
        notes.extend(missing.map(|missing| format!("Missing: {missing}.")));
        notes
    }
}

impl Reason {
    /// The phase that grew most, and what to do about it.
    fn advice(&self) -> String {
        format!("{}: {}", self.title, self.advice)
    }
}
