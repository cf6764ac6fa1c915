//! The far end is Linux's own IPsec, driven by a charon of its own, in a guest.

use super::{CHILD, gateways, rekey_from_both_sides};
use crate::charon::{CHARON, Carrier, Charon, Daemon, INNER, PLUGINS, SWANCTL, Settings};
use crate::guest::{Guest, OUTER4};
use crate::rig::{Host, OUTER, Rig};

/// What charon needs of its plugins to drive the kernel.
const NEEDED: [&str; 8] = [
    "random",
    "nonce",
    "openssl",
    "kdf",
    "pem",
    "kernel-netlink",
    "socket-default",
    "vici",
];

/// glibc loads it when a thread is ended from outside, as swanctl does.
const UNWINDER: &str = "/lib/x86_64-linux-gnu/libgcc_s.so.1";

/// The charon of the guest.
struct GuestCharon<'a> {
    rig: &'a Rig,
    guest: &'a Guest,
}

impl Daemon for GuestCharon<'_> {
    fn swanctl(&self, arguments: &[&str]) -> String {
        let arguments = arguments.join(" ");
        let script =
            format!("STRONGSWAN_CONF=/strongswan.conf swanctl {arguments} --uri unix:///tmp/vici");
        self.guest.run(self.rig, &script)
    }

    fn log(&self) -> String {
        self.guest.run(self.rig, "cat /tmp/log")
    }
}

/// The settings of an end; `here` and `there` are its outer address and the other's.
fn settings(here: &str, there: &str, proposal: &str) -> Settings {
    let by_secret = |address: &str| format!("auth = psk\n id = {address}");
    Settings {
        // Without it both see that there is no NAT between them, and use protocol 50.
        connection: "encap = yes".to_owned(),
        addresses: Some([here.to_owned(), there.to_owned()]),
        child: format!("esp_proposals = {proposal}"),
        authentication: Some([by_secret(here), by_secret(there)]),
        ..Settings::default()
    }
}

/// Programs and plugins for the guest, as options of `scripts/guest`.
fn brought(rig: &Rig) -> Vec<String> {
    let configuration = rig.path("strongswan.conf");
    let text = format!(
        "charon-systemd {{\n load = {}\n retransmit_timeout = 2\n plugins {{ vici {{ socket = \
         unix:///tmp/vici }} }}\n filelog {{ file {{ path = /tmp/log\n flush_line = yes\n default \
         = 1 }} }}\n journal {{ default = -1 }}\n}}\nswanctl {{ load = openssl pem }}\n",
        NEEDED.join(" ")
    );
    std::fs::write(&configuration, text).unwrap();
    let mut options = Vec::new();
    // The plugins need libcrypto, which comes with the program openssl.
    for program in [CHARON, SWANCTL, "openssl"] {
        options.extend(["--program".to_owned(), program.to_owned()]);
    }
    let configuration = configuration.display();
    options.extend([
        "--file".to_owned(),
        format!("{configuration}:/strongswan.conf"),
    ]);
    let plugins = NEEDED.map(|plugin| format!("{PLUGINS}/libstrongswan-{plugin}.so"));
    for path in plugins.into_iter().chain([UNWINDER.to_owned()]) {
        options.extend(["--file".to_owned(), format!("{path}:{path}")]);
    }
    options
}

fn rekeys_with_linux(proposal: &str) {
    let Some(rig) = gateways(&[Host::A]) else {
        return;
    };
    let Some(guest) = Guest::start_with(&rig, &brought(&rig)) else {
        return;
    };
    let far = settings(OUTER4, OUTER[0], proposal).text(Host::B);
    let script = format!(
        "set -e\nip addr add {inner}/32 dev lo\ncat >/tmp/swanctl.conf <<'END'\n{far}END\n\
         STRONGSWAN_CONF=/strongswan.conf charon-systemd </dev/null >/dev/null 2>&1 &\n\
         for i in $(seq 300); do [ ! -e /tmp/vici ] || break; sleep 0.1; done\n\
         STRONGSWAN_CONF=/strongswan.conf swanctl --load-all --noprompt --file /tmp/swanctl.conf \
         --uri unix:///tmp/vici\n\
         perl /far-end.pl {octets} </dev/null >/dev/console 2>&1\n",
        inner = INNER[1],
        octets = "0a090002",
    );
    guest.run(&rig, &script);
    let b = GuestCharon {
        rig: &rig,
        guest: &guest,
    };
    let near = settings(OUTER[0], OUTER4, proposal);
    let a = Charon::start(&rig, Host::A, Carrier::Gateway, &near);
    a.swanctl(&["--initiate", CHILD[0], CHILD[1]]);
    let lost = rekey_from_both_sides(&rig, [&a, &b]);
    // Linux drops what it was about to send by an SA that has just been deleted, and counts it.
    let dropped = guest.run(&rig, "cat /proc/net/xfrm_stat");
    let invalid = dropped
        .lines()
        .find_map(|line| line.strip_prefix("XfrmOutStateInvalid"))
        .and_then(|count| count.trim().parse::<u32>().ok());
    assert!(Some(lost) <= invalid, "{lost} lost, {dropped}{}", b.log());
    let status = rig.wait_for(Host::A, "the end of the old SAs", |status| {
        status["tunnels"]
            .as_array()
            .is_some_and(|tunnels| tunnels.len() == 1)
    });
    let tunnel = &status["tunnels"][0];
    assert_eq!(tunnel["inbound"]["refused"], serde_json::json!({}));
    let states = guest.run(&rig, "ip -s xfrm state");
    let esn = states.contains("anti-replay esn context");
    assert_eq!(esn, proposal.ends_with("-esn"), "{states}");
    // Each SA of the guest's kernel has a line of what it has refused.
    let mut refusals = states.lines().filter(|line| line.contains(" failed "));
    let none = "replay-window 0 replay 0 failed 0";
    assert_eq!(states.matches("\tproto esp ").count(), 2, "{states}");
    assert!(refusals.all(|line| line.trim() == none), "{states}");
    drop(guest);
}

#[test]
fn charon_rekeys_linux_with_esn() {
    rekeys_with_linux("aes256gcm16-esn");
}

#[test]
fn charon_rekeys_linux_without_esn() {
    rekeys_with_linux("aes256-sha256-noesn");
}
