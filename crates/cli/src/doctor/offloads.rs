//! What network devices leave to the processor, packet by packet.

use super::finding::{Finding, Outcome};
use super::system::{System, output_of};

/// Features without which the kernel's network code works on each packet of a stream, as
/// `ethtool -k` names them.
const WANTED: [&str; 3] = [
    "tx-checksumming",
    "tcp-segmentation-offload",
    "generic-segmentation-offload",
];
/// The same for packets that come from a wire; those of a veth come joined already, and it has this
/// switched off unless somebody asks.
const FROM_WIRES: &str = "generic-receive-offload";

/// Network cards and veth whose offloads somebody switched off.
pub(super) fn devices(system: &System) -> Outcome {
    let mut refused = None;
    let mut asked = Vec::new();
    for carrier in carriers(system) {
        match output_of("ethtool", &["-k", &carrier.name]) {
            Ok(text) => asked.push((carrier, text)),
            Err(reason) => refused = Some(reason),
        }
    }
    match (asked.is_empty(), refused) {
        (true, Some(reason)) => Outcome::Unknown(reason),
        (true, None) => Outcome::Unknown("no network card and no veth is up".to_owned()),
        (false, _) => switched_off(&asked),
    }
}

/// A device that is up and leads out of this machine or to another namespace.
#[derive(Debug, PartialEq)]
struct Carrier {
    name: String,
    is_card: bool,
}

fn carriers(system: &System) -> Vec<Carrier> {
    let names = system.list("sys/class/net").into_iter();
    let carrier = |name: String| {
        let read = |file: &str| system.read(&format!("sys/class/net/{name}/{file}"));
        let is_up = read("operstate").is_some_and(|state| state == "up");
        let is_card = !system
            .list(&format!("sys/class/net/{name}/device"))
            .is_empty();
        // One end of a veth names the other end as its link.
        let is_veth = read("tun_flags").is_none() && read("iflink") != read("ifindex");
        (is_up && (is_card || is_veth)).then_some(Carrier { name, is_card })
    };
    names.filter_map(carrier).collect()
}

/// What devices could do and do not; `asked` has what `ethtool -k` says of each.
fn switched_off(asked: &[(Carrier, String)]) -> Outcome {
    let mut off = Vec::new();
    let mut first = None;
    for (Carrier { name, is_card }, text) in asked {
        let is_off = |wanted: &&str| {
            let line = text
                .lines()
                .find_map(|line| line.trim().strip_prefix(*wanted)?.strip_prefix(':'));
            // Those that are fixed cannot be switched on.
            line.is_some_and(|value| value.trim() == "off")
        };
        let missing: Vec<&str> = {
            let wire = is_card.then_some(FROM_WIRES);
            WANTED.into_iter().chain(wire).filter(is_off).collect()
        };
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
        let device = |text: &str, is_card| {
            let name = "v0".to_owned();
            switched_off(&[(Carrier { name, is_card }, text.to_owned())])
        };
        let found = device(VETH, false).found();
        assert_eq!(
            found.evidence,
            "'ethtool -k': v0 lacks tcp-segmentation-offload"
        );
        let of = |text: &str| device(text, true);
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
        let found = carriers(&system);
        let found: Vec<_> = found
            .iter()
            .map(|of| (of.name.as_str(), of.is_card))
            .collect();
        assert_eq!(found, [("eth0", true), ("v0", false)]);
        let (system, _directory) = machine(&[]);
        assert!(matches!(devices(&system), Outcome::Unknown(_)));
    }
}
