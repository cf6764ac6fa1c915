//! What a client of the control socket asks for: the fields of each request, read and checked.

use std::net::{IpAddr, SocketAddr};

use zeroize::Zeroizing;

use super::message::{Datagram, Header, Refusal, SaId, VERSION, kind};
use super::wire::Reader;

/// What a first message begins with.
const MAGIC: u32 = u32::from_be_bytes(*b"CLGW");

/// Bytes of the longest key.
const LONGEST_KEY: usize = 128;

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Requests and their replies.
    Commands = 1,
    /// Events from the gateway.
    Events = 2,
    /// Datagrams of IKE, in both directions.
    Datagrams = 3,
}

/// A soft and a hard limit; `None`: unlimited.
pub(super) type Limits = (Option<u64>, Option<u64>);

/// An SA that is to be added.
#[derive(Clone, Debug)]
pub(super) struct NewSa {
    pub(super) spi: u32,
    pub(super) is_inbound: bool,
    pub(super) is_tunnel: bool,
    pub(super) esn: bool,
    pub(super) is_in_udp: bool,
    pub(super) copies_dscp: bool,
    pub(super) copies_ecn: bool,
    pub(super) reqid: u32,
    pub(super) window: u32,
    pub(super) source: SocketAddr,
    pub(super) destination: SocketAddr,
    pub(super) encryption: u16,
    pub(super) integrity: u16,
    pub(super) seconds: Limits,
    pub(super) bytes: Limits,
    pub(super) packets: Limits,
    pub(super) encryption_key: Zeroizing<Vec<u8>>,
    pub(super) integrity_key: Zeroizing<Vec<u8>>,
}

/// One side of a policy: a range of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Range {
    pub(super) from: IpAddr,
    pub(super) to: IpAddr,
    pub(super) protocol: u8,
    pub(super) ports: (u16, u16),
}

/// What a policy applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Direction {
    In = 1,
    Out = 2,
    Forward = 3,
}

/// What happens to a packet of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Action {
    /// It is sealed by the SA of the policy's reqid.
    Protect = 1,
    /// It is dropped.
    Drop = 2,
    /// It leaves in the clear.
    Pass = 3,
}

/// A policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Policy {
    pub(super) direction: Direction,
    pub(super) action: Action,
    pub(super) reqid: u32,
    pub(super) source: Range,
    pub(super) destination: Range,
}

/// What a client asks for.
#[derive(Clone, Debug)]
pub(super) enum Request {
    Hello {
        role: Role,
        /// What an earlier client has left is to be removed.
        flush: bool,
    },
    GetSpi,
    AddSa(Box<NewSa>),
    UpdateSa {
        id: SaId,
        source: SocketAddr,
        destination: SocketAddr,
        is_in_udp: bool,
    },
    QuerySa(SaId),
    DeleteSa(SaId),
    FlushSas,
    AddPolicy {
        policy: Policy,
        /// The source address of packets of this host, where the client knows a right one.
        own: Option<IpAddr>,
    },
    DeletePolicy(Policy),
    QueryPolicy(Policy),
    FlushPolicies,
}

impl Request {
    /// Reads the fields behind a header.
    pub(super) fn read(header: Header, mut reader: Reader<'_>) -> Result<Request, Refusal> {
        let request = match header.kind {
            kind::HELLO => hello(&mut reader)?,
            kind::GET_SPI => Request::GetSpi,
            kind::ADD_SA => Request::AddSa(Box::new(new_sa(&mut reader)?)),
            kind::UPDATE_SA => Request::UpdateSa {
                id: id(&mut reader)?,
                source: reader.endpoint()?,
                destination: reader.endpoint()?,
                is_in_udp: reader.u8()? != 0,
            },
            kind::QUERY_SA => Request::QuerySa(id(&mut reader)?),
            kind::DELETE_SA => Request::DeleteSa(id(&mut reader)?),
            kind::FLUSH_SAS => Request::FlushSas,
            kind::ADD_POLICY => Request::AddPolicy {
                policy: policy(&mut reader)?,
                own: reader.address()?,
            },
            kind::DELETE_POLICY => Request::DeletePolicy(policy(&mut reader)?),
            kind::QUERY_POLICY => Request::QueryPolicy(policy(&mut reader)?),
            kind::FLUSH_POLICIES => Request::FlushPolicies,
            other => {
                return Err(Refusal::unsupported(format!(
                    "there is no request {other}; this is version {VERSION} of the protocol"
                )));
            }
        };
        reader.end()?;
        Ok(request)
    }
}

fn hello(reader: &mut Reader<'_>) -> Result<Request, Refusal> {
    if reader.u32()? != MAGIC {
        return Err(Refusal::malformed("this is no client of a gateway"));
    }
    let version = reader.u16()?;
    if version != VERSION {
        return Err(Refusal::unsupported(format!(
            "version {version} of the protocol; this gateway has version {VERSION}: install \
             gateway and client of one release"
        )));
    }
    let role = match reader.u8()? {
        1 => Role::Commands,
        2 => Role::Events,
        3 => Role::Datagrams,
        _ => return Err(Refusal::malformed("a connection's role is 1, 2 or 3")),
    };
    let flush = reader.u8()? & 1 != 0;
    Ok(Request::Hello { role, flush })
}

fn id(reader: &mut Reader<'_>) -> Result<SaId, Refusal> {
    let spi = reader.u32()?;
    let address = reader.address()?;
    match address {
        Some(address) => Ok((spi, address)),
        None => Err(Refusal::malformed("an SA has a destination")),
    }
}

fn limits(reader: &mut Reader<'_>) -> Result<Limits, Refusal> {
    let limit = |value: u64| (value != 0).then_some(value);
    Ok((limit(reader.u64()?), limit(reader.u64()?)))
}

fn key(reader: &mut Reader<'_>) -> Result<Zeroizing<Vec<u8>>, Refusal> {
    let len = usize::from(reader.u16()?);
    if len > LONGEST_KEY {
        return Err(Refusal::malformed("a key is longer than any that there is"));
    }
    Ok(Zeroizing::new(reader.bytes(len)?.to_vec()))
}

fn new_sa(reader: &mut Reader<'_>) -> Result<NewSa, Refusal> {
    let spi = reader.u32()?;
    let is_inbound = match reader.u8()? {
        1 => true,
        2 => false,
        _ => return Err(Refusal::malformed("an SA's direction is 1 or 2")),
    };
    let is_tunnel = reader.u8()? == 2;
    let flags = reader.u16()?;
    Ok(NewSa {
        spi,
        is_inbound,
        is_tunnel,
        esn: flags & 1 != 0,
        is_in_udp: flags & 2 != 0,
        copies_dscp: flags & 4 != 0,
        copies_ecn: flags & 8 != 0,
        reqid: reader.u32()?,
        window: reader.u32()?,
        source: reader.endpoint()?,
        destination: reader.endpoint()?,
        encryption: reader.u16()?,
        integrity: reader.u16()?,
        seconds: limits(reader)?,
        bytes: limits(reader)?,
        packets: limits(reader)?,
        encryption_key: key(reader)?,
        integrity_key: key(reader)?,
    })
}

fn range(reader: &mut Reader<'_>) -> Result<Range, Refusal> {
    let (from, to) = (reader.address()?, reader.address()?);
    let protocol = reader.u8()?;
    let ports = (reader.u16()?, reader.u16()?);
    match (from, to) {
        (Some(from), Some(to)) if from.is_ipv4() == to.is_ipv4() && from <= to => Ok(Range {
            from,
            to,
            protocol,
            ports,
        }),
        _ => Err(Refusal::malformed(
            "a selector is a range of addresses of one family, the lower one first",
        )),
    }
}

fn policy(reader: &mut Reader<'_>) -> Result<Policy, Refusal> {
    let direction = match reader.u8()? {
        1 => Direction::In,
        2 => Direction::Out,
        3 => Direction::Forward,
        _ => return Err(Refusal::malformed("a policy's direction is 1, 2 or 3")),
    };
    let action = match reader.u8()? {
        1 => Action::Protect,
        2 => Action::Drop,
        3 => Action::Pass,
        _ => return Err(Refusal::malformed("a policy's action is 1, 2 or 3")),
    };
    Ok(Policy {
        direction,
        action,
        reqid: reader.u32()?,
        source: range(reader)?,
        destination: range(reader)?,
    })
}

/// Reads a message as the control thread would, for the fuzz target: whether it is a request or a
/// datagram.
#[doc(hidden)]
pub fn judge(message: &[u8]) -> bool {
    let as_request = Header::of(message).and_then(|(header, reader)| Request::read(header, reader));
    if let Ok(datagram) = Datagram::read(message) {
        let again = datagram.bytes();
        assert_eq!(Datagram::read(&again), Ok(datagram));
        return true;
    }
    match as_request {
        Ok(Request::AddPolicy { policy, .. }) => {
            // A range is cut into blocks, and nothing is lost or added.
            for range in [policy.source, policy.destination] {
                let blocks = super::blocks::blocks(range.from, range.to);
                assert!(!blocks.is_empty() && blocks.len() <= 256);
                assert!(blocks.iter().any(|block| block.holds(range.from)));
                assert!(blocks.iter().any(|block| block.holds(range.to)));
            }
            true
        }
        Ok(_) => true,
        Err(refusal) => {
            assert!(!refusal.text.is_empty());
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::message::{Reason, begin};
    use super::super::wire::{put_address, put_endpoint};
    use super::*;

    fn message(kind: u16, fields: &[&[u8]]) -> Vec<u8> {
        let mut message = begin(kind, 0, 7);
        for field in fields {
            message.extend_from_slice(field);
        }
        message
    }

    fn read(message: &[u8]) -> Result<Request, Refusal> {
        let (header, reader) = Header::of(message)?;
        assert_eq!(header.number, 7);
        Request::read(header, reader)
    }

    fn address(text: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        put_address(&mut bytes, Some(text.parse().unwrap()));
        bytes
    }

    fn endpoint(text: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        put_endpoint(&mut bytes, text.parse().unwrap());
        bytes
    }

    #[test]
    fn a_hello_names_version_and_role() {
        let hello = message(kind::HELLO, &[b"CLGW", &[0, 1, 2, 1]]);
        assert!(matches!(
            read(&hello),
            Ok(Request::Hello {
                role: Role::Events,
                flush: true
            })
        ));
        for (wrong, reason) in [
            ([0, 2, 2, 0], Reason::Unsupported),
            ([0, 1, 9, 0], Reason::Malformed),
        ] {
            let refusal = read(&message(kind::HELLO, &[b"CLGW", &wrong])).unwrap_err();
            assert_eq!(refusal.reason, reason);
        }
        assert!(read(&message(kind::HELLO, &[b"HTTP", &[0, 1, 1, 0]])).is_err());
    }

    #[test]
    fn an_sa_is_read_whole_or_refused() {
        let limits = [0u8; 48];
        let sa = message(
            kind::ADD_SA,
            &[
                &[1, 2, 3, 4, 1, 2, 0, 3],
                &[0, 0, 0, 9, 0, 0, 0, 64],
                &endpoint("192.0.2.1:4500"),
                &endpoint("192.0.2.2:4500"),
                &[0, 20, 0, 0],
                &limits,
                &[0, 4, 1, 1, 1, 1, 0, 0],
            ],
        );
        let Ok(Request::AddSa(new)) = read(&sa) else {
            panic!("{:?}", read(&sa));
        };
        assert_eq!((new.spi, new.reqid, new.window), (0x01020304, 9, 64));
        assert!(new.is_inbound && new.is_tunnel && new.esn && new.is_in_udp);
        assert_eq!(new.encryption_key[..], [1; 4]);
        assert_eq!(new.seconds, (None, None));
        for len in 8..sa.len() {
            assert!(read(&sa[..len]).is_err(), "{len} bytes");
        }
        let mut long = sa.clone();
        long.push(0);
        assert!(read(&long).is_err());
        // The length of a key that nobody has.
        let at = sa.len() - 8;
        long[at] = 0xff;
        assert_eq!(read(&long).unwrap_err().reason, Reason::Malformed);
    }

    #[test]
    fn ranges_that_contradict_themselves_are_refused() {
        let policy = |from: &str, to: &str| {
            let range = [&address(from)[..], &address(to), &[0, 0, 0, 255, 255]].concat();
            read(&message(
                kind::DELETE_POLICY,
                &[&[2, 1, 0, 0, 0, 1], &range, &range],
            ))
        };
        assert!(policy("10.0.0.0", "10.0.0.255").is_ok());
        assert!(policy("10.0.0.1", "10.0.0.0").is_err());
        assert!(policy("10.0.0.1", "fd00::1").is_err());
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_do_no_harm(
            kind in 0u16..14,
            bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..300),
        ) {
            judge(&bytes);
            judge(&[&begin(kind, 0, 1)[..], &bytes].concat());
        }
    }
}
