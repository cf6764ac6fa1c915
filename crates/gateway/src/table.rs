//! The tunnels that are up, found by what comes in: the SPI, or the addresses of an inner packet.

use std::net::IpAddr;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::selector::Destinations;
use crate::tunnel::Tunnel;

/// It does not change; a changed configuration makes another one.
#[derive(Default)]
pub(crate) struct Table {
    tunnels: Vec<Arc<Tunnel>>,
    by_spi: FxHashMap<u32, usize>,
    destinations: Destinations,
}

impl Table {
    pub(crate) fn new(tunnels: Vec<Arc<Tunnel>>) -> Self {
        let mut table = Table::default();
        for (place, tunnel) in tunnels.iter().enumerate() {
            table.by_spi.insert(tunnel.inbound.spi(), place);
            for &remote in &tunnel.config.remote {
                for &local in &tunnel.config.local {
                    table.destinations.add(remote, local, place);
                }
            }
        }
        table.tunnels = tunnels;
        table
    }

    pub(crate) fn tunnels(&self) -> &[Arc<Tunnel>] {
        &self.tunnels
    }

    /// The tunnel whose inbound SA has the SPI.
    #[inline]
    pub(crate) fn by_spi(&self, spi: u32) -> Option<&Tunnel> {
        self.by_spi.get(&spi).map(|&place| &*self.tunnels[place])
    }

    /// The place of the tunnel that carries what is sent from `source` to `destination`.
    #[inline]
    pub(crate) fn by_addresses(&self, source: IpAddr, destination: IpAddr) -> Option<usize> {
        self.destinations.find(source, destination)
    }
}
