//! Two configurations that match: the ends of a tunnel with new keys.

use std::collections::HashSet;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use cipherlane_files::create_private;
use zeroize::Zeroizing;

use crate::config::{key_len, transform};
use crate::key::Key;
use crate::selector::Prefix;
use crate::state::FileStore;
use crate::{Error, spi};

/// One end.
#[derive(Clone, Debug)]
pub struct End {
    /// Its name, which is that of its directory.
    pub name: String,
    /// Where the other end finds it.
    pub outer: IpAddr,
    /// Its addresses inside the tunnel.
    pub inner: Vec<IpAddr>,
    /// Networks behind it.
    pub networks: Vec<Prefix>,
}

/// What both ends have in common.
#[derive(Clone, Debug)]
pub struct Common {
    /// Name of the transform.
    pub transform: String,
    /// UDP port of both; `None`: plain ESP.
    pub port: Option<u16>,
    /// The device's name.
    pub interface: String,
}

/// Writes `DIRECTORY/NAME/gateway.toml` with two key files and a state file for each end.
pub fn write(directory: &Path, ends: &[End; 2], common: &Common) -> Result<(), Error> {
    let system = |doing: String| move |source| Error::System { doing, source };
    let (kind, _) = transform(&common.transform).map_err(|problem| Error::Config {
        path: directory.to_owned(),
        problem,
    })?;
    let mut used = HashSet::new();
    let mut secrets = Vec::new();
    for _ in ends {
        let key = Key::random(key_len(kind)).map_err(|error| io::Error::other(error.to_string()));
        let key = key.map_err(system("make a random key".to_owned()))?;
        let spi = spi::allot(spi::ALONE, &used);
        let spi = spi.ok_or_else(|| {
            system("make a random SPI".to_owned())(io::Error::other("the generator failed"))
        })?;
        used.insert(spi);
        secrets.push((key, spi));
    }
    for (here, there) in [(0, 1), (1, 0)] {
        let place = directory.join(&ends[here].name);
        let failed = |source| Error::System {
            doing: format!(
                "write to '{}' (name a directory that can be written and holds no tunnel of that \
                 name)",
                place.display()
            ),
            source,
        };
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true).mode(0o700);
        builder.create(&place).map_err(failed)?;
        // The key that one end seals with is the one that the other end opens with.
        for (file, of) in [("out.key", here), ("in.key", there)] {
            let digits = secrets[of].0.digits();
            let mut line = Zeroizing::new(Vec::with_capacity(digits.len() + 1));
            line.extend_from_slice(digits.as_bytes());
            line.push(b'\n');
            create_private(&place.join(file), &line).map_err(failed)?;
        }
        let spis = (secrets[here].1, secrets[there].1);
        let text = text(&ends[here], &ends[there], common, spis);
        create_private(&place.join("gateway.toml"), text.as_bytes()).map_err(failed)?;
        FileStore::create(&place.join("gateway.state"))?;
    }
    Ok(())
}

fn text(here: &End, there: &End, common: &Common, (out, into): (u32, u32)) -> String {
    let addresses: Vec<_> = here
        .inner
        .iter()
        .map(|address| format!("\"{}\"", host(*address)))
        .collect();
    let carried = |end: &End| {
        let hosts = end.inner.iter().map(|address| host(*address).to_string());
        let networks = end.networks.iter().map(Prefix::to_string);
        let all: Vec<_> = hosts.chain(networks).map(|p| format!("\"{p}\"")).collect();
        all.join(", ")
    };
    let (port, peer) = match common.port {
        Some(port) => {
            let peer = std::net::SocketAddr::new(there.outer, port);
            (format!("port = {port}\n"), format!("peer = \"{peer}\"\n"))
        }
        None => {
            let peer = format!("peer = \"{}\"\nencapsulation = \"none\"\n", there.outer);
            (String::new(), peer)
        }
    };
    format!(
        "# One end of a tunnel between {} and {}: docs/gateway.md explains each line.\n\
         {port}state = \"gateway.state\"\n\
         \n\
         [interface]\n\
         name = \"{}\"\n\
         addresses = [{}]\n\
         \n\
         [[tunnel]]\n\
         name = \"{}\"\n\
         {peer}transform = \"{}\"\n\
         local = [{}]\n\
         remote = [{}]\n\
         out = {{ spi = {out:#x}, key = \"@file:out.key\" }}\n\
         in = {{ spi = {into:#x}, key = \"@file:in.key\" }}\n",
        here.name,
        there.name,
        common.interface,
        addresses.join(", "),
        there.name,
        common.transform,
        carried(here),
        carried(there),
    )
}

/// Writes two configurations with `count` tunnels between two hosts, for measurements and tests:
/// `DIRECTORY/a` and `DIRECTORY/b`, with a state file each and the keys in the configurations.
/// Tunnel `n` carries what [`inner_of_many`] says.
pub fn write_many(directory: &Path, outer: [IpAddr; 2], count: u32) -> Result<(), Error> {
    let system = |doing: &str| {
        let doing = doing.to_owned();
        move |source| Error::System { doing, source }
    };
    let (name, kind) = ("aes-gcm-16", transform("aes-gcm-16"));
    let (kind, _) = kind.map_err(|problem| Error::Config {
        path: directory.to_owned(),
        problem,
    })?;
    let mut texts = [0, 1].map(|end| {
        let address = host(inner_of_many(0)[end]);
        Zeroizing::new(format!(
            "state = \"gateway.state\"\nsocket = \"status\"\n[interface]\naddresses = \
             [\"{address}\"]\n"
        ))
    });
    for number in 0..count {
        let mut keys = Vec::new();
        for _ in 0..2 {
            let key = Key::random(key_len(kind));
            let key = key.map_err(|error| io::Error::other(error.to_string()));
            keys.push(key.map_err(system("make a random key"))?);
        }
        let inner = inner_of_many(number).map(host);
        for (here, there) in [(0, 1), (1, 0)] {
            // The SPIs of one end are even, those of the other end odd.
            let spi = |end: usize| 0x0100_0000 + 2 * number + end as u32;
            let (out, into) = (keys[here].digits(), keys[there].digits());
            texts[here].push_str(&format!(
                "[[tunnel]]\nname = \"{number}\"\npeer = \"{}\"\ntransform = \
                 \"{name}\"\nlocal = [\"{}\"]\nremote = [\"{}\"]\nout = {{ spi = {}, key = \
                 \"{}\" }}\nin = {{ spi = {}, key = \"{}\" }}\n",
                outer[there],
                inner[here],
                inner[there],
                spi(here),
                out.as_str(),
                spi(there),
                into.as_str(),
            ));
        }
    }
    for (end, text) in ["a", "b"].into_iter().zip(texts) {
        let place = directory.join(end);
        let doing = format!("write to '{}'", place.display());
        let mut builder = std::fs::DirBuilder::new();
        let made = builder.recursive(true).mode(0o700).create(&place);
        made.and_then(|()| create_private(&place.join("gateway.toml"), text.as_bytes()))
            .map_err(system(&doing))?;
        FileStore::create(&place.join("gateway.state"))?;
    }
    Ok(())
}

/// The addresses that tunnel `number` of [`write_many`] joins: of 10.64.0.0/12 and 10.128.0.0/12.
pub fn inner_of_many(number: u32) -> [IpAddr; 2] {
    // Network and broadcast addresses are nothing special here, but look so to other programs.
    let host = (number / 250) << 8 | (number % 250 + 1);
    [0x0a40_0000, 0x0a80_0000].map(|network: u32| Ipv4Addr::from_bits(network | host).into())
}

/// The block of one address.
fn host(address: IpAddr) -> Prefix {
    Prefix {
        address,
        len: if address.is_ipv4() { 32 } else { 128 },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    #[test]
    fn many_tunnels_match() {
        let directory = tempfile::tempdir().unwrap();
        let outer = [IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2])];
        write_many(directory.path(), outer, 600).unwrap();
        let [a, b] = ["a", "b"].map(|name| {
            let path = directory.path().join(name).join("gateway.toml");
            Config::read(&path).unwrap().tunnels
        });
        assert_eq!(a.len(), 600);
        for (number, (a, b)) in a.iter().zip(&b).enumerate() {
            assert_eq!((&a.outbound, &a.local), (&b.inbound, &b.remote), "{number}");
            assert_eq!((&a.inbound, &a.remote), (&b.outbound, &b.local), "{number}");
        }
    }

    #[test]
    fn both_ends_can_be_read_and_match() {
        let directory = tempfile::tempdir().unwrap();
        let end = |name: &str, last: u8| End {
            name: name.to_owned(),
            outer: IpAddr::from([192, 0, 2, last]),
            inner: vec![IpAddr::from([10, 9, 0, last])],
            networks: vec![format!("10.{last}.0.0/16").parse().unwrap()],
        };
        for transform in ["aes-gcm-16", "aes-cbc-hmac-sha512", "gost-1k-imit-z"] {
            let common = Common {
                transform: transform.to_owned(),
                port: (transform != "aes-cbc-hmac-sha512").then_some(4500),
                interface: "vpn0".to_owned(),
            };
            let place = directory.path().join(transform);
            write(&place, &[end("a", 1), end("b", 2)], &common).unwrap();
            assert!(write(&place, &[end("a", 1), end("b", 2)], &common).is_err());
            let [a, b] = ["a", "b"]
                .map(|name| Config::read(&place.join(name).join("gateway.toml")).unwrap());
            let (a, b) = (&a.tunnels[0], &b.tunnels[0]);
            assert_eq!(a.outbound, b.inbound);
            assert_eq!(a.inbound, b.outbound);
            assert_eq!(a.local, b.remote);
            assert_eq!(a.peer.ip(), IpAddr::from([192, 0, 2, 2]));
        }
    }
}
