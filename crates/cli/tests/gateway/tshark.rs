//! tshark as a judge of what is on the wire: it was not written here. With the keys it decrypts
//! every packet; without them it sees ESP and nothing else.

use std::path::Path;
use std::process::Command;

use crate::carrying::{MARK, datagrams, holds, transfer};
use crate::rig::{Host, OUTER, Rig, rig};

/// Packets of a file as tshark sees them.
pub(crate) struct Capture {
    _directory: tempfile::TempDir,
    file: std::path::PathBuf,
}

/// Whether tshark is here; if not, that is said loudly.
pub(crate) fn is_there() -> bool {
    let is_there = Command::new("tshark").arg("--version").output().is_ok();
    if !is_there {
        let message = "SKIPPED, tshark does NOT judge what is on the wire: it is missing; \
                       'scripts/needs test' installs it\n";
        std::io::Write::write_all(&mut std::io::stderr(), message.as_bytes()).unwrap();
    }
    is_there
}

impl Capture {
    /// Of packets that begin with their IP header; what is no IP, as ARP, is left out.
    pub(crate) fn of(packets: &[Vec<u8>]) -> Capture {
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let file = directory.path().join("packets.pcap");
        // Format 2.4, packets of at most 256 KiB, link type RAW.
        let mut bytes = Vec::new();
        for word in [0xa1b2_c3d4, 2 | 4 << 16, 0, 0, 1 << 18, 101u32] {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        let is_ip = |packet: &&Vec<u8>| matches!(packet[0] >> 4, 4 | 6);
        for (number, packet) in packets.iter().filter(is_ip).enumerate() {
            let len = packet.len() as u32;
            for word in [number as u32, 0, len, len] {
                bytes.extend_from_slice(&word.to_le_bytes());
            }
            bytes.extend_from_slice(packet);
        }
        std::fs::write(&file, bytes).unwrap();
        Capture {
            _directory: directory,
            file,
        }
    }

    /// Fields of each packet that passes a filter. A field that occurs in several layers has all
    /// its values, the outermost first.
    pub(crate) fn fields(
        &self,
        options: &[String],
        filter: &str,
        fields: &[&str],
    ) -> Vec<Vec<Vec<String>>> {
        let mut tshark = Command::new("tshark");
        tshark.arg("-r").arg(&self.file).args(["-n", "-Y", filter]);
        for option in options {
            tshark.args(["-o", option]);
        }
        tshark.args(["-T", "fields", "-E", "separator=|"]);
        for field in fields {
            tshark.args(["-e", field]);
        }
        let output = tshark.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let values = |field: &str| {
            let values = field.split(',').filter(|value| !value.is_empty());
            values.map(str::to_owned).collect()
        };
        let text = String::from_utf8(output.stdout).unwrap();
        let lines = text.lines();
        lines
            .map(|line| line.split('|').map(values).collect())
            .collect()
    }

    /// The protocols of each packet, without the names that are there once.
    pub(crate) fn protocols(&self) -> Vec<String> {
        let found = self.fields(&[], "ip or ipv6", &["frame.protocols"]);
        let mut all: Vec<String> = found.iter().map(|fields| fields[0].join(",")).collect();
        all.sort();
        all.dedup();
        all
    }
}

/// What tshark needs to open what a gateway sends by AES-256-GCM: the key stands in its file.
fn keys(rig: &Rig, host: Host) -> String {
    let directory = rig.path(["a", "b"][host as usize]);
    let text = std::fs::read_to_string(directory.join("gateway.toml")).unwrap();
    let (_, out) = text.split_once("out = { spi = ").unwrap();
    let spi = out.split(',').next().unwrap();
    let spi = u32::from_str_radix(spi.trim_start_matches("0x"), 16).unwrap();
    let key = read(&directory.join("out.key"));
    let [source, destination] = match host {
        Host::A => OUTER,
        _ => [OUTER[1], OUTER[0]],
    };
    format!(
        "uat:esp_sa:\"IPv4\",\"{source}\",\"{destination}\",\"0x{spi:08x}\",\"AES-GCM with 16 octet \
         ICV [RFC4106]\",\"0x{key}\",\"NULL\",\"\""
    )
}

fn read(file: &Path) -> String {
    std::fs::read_to_string(file).unwrap().trim().to_owned()
}

/// Traffic of all kinds through a tunnel, as the router saw it: one packet in each record.
fn traffic(options: &[&str]) -> Option<(Rig, Vec<Vec<u8>>)> {
    let mut rig = rig()?;
    if !is_there() {
        return None;
    }
    rig.configure(options);
    for end in ["a", "b"] {
        // tshark checks no ICV of extended sequence numbers.
        rig.edit(end, |text| format!("{text}esn = false\n"));
    }
    for host in [Host::A, Host::B] {
        // The kernel cuts trains before they leave: tshark would take one for one datagram.
        rig.ip(host, "link set wire gso_max_segs 1");
    }
    let watch = rig.watch();
    rig.start_both();
    transfer(&rig, ["10.9.0.1", "10.9.0.2"], 5001, 1 << 20);
    transfer(&rig, ["fd09::1", "fd09::2"], 5001, 1 << 20);
    datagrams(&rig, "10.9.0.1:0", "10.9.0.2:9");
    datagrams(&rig, "[fd09::1]:0", "[fd09::2]:9");
    let packets = watch.packets();
    Some((rig, packets))
}

/// Every packet opens, its ICV is good, and what is in it is whole. `headers`: bytes of the outer
/// headers before ESP.
fn decrypts(options: &[&str], headers: usize) {
    let Some((rig, packets)) = traffic(options) else {
        return;
    };
    let capture = Capture::of(&packets);
    let mut preferences = vec![keys(&rig, Host::A), keys(&rig, Host::B)];
    for name in [
        "esp.enable_encryption_decode",
        "esp.enable_authentication_check",
        "ip.check_checksum",
        "tcp.check_checksum",
        "udp.check_checksum",
    ] {
        preferences.push(format!("{name}:TRUE"));
    }
    let found = capture.fields(
        &preferences,
        "esp",
        &[
            "frame.protocols",
            "frame.len",
            "ip.len",
            "ipv6.plen",
            "esp.pad_len",
            "esp.icv_good",
            "ip.checksum.status",
            "tcp.checksum.status",
            "udp.checksum.status",
        ],
    );
    let mut kinds = std::collections::BTreeMap::<&str, usize>::new();
    for packet in &found {
        let [protocols, frame, v4, v6, padding, icv, ip, tcp, udp] = &packet[..] else {
            panic!("{packet:?}");
        };
        let protocols = protocols.join(",");
        assert!(
            matches!(icv[..], [ref one] if one == "1" || one == "True"),
            "{packet:?}"
        );
        let number = |text: &String| text.parse::<usize>().unwrap();
        let (outer, padding) = (number(&v4[0]), number(&padding[0]));
        assert_eq!(outer, number(&frame[0]), "{packet:?}");
        let inner = match v6.first() {
            Some(payload) => 40 + number(payload),
            None => number(&v4[1]),
        };
        // ESP's header, IV, padding with its length and the next protocol, ICV.
        assert_eq!(
            outer,
            headers + 8 + 8 + inner + padding + 2 + 16,
            "{packet:?}"
        );
        assert!(padding < 4, "{packet:?}");
        // 1: tshark has computed it, and it is right.
        assert!(ip.iter().all(|status| status == "1"), "{packet:?}");
        let has_udp = headers > 20;
        let inside = &udp[usize::from(has_udp)..];
        let whole = |statuses: &[String]| statuses.iter().all(|status| status == "1");
        assert!(whole(tcp) && whole(inside), "{packet:?}");
        let family = if v6.is_empty() { "ip" } else { "ipv6" };
        let kind = match (family, tcp.len(), inside.len()) {
            ("ip", 1, 0) => "TCP over IPv4",
            ("ipv6", 1, 0) => "TCP over IPv6",
            ("ip", 0, 1) => "UDP over IPv4",
            ("ipv6", 0, 1) => "UDP over IPv6",
            // Pieces of long datagrams, and messages of ICMP.
            _ => "other",
        };
        assert!(!protocols.contains("malformed"), "{packet:?}");
        *kinds.entry(kind).or_default() += 1;
    }
    for kind in [
        "TCP over IPv4",
        "TCP over IPv6",
        "UDP over IPv4",
        "UDP over IPv6",
    ] {
        let least = if kind.starts_with("TCP") { 1000 } else { 20 };
        assert!(kinds.get(kind) > Some(&least), "{kinds:?}");
    }
}

#[test]
fn it_decrypts_every_packet_of_esp_in_udp() {
    decrypts(&[], 28);
}

#[test]
fn it_decrypts_every_packet_of_plain_esp() {
    decrypts(&["--plain"], 20);
}

#[test]
fn it_sees_nothing_but_esp_without_the_keys() {
    for (options, seen) in [
        (&[][..], "raw:ip:udp:udpencap:esp"),
        (&["--plain"], "raw:ip:esp"),
    ] {
        let Some((_rig, packets)) = traffic(options) else {
            return;
        };
        let capture = Capture::of(&packets);
        let mut protocols = capture.protocols();
        // What hosts of IPv6 say to find each other.
        protocols.retain(|shown| !shown.contains("icmpv6"));
        // A byte every 20 seconds, for NATs.
        protocols.retain(|shown| shown != "raw:ip:udp:udpencap");
        assert_eq!(protocols, [seen]);
        assert!(packets.iter().all(|packet| !holds(packet, MARK)));
        let ports = capture.fields(&[], "udp", &["udp.dstport"]);
        assert!(ports.iter().all(|fields| fields[0] == ["4500"]));
    }
}
