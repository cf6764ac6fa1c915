//! What the SAs and policies make: tunnels, traps and routes.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use cipherlane_esp::headers::{DscpPolicy, EcnPolicy};
use cipherlane_esp::{InboundSa, OutboundSa};

use super::super::blocks::blocks;
use super::super::inbox::Seldom;
use super::super::message::SaId;
use super::super::request::{Action, Direction, Policy, Range};
use super::super::routes::Wanted;
use super::{Database, Half, Sa};
use crate::config::{SaConfig, TunnelConfig};
use crate::key::Key;
use crate::selector::Prefix;
use crate::service::{Selector, Service};
use crate::table::Children;
use crate::tunnel::Tunnel;

/// What a tunnel has that IKE has made.
pub(crate) struct Child {
    pub(in crate::control) inbound: SaId,
    /// Where the packets of its inbound SA come from.
    pub(crate) source: SocketAddr,
    pub(in crate::control) told: Seldom,
}

/// A policy whose packets are dropped.
pub(crate) struct Trap {
    pub(in crate::control) reqid: u32,
    /// Whether an SA is asked for.
    pub(in crate::control) acquires: bool,
    pub(crate) selectors: Vec<Selector>,
    pub(in crate::control) told: Seldom,
}

/// What a reqid may send, and receive from the other side.
#[derive(Default)]
struct Selectors {
    local: Vec<Prefix>,
    remote: Vec<Prefix>,
    pairs: Vec<Selector>,
}

/// An inbound SA of a database.
type Opening<'a> = (SaId, &'a Sa, Arc<InboundSa>);

impl Database {
    /// The tunnels and traps that there are now.
    pub(in crate::control) fn children(&mut self) -> Children {
        let selectors = self.selectors();
        let mut children = Children::default();
        // By reqid: the outbound SA that came last, and all inbound ones, the last one first.
        let mut outbound: HashMap<u32, (&Sa, Arc<OutboundSa>)> = HashMap::new();
        let mut inbound: BTreeMap<u32, Vec<Opening<'_>>> = BTreeMap::new();
        for (id, sa) in &self.sas {
            match &sa.half {
                Half::Out(half) => {
                    let known = outbound.get(&sa.reqid);
                    if known.is_none_or(|(known, _)| known.serial < sa.serial) {
                        outbound.insert(sa.reqid, (sa, half.clone()));
                    }
                }
                Half::In(half) => {
                    let all = inbound.entry(sa.reqid).or_default();
                    all.push((*id, sa, half.clone()));
                }
            }
        }
        let mut tunnels = HashMap::with_capacity(self.tunnels.len());
        let mut has_pair = HashSet::new();
        for (reqid, mut all) in inbound {
            let Some((out, sealing)) = outbound.get(&reqid) else {
                continue;
            };
            let Some(selectors) = selectors.get(&reqid) else {
                continue;
            };
            all.sort_by_key(|(_, sa, _)| std::cmp::Reverse(sa.serial));
            for (id, sa, opening) in all {
                let child = Child {
                    inbound: id,
                    source: sa.source,
                    told: Seldom::default(),
                };
                let config = self.config(reqid, sa, out, id.0, selectors);
                let before = self.tunnels.get(&id.0);
                let tunnel = Tunnel::of_child(
                    config,
                    sealing.clone(),
                    opening,
                    self.threads,
                    child,
                    before,
                );
                let tunnel = Arc::new(tunnel);
                tunnels.insert(id.0, tunnel.clone());
                let is_sender = has_pair.insert(reqid);
                children.tunnels.push((tunnel, is_sender));
            }
        }
        children.traps = self.traps(&has_pair);
        self.tunnels = tunnels;
        children
    }

    fn config(
        &self,
        reqid: u32,
        inbound: &Sa,
        outbound: &Sa,
        spi: u32,
        selectors: &Selectors,
    ) -> TunnelConfig {
        let of = outbound.description;
        let source = outbound.source.ip();
        let sa = |spi| SaConfig {
            spi,
            key: Key::elsewhere(),
        };
        let sealing = match &outbound.half {
            Half::Out(sa) => sa.spi(),
            Half::In(sa) => sa.spi(),
        };
        TunnelConfig {
            name: format!("ike-{reqid}"),
            peer: outbound.destination,
            in_udp: true,
            source: (!source.is_unspecified()).then_some(source),
            transform: of.transform,
            transform_name: of.name,
            esn: of.esn,
            window: inbound.description.window,
            // IKE sends them where there is a NAT.
            keepalive: None,
            dscp: match of.copies_dscp {
                true => DscpPolicy::Copy,
                false => DscpPolicy::Fixed(0),
            },
            ecn: match of.copies_ecn {
                true => EcnPolicy::Copy,
                false => EcnPolicy::Compatibility,
            },
            outbound: sa(sealing),
            inbound: sa(spi),
            local: selectors.local.clone(),
            remote: selectors.remote.clone(),
            routes: Vec::new(),
            services: selectors.services(),
        }
    }

    /// What each reqid may send and receive.
    fn selectors(&self) -> HashMap<u32, Selectors> {
        let mut all: HashMap<u32, Selectors> = HashMap::new();
        for policy in self.outbound_policies(Action::Protect) {
            let selectors = all.entry(policy.reqid).or_default();
            merge(&mut selectors.local, policy.source);
            merge(&mut selectors.remote, policy.destination);
            selectors.pairs.extend(pairs(policy));
        }
        all
    }

    fn outbound_policies(&self, action: Action) -> impl Iterator<Item = &Policy> {
        let policies = self.policies.keys();
        policies.filter(move |p| p.direction == Direction::Out && p.action == action)
    }

    fn traps(&self, has_pair: &HashSet<u32>) -> Vec<Arc<Trap>> {
        let waiting = self.outbound_policies(Action::Protect);
        let waiting = waiting.filter(|policy| !has_pair.contains(&policy.reqid));
        let dropping = self.outbound_policies(Action::Drop);
        let trap = |policy: &Policy| {
            Arc::new(Trap {
                reqid: policy.reqid,
                acquires: policy.action == Action::Protect,
                selectors: pairs(policy),
                told: Seldom::default(),
            })
        };
        let retired = self
            .retired
            .keys()
            .filter(|p| p.direction == Direction::Out);
        let mut traps: Vec<_> = waiting.chain(dropping).map(trap).collect();
        traps.extend(retired.map(|policy| {
            let action = Action::Drop;
            trap(&Policy { action, ..*policy })
        }));
        traps
    }

    /// What is to be routed into the device. A prefix that holds a peer is not: the way to the peer
    /// would lead into the tunnel.
    pub(in crate::control) fn routes(&self) -> (Wanted, Vec<Prefix>) {
        let peers: HashSet<IpAddr> = self
            .sas
            .values()
            .map(|sa| {
                if sa.is_inbound() {
                    sa.source
                } else {
                    sa.destination
                }
            })
            .map(|peer| peer.ip())
            .collect();
        let (mut wanted, mut left_out) = (Wanted::new(), Vec::new());
        for (policy, added) in self.policies.iter().chain(&self.retired) {
            if policy.direction != Direction::Out {
                continue;
            }
            let to = policy.destination;
            for prefix in blocks(to.from, to.to) {
                match peers.iter().any(|peer| prefix.holds(*peer)) || prefix.len == 0 {
                    true => left_out.push(prefix),
                    false => {
                        let own = wanted.entry((prefix.address, prefix.len)).or_insert(None);
                        *own = added.own.or(*own);
                    }
                }
            }
        }
        (wanted, left_out)
    }
}

impl Selectors {
    /// All pairs, where one of them is not of all protocols.
    fn services(&self) -> Vec<Selector> {
        let mut services = self.pairs.iter().map(|pair| pair.service);
        match services.any(|service| service != Service::ALL) {
            true => self.pairs.clone(),
            false => Vec::new(),
        }
    }
}

/// An outbound policy as pairs of prefixes.
fn pairs(policy: &Policy) -> Vec<Selector> {
    let side = |range: Range| blocks(range.from, range.to);
    let (locals, remotes) = (side(policy.source), side(policy.destination));
    let service = Service {
        protocol: policy.source.protocol,
        local: policy.source.ports,
        remote: policy.destination.ports,
    };
    let pair = |local, remote| Selector {
        local,
        remote,
        service,
    };
    let of = |local| remotes.iter().map(move |remote| pair(local, *remote));
    locals.iter().flat_map(|local| of(*local)).collect()
}

fn merge(prefixes: &mut Vec<Prefix>, range: Range) {
    for prefix in blocks(range.from, range.to) {
        if !prefixes.contains(&prefix) {
            prefixes.push(prefix);
        }
    }
}
