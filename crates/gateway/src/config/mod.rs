//! `gateway.toml`: read whole and judged before anything of it is used.
//!
//! | file | what it holds |
//! |---|---|
//! | `file` | the text, line by line |
//! | `transforms` | the names of the transforms |

mod file;
mod transforms;

use std::collections::HashSet;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use cipherlane_esp::Suite;
use cipherlane_esp::headers::{DscpPolicy, EcnPolicy};
use zeroize::Zeroizing;

use crate::Error;
use crate::key::Key;
use crate::selector::Prefix;
use crate::service::Selector;

pub(crate) use transforms::{key_len, transform};

/// Bytes of the largest configuration that is read.
const LONGEST: u64 = 64 << 20;

/// A whole configuration.
#[derive(Clone, Debug)]
pub struct Config {
    /// UDP port of ESP and of what encapsulates it.
    pub port: u16,
    /// Threads that carry packets.
    pub threads: usize,
    /// Whether the MSS that inner TCP offers is lowered to what fits.
    pub clamp_mss: bool,
    /// Where sequence numbers are reserved.
    pub state: Option<PathBuf>,
    /// Where `status` asks.
    pub socket: PathBuf,
    /// Where an IKE daemon controls SAs and policies; `None`: nobody does.
    pub control: Option<PathBuf>,
    /// Where Prometheus asks; `None`: nowhere.
    pub metrics: Option<SocketAddr>,
    /// The TUN device.
    pub interface: InterfaceConfig,
    /// The tunnels.
    pub tunnels: Vec<TunnelConfig>,
}

/// The TUN device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceConfig {
    /// Its name.
    pub name: String,
    /// Its addresses, and the networks behind them.
    pub addresses: Vec<InterfaceAddress>,
    /// Its MTU; `None`: what fits all tunnels.
    pub mtu: Option<usize>,
    /// Packets that may wait for the gateway.
    pub queue: u32,
    /// The largest super-packet; `None`: what one send carries.
    pub gso_max_size: Option<u32>,
}

/// An address of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterfaceAddress {
    /// The address.
    pub address: IpAddr,
    /// The length of its network's prefix.
    pub len: u8,
}

/// A tunnel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TunnelConfig {
    /// Its name.
    pub name: String,
    /// Address and port of the far end; the port is 0 for plain ESP.
    pub peer: SocketAddr,
    /// ESP in UDP (RFC 3948); `false`: plain ESP, IP protocol 50.
    pub in_udp: bool,
    /// The source address of what is sent; `None`: the system chooses.
    pub source: Option<IpAddr>,
    /// Cipher and integrity.
    pub transform: Suite,
    /// The name of the transform.
    pub transform_name: &'static str,
    /// Extended sequence numbers.
    pub esn: bool,
    /// The anti-replay window.
    pub window: Option<u32>,
    /// How often a keepalive is sent where nothing else is; `None`: never.
    pub keepalive: Option<Duration>,
    /// DSCP of outer headers.
    pub dscp: DscpPolicy,
    /// ECN of outer headers.
    pub ecn: EcnPolicy,
    /// The SA that seals.
    pub outbound: SaConfig,
    /// The SA that opens.
    pub inbound: SaConfig,
    /// Addresses on this side.
    pub local: Vec<Prefix>,
    /// Addresses on the far side.
    pub remote: Vec<Prefix>,
    /// What is routed into the device; `None`: all of `remote`.
    pub routes: Vec<Prefix>,
    /// Where IKE names protocols or ports: all pairs that the tunnel carries. Empty: all protocols,
    /// from every address of `local` to every address of `remote`.
    pub(crate) services: Vec<Selector>,
}

/// One SA.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SaConfig {
    /// Its SPI.
    pub spi: u32,
    /// Its key.
    pub key: Key,
}

/// The anti-replay window of an SA whose packets are opened by `threads`, unless it is told.
///
/// A batch of the peer's may be reordered on the way. Where there are several threads, one of them
/// may have to wait for a processor between reading packets and opening them, and the others open
/// meanwhile what comes in that time.
pub(crate) fn window(threads: usize) -> u32 {
    match threads {
        1 => 4096,
        _ => 1 << 16,
    }
}

impl Config {
    /// Reads a file. Relative names in it are looked for beside it.
    pub fn read(path: &Path) -> Result<Config, Error> {
        let text = cipherlane_core::read_text(path, LONGEST).map_err(Error::File)?;
        // It may hold keys.
        let text = Zeroizing::new(text);
        let directory = path.parent().unwrap_or(Path::new("."));
        Config::parse(&text, directory).map_err(|problem| Error::Config {
            path: path.to_owned(),
            problem,
        })
    }

    /// Judges a text. The message of an error shows no line of it, as a key may stand there.
    pub fn parse(text: &str, directory: &Path) -> Result<Config, String> {
        let config = file::parse(text, directory)?;
        config.check()?;
        Ok(config)
    }

    /// The lowest port that is bound.
    pub fn lowest_port(&self) -> u16 {
        match self.control {
            Some(_) => self.port.min(crate::control::ports::IKE),
            None => self.port,
        }
    }

    /// What is wrong between the tunnels.
    fn check(&self) -> Result<(), String> {
        if self.port == 0 {
            return Err("port = 0: use 4500, or another that the peers know".to_owned());
        }
        let (mut names, mut spis, mut keys) = (HashSet::new(), HashSet::new(), HashSet::new());
        for tunnel in &self.tunnels {
            let name = &tunnel.name;
            if !names.insert(name) {
                return Err(format!("two tunnels have the name '{name}'; rename one"));
            }
            let spi = tunnel.inbound.spi;
            if !spis.insert(spi) {
                return Err(format!(
                    "tunnel '{name}': the inbound SPI {spi:#x} is that of another tunnel; change \
                     it at both ends"
                ));
            }
            // The same key in both directions means the same IVs in both directions.
            for key in [&tunnel.outbound.key, &tunnel.inbound.key] {
                if !keys.insert(key.bytes()) {
                    return Err(format!(
                        "tunnel '{name}': a key is used by two SAs, so that both would send the \
                         same IVs; give each direction of each tunnel a key of its own"
                    ));
                }
            }
            if transforms::is_counter_mode(tunnel.transform) && self.state.is_none() {
                return Err(format!(
                    "tunnel '{name}': {} must never send an IV twice, so its sequence numbers are \
                     kept over restarts; set 'state' to a file such as \
                     /var/lib/cipherlane/gateway.state, and make it by 'cipherlane gateway \
                     new-state'",
                    tunnel.transform_name
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
state = "state"
[interface]
addresses = ["10.9.0.1/24", "fd09::1/64"]
[[tunnel]]
name = "b"
peer = "192.0.2.2"
local = ["10.9.0.1"]
remote = ["10.9.0.2/32"]
out = { spi = 4096, key = "00" }
in = { spi = 4097, key = "01" }
"#;

    fn problem(from: &str, to: &str) -> String {
        let text = GOOD.replace(from, to);
        assert_ne!(text, GOOD, "{from}");
        Config::parse(&text, Path::new("/dir")).unwrap_err()
    }

    #[test]
    fn what_never_ends_is_no_file_of_a_gateway() {
        let device = Path::new("/dev/zero");
        let error = Config::read(device).unwrap_err().to_string();
        assert!(error.contains("no regular file"), "{error}");
        let error = Key::read("@file:/dev/zero", Path::new("/")).unwrap_err();
        assert!(error.contains("no regular file"), "{error}");
        let error = crate::state::FileStore::open(device)
            .unwrap_err()
            .to_string();
        assert!(error.contains("no regular file"), "{error}");
    }

    #[test]
    fn a_short_configuration_is_whole() {
        let config = Config::parse(GOOD, Path::new("/dir")).unwrap();
        assert_eq!((config.port, config.threads), (4500, 1));
        assert_eq!(config.state.as_deref(), Some(Path::new("/dir/state")));
        let tunnel = &config.tunnels[0];
        assert_eq!(tunnel.peer.to_string(), "192.0.2.2:4500");
        assert_eq!(tunnel.routes, tunnel.remote);
        assert_eq!(tunnel.transform_name, "aes-gcm-16");
    }

    #[test]
    fn mistakes_are_named() {
        for (from, to, says) in [
            ("state = \"state\"", "", "new-state"),
            ("state = \"state\"", "stat = 1", "stat"),
            ("192.0.2.2", "host", "peer = 'host'"),
            ("192.0.2.2", "0.0.0.0", "nobody"),
            (
                "name = \"b\"",
                "name = \"b\"\nencapsulation = \"tcp\"",
                "protocol 50",
            ),
            (
                "peer = \"192.0.2.2\"",
                "encapsulation = \"none\"\npeer = \"192.0.2.2:4500\"",
                "no ports",
            ),
            (
                "name = \"b\"",
                "name = \"b\"\nencapsulation = \"none\"\nkeepalive = 5",
                "NATs",
            ),
            (
                "state = \"state\"",
                "state = \"state\"\nmetrics = \"localhost\"",
                "127.0.0.1:9100",
            ),
            ("10.9.0.2/32", "10.9.0.2/24", "bits behind"),
            ("10.9.0.2/32", "10.9.0.2/33", "block of addresses"),
            ("key = \"01\"", "key = \"00\"", "a key of its own"),
            ("key = \"01\"", "key = \"0\"", "digits"),
            ("key = \"01\"", "key = \"@file:/no/key\"", "cannot be read"),
            ("10.9.0.1/24", "10.9.0.1", "with a prefix"),
            (
                "name = \"b\"",
                "name = \"b\"\ntransform = \"null\"",
                "aes-gcm-16",
            ),
            ("name = \"b\"", "name = \"b\"\ndscp = 64", "0 to 63"),
            (
                "state = \"state\"",
                "state = \"state\"\nthreads = 0",
                "1 to 256",
            ),
            (
                "local = [\"10.9.0.1\"]",
                "local = []",
                "what the tunnel carries",
            ),
        ] {
            let problem = problem(from, to);
            assert!(problem.contains(says), "{to}: {problem}");
        }
    }

    #[test]
    fn keys_are_not_shown() {
        let secret = "00112233445566778899aabbccddeeff";
        let problem = problem("key = \"00\"", &format!("key = \"{secret}\" ="));
        assert!(!problem.contains(secret), "{problem}");
        let config = Config::parse(GOOD, Path::new("/")).unwrap();
        assert!(format!("{config:?}").contains("Key(1 bytes)"));
    }

    #[test]
    fn two_tunnels_do_not_share() {
        let tunnel = &GOOD[GOOD.find("[[tunnel]]").unwrap()..];
        let second = tunnel
            .replace("\"00\"", "\"02\"")
            .replace("\"01\"", "\"03\"");
        let parse = |second: &str| Config::parse(&format!("{GOOD}{second}"), Path::new("/"));
        assert!(parse(&second).unwrap_err().contains("name"));
        let second = second.replace("\"b\"", "\"c\"");
        assert!(parse(&second).unwrap_err().contains("SPI"));
        assert!(parse(&second.replace("4097", "4098")).is_ok());
    }
}
