//! OpenVPN between two network namespaces, and iperf3 through it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use crate::network::{Host, Network, RIGHT};
use crate::place::{From, Place, succeeded};
use crate::running::{Running, wait_until};

/// A tunnel: the left end calls the right one.
pub(crate) struct Tunnel {
    number: u8,
    ends: [Running; 2],
}

impl Tunnel {
    /// Why there can be none on this machine.
    pub(crate) fn lacks() -> Option<String> {
        for program in ["/usr/sbin/openvpn", "/usr/bin/iperf3"] {
            if !Path::new(program).exists() {
                return Some(format!("{program} is absent; scripts/needs test"));
            }
        }
        Network::lacks().or_else(Network::lacks_tunnels)
    }

    /// Through a network whose place has certificates. The number, from 1, is part of its
    /// addresses and port: there may be several. `from` is for the left and the right end.
    pub(crate) fn start(
        place: &Place,
        network: &Network,
        number: u8,
        cipher: &str,
        from: [From; 2],
    ) -> Tunnel {
        let start = |left: bool| {
            let (host, from, own, peer) = match left {
                true => (&network.left, from[0], "ec", "rsa"),
                false => (&network.right, from[1], "rsa", "ec"),
            };
            let log = log(place, number, left);
            let _ = fs::remove_file(&log);
            let mut command = host.command(place, "/usr/sbin/openvpn", from);
            let role = match left {
                true => vec!["--tls-client", "--nobind", "--remote", RIGHT],
                false => vec!["--tls-server", "--dh", "none", "--local", RIGHT],
            };
            let port = (1194 + u16::from(number)).to_string();
            command
                .args(role)
                .args(["--port", &port, "--proto", "udp", "--dev-type", "tun"])
                .args(["--dev", &format!("tunnel{number}"), "--topology", "subnet"])
                .args(["--ifconfig", &address(number, left), "255.255.255.0"])
                .args([
                    "--cert",
                    &format!("{own}.pem"),
                    "--key",
                    &format!("{own}.key"),
                ])
                .args(["--peer-fingerprint", &fingerprint(place, peer)])
                // The kernel's own data channel would not ask OpenSSL.
                .args(["--data-ciphers", cipher, "--disable-dco"])
                .arg("--log")
                .arg(&log)
                .stdin(Stdio::null());
            if from == From::Cipherlane {
                // Not by the configuration: the program loads providers by their names.
                command
                    .args(["--providers", "cipherlane", "default"])
                    .env("OPENSSL_CONF", "/dev/null")
                    .env("OPENSSL_MODULES", place.modules());
            }
            Running::start(&mut command)
        };
        // Called before it listens, the right end would be called again after seconds.
        let mut right = start(false);
        said(place, number, false, "link local (bound)", &mut right);
        let mut left = start(true);
        let up = "Initialization Sequence Completed";
        said(place, number, true, up, &mut left);
        said(place, number, false, up, &mut right);
        Tunnel {
            number,
            ends: [left, right],
        }
    }

    /// The right end's address in the tunnel.
    pub(crate) fn right(&self) -> String {
        address(self.number, false)
    }

    /// The processes of the left and the right end.
    pub(crate) fn processes(&self) -> [u32; 2] {
        self.ends.each_ref().map(Running::process)
    }

    /// Ends both in order.
    pub(crate) fn end(self) {
        for end in self.ends {
            end.end(libc::SIGTERM);
        }
    }
}

fn address(number: u8, left: bool) -> String {
    format!("198.18.{number}.{}", if left { 1 } else { 2 })
}

fn log(place: &Place, number: u8, left: bool) -> PathBuf {
    let end = if left { "left" } else { "right" };
    place.path().join(format!("openvpn-{number}-{end}.log"))
}

/// Waits until an end has said something.
fn said(place: &Place, number: u8, left: bool, what: &str, end: &mut Running) {
    let read = || fs::read_to_string(log(place, number, left)).unwrap_or_default();
    wait_until(what, || {
        assert!(!end.ended(), "openvpn ended: {}", read());
        read().contains(what)
    });
}

/// SHA-256 of a certificate of the place.
fn fingerprint(place: &Place, name: &str) -> String {
    let mut openssl = place.command("openssl", From::Default);
    openssl.args(["x509", "-noout", "-fingerprint", "-sha256"]);
    let said = succeeded(openssl.args(["-in", &format!("{name}.pem")])).stdout;
    let said = String::from_utf8(said).unwrap();
    said.trim().split_once('=').unwrap().1.to_owned()
}

/// A server of iperf3.
pub(crate) struct Iperf {
    address: String,
    _server: Running,
}

impl Iperf {
    pub(crate) fn start(place: &Place, host: &Host, address: &str) -> Iperf {
        let log = place.path().join(format!("iperf-{address}.log"));
        let mut command = host.command(place, "iperf3", From::Default);
        command
            .args(["-s", "-B", address, "--forceflush", "--logfile"])
            .arg(&log)
            .stdin(Stdio::null());
        let mut server = Running::start(&mut command);
        let read = || fs::read_to_string(&log).unwrap_or_default();
        wait_until("iperf3", || {
            assert!(!server.ended(), "iperf3 ended: {}", read());
            read().contains("Server listening")
        });
        Iperf {
            address: address.to_owned(),
            _server: server,
        }
    }

    /// One TCP stream from the other host, or to it with `-R` in `options`: bytes that arrived,
    /// and seconds.
    pub(crate) fn transfer(
        &self,
        place: &Place,
        host: &Host,
        seconds: u32,
        options: &[&str],
    ) -> (u64, f64) {
        let mut said = serde_json::Value::Null;
        // On a busy machine its two ends now and then miss each other's final report, and
        // then it ends in order without the sums. The server may be busy with that for a while.
        for pause in [0, 1, 2, 4, 8] {
            std::thread::sleep(Duration::from_secs(pause));
            let mut iperf = host.command(place, "iperf3", From::Default);
            iperf.args(["-c", &self.address, "-J", "-t", &seconds.to_string()]);
            said = serde_json::from_slice(&succeeded(iperf.args(options)).stdout).unwrap();
            let received = &said["end"]["sum_received"];
            if let Some(bytes) = received["bytes"].as_u64() {
                return (bytes, received["seconds"].as_f64().unwrap());
            }
        }
        panic!("iperf3 tells no sums: {said}");
    }
}
