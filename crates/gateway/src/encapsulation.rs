//! What carries ESP to a peer: UDP, which passes NATs (RFC 3948), or IP itself, as protocol 50.

use std::net::{IpAddr, SocketAddr};

use crate::Config;

impl Config {
    /// Whether a tunnel is one of plain ESP, which takes raw sockets and so CAP_NET_RAW.
    pub fn has_plain_esp(&self) -> bool {
        self.families(false).contains(&true)
    }

    /// Whether a tunnel over IPv4, and one over IPv6, is ESP in UDP, or is plain ESP.
    pub(crate) fn families(&self, in_udp: bool) -> [bool; 2] {
        [true, false].map(|is_v4| {
            let mut tunnels = self.tunnels.iter();
            tunnels.any(|tunnel| tunnel.in_udp == in_udp && tunnel.peer.is_ipv4() == is_v4)
        })
    }
}

/// The word of a configuration; whether it means UDP.
pub(crate) fn is_udp(word: Option<&str>) -> Result<bool, String> {
    match word {
        None | Some("udp") => Ok(true),
        Some("none") => Ok(false),
        Some(other) => Err(format!(
            "encapsulation = '{other}': use \"udp\", or \"none\" for plain ESP (IP protocol 50)"
        )),
    }
}

/// The word for it.
pub(crate) fn word(in_udp: bool) -> &'static str {
    if in_udp { "udp" } else { "none" }
}

/// The peer of a tunnel of plain ESP, which has no ports: the port is 0.
pub(crate) fn plain_peer(text: &str) -> Result<SocketAddr, String> {
    let address: IpAddr = text.parse().map_err(|_| {
        format!(
            "peer = '{text}' is no address alone; plain ESP has no ports, so write it as \
             192.0.2.2 or 2001:db8::2"
        )
    })?;
    if address.is_unspecified() || address.is_multicast() {
        return Err(format!(
            "peer = '{address}': nobody can be there; name one host"
        ));
    }
    Ok(SocketAddr::new(address, 0))
}

/// A peer as users know it: without the port that plain ESP does not have.
pub(crate) fn shown_peer(peer: SocketAddr, in_udp: bool) -> String {
    match in_udp {
        true => peer.to_string(),
        false => peer.ip().to_string(),
    }
}

/// Seconds between keepalives.
pub(crate) fn keepalive(wanted: Option<u64>, in_udp: bool) -> Result<u64, String> {
    match (wanted, in_udp) {
        (None, true) => Ok(20),
        (None | Some(0), false) => Ok(0),
        (Some(_), false) => Err(
            "'keepalive' is for NATs, which plain ESP does not pass; remove it, or set \
             encapsulation = \"udp\" at both ends"
                .to_owned(),
        ),
        (Some(seconds), true) => Ok(seconds),
    }
}
