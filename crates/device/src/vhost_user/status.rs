//! What `cipherlane device status` shows of a back-end of virtio-crypto.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;

use cipherlane_core::Framework;
use serde::{Deserialize, Serialize};

use super::counters::{CLASSES, Counters};
use super::operation::Refusal;
use crate::status::{drivers, processor_time};

/// A device at one moment. Counters are since the start of the process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Its process.
    pub pid: u32,
    /// Whether a front-end is connected.
    pub is_connected: bool,
    /// Front-ends so far.
    pub connections: u64,
    /// Queues that run.
    pub queues: u64,
    /// Queues that were stopped because the guest broke them.
    pub queues_stopped: u64,
    /// Messages of front-ends.
    pub messages: u64,
    /// Messages that were refused.
    pub messages_refused: u64,
    /// Sessions that are open.
    pub sessions: u64,
    /// Sessions that were opened.
    pub sessions_opened: u64,
    /// Sessions that were refused.
    pub sessions_refused: u64,
    /// Requests that were served.
    pub requests: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Requests that were refused, by reason; those that there were.
    pub refused: BTreeMap<String, u64>,
    /// Times that the guest has told of requests.
    pub kicks: u64,
    /// Batches, by the least number of requests that they had: 1, 2, 4, ... 128.
    pub batches: BTreeMap<u64, u64>,
    /// Calls of sessions: one for each key in a batch.
    pub calls: u64,
    /// Times that the guest had used up its processor time.
    pub pauses: u64,
    /// Processor time of the process, in seconds.
    pub processor_seconds: f64,
    /// Who has encrypted: requests by driver.
    pub drivers: BTreeMap<String, u64>,
}

impl Status {
    pub(crate) fn of(counters: &Counters, is_connected: bool, framework: &Framework) -> Status {
        let read = |counter: &std::sync::atomic::AtomicU64| counter.load(Relaxed);
        let (opened, closed) = (
            read(&counters.sessions_opened),
            read(&counters.sessions_closed),
        );
        let refused = Refusal::ALL.iter().zip(&counters.refused);
        let refused = refused.map(|(refusal, count)| (refusal.name().to_owned(), read(count)));
        let batches = (0..CLASSES).map(|class| (1 << class, read(&counters.batches[class])));
        Status {
            pid: std::process::id(),
            is_connected,
            connections: read(&counters.connections),
            queues: read(&counters.rings_running),
            queues_stopped: read(&counters.rings_stopped),
            messages: read(&counters.messages),
            messages_refused: read(&counters.messages_refused),
            sessions: opened.saturating_sub(closed),
            sessions_opened: opened,
            sessions_refused: read(&counters.sessions_refused),
            requests: read(&counters.requests),
            bytes: read(&counters.bytes),
            refused: refused.filter(|(_, count)| *count > 0).collect(),
            kicks: read(&counters.kicks),
            batches: batches.filter(|(_, count)| *count > 0).collect(),
            calls: read(&counters.groups),
            pauses: read(&counters.pauses),
            processor_seconds: processor_time().as_secs_f64(),
            drivers: drivers(framework),
        }
    }
}
