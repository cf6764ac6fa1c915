//! The SAs and policies that IKE has asked for; `tunnels` has what they make.
//!
//! SAs and policies belong together by their reqid. When an SA is replaced, the new inbound SA is
//! there before the old one goes, and packets are sent by the outbound SA that came last: each
//! inbound SA becomes a tunnel of the table, all of one reqid with the same outbound SA. A policy
//! whose reqid has no such pair becomes a trap: its packets are dropped, and an SA is asked for.

mod tunnels;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use cipherlane_core::Framework;
use cipherlane_esp::{
    Encapsulation, Event, InboundSa, Keys, Lifetime, Observer, OutboundSa, SaParameters,
};

use super::inbox::Inbox;
use super::message::{Reason, Refusal, SaId};
use super::request::{Action, Direction, Limits, NewSa, Policy};
use super::transforms;
use crate::service::{Service, has_ports};
use crate::tunnel::Tunnel;
use crate::{config, spi};

pub(crate) use self::tunnels::{Child, Trap};

/// The most SAs, and the most policies.
const MAX_ENTRIES: usize = 1 << 18;

/// How long an SPI that was allotted and has no SA yet is kept.
const LARVAL: Duration = Duration::from_secs(600);

/// How long the policies of a daemon that has gone are kept when another has come.
const RETIRED: Duration = Duration::from_secs(60);

/// An SA of one direction.
#[derive(Clone)]
enum Half {
    In(Arc<InboundSa>),
    Out(Arc<OutboundSa>),
}

/// An SA, and what was said of it.
struct Sa {
    /// SAs that come later have higher ones.
    serial: u64,
    half: Half,
    reqid: u32,
    source: SocketAddr,
    destination: SocketAddr,
    description: Description,
    /// Packets that it had done when it was looked at last, and when it was seen to have done more.
    packets: u64,
    used: Option<Instant>,
}

/// What both SAs of a tunnel have in common.
#[derive(Clone, Copy)]
struct Description {
    transform: cipherlane_esp::Suite,
    name: &'static str,
    esn: bool,
    window: Option<u32>,
    copies_dscp: bool,
    copies_ecn: bool,
}

/// A policy that was added, how often, and the source address that its route shall have.
struct Added {
    count: usize,
    own: Option<IpAddr>,
}

/// What an SA has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Use {
    pub(super) bytes: u64,
    pub(super) packets: u64,
    /// Seconds since the last packet was seen; `None`: there was none.
    pub(super) idle: Option<u64>,
}

/// All of it.
pub(super) struct Database {
    framework: Framework,
    inbox: Arc<Inbox>,
    /// The narrowest anti-replay window.
    least_window: u32,
    threads: usize,
    serial: u64,
    larval: HashMap<u32, Instant>,
    sas: HashMap<SaId, Sa>,
    policies: BTreeMap<Policy, Added>,
    /// Policies of a daemon that has gone, and until when their packets are still dropped.
    retired: BTreeMap<Policy, Added>,
    retired_until: Option<Instant>,
    /// The tunnels of the last table, by the SPI of their inbound SA, for what they have learned.
    tunnels: HashMap<u32, Arc<Tunnel>>,
}

impl Database {
    /// For a gateway whose packets are carried by `threads`.
    pub(super) fn new(framework: Framework, inbox: Arc<Inbox>, threads: usize) -> Self {
        Database {
            least_window: config::window(threads),
            threads,
            framework,
            inbox,
            serial: 0,
            larval: HashMap::new(),
            sas: HashMap::new(),
            policies: BTreeMap::new(),
            retired: BTreeMap::new(),
            retired_until: None,
            tunnels: HashMap::new(),
        }
    }

    pub(super) fn has_sas(&self) -> bool {
        !self.sas.is_empty()
    }

    /// An SPI for an inbound SA; `fixed` are those of static tunnels.
    pub(super) fn allot(&mut self, fixed: impl Iterator<Item = u32>) -> Result<u32, Refusal> {
        if self.larval.len() >= MAX_ENTRIES {
            return Err(Refusal::new(Reason::Limit, "too many SPIs have no SA yet"));
        }
        let inbound = self.sas.iter().filter(|(_, sa)| sa.is_inbound());
        let mut used: HashSet<u32> = inbound.map(|(id, _)| id.0).collect();
        used.extend(self.larval.keys());
        used.extend(fixed);
        let spi = spi::allot(spi::ALONE, &used).ok_or_else(|| {
            Refusal::new(
                Reason::Limit,
                "no SPI is left, or there are no random numbers",
            )
        })?;
        self.larval.insert(spi, Instant::now());
        Ok(spi)
    }

    pub(super) fn add_sa(&mut self, new: NewSa) -> Result<(), Refusal> {
        let id = (new.spi, new.destination.ip());
        if !new.is_tunnel {
            return Err(Refusal::unsupported(
                "the gateway has tunnel mode alone; set 'mode = tunnel' for the child",
            ));
        }
        if !new.is_in_udp {
            return Err(Refusal::unsupported(
                "the gateway carries the SAs of IKE in UDP alone; set 'encap = yes' for the \
                 connection",
            ));
        }
        if new.source.is_ipv4() != new.destination.is_ipv4() {
            return Err(Refusal::malformed("an SA's ends are of one family"));
        }
        let peer = if new.is_inbound {
            new.source
        } else {
            new.destination
        };
        if peer.ip().is_unspecified() || peer.ip().is_multicast() || peer.port() == 0 {
            return Err(Refusal::malformed("nobody can be at the peer's address"));
        }
        if self.sas.contains_key(&id) {
            return Err(Refusal::new(Reason::Exists, "there is such an SA"));
        }
        if self.sas.len() >= MAX_ENTRIES {
            return Err(Refusal::new(Reason::Limit, "there are too many SAs"));
        }
        let (transform, name) = transforms::find(new.encryption, new.integrity)?;
        let description = Description {
            transform,
            name,
            esn: new.esn,
            window: (new.window != 0).then(|| new.window.clamp(self.least_window, 1 << 16)),
            copies_dscp: new.copies_dscp,
            copies_ecn: new.copies_ecn,
        };
        self.serial += 1;
        let half = self.make(&new, description).map_err(|error| {
            Refusal::new(Reason::Failed, format!("the SA cannot be made: {error}"))
        })?;
        self.larval.remove(&new.spi);
        let sa = Sa {
            serial: self.serial,
            half,
            reqid: new.reqid,
            source: new.source,
            destination: new.destination,
            description,
            packets: 0,
            used: None,
        };
        self.sas.insert(id, sa);
        Ok(())
    }

    fn make(&self, new: &NewSa, of: Description) -> Result<Half, cipherlane_esp::Error> {
        let keys = Keys {
            encryption: new.encryption_key.clone(),
            integrity: new.integrity_key.clone(),
        };
        let mut parameters = SaParameters::new(new.spi, of.transform, keys);
        parameters.esn = of.esn;
        parameters.replay_window = of.window;
        parameters.encapsulation = Encapsulation::Udp {
            source: new.source.port(),
            destination: new.destination.port(),
        };
        let limits = |(soft, hard): Limits| Lifetime {
            // A soft limit past the hard one is never reached, and says that there is none.
            soft: soft.filter(|soft| hard.is_none_or(|hard| *soft <= hard)),
            hard,
        };
        parameters.lifetimes.seconds = limits(new.seconds);
        parameters.lifetimes.bytes = limits(new.bytes);
        parameters.lifetimes.packets = limits(new.packets);
        let observer = observer(self.inbox.clone(), self.serial);
        Ok(match new.is_inbound {
            true => {
                let sa = InboundSa::new(&self.framework, parameters)?;
                Half::In(Arc::new(sa.with_observer(observer)))
            }
            false => {
                let sa = OutboundSa::new(&self.framework, parameters)?;
                Half::Out(Arc::new(sa.with_observer(observer)))
            }
        })
    }

    /// One end has moved, or a NAT between the two has.
    pub(super) fn update_sa(
        &mut self,
        id: SaId,
        source: SocketAddr,
        destination: SocketAddr,
        is_in_udp: bool,
    ) -> Result<(), Refusal> {
        if !is_in_udp {
            return Err(Refusal::unsupported(
                "the gateway carries the SAs of IKE in UDP alone",
            ));
        }
        if source.is_ipv4() != destination.is_ipv4() {
            return Err(Refusal::malformed("an SA's ends are of one family"));
        }
        let new_id = (id.0, destination.ip());
        if new_id != id && self.sas.contains_key(&new_id) {
            return Err(Refusal::new(Reason::Exists, "there is such an SA"));
        }
        let mut sa = self.sas.remove(&id).ok_or_else(no_sa)?;
        sa.source = source;
        sa.destination = destination;
        self.sas.insert(new_id, sa);
        Ok(())
    }

    pub(super) fn query_sa(&self, id: SaId) -> Result<Use, Refusal> {
        let sa = self.sas.get(&id).ok_or_else(no_sa)?;
        let statistics = match &sa.half {
            Half::In(sa) => sa.statistics(),
            Half::Out(sa) => sa.statistics(),
        };
        // What came since the last look is not older than that look.
        let idle = match statistics.packets > sa.packets {
            true => Some(0),
            false => sa.used.map(|used| used.elapsed().as_secs()),
        };
        Ok(Use {
            bytes: statistics.bytes,
            packets: statistics.packets,
            idle,
        })
    }

    pub(super) fn delete_sa(&mut self, id: SaId) -> Result<(), Refusal> {
        let was_larval = self.larval.remove(&id.0).is_some();
        match self.sas.remove(&id) {
            None if !was_larval => Err(no_sa()),
            _ => Ok(()),
        }
    }

    pub(super) fn flush_sas(&mut self) {
        self.sas.clear();
        self.larval.clear();
    }

    pub(super) fn add_policy(
        &mut self,
        policy: Policy,
        own: Option<IpAddr>,
    ) -> Result<(), Refusal> {
        if policy.action == Action::Pass {
            return Err(Refusal::unsupported(
                "what is not protected does not come to the gateway: set a route beside its \
                 device instead of a policy that passes",
            ));
        }
        if policy.source.from.is_ipv4() != policy.destination.from.is_ipv4() {
            return Err(Refusal::malformed("a policy's selectors are of one family"));
        }
        if policy.source.protocol != policy.destination.protocol {
            return Err(Refusal::malformed(
                "a policy's selectors are of one protocol",
            ));
        }
        for range in [policy.source, policy.destination] {
            let names_ports = range.ports != Service::ANY_PORT;
            if names_ports && !has_ports(range.protocol) {
                return Err(Refusal::unsupported(
                    "the gateway looks at the ports of TCP, UDP, DCCP, SCTP and UDP-Lite alone; \
                     leave ports, and types of ICMP, out of local_ts and remote_ts",
                ));
            }
            if range.ports.0 > range.ports.1 {
                return Err(Refusal::unsupported(
                    "the gateway has no selectors for fragments; leave 'opaque' out of local_ts \
                     and remote_ts",
                ));
            }
        }
        if self.policies.len() >= MAX_ENTRIES {
            return Err(Refusal::new(Reason::Limit, "there are too many policies"));
        }
        let added = self.policies.entry(policy);
        let added = added.or_insert(Added { count: 0, own });
        added.count = added.count.saturating_add(1);
        added.own = own.or(added.own);
        Ok(())
    }

    pub(super) fn delete_policy(&mut self, policy: Policy) -> Result<(), Refusal> {
        let added = self.policies.get_mut(&policy).ok_or_else(no_policy)?;
        added.count -= 1;
        if added.count == 0 {
            self.policies.remove(&policy);
        }
        Ok(())
    }

    /// How long ago the policy's SAs were used.
    pub(super) fn query_policy(&self, policy: Policy) -> Result<Option<u64>, Refusal> {
        if !self.policies.contains_key(&policy) {
            return Err(no_policy());
        }
        let is_inbound = policy.direction != Direction::Out;
        let of = self
            .sas
            .iter()
            .filter(|(_, sa)| sa.reqid == policy.reqid && sa.is_inbound() == is_inbound);
        let uses = of.filter_map(|(id, _)| self.query_sa(*id).ok()?.idle);
        Ok(uses.min())
    }

    pub(super) fn flush_policies(&mut self) {
        self.policies.clear();
    }

    /// Another daemon takes over. What the policies of the last one protected does not leave in the
    /// clear while the new one reads its configuration.
    pub(super) fn retire(&mut self) {
        self.flush_sas();
        self.retired.append(&mut self.policies);
        self.retired_until = Some(Instant::now() + RETIRED);
    }

    /// The SA of a serial number, unless it has gone.
    pub(super) fn find(&self, serial: u64) -> Option<SaId> {
        let mut all = self.sas.iter();
        all.find(|(_, sa)| sa.serial == serial).map(|(id, _)| *id)
    }

    /// Once per second: SAs without traffic grow old too, and uses are noted. Whether tunnels or
    /// policies have changed.
    pub(super) fn tick(&mut self) -> bool {
        for sa in self.sas.values_mut() {
            let packets = match &sa.half {
                Half::In(sa) => {
                    sa.check_age();
                    sa.statistics().packets
                }
                Half::Out(sa) => {
                    sa.check_age();
                    sa.statistics().packets
                }
            };
            if packets > sa.packets {
                (sa.packets, sa.used) = (packets, Some(Instant::now()));
            }
        }
        self.larval.retain(|_, since| since.elapsed() < LARVAL);
        let is_over = |until: &mut Instant| *until <= Instant::now();
        match self.retired_until.take_if(is_over) {
            Some(_) => !std::mem::take(&mut self.retired).is_empty(),
            None => false,
        }
    }

    #[cfg(test)]
    fn count(&self) -> (usize, usize) {
        (self.sas.len(), self.policies.len())
    }
}

impl Sa {
    fn is_inbound(&self) -> bool {
        matches!(self.half, Half::In(_))
    }
}

/// An SA is told of by its serial number: its address may change.
fn observer(inbox: Arc<Inbox>, serial: u64) -> Observer {
    Box::new(move |event| match event {
        Event::Soft(_) => inbox.tell_expired(serial, false),
        Event::Hard(_) | Event::SequenceExhausted => inbox.tell_expired(serial, true),
        Event::Forgeries { .. } | Event::Resynchronized => {}
    })
}

fn no_sa() -> Refusal {
    Refusal::new(Reason::NotFound, "there is no such SA")
}

fn no_policy() -> Refusal {
    Refusal::new(Reason::NotFound, "there is no such policy")
}

#[cfg(test)]
mod tests;
