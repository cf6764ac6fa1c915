//! The reasons: types for programs, sentences for people and in JSON.

use std::fmt;

use serde::{Serialize, Serializer};

use crate::dispatch::Goal;
use crate::health::Health;
use crate::unavailable::NotAdmitted;

/// Why a driver serves.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ServedBecause {
    /// The user forces this driver.
    Forced(String),
    /// No driver was measured yet, so the base driver serves.
    NothingMeasured,
    /// No other driver can be used.
    NoOtherUsable,
    /// Other drivers could be used, and none of them was measured yet.
    NoOtherMeasured,
    /// This driver is estimated to cost the least.
    CostsLeast {
        /// What counts as cost.
        goal: Goal,
        /// The cost of a batch in nanoseconds.
        ns: f32,
    },
    /// The driver serves in the place of a device that costs less and does not serve yet.
    InPlaceOf {
        /// The device.
        device: String,
        /// What keeps the device out.
        kept_out: KeptOut,
        /// What would be said without the device.
        otherwise: Box<ServedBecause>,
    },
    /// The driver is a device, and another driver serves what finds the device busy.
    BesideHome {
        /// The other driver.
        home: String,
        /// The caller's processor time per batch in nanoseconds, with the device and with the
        /// other driver, where both were measured.
        caller_ns: Option<(f32, f32)>,
        /// What would be said without the other driver.
        otherwise: Box<ServedBecause>,
    },
}

/// Why a driver does not serve.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum NotUsedBecause {
    /// The driver was not admitted.
    NotAdmitted(NotAdmitted),
    /// The user forces another driver, which is named.
    Forced(String),
    /// The driver is suspended or quarantined.
    Unhealthy(Health),
    /// `auto` may choose this driver only where the settings list it.
    NotListed(String),
    /// The request is larger than what the driver takes.
    TooLarge,
    /// The driver's helpers would do no part of the batch.
    StaysWhole,
    /// Software finishes the work in less than this many nanoseconds, and the driver is for longer
    /// work.
    TooLittleWork(u64),
    /// The driver serves what finds the device busy that is named.
    ServesWhenBusy(String),
    /// The driver would serve beside the device that is named, which costs the caller less.
    WouldServeBeside(String),
    /// The driver costs this multiple of what the driver that serves does, which is named.
    Dearer(f32, String),
    /// The driver costs less than the one that serves, but not by enough to change over.
    NotCheaperByEnough(f32, String),
    /// The driver was never used for such a batch; its self-test lets expect this many nanoseconds.
    NeverUsed(f32),
    /// The driver was never measured for such a batch.
    NeverMeasured,
    /// One of the other reasons, and the device may not serve yet.
    KeptOut(Box<NotUsedBecause>, KeptOut),
}

/// What keeps a device out that may hang.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptOut {
    /// Nanoseconds of work that must be done before the device serves.
    pub due_ns: u64,
    /// Nanoseconds of work that were done so far.
    pub done_ns: u64,
}

impl fmt::Display for ServedBecause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServedBecause::Forced(forced) => write!(f, "the user forces '{forced}'"),
            ServedBecause::NothingMeasured => {
                f.write_str("nothing was measured yet, so the base driver serves")
            }
            ServedBecause::NoOtherUsable => f.write_str("no other driver can be used"),
            ServedBecause::NoOtherMeasured => f.write_str("no other driver was measured yet"),
            ServedBecause::CostsLeast { goal, ns } => {
                let goal = match goal {
                    Goal::Latency => "latency",
                    Goal::Throughput => "throughput",
                    Goal::Cpu => "cpu",
                };
                write!(
                    f,
                    "it is estimated to cost the least for goal {goal}: {ns:.0} ns per batch"
                )
            }
            ServedBecause::InPlaceOf {
                device,
                kept_out,
                otherwise,
            } => write!(f, "{otherwise}; '{device}' does not serve yet: {kept_out}"),
            // The device's price is no reason: what it does is done beside the home's work.
            ServedBecause::BesideHome {
                home,
                caller_ns: Some((own, other)),
                ..
            } => write!(
                f,
                "it works beside '{home}', which serves what finds it busy, and costs the caller \
                 {own:.0} ns of processor time per batch instead of {other:.0} ns"
            ),
            ServedBecause::BesideHome {
                home, otherwise, ..
            } => write!(f, "{otherwise}; while it is busy, '{home}' serves"),
        }
    }
}

impl fmt::Display for NotUsedBecause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotUsedBecause::NotAdmitted(reason) => write!(f, "{reason}"),
            NotUsedBecause::Forced(forced) => write!(f, "the user forces '{forced}'"),
            NotUsedBecause::Unhealthy(health) => write!(f, "{health}"),
            NotUsedBecause::NotListed(name) => write!(
                f,
                "not chosen by 'auto' unless the setting auto = [\"{name}\"] allows it"
            ),
            NotUsedBecause::TooLarge => f.write_str("it takes no requests that large"),
            NotUsedBecause::StaysWhole => {
                f.write_str("nothing to share: its helpers would do no part of the batch")
            }
            NotUsedBecause::TooLittleWork(least) => write!(
                f,
                "too little work: it is for what takes software {least} ns or more"
            ),
            NotUsedBecause::ServesWhenBusy(device) => {
                write!(f, "it serves what finds '{device}' busy")
            }
            NotUsedBecause::WouldServeBeside(serving) => write!(
                f,
                "it would serve beside '{serving}', since that costs the caller less"
            ),
            NotUsedBecause::Dearer(times, serving) => {
                write!(f, "{times:.2} times the cost of '{serving}'")
            }
            NotUsedBecause::NotCheaperByEnough(times, serving) => write!(
                f,
                "{times:.2} times the cost of '{serving}', which is not less by enough to change over"
            ),
            NotUsedBecause::NeverUsed(ns) => {
                write!(f, "never used here; {ns:.0} ns by its self-test")
            }
            NotUsedBecause::NeverMeasured => {
                f.write_str("never measured here; 'cipherlane calibrate' does it")
            }
            NotUsedBecause::KeptOut(reason, kept_out) => write!(f, "{reason}; {kept_out}"),
        }
    }
}

impl fmt::Display for KeptOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = |nanoseconds: u64| nanoseconds as f64 / 1e9;
        write!(
            f,
            "since it may hang, it is used after {:.1} s of work, which pay for that ({:.1} s so \
             far)",
            seconds(self.due_ns),
            seconds(self.done_ns)
        )
    }
}

impl Serialize for ServedBecause {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Serialize for NotUsedBecause {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
