//! The tunnels that are up, found by what comes in: the SPI, or the addresses of an inner packet.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::control::Trap;
use crate::selector::Destinations;
use crate::service::Flow;
use crate::tunnel::Tunnel;

/// What IKE has made.
#[derive(Default)]
pub(crate) struct Children {
    /// Tunnels, and whether packets are sent by them: of those that have one outbound SA one is.
    pub(crate) tunnels: Vec<(Arc<Tunnel>, bool)>,
    /// Policies without SAs.
    pub(crate) traps: Vec<Arc<Trap>>,
}

/// It does not change; a changed configuration makes another one.
#[derive(Default)]
pub(crate) struct Table {
    /// Those of the configuration, then those of IKE.
    tunnels: Vec<Arc<Tunnel>>,
    configured: usize,
    children: Arc<Children>,
    by_spi: FxHashMap<u32, usize>,
    /// The places of traps follow those of tunnels.
    destinations: Destinations,
}

impl Table {
    pub(crate) fn new(mut tunnels: Vec<Arc<Tunnel>>, children: Arc<Children>) -> Self {
        let mut table = Table {
            configured: tunnels.len(),
            ..Table::default()
        };
        let is_sender = tunnels.iter().map(|_| true);
        let is_sender = is_sender.chain(children.tunnels.iter().map(|(_, is_sender)| *is_sender));
        let is_sender: Vec<_> = is_sender.collect();
        tunnels.extend(children.tunnels.iter().map(|(tunnel, _)| tunnel.clone()));
        for (place, (tunnel, is_sender)) in tunnels.iter().zip(is_sender).enumerate() {
            table.by_spi.insert(tunnel.inbound.spi(), place);
            if !is_sender {
                continue;
            }
            for selector in &tunnel.config.services {
                table.destinations.add_selector(selector, place);
            }
            let is_of_all = tunnel.config.services.is_empty();
            for &remote in tunnel.config.remote.iter().filter(|_| is_of_all) {
                for &local in &tunnel.config.local {
                    table.destinations.add(remote, local, place);
                }
            }
        }
        for (place, trap) in children.traps.iter().enumerate() {
            for selector in &trap.selectors {
                let place = tunnels.len() + place;
                table.destinations.add_selector(selector, place);
            }
        }
        table.tunnels = tunnels;
        table.children = children;
        table
    }

    pub(crate) fn tunnels(&self) -> &[Arc<Tunnel>] {
        &self.tunnels
    }

    /// Those of the configuration.
    pub(crate) fn configured(&self) -> &[Arc<Tunnel>] {
        &self.tunnels[..self.configured]
    }

    /// What IKE has made.
    pub(crate) fn children(&self) -> &Arc<Children> {
        &self.children
    }

    /// The tunnel whose inbound SA has the SPI.
    #[inline]
    pub(crate) fn by_spi(&self, spi: u32) -> Option<&Tunnel> {
        self.by_spi.get(&spi).map(|&place| &*self.tunnels[place])
    }

    /// The place of the tunnel that carries a packet that is sent, and whether its protocol or
    /// ports were asked for.
    #[inline]
    pub(crate) fn by_flow(&self, flow: &Flow) -> Option<(usize, bool)> {
        let (place, is_of_service) = self.destinations.find_of_service(flow);
        let place = place.filter(|place| *place < self.tunnels.len())?;
        Some((place, is_of_service))
    }

    /// The policy that drops a packet which no tunnel takes.
    #[cold]
    pub(crate) fn trap(&self, flow: &Flow) -> Option<&Trap> {
        let place = self.destinations.find(flow)?;
        let trap = self
            .children
            .traps
            .get(place.checked_sub(self.tunnels.len())?)?;
        Some(trap)
    }
}
