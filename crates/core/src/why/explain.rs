//! How the answer is found: from the table of choices and the costs that were learned.

use std::sync::Arc;

use super::{Candidate, KeptOut, NotUsedBecause, Question, ServedBecause, Why};
use crate::dispatch::{BASE, Dispatch, Shape, price};
use crate::{Error, Framework, Transform};

impl Framework {
    /// Who would serve a batch, what each driver is estimated to take, and why the others
    /// are not used.
    pub fn explain(&self, question: Question) -> Result<Why, Error> {
        Answer::new(self, question)?.into_why()
    }
}

/// What is known before anything is put into words. Drivers are named by their index.
struct Answer<'a> {
    framework: &'a Framework,
    dispatch: Arc<Dispatch>,
    question: Question,
    shape: Shape,
    /// Serves what finds a device busy, and what a device may not have.
    home: usize,
    /// The choice, whether or not it serves already.
    chosen: usize,
    serving: usize,
    /// What keeps a chosen device out.
    kept_out: Option<KeptOut>,
}

impl<'a> Answer<'a> {
    fn new(framework: &'a Framework, question: Question) -> Result<Self, Error> {
        let shape = Shape {
            mode: question.mode,
            direction: question.direction,
            requests: question.requests,
            bytes: question.requests * question.size,
        };
        let dispatch = framework.dispatch(question.algorithm, question.key_len);
        let cell = dispatch.decision(question.goal, &shape);
        let home = usize::from(cell.best);
        let mut answer = Answer {
            framework,
            dispatch,
            question,
            shape,
            home,
            chosen: home,
            serving: home,
            kept_out: None,
        };
        match answer.forced() {
            Some(forced) => {
                answer.chosen = framework.driver_index(forced)?;
                answer.serving = answer.chosen;
            }
            None => {
                if answer.stays_whole(home) {
                    answer.home = BASE;
                    answer.chosen = BASE;
                    answer.serving = BASE;
                }
                if !answer.is_too_large(cell.serving()) && !answer.stays_whole(cell.serving()) {
                    answer.chosen = cell.serving();
                }
                // A device that is kept out serves later.
                if answer.dispatch.is_device(answer.chosen) {
                    answer.kept_out = answer.kept_out(answer.chosen);
                }
                if answer.kept_out.is_none() {
                    answer.serving = answer.chosen;
                }
            }
        }
        Ok(answer)
    }

    fn into_why(self) -> Result<Why, Error> {
        let Question {
            algorithm,
            key_len,
            goal,
            mode,
            requests,
            size,
            ..
        } = self.question;
        let drivers = 0..self.framework.shared.entries.len();
        let candidates: Vec<Candidate> = drivers.map(|index| self.candidate(index)).collect();
        let last_switch = self.dispatch.last_switch(goal, &self.shape);
        Ok(Why {
            algorithm: algorithm.name,
            key_bits: algorithm.key_bits(key_len),
            goal,
            mode,
            requests,
            size,
            served_by: self.name(self.serving),
            reason: self.served_because(&candidates),
            candidates,
            last_switch: last_switch
                .map(|switch| (self.name(switch.from), self.name(switch.to), switch)),
        })
    }

    fn forced(&self) -> Option<&'a str> {
        self.framework.shared.config.force.as_deref()
    }

    fn name(&self, index: usize) -> String {
        self.framework.shared.entries[index]
            .driver
            .name()
            .to_owned()
    }

    /// What counts as a driver's cost of the batch, in nanoseconds.
    fn price(&self, index: usize) -> Option<f32> {
        let (cost, _) = self.dispatch.estimate(index, &self.shape);
        cost.map(|cost| price(self.question.goal, self.question.mode, &cost))
    }

    /// Whether a device takes no requests of the size. Calibration looks at no limit of a driver.
    fn is_too_large(&self, index: usize) -> bool {
        let dispatch = &self.dispatch;
        if !dispatch.is_device(index) || !dispatch.is_eligible(index) {
            return false;
        }
        self.transform(index)
            .is_some_and(|transform| transform.max_len() < self.question.size)
    }

    /// Whether a driver's helpers do no part of the batch.
    fn stays_whole(&self, index: usize) -> bool {
        index != BASE
            && self.dispatch.is_eligible(index)
            && (self.transform(index))
                .is_some_and(|transform| !self.shape.is_for_helpers(&*transform))
    }

    /// What a driver makes of a key of that length, where it takes one.
    fn transform(&self, index: usize) -> Option<Box<dyn Transform>> {
        let key = vec![0x5a; self.question.key_len];
        let driver = &self.framework.shared.entries[index].driver;
        driver.transform(self.question.algorithm, &key).ok()
    }

    /// The nanoseconds of software's work that a driver is for, where the batch is less work.
    fn too_little(&self, index: usize) -> Option<u64> {
        let (base, _) = self.dispatch.estimate(BASE, &self.shape);
        let mode = self.question.mode;
        base.and_then(|base| self.dispatch.too_little(index, mode, base.latency))
    }

    fn kept_out(&self, index: usize) -> Option<KeptOut> {
        let (due_ns, done_ns) = self.dispatch.kept_out(index, &self.shape)?;
        Some(KeptOut { due_ns, done_ns })
    }

    /// Whether a device serves and the home beside it.
    fn is_beside_home(&self) -> bool {
        self.forced().is_none() && self.dispatch.is_device(self.serving)
    }

    fn candidate(&self, index: usize) -> Candidate {
        let (cost, samples) = self.dispatch.estimate(index, &self.shape);
        let barred = self.framework.not_used(index, self.question.algorithm);
        Candidate {
            driver: self.name(index),
            latency_ns: cost.map(|cost| cost.latency),
            period_ns: cost.map(|cost| cost.period),
            cpu_ns: cost.map(|cost| cost.cpu),
            samples,
            health: self.framework.shared.entries[index].breaker.health(),
            not_used_because: barred.or_else(|| self.not_chosen_because(index)),
        }
    }

    /// Why a driver does not serve that could.
    fn not_chosen_because(&self, index: usize) -> Option<NotUsedBecause> {
        if index == self.serving {
            return None;
        }
        if let Some(least) = self.too_little(index) {
            return Some(NotUsedBecause::TooLittleWork(least));
        }
        let serving = self.name(self.serving);
        let because = match (self.price(index), self.price(self.serving)) {
            _ if self.is_too_large(index) => NotUsedBecause::TooLarge,
            _ if self.stays_whole(index) => NotUsedBecause::StaysWhole,
            (Some(_), Some(_)) if self.is_beside_home() && index == self.home => {
                NotUsedBecause::ServesWhenBusy(serving)
            }
            (Some(_), Some(_)) if index == self.chosen => NotUsedBecause::WouldServeBeside(serving),
            (Some(own), Some(best)) if own > best => NotUsedBecause::Dearer(own / best, serving),
            (Some(own), Some(best)) => NotUsedBecause::NotCheaperByEnough(own / best, serving),
            _ => match self.dispatch.first_sight(index, &self.shape) {
                Some(ns) => NotUsedBecause::NeverUsed(ns),
                None => NotUsedBecause::NeverMeasured,
            },
        };
        Some(match self.kept_out(index) {
            Some(kept_out) => NotUsedBecause::KeptOut(Box::new(because), kept_out),
            None => because,
        })
    }

    fn served_because(&self, candidates: &[Candidate]) -> ServedBecause {
        let because = self.costs_least(candidates);
        if let Some(kept_out) = self.kept_out {
            return ServedBecause::InPlaceOf {
                device: self.name(self.chosen),
                kept_out,
                otherwise: Box::new(because),
            };
        }
        if !self.is_beside_home() {
            return because;
        }
        let cpu = |index: usize| {
            let (cost, _) = self.dispatch.estimate(index, &self.shape);
            cost.map(|cost| cost.cpu)
        };
        ServedBecause::BesideHome {
            home: self.name(self.home),
            caller_ns: cpu(self.serving).zip(cpu(self.home)),
            otherwise: Box::new(because),
        }
    }

    /// Why the driver that serves does, devices aside.
    fn costs_least(&self, candidates: &[Candidate]) -> ServedBecause {
        if let Some(forced) = self.forced() {
            return ServedBecause::Forced(forced.to_owned());
        }
        let Some(ns) = self.price(self.serving) else {
            return ServedBecause::NothingMeasured;
        };
        let mut others = (candidates.iter().enumerate())
            .filter(|&(index, _)| index != self.serving && self.too_little(index).is_none());
        if others.any(|(_, other)| other.latency_ns.is_some()) {
            let goal = self.question.goal;
            return ServedBecause::CostsLeast { goal, ns };
        }
        let Question {
            algorithm, key_len, ..
        } = self.question;
        match self.framework.uncalibrated(algorithm, key_len).is_empty() {
            true => ServedBecause::NoOtherUsable,
            false => ServedBecause::NoOtherMeasured,
        }
    }
}
