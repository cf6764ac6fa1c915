//! `cipherlane gateway status`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use cipherlane_gateway::status::{self, SaStatus, Status, TunnelStatus};
use cipherlane_gateway::{Config, SOCKET};
use clap::Args;

use crate::failure::Failure;
use crate::output;

/// Of the gateway that runs
#[derive(Args, Debug)]
pub(crate) struct StatusArgs {
    /// Show it again each second, with rates
    #[arg(long)]
    watch: bool,
    /// Write JSON
    #[arg(long)]
    json: bool,
    /// The gateway's socket, instead of the one that the configuration names
    #[arg(long, value_name = "FILE")]
    socket: Option<PathBuf>,
}

/// Shows it once, or until it is interrupted.
pub(crate) fn run(args: &StatusArgs, config: &Path) -> Result<(), Failure> {
    let socket = match &args.socket {
        Some(socket) => socket.clone(),
        // Whoever may ask need not be allowed to read the keys.
        None if config.exists() => Config::read(config)?.socket,
        None => PathBuf::from(SOCKET),
    };
    let mut before: Option<(Status, Instant)> = None;
    loop {
        let now = status::ask(&socket)?;
        let at = Instant::now();
        if args.json {
            output::json("gateway-status", &now)?;
        } else {
            let rates = before.as_ref().map(|(status, then)| (status, at - *then));
            output::show(&text(&now, rates))?;
        }
        if !args.watch {
            return Ok(());
        }
        before = Some((now, at));
        std::thread::sleep(Duration::from_secs(1));
    }
}

/// In words; with rates where there is an earlier status.
fn text(status: &Status, before: Option<(&Status, Duration)>) -> String {
    let mut lines = vec![format!(
        "gateway {}: {} threads, interface {}, UDP port {}",
        status.pid, status.threads, status.interface, status.port
    )];
    let offloads = &status.offloads;
    let all = [
        ("TUN checksum", offloads.tun_checksum),
        ("TUN TSO", offloads.tun_tso),
        ("TUN USO", offloads.tun_uso),
        ("UDP segment", offloads.udp_segment),
        ("UDP GRO", offloads.udp_gro),
    ];
    let said = all.map(|(name, has)| format!("{name} {}", if has { "yes" } else { "NO" }));
    lines.push(format!("offloads: {}", said.join(", ")));
    let [read, sent, received, written] = status.calls.batches();
    lines.push(format!(
        "packets per call: read {read:.1}, sent {sent:.1}, received {received:.1}, written \
         {written:.1}; a packet costs {:.3} system calls and {:.3} copies",
        status.per_packet.system_calls, status.per_packet.copies
    ));
    if status.calls.receives > 1000 && received < 1.05 && sent > 4.0 {
        lines.push(
            "warning: each read of the socket brings one packet; look at 'ethtool -k' of the outer \
             interface: generic-receive-offload and rx-udp-gro-forwarding should be on"
                .to_owned(),
        );
    }
    for (what, reasons) in [
        ("dropped", &status.calls.dropped),
        ("refused by SAs", &status.calls.refused),
    ] {
        let counted = reasons.iter().filter(|(_, count)| **count > 0);
        let counted: Vec<_> = counted.map(|(why, n)| format!("{why} {n}")).collect();
        if !counted.is_empty() {
            lines.push(format!("{what}: {}", counted.join(", ")));
        }
    }
    let old: HashMap<&str, &TunnelStatus> = before
        .iter()
        .flat_map(|(status, _)| &status.tunnels)
        .map(|tunnel| (tunnel.name.as_str(), tunnel))
        .collect();
    for tunnel in &status.tunnels {
        lines.push(format!(
            "\n{}: {} to {}{}, {} -> {}, path MTU {}, inner MTU {}",
            tunnel.name,
            tunnel.transform,
            tunnel.peer,
            match tunnel.encapsulation.as_str() {
                "none" => " by plain ESP",
                _ => "",
            },
            tunnel.local.join(" "),
            tunnel.remote.join(" "),
            tunnel.path_mtu,
            tunnel.inner_mtu
        ));
        let earlier = before.and_then(|(_, period)| {
            let same = old.get(tunnel.name.as_str());
            same.map(|old| (*old, period))
        });
        for (name, sa, old) in [
            (
                "out",
                &tunnel.outbound,
                earlier.map(|(old, p)| (&old.outbound, p)),
            ),
            (
                "in",
                &tunnel.inbound,
                earlier.map(|(old, p)| (&old.inbound, p)),
            ),
        ] {
            lines.push(association(name, sa, old));
        }
        if let Some(failure) = &tunnel.last_failure {
            lines.push(format!(
                "  {} packets not sent, the last one: {failure}",
                tunnel.send_failures
            ));
        }
    }
    lines.join("\n") + "\n"
}

fn association(name: &str, sa: &SaStatus, old: Option<(&SaStatus, Duration)>) -> String {
    let mut line = format!(
        "  {name:3} SPI {:#010x}: sequence {}, {} packets, {} bytes",
        sa.spi, sa.sequence, sa.packets, sa.bytes
    );
    if let Some((old, period)) = old {
        let rate = |now: u64, then: u64| now.saturating_sub(then) as f64 / period.as_secs_f64();
        line += &format!(
            " ({:.0} packets/s, {:.3} Gbit/s)",
            rate(sa.packets, old.packets),
            rate(sa.bytes, old.bytes) * 8e-9
        );
    }
    if sa.lost > 0 {
        line += &format!(", {} never came", sa.lost);
    }
    for (why, count) in &sa.refused {
        line += &format!(", {why} {count}");
    }
    if sa.is_over {
        line += ", OVER: give it new keys";
    }
    line
}
