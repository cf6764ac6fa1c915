//! The UDP sockets of IKE: port 500, and the port that it shares with ESP, where four zero bytes
//! stand before its datagrams (RFC 3948 section 2.2).

use std::io;
use std::net::{IpAddr, SocketAddr};

use super::message::{Datagram, Refusal};
use crate::Error;
use crate::path::io::Io;
use crate::sys::sockaddr::RawAddress;
use crate::sys::udp::{Sending, UdpSocket};

/// IKE's own port.
pub(crate) const IKE: u16 = 500;

/// Bytes of the longest datagram that every path carries. A longer one may be cut into fragments.
const MAX_UNFRAGMENTED: usize = 1200;

/// Sockets of both families, where the system has them.
pub(crate) struct Ports {
    ike: Vec<UdpSocket>,
    esp: Vec<UdpSocket>,
    /// The port of ESP.
    port: u16,
}

impl Ports {
    /// Whether the system has the family.
    pub(crate) fn has_family(is_v4: bool) -> bool {
        is_v4 || std::net::UdpSocket::bind("[::]:0").is_ok()
    }

    /// Opens port 500 for each family that ESP has, and has ESP's sockets tell where datagrams went.
    pub(super) fn open(port: u16, ios: &[Io]) -> Result<Ports, Error> {
        let failed = |source| Error::System {
            doing: "prepare the sockets for IKE".to_owned(),
            source,
        };
        let (mut ike, mut esp) = (Vec::new(), Vec::new());
        for io in ios {
            for socket in &io.sockets {
                socket.tell_destinations().map_err(failed)?;
            }
        }
        for socket in &ios[0].sockets {
            let own = UdpSocket::bind(socket.is_v4(), IKE, false)?;
            own.tell_destinations().map_err(failed)?;
            own.set_dont_fragment(false).map_err(failed)?;
            ike.push(own);
            esp.push(socket.try_clone().map_err(failed)?);
        }
        Ok(Ports { ike, esp, port })
    }

    /// The sockets of port 500.
    pub(super) fn ike(&self) -> &[UdpSocket] {
        &self.ike
    }

    /// Reads once from a socket of port 500. `false`: it had nothing.
    pub(super) fn receive(
        &self,
        number: usize,
        buffer: &mut [u8],
        mut deliver: impl FnMut(Datagram<'_>),
    ) -> bool {
        let mut from = RawAddress::empty();
        let Ok(received) = self.ike[number].receive(buffer, &mut from) else {
            // An ICMP message about what was sent: IKE has timers of its own.
            while self.ike[number].take_error().is_some() {}
            return false;
        };
        if let (Some(source), Some(to)) = (from.address(), received.to)
            && received.len > 0
        {
            for payload in buffer[..received.len].chunks(received.segment) {
                deliver(Datagram {
                    source,
                    destination: SocketAddr::new(to, IKE),
                    payload,
                });
            }
        }
        true
    }

    /// Sends a datagram of IKE from the port that it names.
    pub(super) fn send(&self, datagram: &Datagram<'_>) -> Result<(), Refusal> {
        let sockets = match datagram.source.port() {
            IKE => &self.ike,
            port if port == self.port => {
                // Nothing else than IKE and keepalives: all else there is ESP.
                match datagram.payload {
                    [0xff] | [0, 0, 0, 0, ..] => &self.esp,
                    _ => return Err(Refusal::malformed("a datagram of IKE has no marker")),
                }
            }
            port => {
                return Err(Refusal::unsupported(format!(
                    "port {port} is not the gateway's; it has {IKE} and {}",
                    self.port
                )));
            }
        };
        let is_v4 = datagram.destination.is_ipv4();
        let Some(socket) = sockets.iter().find(|socket| socket.is_v4() == is_v4) else {
            return Err(Refusal::unsupported("this system has no such addresses"));
        };
        let own = datagram.source.ip();
        let from = (!own.is_unspecified() && own.is_ipv4() == is_v4).then_some(own);
        let done = send_once(socket, datagram, from).or_else(|_| {
            // The error may be an ICMP message about an earlier datagram, which is told once.
            while socket.take_error().is_some() {}
            send_once(socket, datagram, from)
        });
        done.map_err(|error| {
            let to = datagram.destination;
            Refusal::new(
                super::message::Reason::Failed,
                format!("not sent to {to}: {error}"),
            )
        })
    }
}

fn send_once(socket: &UdpSocket, datagram: &Datagram<'_>, from: Option<IpAddr>) -> io::Result<()> {
    let is_long = datagram.payload.len() > MAX_UNFRAGMENTED;
    if is_long {
        socket.set_dont_fragment(false)?;
    }
    let to = datagram.destination.into();
    let sending = Sending {
        to: &to,
        from,
        segment: None,
        traffic_class: 0,
    };
    let done = socket.send(datagram.payload, sending);
    if is_long && datagram.source.port() != IKE {
        socket.set_dont_fragment(true)?;
    }
    done
}
