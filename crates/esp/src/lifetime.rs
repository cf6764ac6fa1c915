//! Lifetimes: what an SA has done, when it must be replaced, when it ends, and whose it is.
//!
//! An SA with a lifetime in seconds reads a coarse clock once per batch. One without traffic
//! notices its age when its owner asks, by `check_age`.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use cipherlane_core::{Clock, Process};

use crate::sync::Line;
use crate::{Lifetime, Lifetimes, Refusal};

/// What the owner of an SA must hear of. Each is told once, but for
/// [`Forgeries`](Self::Forgeries) and [`Resynchronized`](Self::Resynchronized).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// A soft lifetime was reached: the SA is to be replaced.
    Soft(Measure),
    /// A hard lifetime was reached: the SA does nothing any more.
    Hard(Measure),
    /// The last sequence number was sent: the SA does nothing any more.
    SequenceExhausted,
    /// Packets are coming that are not authentic: forged, damaged, or of another key. Told with
    /// the first of them, and then once per second while there are more. Inbound only.
    Forgeries {
        /// Since the SA was made.
        total: u64,
        /// Since this was told last.
        per_second: u64,
    },
    /// The sender was 2^32 or more numbers ahead, after a long outage, and was found again
    /// (RFC 4303 appendix A3). Inbound only.
    Resynchronized,
}

/// What a lifetime is measured in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Measure {
    /// Packets sealed or accepted.
    Packets,
    /// Bytes of content sealed or accepted.
    Bytes,
    /// Seconds since the SA was made.
    Seconds,
    /// Packets that were not authentic. Inbound only.
    Forgeries,
}

/// Hears of events, on the thread that works on a packet: it must not wait.
pub type Observer = Box<dyn Fn(Event) + Send + Sync>;

/// How much of a batch is within the hard lifetimes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allowance {
    packets: u64,
    bytes: u64,
}

impl Allowance {
    /// Takes a packet out of the allowance, if it is still in it.
    pub(crate) fn take(&mut self, bytes: usize) -> bool {
        let bytes = bytes as u64;
        let granted = self.packets >= 1 && self.bytes >= bytes;
        if granted {
            self.packets -= 1;
            self.bytes -= bytes;
        } else {
            // What was refused has expired the SA: nothing behind it goes through.
            (self.packets, self.bytes) = (0, 0);
        }
        granted
    }
}

/// The life of one SA, shared by all its threads.
pub(crate) struct Life {
    /// The only process that may use the SA.
    owner: Process,
    /// A bit for each event that was told.
    told: AtomicU32,
    /// Whether packets or bytes are limited, and whether seconds are.
    is_counted: bool,
    is_timed: bool,
    limits: Lifetimes,
    observer: Option<Observer>,
    clock: Clock,
    /// By the clock.
    born: Duration,
    /// Written by every batch of an SA that has limits.
    used: Line<Used>,
}

/// What was used of the lifetimes.
#[derive(Default)]
struct Used {
    packets: AtomicU64,
    bytes: AtomicU64,
}

const DEAD: u32 = bit(Event::Hard(Measure::Packets))
    | bit(Event::Hard(Measure::Bytes))
    | bit(Event::Hard(Measure::Seconds))
    | bit(Event::Hard(Measure::Forgeries))
    | bit(Event::SequenceExhausted);

/// The bit of an event that is told once; 0 for another.
const fn bit(event: Event) -> u32 {
    match event {
        Event::Soft(measure) => 1 << measure as u32,
        Event::Hard(measure) => 1 << (8 + measure as u32),
        Event::SequenceExhausted => 1 << 16,
        Event::Forgeries { .. } | Event::Resynchronized => 0,
    }
}

impl Life {
    pub(crate) fn new(limits: &Lifetimes, clock: &Clock) -> Self {
        let unlimited = Lifetime::default();
        Life {
            owner: Process::current(),
            told: AtomicU32::new(0),
            is_counted: limits.packets != unlimited || limits.bytes != unlimited,
            is_timed: limits.seconds != unlimited,
            limits: *limits,
            observer: None,
            clock: clock.clone(),
            born: clock.coarse(),
            used: Line(Used::default()),
        }
    }

    pub(crate) fn set_observer(&mut self, observer: Observer) {
        self.observer = Some(observer);
    }

    /// Why the SA does nothing any more, if so.
    #[inline]
    pub(crate) fn end(&self) -> Option<Refusal> {
        if self.told.load(Ordering::Relaxed) & DEAD != 0 || !self.owner.is_current() {
            return Some(self.reason());
        }
        None
    }

    #[cold]
    fn reason(&self) -> Refusal {
        let forgeries = bit(Event::Hard(Measure::Forgeries));
        if !self.owner.is_current() {
            Refusal::Forked
        } else if self.told.load(Ordering::Relaxed) & forgeries != 0 {
            Refusal::TooManyForgeries
        } else {
            Refusal::Expired
        }
    }

    /// Looks at the clock, where seconds are limited. Once per batch.
    #[inline]
    pub(crate) fn check_age(&self) {
        if self.is_timed {
            self.check_clock();
        }
    }

    fn check_clock(&self) {
        if !self.owner.is_current() {
            return;
        }
        let age = self.clock.coarse().saturating_sub(self.born).as_secs();
        let Lifetime { soft, hard } = self.limits.seconds;
        for (limit, event) in [
            (soft, Event::Soft(Measure::Seconds)),
            (hard, Event::Hard(Measure::Seconds)),
        ] {
            if limit.is_some_and(|limit| age >= limit) {
                self.tell(event);
            }
        }
    }

    /// The time by the SA's clock.
    pub(crate) fn now(&self) -> Duration {
        self.clock.coarse()
    }

    /// Counts a batch. `None`: all of it is within the hard lifetimes.
    #[inline]
    pub(crate) fn spend(&self, packets: u64, bytes: u64) -> Option<Allowance> {
        match self.is_counted {
            true => self.spend_counted(packets, bytes),
            false => None,
        }
    }

    fn spend_counted(&self, packets: u64, bytes: u64) -> Option<Allowance> {
        let (limits, Line(used)) = (&self.limits, &self.used);
        let allowance = Allowance {
            packets: self.spend_on(Measure::Packets, limits.packets, &used.packets, packets),
            bytes: self.spend_on(Measure::Bytes, limits.bytes, &used.bytes, bytes),
        };
        (allowance.packets < packets || allowance.bytes < bytes).then_some(allowance)
    }

    /// How much of `amount` is within the hard limit of a measure.
    fn spend_on(&self, measure: Measure, limit: Lifetime, used: &AtomicU64, amount: u64) -> u64 {
        if limit == Lifetime::default() {
            return u64::MAX;
        }
        let before = used.fetch_add(amount, Ordering::Relaxed);
        let after = before.saturating_add(amount);
        if limit.soft.is_some_and(|soft| after >= soft) {
            self.tell(Event::Soft(measure));
        }
        let Some(hard) = limit.hard else {
            return u64::MAX;
        };
        if after >= hard {
            self.tell(Event::Hard(measure));
        }
        hard.saturating_sub(before)
    }

    /// Tells the observer, and most events only once.
    pub(crate) fn tell(&self, event: Event) {
        let bit = bit(event);
        // A load first: it is told once and asked often.
        if bit != 0
            && (self.told.load(Ordering::Relaxed) & bit != 0
                || self.told.fetch_or(bit, Ordering::Relaxed) & bit != 0)
        {
            return;
        }
        if let Some(observer) = &self.observer {
            observer(event);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    fn life(packets: (u64, u64), bytes: (u64, u64)) -> (Life, Arc<Mutex<Vec<Event>>>) {
        let limit = |(soft, hard)| Lifetime {
            soft: Some(soft),
            hard: Some(hard),
        };
        let limits = Lifetimes {
            packets: limit(packets),
            bytes: limit(bytes),
            ..Lifetimes::default()
        };
        let mut life = Life::new(&limits, &Clock::default());
        let events = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&events);
        life.set_observer(Box::new(move |event| heard.lock().unwrap().push(event)));
        (life, events)
    }

    #[test]
    fn each_limit_is_told_once_and_the_hard_one_is_exact() {
        let (life, events) = life((3, 5), (1000, 2000));
        assert!(life.spend(2, 20).is_none());
        assert!(events.lock().unwrap().is_empty());
        assert!(life.spend(2, 20).is_none());
        let mut rest = life.spend(3, 30).expect("two too many");
        assert!(rest.take(10));
        assert!(!rest.take(10) && !rest.take(0));
        assert_eq!(life.end(), Some(Refusal::Expired));
        assert_eq!(
            *events.lock().unwrap(),
            [Event::Soft(Measure::Packets), Event::Hard(Measure::Packets)]
        );
    }

    #[test]
    fn the_packet_that_would_exceed_the_bytes_is_refused_and_all_behind_it() {
        let (life, _) = life((100, 100), (50, 100));
        let mut rest = life.spend(3, 150).expect("too many bytes");
        assert!(rest.take(60));
        assert!(!rest.take(60) && !rest.take(1));
    }

    #[test]
    fn threads_together_get_what_the_limit_allows() {
        let (life, _) = life((1, 1000), (1, u64::MAX));
        let granted = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..100 {
                        let taken = match life.spend(7, 7) {
                            None => 7,
                            Some(mut rest) => (0..7).filter(|_| rest.take(1)).count() as u64,
                        };
                        granted.fetch_add(taken, Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!(granted.into_inner(), 1000);
    }
}
