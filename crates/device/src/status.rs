//! What `cipherlane device status` asks for: counters, written as JSON to whoever connects.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::Duration;

use cipherlane_core::{Algorithm, Framework};
use cipherlane_files::local;
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

use crate::{Error, cuse, vhost_user};

/// The longest status that is read.
const LONGEST: u64 = 1 << 20;

/// A device of any kind at one moment.
#[derive(Clone, Debug, PartialEq)]
pub enum Status {
    /// A back-end of virtio-crypto.
    VhostUser(vhost_user::status::Status),
    /// A `/dev/crypto`.
    Cuse(cuse::status::Status),
}

impl Status {
    /// What a device has written. Each kind has fields that no other has.
    fn parse(text: &[u8]) -> serde_json::Result<Status> {
        match serde_json::from_slice(text) {
            Ok(status) => Ok(Status::VhostUser(status)),
            Err(_) => serde_json::from_slice(text).map(Status::Cuse),
        }
    }
}

/// Asks the device whose status socket it is.
pub fn ask(socket: &Path) -> Result<Status, Error> {
    let failed = |source: io::Error| Error::Ask {
        path: socket.to_owned(),
        source,
    };
    let text = local::ask(socket, LONGEST).map_err(failed)?;
    Status::parse(&text).map_err(|error| failed(io::Error::other(error)))
}

/// Answers until `is_stopping`, which is looked at after each connection.
pub(crate) fn serve<S: Serialize>(
    listener: &UnixListener,
    is_stopping: impl Fn() -> bool,
    status: impl Fn() -> S,
) {
    let document = || Ok(serde_json::to_vec(&status())?);
    local::answer(listener, is_stopping, document, |error| {
        tracing::debug!("nobody has read the status: {error}");
    });
}

/// Requests by driver, all algorithms together; drivers that have done something.
pub(crate) fn drivers(framework: &Framework) -> BTreeMap<String, u64> {
    let names = framework.driver_names().into_iter();
    let requests = |name: &str| {
        let of = |algorithm: &&Algorithm| framework.statistics(name, algorithm.name).ok();
        let totals = Algorithm::all().iter().filter_map(of);
        totals.map(|totals| totals.requests).sum::<u64>()
    };
    let all = names.map(|name| (name.to_owned(), requests(name)));
    all.filter(|(_, requests)| *requests > 0).collect()
}

/// Processor time of all threads of this process.
pub(crate) fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or_default(),
        u32::try_from(time.tv_nsec).unwrap_or_default(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_has_worked_is_understood() {
        let back_end = vhost_user::status::Status {
            batches: BTreeMap::from([(1, 5), (128, 1)]),
            refused: BTreeMap::from([("session".to_owned(), 3)]),
            ..Default::default()
        };
        let text = serde_json::to_vec(&back_end).unwrap();
        assert_eq!(Status::parse(&text).unwrap(), Status::VhostUser(back_end));
        let file = cuse::status::Status {
            device: "/dev/crypto".to_owned(),
            drivers: BTreeMap::from([("software".to_owned(), 45)]),
            ..Default::default()
        };
        let text = serde_json::to_vec(&file).unwrap();
        assert_eq!(Status::parse(&text).unwrap(), Status::Cuse(file));
        assert!(Status::parse(b"{}").is_err());
    }
}
