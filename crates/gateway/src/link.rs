//! The interface's addresses, MTU, sizes and routes, by netlink.

use std::io;
use std::net::IpAddr;
use std::path::Path;

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_REPLACE, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage,
    NetlinkPayload,
};
use netlink_packet_route::AddressFamily;
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkMessage};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};

use crate::Error;
use crate::config::InterfaceConfig;
use crate::selector::Prefix;
use crate::table::Table;

/// What the kernel puts before TCP payload when it computes how much of it fits a super-packet
/// (MAX_TCP_HEADER), and one.
const KERNEL_HEADERS: usize = 321;

/// Sets up the interface for the tunnels of a table. What is there already is replaced.
pub(crate) fn set_up(config: &InterfaceConfig, table: &Table) -> Result<(), Error> {
    let name = &config.name;
    let failed = |doing: &str, error: io::Error| Error::Link {
        doing: doing.to_owned(),
        name: name.clone(),
        problem: match error.raw_os_error() {
            Some(libc::EPERM) => format!("{error}; it needs CAP_NET_ADMIN"),
            _ => error.to_string(),
        },
    };
    let index = index(name).map_err(|error| failed("find the number", error))?;
    let mut netlink = Netlink::open().map_err(|error| failed("ask for changes", error))?;
    for address in &config.addresses {
        let done = netlink.add_address(index, address.address, address.len);
        done.map_err(|error| failed(&format!("set the address {}", address.address), error))?;
    }
    let mtu = config.mtu.unwrap_or_else(|| fitting_mtu(table));
    let gso_max_size = config
        .gso_max_size
        .unwrap_or_else(|| fitting_size(table, mtu));
    let done = netlink.set_link(index, mtu as u32, config.queue, gso_max_size);
    done.map_err(|error| failed(&format!("set the MTU to {mtu}"), error))?;
    let routes = table
        .tunnels()
        .iter()
        .flat_map(|tunnel| &tunnel.config.routes);
    for &route in routes {
        if is_on_link(config, route) {
            continue;
        }
        let done = netlink.add_route(index, route);
        done.map_err(|error| failed(&format!("route {route} by way"), error))?;
    }
    Ok(())
}

/// Takes back the routes of prefixes that no tunnel has any more.
pub(crate) fn remove_routes(config: &InterfaceConfig, routes: &[Prefix]) -> io::Result<()> {
    let index = index(&config.name)?;
    let mut netlink = Netlink::open()?;
    for &route in routes.iter().filter(|&&route| !is_on_link(config, route)) {
        netlink.remove_route(index, route)?;
    }
    Ok(())
}

/// Whether the kernel makes the route by itself, because the address of the interface has it.
fn is_on_link(config: &InterfaceConfig, route: Prefix) -> bool {
    config.addresses.iter().any(|own| {
        let network = Prefix {
            address: route.address,
            len: own.len,
        };
        own.len <= route.len && own.address.is_ipv4() == route.address.is_ipv4() && {
            let masked = |address| crate::selector::masked(address, own.len);
            masked(own.address) == masked(network.address)
        }
    })
}

/// The longest packet that fits every tunnel, and not more than Ethernet has.
fn fitting_mtu(table: &Table) -> usize {
    let tunnels = table.tunnels().iter().map(|tunnel| tunnel.inner_mtu());
    tunnels.min().unwrap_or(1400).clamp(576, 65535)
}

/// The largest super-packet whose segments, sealed, are one send. With the system's 65536 nearly
/// every read would be sent as one long train and one short one.
fn fitting_size(table: &Table, mtu: usize) -> u32 {
    let stride = table
        .tunnels()
        .iter()
        .map(|tunnel| tunnel.outbound.sealed_len(mtu))
        .max();
    let segments = stride.map_or(1, |stride| (65507 / stride).clamp(1, 64));
    // TCP over IPv4 without options has the most payload in a segment.
    let size = segments * (mtu - 40) + KERNEL_HEADERS;
    size.min(65536) as u32
}

/// The number of an interface.
pub(crate) fn index(name: &str) -> io::Result<u32> {
    let path = Path::new("/sys/class/net").join(name).join("ifindex");
    // /sys may show another network namespace than ours.
    let by_file = || {
        let text = std::fs::read_to_string(&path)?;
        text.trim().parse().map_err(io::Error::other)
    };
    let socket = rustix::net::socket(
        rustix::net::AddressFamily::INET,
        rustix::net::SocketType::DGRAM,
        None,
    )?;
    match rustix::net::netdevice::name_to_index(&socket, name) {
        Ok(index) => Ok(index),
        Err(_) => by_file(),
    }
}

/// Requests to the kernel, one after the other.
pub(crate) struct Netlink {
    socket: Socket,
    sequence: u32,
}

impl Netlink {
    pub(crate) fn open() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Netlink {
            socket,
            sequence: 0,
        })
    }

    /// Sends a request and waits for the kernel's answer.
    pub(crate) fn ask(&mut self, request: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        self.sequence += 1;
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | NLM_F_ACK | flags;
        header.sequence_number = self.sequence;
        let mut message = NetlinkMessage::new(header, NetlinkPayload::from(request));
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        self.socket.send(&bytes, 0)?;
        loop {
            let (answer, _) = self.socket.recv_from_full()?;
            let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&answer);
            let answer = answer.map_err(io::Error::other)?;
            if answer.header.sequence_number != self.sequence {
                continue;
            }
            return match answer.payload {
                NetlinkPayload::Error(error) if error.code.is_some() => Err(error.to_io()),
                _ => Ok(()),
            };
        }
    }

    fn add_address(&mut self, index: u32, address: IpAddr, len: u8) -> io::Result<()> {
        let mut message = AddressMessage::default();
        message.header.family = family(address);
        message.header.prefix_len = len;
        message.header.index = index;
        if address.is_ipv4() {
            message.attributes.push(AddressAttribute::Local(address));
        } else {
            // Nobody else is on the link: the address can be used at once.
            let flags = netlink_packet_route::address::AddressHeaderFlags::Nodad;
            message.header.flags = flags;
        }
        message.attributes.push(AddressAttribute::Address(address));
        self.ask(
            RouteNetlinkMessage::NewAddress(message),
            NLM_F_CREATE | NLM_F_REPLACE,
        )
    }

    fn set_link(&mut self, index: u32, mtu: u32, queue: u32, gso_max_size: u32) -> io::Result<()> {
        let link = |attributes| {
            let mut message = LinkMessage::default();
            message.header.index = index;
            message.attributes = attributes;
            message
        };
        let mut sizes = link(vec![
            LinkAttribute::Mtu(mtu),
            LinkAttribute::TxQueueLen(queue),
        ]);
        sizes.header.flags = LinkFlags::Up;
        sizes.header.change_mask = LinkFlags::Up;
        self.ask(RouteNetlinkMessage::SetLink(sizes), 0)?;
        // An old kernel does not take it, and then a read is two sends.
        let size = link(vec![LinkAttribute::GsoMaxSize(gso_max_size)]);
        if let Err(error) = self.ask(RouteNetlinkMessage::SetLink(size), 0) {
            tracing::warn!("the interface's gso_max_size stays as it is: {error}");
        }
        Ok(())
    }

    /// A route into an interface.
    pub(crate) fn route(index: u32, route: Prefix) -> RouteMessage {
        let mut message = RouteMessage::default();
        message.header.address_family = family(route.address);
        message.header.destination_prefix_length = route.len;
        message.header.table = 254;
        message.header.protocol = RouteProtocol::Static;
        message.header.scope = match route.address {
            IpAddr::V4(_) => RouteScope::Link,
            IpAddr::V6(_) => RouteScope::Universe,
        };
        message.header.kind = RouteType::Unicast;
        let destination = match route.address {
            IpAddr::V4(v4) => RouteAddress::Inet(v4),
            IpAddr::V6(v6) => RouteAddress::Inet6(v6),
        };
        if route.len > 0 {
            message
                .attributes
                .push(RouteAttribute::Destination(destination));
        }
        message.attributes.push(RouteAttribute::Oif(index));
        message
    }

    fn add_route(&mut self, index: u32, route: Prefix) -> io::Result<()> {
        self.ask(
            RouteNetlinkMessage::NewRoute(Self::route(index, route)),
            NLM_F_CREATE | NLM_F_REPLACE,
        )
    }

    fn remove_route(&mut self, index: u32, route: Prefix) -> io::Result<()> {
        let done = self.ask(RouteNetlinkMessage::DelRoute(Self::route(index, route)), 0);
        match done {
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(()),
            done => done,
        }
    }
}

fn family(address: IpAddr) -> AddressFamily {
    match address {
        IpAddr::V4(_) => AddressFamily::Inet,
        IpAddr::V6(_) => AddressFamily::Inet6,
    }
}
