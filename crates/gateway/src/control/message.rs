//! The messages of the control socket, version 1. Each is one datagram of a SOCK_SEQPACKET
//! socket: a kind, a status and a number, then the fields of the kind. Those of a request are in
//! `request`; what the gateway sends is here.

use std::net::{IpAddr, SocketAddr};

use super::wire::{Reader, put_address, put_endpoint};

/// The version of the protocol.
pub(super) const VERSION: u16 = 1;

/// Bytes of the longest message but a datagram's.
pub(super) const LONGEST: usize = 1024;

/// Bytes of the longest message of all: a datagram of IKE and its addresses.
pub(super) const LONGEST_DATAGRAM: usize = 65536 + 64;

/// Set in the kind of a reply.
const REPLY: u16 = 0x8000;

/// Numbers of the kinds.
pub(super) mod kind {
    pub(in crate::control) const HELLO: u16 = 1;
    pub(in crate::control) const GET_SPI: u16 = 2;
    pub(in crate::control) const ADD_SA: u16 = 3;
    pub(in crate::control) const UPDATE_SA: u16 = 4;
    pub(in crate::control) const QUERY_SA: u16 = 5;
    pub(in crate::control) const DELETE_SA: u16 = 6;
    pub(in crate::control) const FLUSH_SAS: u16 = 7;
    pub(in crate::control) const ADD_POLICY: u16 = 8;
    pub(in crate::control) const DELETE_POLICY: u16 = 9;
    pub(in crate::control) const QUERY_POLICY: u16 = 10;
    pub(in crate::control) const FLUSH_POLICIES: u16 = 11;
    pub(in crate::control) const ACQUIRE: u16 = 0x4001;
    pub(in crate::control) const EXPIRE: u16 = 0x4002;
    pub(in crate::control) const MAPPING: u16 = 0x4003;
    pub(in crate::control) const DATAGRAM: u16 = 0x4010;
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

/// An SA is known by its SPI and the address that its packets go to.
pub(super) type SaId = (u32, IpAddr);

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

pub(super) fn begin(kind: u16, status: u16, number: u32) -> Vec<u8> {
    let mut message = Vec::with_capacity(64);
    message.extend_from_slice(&kind.to_be_bytes());
    message.extend_from_slice(&status.to_be_bytes());
    message.extend_from_slice(&number.to_be_bytes());
    message
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

#[cfg(test)]
mod tests {
    use super::super::request::judge;
    use super::*;

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
