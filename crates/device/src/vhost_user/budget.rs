//! A limit on the processor time that a guest has this process spend.

use std::time::{Duration, Instant};

use crate::status::processor_time;

/// Time that a guest may save up while it asks for little.
const BURST: Duration = Duration::from_millis(50);

/// A share of a processor. All threads of the process count, those that encrypt for this one too.
pub(crate) struct Budget {
    /// Processors: 0.5 is half of one. `None`: there is no limit.
    share: Option<f64>,
    /// Seconds of processor time that may be spent now; less than none is a debt.
    credit: f64,
    spent: Duration,
    at: Instant,
}

impl Budget {
    /// Full at the start.
    pub(crate) fn new(share: Option<f64>) -> Budget {
        Budget {
            share,
            credit: BURST.as_secs_f64(),
            spent: processor_time(),
            at: Instant::now(),
        }
    }

    /// How long to do nothing now.
    pub(crate) fn pause(&mut self) -> Option<Duration> {
        let share = self.share?;
        let (spent, at) = (processor_time(), Instant::now());
        let used = spent.saturating_sub(self.spent).as_secs_f64();
        let passed = at.duration_since(self.at).as_secs_f64();
        (self.spent, self.at) = (spent, at);
        self.account(share, used, passed)
    }

    fn account(&mut self, share: f64, used: f64, passed: f64) -> Option<Duration> {
        let saved = (self.credit + passed * share).min(BURST.as_secs_f64());
        self.credit = saved - used;
        (self.credit < 0.0).then(|| Duration::from_secs_f64((-self.credit / share).min(1.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_spends_more_than_the_share_pauses_until_it_is_made_good() {
        let mut budget = Budget::new(Some(0.25));
        assert_eq!(budget.account(0.25, 0.05, 0.0), None, "the burst");
        let pause = budget.account(0.25, 0.01, 0.0).unwrap();
        assert!((pause.as_secs_f64() - 0.04).abs() < 1e-9);
        assert_eq!(budget.account(0.25, 0.0, pause.as_secs_f64() + 1e-6), None);
        // Half a processor is used all the time: a quarter is had.
        let (mut used, mut passed) = (0.0, 0.0);
        while passed < 10.0 {
            used += 0.005;
            let pause = budget.account(0.25, 0.005, 0.01);
            passed += 0.01;
            if let Some(pause) = pause {
                budget.account(0.25, 0.0, pause.as_secs_f64());
                passed += pause.as_secs_f64();
            }
        }
        assert!((0.24..0.26).contains(&(used / passed)), "{}", used / passed);
    }

    #[test]
    fn without_a_limit_nobody_pauses() {
        assert_eq!(Budget::new(None).pause(), None);
    }
}
