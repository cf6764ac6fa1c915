//! What network devices leave to the processor, packet by packet.

use super::finding::{Finding, Outcome};
use super::system::{System, output_of};

/// Features without which the kernel's network code works on each packet of a stream, as
/// `ethtool -k` names them.
const WANTED: [&str; 4] = [
    "tx-checksumming",
    "tcp-segmentation-offload",
    "generic-segmentation-offload",
    "generic-receive-offload",
];

/// Network cards and veth whose offloads somebody switched off.
pub(super) fn devices(system: &System) -> Outcome {
    let mut refused = None;
    let mut asked = Vec::new();
    for name in carriers(system) {
        match output_of("ethtool", &["-k", &name]) {
            Ok(text) => asked.push((name, text)),
            Err(reason) => refused = Some(reason),
        }
    }
    match (asked.is_empty(), refused) {
        (true, Some(reason)) => Outcome::Unknown(reason),
        (true, None) => Outcome::Unknown("no network card and no veth is up".to_owned()),
        (false, _) => switched_off(&asked),
    }
}

/// Devices that are up and lead out of this machine or to another namespace.
fn carriers(system: &System) -> Vec<String> {
    let mut names = system.list("sys/class/net");
    names.retain(|name| {
        let read = |file: &str| system.read(&format!("sys/class/net/{name}/{file}"));
        let is_up = read("operstate").is_some_and(|state| state == "up");
        let is_card = !system
            .list(&format!("sys/class/net/{name}/device"))
            .is_empty();
        // One end of a veth names the other end as its link.
        let is_veth = read("tun_flags").is_none() && read("iflink") != read("ifindex");
        is_up && (is_card || is_veth)
    });
    names
}

/// What devices could do and do not; `asked` has names, and what `ethtool -k` says of each.
fn switched_off(asked: &[(String, String)]) -> Outcome {
    let mut off = Vec::new();
    let mut first = None;
    for (name, text) in asked {
        let value = |wanted: &&&str| {
            let line = text
                .lines()
                .find_map(|line| line.trim().strip_prefix(**wanted)?.strip_prefix(':'));
            // Those that are fixed cannot be switched on.
            line.is_some_and(|value| value.trim() == "off")
        };
        let missing: Vec<&str> = WANTED.iter().filter(value).copied().collect();
        if !missing.is_empty() {
            off.push(format!("{name} lacks {}", missing.join(", ")));
            first.get_or_insert_with(|| {
                let switches: Vec<String> =
                    missing.iter().map(|name| format!("{name} on")).collect();
                format!("ethtool -K {name} {}", switches.join(" "))
            });
        }
    }
    Outcome::of(&off, |names| Finding {
        check: "",
        what: "A network device works packet by packet: its offloads are switched off.".to_owned(),
        times_slower: None,
        guess: 2.0,
        evidence: format!("'ethtool -k': {names}"),
        remedy: "switch them on, unless a fault of the device was the reason".to_owned(),
        command: first,
    })
}

#[cfg(test)]
mod tests {
    use super::super::system::machine;
    use super::*;

    /// A veth of Linux 6.12, shortened.
    const VETH: &str = "Features for v0:\nrx-checksumming: on\ntx-checksumming: on\n\
        \ttx-checksum-ipv4: off [fixed]\ntcp-segmentation-offload: off\n\
        \ttx-tcp-segmentation: off\ngeneric-segmentation-offload: on\n\
        generic-receive-offload: off\nlarge-receive-offload: off [fixed]\n";

    #[test]
    fn what_is_switched_off_is_named_and_what_is_fixed_is_not() {
        let of = |text: &str| switched_off(&[("v0".to_owned(), text.to_owned())]);
        let found = of(VETH).found();
        assert_eq!(
            found.evidence,
            "'ethtool -k': v0 lacks tcp-segmentation-offload, generic-receive-offload"
        );
        assert_eq!(
            found.command.unwrap(),
            "ethtool -K v0 tcp-segmentation-offload on generic-receive-offload on"
        );
        assert!(matches!(of(&VETH.replace(": off", ": on")), Outcome::Fine));
        let fixed = VETH.replace(": off\n", ": off [fixed]\n");
        assert!(matches!(of(&fixed), Outcome::Fine));
    }

    #[test]
    fn cards_and_veth_that_are_up_are_asked() {
        let (system, _directory) = machine(&[
            ("sys/class/net/lo/operstate", "unknown\n"),
            ("sys/class/net/eth0/operstate", "up\n"),
            ("sys/class/net/eth0/device/vendor", "0x1af4\n"),
            ("sys/class/net/eth1/operstate", "down\n"),
            ("sys/class/net/eth1/device/vendor", "0x1af4\n"),
            ("sys/class/net/v0/operstate", "up\n"),
            ("sys/class/net/v0/iflink", "7\n"),
            ("sys/class/net/v0/ifindex", "8\n"),
            ("sys/class/net/br0/operstate", "up\n"),
            ("sys/class/net/br0/iflink", "9\n"),
            ("sys/class/net/br0/ifindex", "9\n"),
        ]);
        assert_eq!(carriers(&system), ["eth0", "v0"]);
        let (system, _directory) = machine(&[]);
        assert!(matches!(devices(&system), Outcome::Unknown(_)));
    }
}
