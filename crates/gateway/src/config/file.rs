//! The text of `gateway.toml`, and what of it can be judged line by line.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use cipherlane_esp::headers::{DscpPolicy, EcnPolicy};
use serde::Deserialize;
use zeroize::Zeroizing;

use super::transforms::transform;
use super::{Config, InterfaceAddress, InterfaceConfig, SaConfig, TunnelConfig, window};
use crate::encapsulation;
use crate::key::Key;
use crate::selector::Prefix;

/// Reads a text. The message of an error shows no line of it, as a key may stand there.
pub(super) fn parse(text: &str, directory: &Path) -> Result<Config, String> {
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
    let metrics = file.metrics.map(|text| {
        text.parse::<SocketAddr>().map_err(|_| {
            format!("metrics = '{text}' is no address with a port; write one as 127.0.0.1:9100")
        })
    });
    let interface = file.interface.parse()?;
    let tunnels = file
        .tunnel
        .into_iter()
        .map(|tunnel| {
            let name = tunnel.name.clone();
            let parsed = tunnel.parse(directory, threads);
            parsed.map_err(|problem| format!("tunnel '{name}': {problem}"))
        })
        .collect::<Result<Vec<_>, _>>()?;
    Ok(Config {
        port: file.port.unwrap_or(4500),
        threads,
        clamp_mss: file.clamp_mss.unwrap_or(true),
        state: file.state.map(|path| directory.join(path)),
        socket: file
            .socket
            .map_or_else(|| PathBuf::from(crate::SOCKET), |path| directory.join(path)),
        control: file.control.map(|path| directory.join(path)),
        metrics: metrics.transpose()?,
        interface,
        tunnels,
    })
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
    metrics: Option<String>,
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
    encapsulation: Option<String>,
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
    fn parse(self, directory: &Path, threads: usize) -> Result<TunnelConfig, String> {
        let in_udp = encapsulation::is_udp(self.encapsulation.as_deref())?;
        let peer = match in_udp {
            true => udp_peer(&self.peer)?,
            false => encapsulation::plain_peer(&self.peer)?,
        };
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
            in_udp,
            source: self.source,
            transform,
            transform_name,
            esn: self.esn.unwrap_or(true),
            window: match self.window.unwrap_or_else(|| window(threads)) {
                0 => None,
                width => Some(width),
            },
            keepalive: match encapsulation::keepalive(self.keepalive, in_udp)? {
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
            services: Vec::new(),
        })
    }
}

/// A peer with the port of UDP, which is 4500 unless it is named.
fn udp_peer(text: &str) -> Result<SocketAddr, String> {
    let peer = text.parse().or_else(|_| {
        let address = text.parse::<IpAddr>();
        address.map(|address| SocketAddr::new(address, 4500))
    });
    let peer: SocketAddr = peer.map_err(|_| {
        format!(
            "peer = '{text}' is no address with or without a port; write one as 192.0.2.2:4500 or \
             [2001:db8::2]:4500"
        )
    })?;
    if peer.ip().is_unspecified() || peer.ip().is_multicast() || peer.port() == 0 {
        return Err(format!(
            "peer = '{peer}': nobody can be there; name one host"
        ));
    }
    Ok(peer)
}
