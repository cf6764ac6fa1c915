//! `cipherlane device status`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cipherlane_device::status::{Status, ask};
use clap::Args;

use super::{cuse, vhost_user};
use crate::failure::Failure;
use crate::output;

/// Show what a device that runs has done
#[derive(Args, Debug)]
pub(crate) struct StatusArgs {
    /// The socket where QEMU connects
    #[arg(long, value_name = "FILE", required_unless_present = "status")]
    socket: Option<PathBuf>,
    /// Where to ask, if the device was started with --status or is a /dev/crypto
    #[arg(long, value_name = "FILE")]
    status: Option<PathBuf>,
    #[command(flatten)]
    json: output::JsonFlag,
}

/// Shows it once.
pub(crate) fn run(args: &StatusArgs) -> Result<(), Failure> {
    let socket = args.socket.as_deref().unwrap_or(Path::new(""));
    match (
        ask(&beside(socket, args.status.as_deref()))?,
        args.json.json,
    ) {
        (Status::VhostUser(status), true) => output::json("device-status", &status),
        (Status::VhostUser(status), false) => output::show(&vhost_user::text(&status)),
        (Status::Cuse(status), true) => output::json("cuse-status", &status),
        (Status::Cuse(status), false) => output::show(&cuse::text(&status)),
    }
}

/// Where the status is asked for.
pub(super) fn beside(socket: &Path, status: Option<&Path>) -> PathBuf {
    if let Some(status) = status {
        return status.to_owned();
    }
    let mut name = socket.as_os_str().to_owned();
    name.push(".status");
    name.into()
}

/// Counters by name, in words.
pub(super) fn counts<K: std::fmt::Display>(counts: &BTreeMap<K, u64>) -> String {
    let each = counts.iter().map(|(name, count)| format!("{name} {count}"));
    each.collect::<Vec<_>>().join(", ")
}

/// What was done, and by whom.
pub(super) fn requests(requests: u64, bytes: u64, drivers: &BTreeMap<String, u64>) -> String {
    let by = match drivers.is_empty() {
        true => "nobody".to_owned(),
        false => counts(drivers),
    };
    format!("requests: {requests}, {bytes} bytes, by {by}")
}
