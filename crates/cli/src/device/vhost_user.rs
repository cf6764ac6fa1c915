//! `cipherlane device vhost-user`.

use std::path::PathBuf;

use cipherlane_device::vhost_user::status::Status;
use cipherlane_device::vhost_user::{Options, Server};
use clap::Args;

use super::status::{beside, counts, requests};
use super::{say, stay};
use crate::failure::Failure;
use crate::service::{log, signals};
use crate::{secret, start};

/// Be the back-end of QEMU's virtio-crypto for one virtual machine, until SIGTERM
///
/// QEMU connects by '-chardev socket,id=c,path=SOCKET -object
/// cryptodev-vhost-user,id=d,chardev=c -device virtio-crypto-pci,cryptodev=d'; its memory must be
/// shared. docs/device.md has whole command lines.
#[derive(Args, Debug)]
pub(crate) struct VhostUserArgs {
    /// Where QEMU connects
    #[arg(long, value_name = "FILE")]
    socket: PathBuf,
    /// Where 'device status' asks [default: the socket's name with .status behind it]
    #[arg(long, value_name = "FILE")]
    status: Option<PathBuf>,
    /// Sessions of the guest at most; Linux opens two for each key
    #[arg(long, value_name = "NUMBER", default_value_t = 4096)]
    sessions: usize,
    /// Processors that the guest may use here at most, such as 0.5 [default: no limit]
    #[arg(long, value_name = "NUMBER")]
    processors: Option<f64>,
}

/// Runs until SIGTERM or SIGINT; SIGHUP changes nothing.
pub(crate) fn run(args: &VhostUserArgs, settings: cipherlane_core::Config) -> Result<(), Failure> {
    log();
    secret::forbid_dumps();
    let framework = start(settings)?;
    // Signals are caught before there is anything to clean up.
    let signals = signals()?;
    let options = Options {
        status: beside(&args.socket, args.status.as_deref()),
        socket: args.socket.clone(),
        sessions: args.sessions,
        processors: args.processors,
        keep_keys: |work| secret::scope(work),
    };
    let server = Server::start(&framework, options)?;
    tracing::info!(socket = %args.socket.display(), "waiting for a front-end");
    stay(&signals, || server.is_broken());
    say(&text(&server.stop()?));
    Ok(())
}

/// In words.
pub(super) fn text(status: &Status) -> String {
    let mean = |sum: u64, count: u64| sum as f64 / count.max(1) as f64;
    let batches: u64 = status.batches.values().sum();
    let refused: u64 = status.refused.values().sum();
    let taken = status.requests + refused;
    let mut lines = vec![
        format!(
            "device {}: {} ({} so far), {} queues, {} sessions ({} opened, {} refused)",
            status.pid,
            match status.is_connected {
                true => "a front-end is connected",
                false => "no front-end is connected",
            },
            status.connections,
            status.queues,
            status.sessions,
            status.sessions_opened,
            status.sessions_refused
        ),
        requests(status.requests, status.bytes, &status.drivers),
        format!(
            "kicks: {}; a batch has {:.2} requests, a call of the cipher {:.2}",
            status.kicks,
            mean(taken, batches),
            mean(status.requests, status.calls)
        ),
    ];
    if batches > 0 {
        lines.push(format!(
            "batches by requests (1, from 2, from 4, ...): {}",
            counts(&status.batches)
        ));
    }
    if refused > 0 {
        lines.push(format!("refused: {}", counts(&status.refused)));
    }
    if status.queues_stopped + status.messages_refused > 0 {
        lines.push(format!(
            "queues stopped: {}, messages refused: {}; the log says why",
            status.queues_stopped, status.messages_refused
        ));
    }
    let each = status.processor_seconds * 1e6 / taken.max(1) as f64;
    lines.push(format!(
        "processor time: {:.3} s, {each:.2} us per request; paused {} times",
        status.processor_seconds, status.pauses
    ));
    lines.join("\n") + "\n"
}
