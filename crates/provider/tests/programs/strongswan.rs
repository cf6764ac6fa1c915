//! strongSwan between two network namespaces, all of its cryptography by its plugin openssl: IKE,
//! and ESP in user space by its plugin kernel-libipsec.

use std::fs;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Stdio;

use crate::ends::{Ends, Work, data, lacks, write};
use crate::network::{Host, LEFT, Network, RIGHT};
use crate::place::{From, Place, skip, succeeded};
use crate::running::{Running, wait_until};

const CHARON: &str = "/usr/sbin/charon-systemd";
const SWANCTL: &str = "/usr/sbin/swanctl";
const PLUGINS: &str = "/usr/lib/ipsec/plugins";

/// What lies behind each end, and is reached through the tunnel.
const BEHIND: [&str; 2] = ["198.19.1.1", "198.19.2.1"];

const DATA: usize = (3 << 20) + 77;

/// IKE's proposal, ESP's, and the provider's cipher of each.
const PROPOSALS: [[&str; 4]; 3] = [
    [
        "aes256-sha256-x25519",
        "aes128gcm16",
        "AES-256-CBC",
        "AES-128-GCM",
    ],
    [
        "aes128gcm16-prfsha256-ecp256",
        "aes256-sha256",
        "AES-128-GCM",
        "AES-256-CBC",
    ],
    [
        "aes192-sha384-ecp384",
        "aes256ctr-sha256",
        "AES-192-CBC",
        "AES-256-CTR",
    ],
];

#[test]
fn strongswan_carries_data_both_ways() {
    let test = "strongSwan";
    let plugins = ["openssl", "kernel-libipsec", "vici"];
    let plugins = plugins.map(|name| format!("{PLUGINS}/libstrongswan-{name}.so"));
    let [openssl, libipsec, vici] = plugins.each_ref().map(String::as_str);
    if lacks(
        test,
        &[CHARON, SWANCTL, openssl, libipsec, vici, "/usr/bin/socat"],
    ) {
        return;
    }
    if let Some(reason) = Network::lacks().or_else(Network::lacks_tunnels) {
        skip(test, &reason);
        return;
    }
    let place = Place::new();
    let data = data(DATA, 12);
    write(&place, "data", &data);
    for (ends, [ike, esp, of_ike, of_esp]) in Ends::each(&place).iter().zip(PROPOSALS) {
        // Its policies and routes go with it.
        let network = Network::new(&place);
        let hosts = [&network.left, &network.right];
        for (host, address) in hosts.into_iter().zip(BEHIND) {
            let mut ip = host.command(&place, "ip", From::Default);
            succeeded(ip.args(["address", "add", &format!("{address}/32"), "dev", "lo"]));
        }
        let right = Charon::start(ends, &network, false, [ike, esp]);
        let left = Charon::start(ends, &network, true, [ike, esp]);
        left.swanctl(ends, &["--initiate", "--child", "net"]);
        for there in [true, false] {
            carry(ends, &network, there, &data);
        }
        left.end();
        right.end();
        let work = [
            Work {
                cipher: of_esp,
                client: 2 * DATA,
                server: 2 * DATA,
            },
            Work {
                cipher: of_ike,
                client: 100,
                server: 100,
            },
        ];
        ends.prove(&format!("strongSwan, {ike}, {esp}"), &work);
    }
}

/// A file through the tunnel.
fn carry(ends: &Ends, network: &Network, there: bool, data: &[u8]) {
    let place = ends.place;
    let _ = fs::remove_file(place.path().join("carried"));
    let socat = |host: &Host| host.command(place, "socat", From::Default);
    let listen = format!("TCP-LISTEN:7000,bind={},reuseaddr", BEHIND[1]);
    let call = format!(
        "TCP:{}:7000,bind={},retry=200,interval=0.05",
        BEHIND[1], BEHIND[0]
    );
    let [from, to] = ["OPEN:data", "CREATE:carried"];
    let (mut listener, mut caller) = (socat(&network.right), socat(&network.left));
    match there {
        true => (
            listener.args(["-u", &listen, to]),
            caller.args(["-u", from, &call]),
        ),
        false => (
            listener.args(["-u", from, &listen]),
            caller.args(["-u", &call, to]),
        ),
    };
    let mut listener = Running::start(&mut listener);
    succeeded(&mut caller);
    wait_until("socat's end", || listener.ended());
    let carried = fs::read(place.path().join("carried")).unwrap();
    assert!(carried == data, "{ends}: {} bytes", carried.len());
}

/// One end's daemon.
struct Charon<'a> {
    host: &'a Host,
    daemon: Running,
    configuration: PathBuf,
    socket: String,
}

impl<'a> Charon<'a> {
    fn start(ends: &Ends, network: &'a Network, left: bool, [ike, esp]: [&str; 2]) -> Charon<'a> {
        let place = ends.place;
        let host = if left { &network.left } else { &network.right };
        let side = if left { "left" } else { "right" };
        let folder = place.path().display();
        let log = place.path().join(format!("charon-{side}.log"));
        let socket = format!("unix://{folder}/charon-{side}.vici");
        let _ = fs::remove_file(&log);
        let settings = format!(
            "charon-systemd {{\n\
             \x20 load = random nonce openssl kdf pem pkcs1 pkcs8 x509 pubkey \
             socket-default kernel-libipsec kernel-netlink vici\n\
             \x20 plugins {{\n    vici {{ socket = {socket} }}\n\
             \x20   openssl {{ load_legacy = no }}\n  }}\n\
             \x20 filelog {{ file {{ path = {}\n flush_line = yes\n default = 1 }} }}\n\
             \x20 journal {{ default = -1 }}\n}}\nswanctl {{ load = openssl }}\n",
            log.display()
        );
        let configuration = write(place, &format!("charon-{side}.conf"), settings.as_bytes());
        let (own, peer) = if left { (0, 1) } else { (1, 0) };
        let addresses = [LEFT, RIGHT];
        let connection = format!(
            "connections {{\n  peer {{\n    version = 2\n\
             \x20   local_addrs = {}\n    remote_addrs = {}\n    proposals = {ike}\n\
             \x20   local {{ auth = psk\n id = {} }}\n    remote {{ auth = psk\n id = {} }}\n\
             \x20   children {{ net {{\n      local_ts = {}/32\n      remote_ts = {}/32\n\
             \x20     esp_proposals = {esp}\n    }} }}\n  }}\n}}\n\
             secrets {{ ike {{ secret = \"a secret of the test\" }} }}\n",
            addresses[own],
            addresses[peer],
            addresses[own],
            addresses[peer],
            BEHIND[own],
            BEHIND[peer]
        );
        let settings = write(
            place,
            &format!("swanctl-{side}.conf"),
            connection.as_bytes(),
        );
        let command = if left {
            ends.client("nsenter")
        } else {
            ends.server("nsenter")
        };
        let mut command = host.enter(command, CHARON);
        command.env("STRONGSWAN_CONF", &configuration);
        let daemon = Running::start(command.stdin(Stdio::null()).stderr(Stdio::null()));
        let mut charon = Charon {
            host,
            daemon,
            configuration,
            socket,
        };
        wait_until("charon", || {
            let said = || fs::read_to_string(&log);
            assert!(!charon.daemon.ended(), "charon ended: {:?}", said());
            UnixStream::connect(place.path().join(format!("charon-{side}.vici"))).is_ok()
        });
        let settings = settings.display().to_string();
        charon.swanctl(ends, &["--load-all", "--noprompt", "--file", &settings]);
        charon
    }

    /// Runs its command, which has no ciphers to ask for.
    fn swanctl(&self, ends: &Ends, arguments: &[&str]) {
        let mut swanctl = self.host.command(ends.place, SWANCTL, From::Default);
        swanctl.env("STRONGSWAN_CONF", &self.configuration);
        succeeded(swanctl.args(arguments).args(["--uri", &self.socket]));
    }

    fn end(self) {
        self.daemon.end(libc::SIGTERM);
    }
}
