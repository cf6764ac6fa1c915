//! `cipherlane gateway run`: in the foreground, as service managers want it.

use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use cipherlane_gateway::{Config, Gateway, Steering};
use signal_hook::consts::SIGHUP;

use super::privileges;
use crate::failure::Failure;
use crate::service::{log, notify, signals};
use crate::{secret, start};

/// How often it looks whether its threads are well.
const LOOK: Duration = Duration::from_secs(1);

/// Runs until SIGTERM or SIGINT.
pub(crate) fn run(path: &Path, mut settings: cipherlane_core::Config) -> Result<(), Failure> {
    log();
    secret::forbid_dumps();
    // The thread that carries a packet also encrypts it: to hand it on costs more than a batch.
    if settings.force.is_none() {
        settings.force = Some("software".to_owned());
    }
    let framework = start(settings)?;
    // What is allocated here, keys and what is made of them, lies in locked memory.
    let config = secret::scope(|| Config::read(path))?;
    let steering = Steering::of(config.threads);
    privileges::drop_all_but_network(config.lowest_port(), config.has_plain_esp())
        .map_err(|error| Failure::io("give up", "privileges", &error))?;
    // Keys of an IKE daemon come while it runs.
    cipherlane_gateway::keep_keys_in(|work| secret::scope(work));
    // Signals are caught before there is anything to clean up.
    let signals = signals()?;
    let mut gateway = secret::scope(|| Gateway::start(&framework, config, steering))?;
    if let Some(note) = secret::note() {
        tracing::warn!("{note}");
    }
    let status = gateway.status();
    tracing::info!(
        interface = status.interface,
        port = status.port,
        tunnels = status.tunnels.len(),
        "running"
    );
    let offloads = &status.offloads;
    if !(offloads.udp_segment && offloads.udp_gro && offloads.tun_tso) {
        tracing::warn!(
            "some offloads are missing, which costs a lot of speed: {offloads:?}; 'cipherlane \
             gateway status' shows them, docs/gateway.md says what to do"
        );
    }
    notify("READY=1");
    loop {
        match signals.recv_timeout(LOOK) {
            Ok(SIGHUP) => {
                notify("RELOADING=1");
                let changed = secret::scope(|| {
                    let config = Config::read(path)?;
                    gateway.reload(&framework, config)
                });
                match changed {
                    Ok(changes) => tracing::info!(
                        added = changes.added,
                        removed = changes.removed,
                        changed = changes.changed,
                        unchanged = changes.unchanged,
                        "the configuration was read again"
                    ),
                    Err(error) => tracing::error!("{error}; everything stays as it was"),
                }
                notify("READY=1");
            }
            Ok(_) => break,
            Err(mpsc::RecvTimeoutError::Timeout) if gateway.is_broken() => {
                return Err(Failure::Runtime(
                    "gateway: a thread has ended, which is a mistake of the program; please report \
                     it with the log"
                        .to_owned(),
                ));
            }
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
        }
    }
    notify("STOPPING=1");
    gateway.stop()?;
    tracing::info!("stopped");
    Ok(())
}
