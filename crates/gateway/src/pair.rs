//! Two configurations that match: the ends of a tunnel with new keys.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Write};
use std::net::IpAddr;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

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
            write_new(&place.join(file), &line).map_err(failed)?;
        }
        let spis = (secrets[here].1, secrets[there].1);
        let text = text(&ends[here], &ends[there], common, spis);
        write_new(&place.join("gateway.toml"), text.as_bytes()).map_err(failed)?;
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

/// The block of one address.
fn host(address: IpAddr) -> Prefix {
    Prefix {
        address,
        len: if address.is_ipv4() { 32 } else { 128 },
    }
}

fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = File::options();
    options.write(true).create_new(true).mode(0o600);
    options.open(path)?.write_all(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

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
