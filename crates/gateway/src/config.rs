//! `gateway.toml`: read whole and judged before anything of it is used.

use std::collections::HashSet;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use cipherlane_esp::headers::{DscpPolicy, EcnPolicy};
use cipherlane_esp::{GostSbox, Integrity, IvOrigin, Transform};
use serde::Deserialize;
use zeroize::Zeroizing;

use crate::Error;
use crate::key::Key;
use crate::selector::Prefix;

/// Bytes of the largest configuration that is read.
const LONGEST: u64 = 64 << 20;

/// The names of the transforms. Those without encryption are not among them: a gateway sends no
/// clear text.
const TRANSFORMS: [(&str, Transform); 14] = [
    ("aes-gcm-16", gcm(16)),
    ("aes-gcm-12", gcm(12)),
    ("aes-gcm-8", gcm(8)),
    (
        "chacha20-poly1305",
        Transform::ChaCha20Poly1305 {
            iv: IvOrigin::Explicit,
        },
    ),
    (
        "aes-cbc-hmac-sha256",
        Transform::AesCbc(Integrity::HmacSha256),
    ),
    (
        "aes-cbc-hmac-sha512",
        Transform::AesCbc(Integrity::HmacSha512),
    ),
    (
        "aes-ctr-hmac-sha256",
        Transform::AesCtr(Integrity::HmacSha256),
    ),
    (
        "aes-ctr-hmac-sha512",
        Transform::AesCtr(Integrity::HmacSha512),
    ),
    ("kuznyechik-mgm", Transform::KuznyechikMgm),
    ("magma-mgm", Transform::MagmaMgm),
    ("gost-4m-imit-z", Transform::Gost4mImit(GostSbox::ParamZ)),
    (
        "gost-4m-imit-a",
        Transform::Gost4mImit(GostSbox::CryptoProA),
    ),
    ("gost-1k-imit-z", Transform::Gost1kImit(GostSbox::ParamZ)),
    (
        "gost-1k-imit-a",
        Transform::Gost1kImit(GostSbox::CryptoProA),
    ),
];

const fn gcm(icv: usize) -> Transform {
    Transform::AesGcm {
        icv,
        iv: IvOrigin::Explicit,
    }
}

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
    /// Address and port of the far end.
    pub peer: SocketAddr,
    /// The source address of what is sent; `None`: the system chooses.
    pub source: Option<IpAddr>,
    /// Cipher and integrity.
    pub transform: Transform,
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
}

/// One SA.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SaConfig {
    /// Its SPI.
    pub spi: u32,
    /// Its key.
    pub key: Key,
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
        let file: File = toml::from_str(text).map_err(|error| {
            let line = error
                .span()
                .map(|span| text[..span.start.min(text.len())].lines().count().max(1));
            let message = error.message();
            match line {
                Some(line) => format!("line {line}: {message}"),
                None => message.to_owned(),
            }
        })?;
        let threads = file.threads.unwrap_or(1);
        if !(1..=256).contains(&threads) {
            return Err(format!("threads = {threads}: use 1 to 256"));
        }
        let interface = file.interface.parse()?;
        let tunnels = file
            .tunnel
            .into_iter()
            .map(|tunnel| {
                let name = tunnel.name.clone();
                let parsed = tunnel.parse(directory);
                parsed.map_err(|problem| format!("tunnel '{name}': {problem}"))
            })
            .collect::<Result<Vec<_>, _>>()?;
        let config = Config {
            port: file.port.unwrap_or(4500),
            threads,
            clamp_mss: file.clamp_mss.unwrap_or(true),
            state: file.state.map(|path| directory.join(path)),
            socket: file
                .socket
                .map_or_else(|| PathBuf::from(crate::SOCKET), |path| directory.join(path)),
            control: file.control.map(|path| directory.join(path)),
            interface,
            tunnels,
        };
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
            if is_counter_mode(tunnel.transform) && self.state.is_none() {
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

/// Whether IVs follow the sequence number, so that a number sent twice gives away plaintext.
fn is_counter_mode(transform: Transform) -> bool {
    !matches!(transform, Transform::AesCbc(_))
}

/// The transform of a name.
pub(crate) fn transform(name: &str) -> Result<(Transform, &'static str), String> {
    let found = TRANSFORMS.iter().find(|(known, _)| *known == name);
    found
        .map(|&(name, transform)| (transform, name))
        .ok_or_else(|| {
            let names: Vec<_> = TRANSFORMS.iter().map(|(name, _)| *name).collect();
            format!(
                "there is no transform '{name}'; those that there are: {}",
                names.join(", ")
            )
        })
}

/// Bytes of the key of a transform, the longest where it takes more than one.
pub(crate) fn key_len(transform: Transform) -> usize {
    let integrity = |integrity| match integrity {
        Integrity::HmacSha256 => 32,
        Integrity::HmacSha512 => 64,
    };
    match transform {
        Transform::AesCbc(with) => 32 + integrity(with),
        Transform::AesCtr(with) => 36 + integrity(with),
        Transform::Gost1kImit(_) => 68,
        Transform::KuznyechikMgm => 44,
        _ => 36,
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    port: Option<u16>,
    threads: Option<usize>,
    clamp_mss: Option<bool>,
    state: Option<PathBuf>,
    socket: Option<PathBuf>,
    control: Option<PathBuf>,
    interface: InterfaceFile,
    #[serde(default)]
    tunnel: Vec<TunnelFile>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct InterfaceFile {
    name: Option<String>,
    addresses: Vec<String>,
    mtu: Option<usize>,
    queue: Option<u32>,
    gso_max_size: Option<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TunnelFile {
    name: String,
    peer: String,
    source: Option<IpAddr>,
    transform: Option<String>,
    esn: Option<bool>,
    window: Option<u32>,
    keepalive: Option<u64>,
    dscp: Option<u8>,
    ecn: Option<bool>,
    out: SaFile,
    r#in: SaFile,
    local: Vec<String>,
    remote: Vec<String>,
    routes: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SaFile {
    spi: u32,
    #[serde(deserialize_with = "wiped")]
    key: Zeroizing<String>,
}

fn wiped<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Zeroizing<String>, D::Error> {
    String::deserialize(from).map(Zeroizing::new)
}

impl InterfaceFile {
    fn parse(self) -> Result<InterfaceConfig, String> {
        let addresses = self.addresses.iter().map(|text| {
            let wrong = || {
                format!("interface: '{text}' is no address with a prefix; write one as 10.9.0.1/24")
            };
            let (address, len) = text.split_once('/').ok_or_else(wrong)?;
            let address: IpAddr = address.parse().map_err(|_| wrong())?;
            let len: u8 = len.parse().map_err(|_| wrong())?;
            match len <= if address.is_ipv4() { 32 } else { 128 } {
                true => Ok(InterfaceAddress { address, len }),
                false => Err(wrong()),
            }
        });
        let addresses = addresses.collect::<Result<Vec<_>, _>>()?;
        if let Some(mtu) = self.mtu
            && !(576..=65535).contains(&mtu)
        {
            return Err(format!("interface: mtu = {mtu}: use 576 to 65535, or none"));
        }
        Ok(InterfaceConfig {
            name: self.name.unwrap_or_else(|| "cipherlane0".to_owned()),
            addresses,
            mtu: self.mtu,
            queue: self.queue.unwrap_or(500),
            gso_max_size: self.gso_max_size,
        })
    }
}

impl TunnelFile {
    fn parse(self, directory: &Path) -> Result<TunnelConfig, String> {
        let peer = self.peer.parse().or_else(|_| {
            let address = self.peer.parse::<IpAddr>();
            address.map(|address| SocketAddr::new(address, 4500))
        });
        let peer: SocketAddr = peer.map_err(|_| {
            format!(
                "peer = '{}' is no address with or without a port; write one as 192.0.2.2:4500 \
                 or [2001:db8::2]:4500",
                self.peer
            )
        })?;
        if peer.ip().is_unspecified() || peer.ip().is_multicast() || peer.port() == 0 {
            return Err(format!(
                "peer = '{peer}': nobody can be there; name one host"
            ));
        }
        if self
            .source
            .is_some_and(|source| source.is_ipv4() != peer.is_ipv4())
        {
            return Err("'source' and 'peer' are both IPv4 or both IPv6".to_owned());
        }
        let (transform, transform_name) =
            transform(self.transform.as_deref().unwrap_or("aes-gcm-16"))?;
        let prefixes = |name: &str, texts: &[String]| {
            let parsed = texts.iter().map(|text| text.parse::<Prefix>());
            let parsed = parsed.collect::<Result<Vec<_>, _>>();
            parsed.map_err(|problem| format!("{name}: {problem}"))
        };
        let local = prefixes("local", &self.local)?;
        let remote = prefixes("remote", &self.remote)?;
        if local.is_empty() || remote.is_empty() {
            return Err(
                "'local' and 'remote' name what the tunnel carries; 0.0.0.0/0 stands for all of \
                 IPv4"
                    .to_owned(),
            );
        }
        let routes = match &self.routes {
            Some(routes) => prefixes("routes", routes)?,
            None => remote.clone(),
        };
        let sa = |direction: &str, file: &SaFile| {
            let key = Key::read(&file.key, directory);
            let key = key.map_err(|problem| format!("{direction}: {problem}"))?;
            Ok::<_, String>(SaConfig { spi: file.spi, key })
        };
        Ok(TunnelConfig {
            peer,
            source: self.source,
            transform,
            transform_name,
            esn: self.esn.unwrap_or(true),
            window: match self.window.unwrap_or(4096) {
                0 => None,
                width => Some(width),
            },
            keepalive: match self.keepalive.unwrap_or(20) {
                0 => None,
                seconds => Some(Duration::from_secs(seconds)),
            },
            dscp: match self.dscp {
                None => DscpPolicy::Copy,
                Some(dscp) if dscp < 64 => DscpPolicy::Fixed(dscp),
                Some(dscp) => return Err(format!("dscp = {dscp}: use 0 to 63")),
            },
            ecn: match self.ecn.unwrap_or(true) {
                true => EcnPolicy::Copy,
                false => EcnPolicy::Compatibility,
            },
            outbound: sa("out", &self.out)?,
            inbound: sa("in", &self.r#in)?,
            local,
            remote,
            routes,
            name: self.name,
        })
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
