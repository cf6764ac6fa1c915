//! The network's part of a VPN: buffers of sockets, and TUN devices without offloads.

use super::finding::{Finding, Outcome};
use super::system::System;

/// Bytes that a gateway's socket wants, so that a pause of its thread loses nothing: at 1 Gbit/s
/// 32 ms.
const WANTED: u64 = 4 << 20;

/// `IFF_VNET_HDR` of `linux/if_tun.h`: packets carry headers for offloads.
const VNET_HEADER: u32 = 0x4000;

/// The largest buffers that a program may ask for.
pub(super) fn buffers(system: &System) -> Outcome {
    let names = ["rmem_max", "wmem_max"];
    let value = |name: &str| -> Option<u64> {
        system
            .read(&format!("proc/sys/net/core/{name}"))?
            .parse()
            .ok()
    };
    let small: Vec<String> = names
        .iter()
        .filter_map(|name| {
            let bytes = value(name).filter(|&bytes| bytes < WANTED)?;
            Some(format!("net.core.{name} = {bytes}"))
        })
        .collect();
    if names.iter().all(|name| value(name).is_none()) {
        return Outcome::Unknown("/proc/sys/net/core is not there".to_owned());
    }
    Outcome::of(&small, |names| Finding {
        check: "",
        what: "Sockets may have small buffers only: a VPN loses packets when it pauses.".to_owned(),
        times_slower: None,
        guess: 1.1,
        evidence: names,
        remedy: "allow 4 MiB, for programs that do not run as root".to_owned(),
        command: Some(format!(
            "sysctl -w net.core.rmem_max={WANTED} net.core.wmem_max={WANTED}"
        )),
    })
}

/// TUN devices whose packets are read one by one.
pub(super) fn tun(system: &System) -> Outcome {
    let mut known = 0;
    let mut plain = Vec::new();
    for name in system.list("sys/class/net") {
        let Some(text) = system.read(&format!("sys/class/net/{name}/tun_flags")) else {
            continue;
        };
        let Ok(flags) = u32::from_str_radix(text.trim_start_matches("0x"), 16) else {
            continue;
        };
        known += 1;
        if flags & VNET_HEADER == 0 {
            plain.push(name);
        }
    }
    if known == 0 {
        return Outcome::Unknown("there is no TUN device".to_owned());
    }
    Outcome::of(&plain, |names| Finding {
        check: "",
        what: format!("A TUN device gives packets one by one, without offloads: {names}."),
        times_slower: None,
        guess: 3.5,
        evidence: "its tun_flags in /sys/class/net lack IFF_VNET_HDR (0x4000)".to_owned(),
        remedy: "use a VPN that reads many packets per call, such as 'cipherlane gateway' or a \
                 recent wireguard-go; with OpenVPN its kernel module ovpn-dco"
            .to_owned(),
        command: Some("cipherlane gateway bench".to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::super::system::machine;
    use super::*;

    #[test]
    fn small_buffers_are_named() {
        let (system, _directory) = machine(&[
            ("proc/sys/net/core/rmem_max", "212992\n"),
            ("proc/sys/net/core/wmem_max", "8388608\n"),
        ]);
        assert_eq!(
            buffers(&system).found().evidence,
            "net.core.rmem_max = 212992"
        );
        let (system, _directory) = machine(&[("proc/sys/net/core/rmem_max", "8388608")]);
        assert!(matches!(buffers(&system), Outcome::Fine));
        let (system, _directory) = machine(&[]);
        assert!(matches!(buffers(&system), Outcome::Unknown(_)));
    }

    #[test]
    fn tun_devices_without_offloads_are_named() {
        let (system, _directory) = machine(&[
            ("sys/class/net/tun0/tun_flags", "0x1001\n"),
            ("sys/class/net/cl0/tun_flags", "0x5101\n"),
            ("sys/class/net/eth0/mtu", "1500\n"),
        ]);
        assert!(tun(&system).found().what.ends_with(": tun0."));
        let (system, _directory) = machine(&[("sys/class/net/cl0/tun_flags", "0x5101\n")]);
        assert!(matches!(tun(&system), Outcome::Fine));
        let (system, _directory) = machine(&[("sys/class/net/eth0/mtu", "1500\n")]);
        assert!(matches!(tun(&system), Outcome::Unknown(_)));
    }
}
