//! The messages of the control socket, version 1. Each is one datagram of a SOCK_SEQPACKET
//! socket: a kind, a status and a number, then the fields of the kind.

use std::net::{IpAddr, SocketAddr};

use zeroize::Zeroizing;

use super::wire::{Reader, put_address, put_endpoint};

/// The version of the protocol.
pub(super) const VERSION: u16 = 1;

/// What a first message begins with.
const MAGIC: u32 = u32::from_be_bytes(*b"CLGW");

/// Bytes of the longest message but a datagram's.
pub(super) const LONGEST: usize = 1024;

/// Bytes of the longest message of all: a datagram of IKE and its addresses.
pub(super) const LONGEST_DATAGRAM: usize = 65536 + 64;

/// Bytes of the longest key.
const LONGEST_KEY: usize = 128;

/// Set in the kind of a reply.
const REPLY: u16 = 0x8000;

/// Numbers of the kinds.
mod kind {
    pub(super) const HELLO: u16 = 1;
    pub(super) const GET_SPI: u16 = 2;
    pub(super) const ADD_SA: u16 = 3;
    pub(super) const UPDATE_SA: u16 = 4;
    pub(super) const QUERY_SA: u16 = 5;
    pub(super) const DELETE_SA: u16 = 6;
    pub(super) const FLUSH_SAS: u16 = 7;
    pub(super) const ADD_POLICY: u16 = 8;
    pub(super) const DELETE_POLICY: u16 = 9;
    pub(super) const QUERY_POLICY: u16 = 10;
    pub(super) const FLUSH_POLICIES: u16 = 11;
    pub(super) const ACQUIRE: u16 = 0x4001;
    pub(super) const EXPIRE: u16 = 0x4002;
    pub(super) const MAPPING: u16 = 0x4003;
    pub(super) const DATAGRAM: u16 = 0x4010;
}

/// Why a request was not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// Not a message of the protocol.
    Malformed = 1,
    /// The gateway does not do that.
    Unsupported = 2,
    /// There is no such SA or policy.
    NotFound = 3,
    /// It is there already.
    Exists = 4,
    /// There are too many.
    Limit = 5,
    /// The system or the ESP library refused.
    Failed = 6,
}

/// A reason, and the words for the log of who asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) reason: Reason,
    pub(super) text: String,
}

impl Refusal {
    pub(super) fn new(reason: Reason, text: impl Into<String>) -> Self {
        let text = text.into();
        Refusal { reason, text }
    }

    pub(super) fn malformed(text: &str) -> Self {
        Refusal::new(Reason::Malformed, text)
    }

    pub(super) fn unsupported(text: impl Into<String>) -> Self {
        Refusal::new(Reason::Unsupported, text)
    }
}

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

/// An SA is known by its SPI and the address that its packets go to.
pub(super) type SaId = (u32, IpAddr);

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

/// The header of a request, for the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) kind: u16,
    pub(super) number: u32,
}

impl Header {
    /// Kind and number of a message, where it is long enough to have them.
    pub(super) fn of(message: &[u8]) -> Result<(Header, Reader<'_>), Refusal> {
        let mut reader = Reader::new(message);
        let kind = reader.u16()?;
        let _status = reader.u16()?;
        let number = reader.u32()?;
        Ok((Header { kind, number }, reader))
    }

    /// A reply that the request was done, without its fields.
    pub(super) fn done(self) -> Vec<u8> {
        self.reply(0)
    }

    /// A reply that it was not.
    pub(super) fn refused(self, refusal: &Refusal) -> Vec<u8> {
        let mut reply = self.reply(refusal.reason as u16);
        let text = refusal.text.as_bytes();
        reply.extend_from_slice(&text[..text.len().min(512)]);
        reply
    }

    fn reply(self, status: u16) -> Vec<u8> {
        begin(self.kind | REPLY, status, self.number)
    }
}

fn begin(kind: u16, status: u16, number: u32) -> Vec<u8> {
    let mut message = Vec::with_capacity(64);
    message.extend_from_slice(&kind.to_be_bytes());
    message.extend_from_slice(&status.to_be_bytes());
    message.extend_from_slice(&number.to_be_bytes());
    message
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

/// Something that the client must act on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// A packet was dropped, because the policy of its addresses has no SA.
    Acquire {
        reqid: u32,
        source: IpAddr,
        destination: IpAddr,
        protocol: u8,
    },
    /// A lifetime has passed: a soft one, or a hard one.
    Expire { id: SaId, is_hard: bool },
    /// Authentic packets of an inbound SA come from elsewhere.
    Mapping { id: SaId, from: SocketAddr },
}

impl Event {
    pub(super) fn bytes(&self) -> Vec<u8> {
        match *self {
            Event::Acquire {
                reqid,
                source,
                destination,
                protocol,
            } => {
                let mut message = begin(kind::ACQUIRE, 0, 0);
                message.extend_from_slice(&reqid.to_be_bytes());
                put_address(&mut message, Some(source));
                put_address(&mut message, Some(destination));
                message.push(protocol);
                message
            }
            Event::Expire { id, is_hard } => {
                let mut message = begin(kind::EXPIRE, 0, 0);
                put_id(&mut message, id);
                message.push(is_hard.into());
                message
            }
            Event::Mapping { id, from } => {
                let mut message = begin(kind::MAPPING, 0, 0);
                put_id(&mut message, id);
                put_endpoint(&mut message, from);
                message
            }
        }
    }
}

fn put_id(message: &mut Vec<u8>, (spi, address): SaId) {
    message.extend_from_slice(&spi.to_be_bytes());
    put_address(message, Some(address));
}

/// A datagram of IKE: where from, where to, and its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Datagram<'a> {
    pub(super) source: SocketAddr,
    pub(super) destination: SocketAddr,
    pub(super) payload: &'a [u8],
}

impl<'a> Datagram<'a> {
    pub(super) fn read(message: &'a [u8]) -> Result<Datagram<'a>, Refusal> {
        let (header, mut reader) = Header::of(message)?;
        if header.kind != kind::DATAGRAM {
            return Err(Refusal::malformed("this connection is for datagrams"));
        }
        let (source, destination) = (reader.endpoint()?, reader.endpoint()?);
        Ok(Datagram {
            source,
            destination,
            payload: reader.rest(),
        })
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut message = begin(kind::DATAGRAM, 0, 0);
        put_endpoint(&mut message, self.source);
        put_endpoint(&mut message, self.destination);
        message.extend_from_slice(self.payload);
        message
    }
}

/// The reply to a hello: version, the number of this life of the gateway, the ports of IKE and of
/// ESP, and the transforms.
pub(super) fn welcome(
    header: Header,
    life: u64,
    ports: (u16, u16),
    transforms: &[(u16, u16)],
) -> Vec<u8> {
    let mut reply = header.done();
    reply.extend_from_slice(&VERSION.to_be_bytes());
    reply.extend_from_slice(&life.to_be_bytes());
    reply.extend_from_slice(&ports.0.to_be_bytes());
    reply.extend_from_slice(&ports.1.to_be_bytes());
    reply.extend_from_slice(&(transforms.len() as u16).to_be_bytes());
    for (encryption, integrity) in transforms {
        reply.extend_from_slice(&encryption.to_be_bytes());
        reply.extend_from_slice(&integrity.to_be_bytes());
    }
    reply
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

    #[test]
    fn a_datagram_comes_back() {
        let datagram = Datagram {
            source: "192.0.2.1:500".parse().unwrap(),
            destination: "[fd00::1]:4500".parse().unwrap(),
            payload: b"payload",
        };
        let bytes = datagram.bytes();
        assert_eq!(Datagram::read(&bytes), Ok(datagram));
        assert!(judge(&bytes) && !judge(&bytes[..7]));
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

    #[test]
    fn events_have_the_lengths_that_the_protocol_says() {
        let address: IpAddr = "10.0.0.1".parse().unwrap();
        let acquire = Event::Acquire {
            reqid: 1,
            source: address,
            destination: address,
            protocol: 6,
        };
        let id = (0x100, address);
        let expire = Event::Expire { id, is_hard: true };
        let from = SocketAddr::new(address, 4500);
        let mapping = Event::Mapping { id, from };
        let lens = [acquire, expire, mapping].map(|event| event.bytes().len());
        assert_eq!(lens, [8 + 4 + 34 + 1, 8 + 21 + 1, 8 + 21 + 19]);
    }
}
