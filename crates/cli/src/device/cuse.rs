//! `cipherlane device cuse`.

use std::path::PathBuf;

use cipherlane_device::cuse::status::Status;
use cipherlane_device::cuse::{Options, Server};
use clap::Args;

use super::status::{counts, requests};
use super::{say, stay};
use crate::failure::Failure;
use crate::service::{log, signals};
use crate::{secret, start};

/// Serve /dev/crypto to programs that open it, until SIGTERM
///
/// The interface is that of cryptodev-linux. The kernel's module cuse carries it, and root alone
/// may open /dev/cuse, and /dev/crypto too until a udev rule says otherwise. docs/device.md has
/// both, and which programs open it.
#[derive(Args, Debug)]
pub(crate) struct CuseArgs {
    /// Name of the device below /dev
    #[arg(long, value_name = "NAME", default_value = "crypto")]
    name: String,
    /// The kernel's door to CUSE
    #[arg(long, value_name = "FILE", default_value = "/dev/cuse")]
    path: PathBuf,
    /// Where 'device status' asks [default: /run/cipherlane-cuse-NAME.status]
    #[arg(long, value_name = "FILE")]
    status: Option<PathBuf>,
    /// Threads that serve, and so requests at a time
    #[arg(long, value_name = "NUMBER", default_value_t = 4)]
    threads: usize,
    /// Open files at most
    #[arg(long, value_name = "NUMBER", default_value_t = 1024)]
    files: usize,
    /// Sessions of an open file at most
    #[arg(long, value_name = "NUMBER", default_value_t = 4096)]
    sessions: usize,
    /// Tell programs that this is an accelerator: those that look for one, such as OpenSSL's
    /// engine, use no other
    #[arg(long)]
    accelerator: bool,
}

/// Runs until SIGTERM or SIGINT; SIGHUP changes nothing.
pub(crate) fn run(args: &CuseArgs, mut settings: cipherlane_core::Config) -> Result<(), Failure> {
    log();
    secret::forbid_dumps();
    // It would wait for itself.
    settings.disable.push("cryptodev".to_owned());
    let framework = start(settings)?;
    // Signals are caught before there is anything to clean up.
    let signals = signals()?;
    let status = args.status.clone();
    let options = Options {
        path: args.path.clone(),
        status: status
            .unwrap_or_else(|| format!("/run/cipherlane-cuse-{}.status", args.name).into()),
        name: args.name.clone(),
        threads: args.threads,
        files: args.files,
        sessions: args.sessions,
        is_accelerator: args.accelerator,
        keep_keys: |work| secret::scope(work),
    };
    let server = Server::start(&framework, &options)?;
    tracing::info!("serving /dev/{}", options.name);
    stay(&signals, || server.is_broken());
    say(&text(&server.stop()?));
    Ok(())
}

/// In words.
pub(super) fn text(status: &Status) -> String {
    let mut lines = vec![
        format!(
            "{} {}: {} files ({} so far), {} sessions ({} so far)",
            status.device,
            status.pid,
            status.files,
            status.files_opened,
            status.sessions,
            status.sessions_opened
        ),
        requests(status.requests, status.bytes, &status.drivers),
    ];
    if !status.refused.is_empty() {
        lines.push(format!("refused: {}", counts(&status.refused)));
    }
    let each = status.processor_seconds * 1e6 / status.requests.max(1) as f64;
    lines.push(format!(
        "messages: {}; processor time: {:.3} s, {each:.2} us per request",
        status.messages, status.processor_seconds
    ));
    lines.join("\n") + "\n"
}
