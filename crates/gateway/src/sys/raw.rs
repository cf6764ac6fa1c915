//! Raw sockets that carry ESP as IP protocol 50. The kernel neither cuts nor joins such packets;
//! many of them go by one call of sendmmsg and come by one of recvmmsg.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use arrayvec::ArrayVec;

use super::ancillary::Control;
use super::udp::{Sending, UdpSocket};

/// The most packets that one call brings.
pub(crate) const MOST_RECEIVED: usize = 32;

/// The most packets that one call sends.
const MOST_SENT: usize = 64;

/// Bytes between the places where packets are received: the longest packet, and something more,
/// so that their beginnings do not share sets of the processor's caches.
pub(crate) const STRIDE: usize = 65536 + 4160;

/// A raw socket of a family.
pub(crate) struct RawSocket {
    socket: UdpSocket,
}

/// A packet that was received, from the ESP header on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrived {
    /// Where it begins in the buffer.
    pub(crate) at: usize,
    /// Its bytes.
    pub(crate) len: usize,
    /// TOS or traffic class of the outer header.
    pub(crate) traffic_class: u8,
}

impl RawSocket {
    /// Opens it. Where it `receives`, it takes every packet of protocol 50 to this host.
    pub(crate) fn open(is_v4: bool, receives: bool) -> io::Result<Self> {
        let socket = UdpSocket::open(is_v4, libc::SOCK_RAW, libc::IPPROTO_ESP)?;
        if !receives {
            socket.take_none()?;
        }
        Ok(RawSocket { socket })
    }

    /// Another descriptor of the same socket.
    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        let socket = self.socket.try_clone()?;
        Ok(RawSocket { socket })
    }

    pub(crate) fn is_v4(&self) -> bool {
        self.socket.is_v4()
    }

    /// As that of UDP.
    pub(crate) fn set_dont_fragment(&self, is_set: bool) -> io::Result<()> {
        self.socket.set_dont_fragment(is_set)
    }

    /// Takes one error off the queue, as that of UDP.
    pub(crate) fn take_error(&self) -> Option<Option<std::net::SocketAddr>> {
        self.socket.take_error()
    }

    /// Sends packets of `stride` bytes each, the last one may be shorter, until one is refused;
    /// how many were sent, which is at least one.
    pub(crate) fn send(
        &self,
        bytes: &[u8],
        stride: usize,
        sending: Sending<'_>,
    ) -> io::Result<usize> {
        let mut control = Control::EMPTY;
        let used = control.write(self.socket.is_v4(), &sending);
        let packets = bytes.chunks(stride).take(MOST_SENT);
        let mut parts: ArrayVec<libc::iovec, MOST_SENT> = packets
            .map(|packet| libc::iovec {
                iov_base: packet.as_ptr().cast_mut().cast(),
                iov_len: packet.len(),
            })
            .collect();
        let storage: *const libc::sockaddr_storage = &sending.to.storage;
        let mut messages: ArrayVec<libc::mmsghdr, MOST_SENT> = ArrayVec::new();
        for part in &mut parts {
            // SAFETY: zeros are a valid mmsghdr.
            let mut message: libc::mmsghdr = unsafe { std::mem::zeroed() };
            message.msg_hdr.msg_name = storage.cast_mut().cast();
            message.msg_hdr.msg_namelen = sending.to.len;
            message.msg_hdr.msg_iov = part;
            message.msg_hdr.msg_iovlen = 1;
            if used > 0 {
                message.msg_hdr.msg_control = control.0.as_mut_ptr().cast();
                message.msg_hdr.msg_controllen = used as _;
            }
            messages.push(message);
        }
        let count = messages.len() as libc::c_uint;
        // SAFETY: the address, the bytes, their parts and the control messages live until the
        // call returns, which writes to nothing but the lengths in `messages`.
        let sent = unsafe {
            let messages = messages.as_mut_ptr();
            libc::sendmmsg(
                self.as_fd().as_raw_fd(),
                messages,
                count,
                libc::MSG_NOSIGNAL as _,
            )
        };
        match sent {
            1.. => Ok(sent as usize),
            0 => Err(io::ErrorKind::WriteZero.into()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// One call that reads many packets, without waiting, each to a place of `STRIDE` bytes.
    /// Those that are no whole IP packet are left out; their number is returned.
    pub(crate) fn receive(
        &self,
        buffer: &mut [u8],
        arrived: &mut ArrayVec<Arrived, MOST_RECEIVED>,
    ) -> io::Result<usize> {
        arrived.clear();
        let mut controls = [const { Control::EMPTY }; MOST_RECEIVED];
        let mut parts: ArrayVec<libc::iovec, MOST_RECEIVED> = buffer
            .chunks_exact_mut(STRIDE)
            .take(MOST_RECEIVED)
            .map(|place| libc::iovec {
                iov_base: place.as_mut_ptr().cast(),
                iov_len: place.len(),
            })
            .collect();
        let mut messages: ArrayVec<libc::mmsghdr, MOST_RECEIVED> = ArrayVec::new();
        for (part, control) in parts.iter_mut().zip(&mut controls) {
            // SAFETY: zeros are a valid mmsghdr.
            let mut message: libc::mmsghdr = unsafe { std::mem::zeroed() };
            message.msg_hdr.msg_iov = part;
            message.msg_hdr.msg_iovlen = 1;
            if !self.is_v4() {
                message.msg_hdr.msg_control = control.0.as_mut_ptr().cast();
                message.msg_hdr.msg_controllen = control.0.len() as _;
            }
            messages.push(message);
        }
        // SAFETY: the kernel writes no more than the lengths allow, to memory that lives until
        // the call returns.
        let count = unsafe {
            let file = self.as_fd().as_raw_fd();
            let (messages, count) = (messages.as_mut_ptr(), messages.len() as libc::c_uint);
            libc::recvmmsg(
                file,
                messages,
                count,
                libc::MSG_DONTWAIT as _,
                std::ptr::null_mut(),
            )
        };
        let Ok(count) = usize::try_from(count) else {
            return Err(io::Error::last_os_error());
        };
        let mut malformed = 0;
        for (index, message) in messages[..count].iter().enumerate() {
            let (at, len) = (index * STRIDE, message.msg_len as usize);
            let packet = match self.is_v4() {
                // The header comes with the packet.
                true => ipv4(&buffer[at..at + len]).map(|(header, traffic_class)| Arrived {
                    at: at + header,
                    len: len - header,
                    traffic_class,
                }),
                false => Some(Arrived {
                    at,
                    len,
                    traffic_class: traffic_class(&message.msg_hdr),
                }),
            };
            match packet {
                Some(packet) => arrived.push(packet),
                None => malformed += 1,
            }
        }
        Ok(malformed)
    }
}

impl AsFd for RawSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Bytes and TOS of an IPv4 header.
fn ipv4(packet: &[u8]) -> Option<(usize, u8)> {
    let fixed = packet.first_chunk::<20>()?;
    let header = usize::from(fixed[0] & 15) * 4;
    let is_whole = fixed[0] >> 4 == 4 && header >= 20 && header <= packet.len();
    is_whole.then_some((header, fixed[1]))
}

/// The traffic class in the control messages of an IPv6 packet.
fn traffic_class(message: &libc::msghdr) -> u8 {
    let mut class = 0;
    // SAFETY: the kernel has filled in the message's control part.
    let mut header = unsafe { libc::CMSG_FIRSTHDR(message) };
    while !header.is_null() {
        // SAFETY: it is not null, so it is a whole message of the kernel's, whose data is at least
        // as long as its kind says; the data has no alignment.
        unsafe {
            let kind = ((*header).cmsg_level, (*header).cmsg_type);
            if kind == (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) {
                let data = libc::CMSG_DATA(header).cast::<libc::c_int>();
                class = data.read_unaligned() as u8;
            }
            header = libc::CMSG_NXTHDR(message, header);
        }
    }
    class
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

    /// What comes to a socket on loopback, of packets of a length that tells them from others'.
    fn receive(socket: &RawSocket, count: usize) -> Vec<(Vec<u8>, u8)> {
        let mut buffer = vec![0; STRIDE * MOST_RECEIVED];
        let (mut arrived, mut all) = (ArrayVec::new(), Vec::new());
        for _ in 0..1000 {
            if socket.receive(&mut buffer, &mut arrived).is_ok() {
                let packets = arrived.iter();
                let whole = packets.map(|a| (buffer[a.at..a.at + a.len].to_vec(), a.traffic_class));
                all.extend(whole.filter(|(packet, _)| packet.starts_with(b"raw.")));
            }
            if all.len() >= count {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        all
    }

    #[test]
    fn packets_arrive_with_their_traffic_class_at_one_socket_of_two() {
        for is_v4 in [true, false] {
            let sockets = [true, false].map(|receives| RawSocket::open(is_v4, receives).ok());
            let [Some(a), Some(b)] = sockets else {
                let message = "SKIPPED: raw sockets take CAP_NET_RAW\n";
                io::Write::write_all(&mut io::stderr(), message.as_bytes()).unwrap();
                return;
            };
            let to: IpAddr = match is_v4 {
                true => Ipv4Addr::LOCALHOST.into(),
                false => Ipv6Addr::LOCALHOST.into(),
            };
            let address = SocketAddr::new(to, 0).into();
            let sending = Sending {
                to: &address,
                from: Some(to),
                segment: None,
                traffic_class: 0xb9,
            };
            // 100 bytes each, the last one is shorter.
            let mut bytes = Vec::new();
            for number in 0..192u32 {
                bytes.extend_from_slice(b"raw.");
                bytes.extend_from_slice(&number.to_be_bytes());
                bytes.extend_from_slice(&[number as u8; 92]);
            }
            bytes.truncate(bytes.len() - 50);
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                let sent = match a.send(rest, 100, sending) {
                    Ok(sent) => sent,
                    // A machine without IPv6.
                    Err(_) if !is_v4 => return,
                    Err(error) => panic!("{error}"),
                };
                rest = rest.get(sent * 100..).unwrap_or_default();
            }
            let copy = a.try_clone().unwrap();
            let came = receive(&copy, 192);
            assert_eq!(came.len(), 192, "IPv4 {is_v4}");
            for (came, wanted) in came.iter().zip(bytes.chunks(100)) {
                assert_eq!((&came.0[..], came.1), (wanted, 0xb9));
            }
            let error = b.receive(&mut vec![0; STRIDE], &mut ArrayVec::new());
            assert_eq!(error.unwrap_err().kind(), io::ErrorKind::WouldBlock);
        }
    }

    #[test]
    fn what_is_no_whole_header_is_none() {
        let mut packet = [0; 28];
        packet[..2].copy_from_slice(&[0x46, 7]);
        assert_eq!(ipv4(&packet), Some((24, 7)));
        assert_eq!(ipv4(&packet[..23]), None);
        packet[0] = 0x44;
        assert_eq!(ipv4(&packet), None);
        packet[0] = 0x65;
        assert_eq!(ipv4(&packet), None);
        assert_eq!(ipv4(&[]), None);
    }
}
