//! What is routed into the device for the policies of IKE, and the guard behind it.
//!
//! Behind each route stands an unreachable one of the same prefix and a worse metric. When the
//! gateway is killed its device goes and its routes with it; the guard stays, so that packets that a
//! policy protects do not leave in the clear. It goes when the policy is deleted.

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_REPLACE};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteMessage, RouteProtocol, RouteScope, RouteType,
};

use crate::link::{self, Netlink};
use crate::selector::Prefix;

/// The metric of a guard: any other route is better.
const GUARD_METRIC: u32 = 0x7fff_fff0;

/// What `ip route show proto 206` shows.
const PROTOCOL: RouteProtocol = RouteProtocol::Other(206);

/// Prefixes, in an order, and the source address that packets of this host shall have.
pub(super) type Wanted = BTreeMap<(IpAddr, u8), Option<IpAddr>>;

/// The routes that there are.
pub(super) struct Routes {
    interface: String,
    present: Wanted,
}

impl Routes {
    pub(super) fn new(interface: &str) -> Self {
        Routes {
            interface: interface.to_owned(),
            present: Wanted::new(),
        }
    }

    /// Adds what is missing and removes what is not wanted any more. What cannot be routed is said
    /// in the log: the policy stands, and who asked for it cannot mend the routes.
    pub(super) fn set(&mut self, wanted: Wanted) {
        if wanted == self.present {
            return;
        }
        let opened = link::index(&self.interface).and_then(|index| Ok((index, Netlink::open()?)));
        let (index, mut netlink) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                tracing::error!("no route can be set: {error}");
                return;
            }
        };
        for (&(address, len), &own) in &wanted {
            if self.present.get(&(address, len)) == Some(&own) {
                continue;
            }
            let prefix = Prefix { address, len };
            let done = guard(&mut netlink, prefix).and_then(|()| {
                let mut message = Netlink::route(index, prefix);
                message.header.protocol = PROTOCOL;
                if let Some(own) = own {
                    let own = RouteAttribute::PrefSource(of(own));
                    message.attributes.push(own);
                }
                add(&mut netlink, message)
            });
            if let Err(error) = done {
                tracing::error!(
                    "{prefix} cannot be routed into {}: {error}; look at 'ip route show {prefix}'",
                    self.interface
                );
            }
        }
        for &(address, len) in self.present.keys() {
            if wanted.contains_key(&(address, len)) {
                continue;
            }
            let prefix = Prefix { address, len };
            let mut message = Netlink::route(index, prefix);
            message.header.protocol = PROTOCOL;
            let removed =
                remove(&mut netlink, message).and_then(|()| remove(&mut netlink, guarding(prefix)));
            if let Err(error) = removed {
                tracing::warn!("the routes of {prefix} cannot be removed: {error}");
            }
        }
        self.present = wanted;
    }

    /// The device was made anew, and its routes are gone.
    pub(super) fn repair(&mut self) {
        let wanted = std::mem::take(&mut self.present);
        self.set(wanted);
    }
}

fn of(address: IpAddr) -> RouteAddress {
    match address {
        IpAddr::V4(v4) => RouteAddress::Inet(v4),
        IpAddr::V6(v6) => RouteAddress::Inet6(v6),
    }
}

fn guarding(prefix: Prefix) -> RouteMessage {
    let mut message = Netlink::route(0, prefix);
    message.header.protocol = PROTOCOL;
    message.header.scope = RouteScope::Universe;
    message.header.kind = RouteType::Unreachable;
    let is_device = |attribute: &RouteAttribute| matches!(attribute, RouteAttribute::Oif(_));
    message.attributes.retain(|attribute| !is_device(attribute));
    let metric = RouteAttribute::Priority(GUARD_METRIC);
    message.attributes.push(metric);
    message
}

fn guard(netlink: &mut Netlink, prefix: Prefix) -> io::Result<()> {
    add(netlink, guarding(prefix))
}

fn add(netlink: &mut Netlink, message: RouteMessage) -> io::Result<()> {
    let flags = NLM_F_CREATE | NLM_F_REPLACE;
    netlink.ask(RouteNetlinkMessage::NewRoute(message), flags)
}

fn remove(netlink: &mut Netlink, message: RouteMessage) -> io::Result<()> {
    match netlink.ask(RouteNetlinkMessage::DelRoute(message), 0) {
        // It has gone with its device.
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(()),
        done => done,
    }
}
