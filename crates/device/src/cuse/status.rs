//! What `cipherlane device status` shows of a `/dev/crypto` that is served.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use cipherlane_core::Framework;
use serde::{Deserialize, Serialize};

use super::counters::{Counters, Refusal};
use crate::status::{drivers, processor_time};

/// A device at one moment. Counters are since the start of the process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Its process.
    pub pid: u32,
    /// The file that programs open.
    pub device: String,
    /// Files that are open.
    pub files: u64,
    /// Files that were opened.
    pub files_opened: u64,
    /// Sessions that are open.
    pub sessions: u64,
    /// Sessions that were opened.
    pub sessions_opened: u64,
    /// Messages of the kernel: up to three for a request.
    pub messages: u64,
    /// Requests that were served.
    pub requests: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Requests that were refused, by reason; those that there were.
    pub refused: BTreeMap<String, u64>,
    /// Processor time of the process, in seconds.
    pub processor_seconds: f64,
    /// Who has encrypted: requests by driver.
    pub drivers: BTreeMap<String, u64>,
}

impl Status {
    pub(crate) fn of(counters: &Counters, device: &str, framework: &Framework) -> Status {
        let read = |counter: &AtomicU64| counter.load(Relaxed);
        let open = |opened, closed| read(opened).saturating_sub(read(closed));
        let refused = Refusal::ALL.iter().zip(&counters.refused);
        let refused = refused.map(|(refusal, count)| (refusal.name().to_owned(), read(count)));
        Status {
            pid: std::process::id(),
            device: device.to_owned(),
            files: open(&counters.files_opened, &counters.files_closed),
            files_opened: read(&counters.files_opened),
            sessions: open(&counters.sessions_opened, &counters.sessions_closed),
            sessions_opened: read(&counters.sessions_opened),
            messages: read(&counters.messages),
            requests: read(&counters.requests),
            bytes: read(&counters.bytes),
            refused: refused.filter(|(_, count)| *count > 0).collect(),
            processor_seconds: processor_time().as_secs_f64(),
            drivers: drivers(framework),
        }
    }
}
