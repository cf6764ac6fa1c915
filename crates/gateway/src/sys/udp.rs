//! UDP sockets that carry ESP: trains of datagrams by UDP_SEGMENT and UDP_GRO, DSCP and ECN of
//! the outer header by control messages, DF always set unless it is asked otherwise.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

use super::ancillary::Control;
use super::sockaddr::RawAddress;
use crate::Error;

/// Bytes that a socket may queue in each direction. With the system's default a burst of a few
/// super-packets is lost.
const QUEUE: libc::c_int = 8 << 20;

/// The longest time that a full queue holds up a sender.
const SEND_TIMEOUT: Duration = Duration::from_millis(100);

/// A bound socket.
pub(crate) struct UdpSocket {
    file: OwnedFd,
    is_v4: bool,
    has_receive_offload: bool,
}

/// What one read brought.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Received {
    /// Bytes of all datagrams.
    pub(crate) len: usize,
    /// Bytes of each datagram but the last, which may be shorter.
    pub(crate) segment: usize,
    /// TOS or traffic class of the outer header.
    pub(crate) traffic_class: u8,
    /// The address that they were sent to, where the socket tells it.
    pub(crate) to: Option<IpAddr>,
}

/// How a train is sent.
#[derive(Clone, Copy)]
pub(crate) struct Sending<'a> {
    pub(crate) to: &'a RawAddress,
    /// Source address; `None`: the system chooses.
    pub(crate) from: Option<IpAddr>,
    /// Bytes of each datagram, where there are more than one.
    pub(crate) segment: Option<u16>,
    pub(crate) traffic_class: u8,
}

impl UdpSocket {
    /// Binds `port` of every address of a family.
    pub(crate) fn bind(is_v4: bool, port: u16, is_shared: bool) -> Result<Self, Error> {
        let address: SocketAddr = match is_v4 {
            true => (Ipv4Addr::UNSPECIFIED, port).into(),
            false => (Ipv6Addr::UNSPECIFIED, port).into(),
        };
        let failed = |source: io::Error| Error::Bind { address, source };
        let mut socket = UdpSocket::open(is_v4, libc::SOCK_DGRAM, 0).map_err(failed)?;
        if is_shared {
            let shared = socket.set(libc::SOL_SOCKET, libc::SO_REUSEPORT, 1);
            shared.map_err(failed)?;
        }
        if !is_v4 {
            let only = socket.set(libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, 1);
            only.map_err(failed)?;
        }
        let raw = RawAddress::from(address);
        // SAFETY: the address lives until the call returns, and its length is its own.
        let bound = unsafe {
            let storage: *const libc::sockaddr_storage = &raw.storage;
            libc::bind(socket.file.as_raw_fd(), storage.cast(), raw.len)
        };
        if bound != 0 {
            return Err(failed(io::Error::last_os_error()));
        }
        socket.has_receive_offload = socket.set(libc::SOL_UDP, libc::UDP_GRO, 1).is_ok();
        Ok(socket)
    }

    /// Opens a socket of UDP or, for plain ESP, a raw one: with long queues, DF set, and told
    /// about errors and the traffic class.
    pub(super) fn open(is_v4: bool, kind: libc::c_int, protocol: libc::c_int) -> io::Result<Self> {
        let family = if is_v4 { libc::AF_INET } else { libc::AF_INET6 };
        // SAFETY: it takes numbers.
        let file = unsafe { libc::socket(family, kind | libc::SOCK_CLOEXEC, protocol) };
        if file < 0 {
            return Err(io::Error::last_os_error());
        }
        let socket = UdpSocket {
            // SAFETY: the descriptor was just made and belongs to nobody else.
            file: unsafe { OwnedFd::from_raw_fd(file) },
            is_v4,
            has_receive_offload: false,
        };
        // The forced forms go past the system's limits; a plain one is what is left without
        // CAP_NET_ADMIN.
        for (forced, plain) in [
            (libc::SO_RCVBUFFORCE, libc::SO_RCVBUF),
            (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF),
        ] {
            if socket.set(libc::SOL_SOCKET, forced, QUEUE).is_err() {
                let _ = socket.set(libc::SOL_SOCKET, plain, QUEUE);
            }
        }
        socket.set_timeout(SEND_TIMEOUT)?;
        let told = match is_v4 {
            true => [
                (libc::IPPROTO_IP, libc::IP_RECVTOS, 1),
                (libc::IPPROTO_IP, libc::IP_RECVERR, 1),
            ],
            false => [
                (libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS, 1),
                (libc::IPPROTO_IPV6, libc::IPV6_RECVERR, 1),
            ],
        };
        for (level, name, value) in told {
            socket.set(level, name, value)?;
        }
        socket.set_dont_fragment(true)?;
        Ok(socket)
    }

    /// From now on each read tells the address that datagrams were sent to.
    pub(crate) fn tell_destinations(&self) -> io::Result<()> {
        match self.is_v4 {
            true => self.set(libc::IPPROTO_IP, libc::IP_PKTINFO, 1),
            false => self.set(libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, 1),
        }
    }

    /// Another descriptor of the same socket.
    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        Ok(UdpSocket {
            file: self.file.try_clone()?,
            ..*self
        })
    }

    /// Whether the kernel may hand over many datagrams in one read.
    pub(crate) fn has_receive_offload(&self) -> bool {
        self.has_receive_offload
    }

    pub(crate) fn is_v4(&self) -> bool {
        self.is_v4
    }

    /// Whether the kernel cuts trains; sends nothing.
    pub(crate) fn has_send_offload(&self) -> bool {
        self.set(libc::SOL_UDP, libc::UDP_SEGMENT, 0).is_ok()
    }

    /// Whether outer headers forbid fragments. The path's MTU is then learned by the kernel from
    /// ICMP, and what is longer is refused with EMSGSIZE.
    pub(crate) fn set_dont_fragment(&self, is_set: bool) -> io::Result<()> {
        let (level, name) = match self.is_v4 {
            true => (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER),
            false => (libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER),
        };
        let value = match is_set {
            true => libc::IP_PMTUDISC_DO,
            false => libc::IP_PMTUDISC_DONT,
        };
        self.set(level, name, value)
    }

    fn set(&self, level: libc::c_int, name: libc::c_int, value: libc::c_int) -> io::Result<()> {
        self.set_value(level, name, &value)
    }

    fn set_timeout(&self, timeout: Duration) -> io::Result<()> {
        let value = libc::timeval {
            tv_sec: timeout.as_secs() as libc::time_t,
            tv_usec: timeout.subsec_micros().into(),
        };
        self.set_value(libc::SOL_SOCKET, libc::SO_SNDTIMEO, &value)
    }

    fn set_value<T>(&self, level: libc::c_int, name: libc::c_int, value: &T) -> io::Result<()> {
        let len = size_of::<T>() as libc::socklen_t;
        let value: *const T = value;
        // SAFETY: the value lives until the call returns, and its length is its own.
        let done =
            unsafe { libc::setsockopt(self.file.as_raw_fd(), level, name, value.cast(), len) };
        match done {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Of the sockets on one port the first one takes all that comes.
    pub(crate) fn take_all(&self) -> io::Result<()> {
        self.attach(libc::SO_ATTACH_REUSEPORT_CBPF)
    }

    /// Takes nothing.
    pub(super) fn take_none(&self) -> io::Result<()> {
        self.attach(libc::SO_ATTACH_FILTER)
    }

    /// Attaches a program of classic BPF whose answer is 0.
    fn attach(&self, name: libc::c_int) -> io::Result<()> {
        let mut program = [libc::sock_filter {
            code: (libc::BPF_RET | libc::BPF_K) as u16,
            jt: 0,
            jf: 0,
            k: 0,
        }];
        let program = libc::sock_fprog {
            len: program.len() as u16,
            filter: program.as_mut_ptr(),
        };
        self.set_value(libc::SOL_SOCKET, name, &program)
    }

    /// Sends datagrams that stand one behind the other; waits a short time for a full queue.
    pub(crate) fn send(&self, bytes: &[u8], sending: Sending<'_>) -> io::Result<()> {
        let mut control = Control::EMPTY;
        let used = control.write(self.is_v4, &sending);
        let mut part = libc::iovec {
            iov_base: bytes.as_ptr().cast_mut().cast(),
            iov_len: bytes.len(),
        };
        let storage: *const libc::sockaddr_storage = &sending.to.storage;
        // SAFETY: zeros are a valid msghdr.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        message.msg_name = storage.cast_mut().cast();
        message.msg_namelen = sending.to.len;
        message.msg_iov = &mut part;
        message.msg_iovlen = 1;
        if used > 0 {
            message.msg_control = control.0.as_mut_ptr().cast();
            message.msg_controllen = used as _;
        }
        // SAFETY: the address, the bytes and the control messages live until the call returns,
        // which only reads them.
        let sent = unsafe { libc::sendmsg(self.file.as_raw_fd(), &message, libc::MSG_NOSIGNAL) };
        match sent {
            0.. => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// One read, without waiting. `from` is where the datagrams came from.
    pub(crate) fn receive(&self, buffer: &mut [u8], from: &mut RawAddress) -> io::Result<Received> {
        let mut control = Control::EMPTY;
        let mut part = libc::iovec {
            iov_base: buffer.as_mut_ptr().cast(),
            iov_len: buffer.len(),
        };
        // SAFETY: zeros are a valid msghdr.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        let storage: *mut libc::sockaddr_storage = &mut from.storage;
        message.msg_name = storage.cast();
        message.msg_namelen = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
        message.msg_iov = &mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.0.as_mut_ptr().cast();
        message.msg_controllen = control.0.len() as _;
        let flags = libc::MSG_DONTWAIT;
        // SAFETY: the kernel writes no more than the lengths allow, to memory that lives until
        // the call returns.
        let len = unsafe { libc::recvmsg(self.file.as_raw_fd(), &mut message, flags) };
        let Ok(len) = usize::try_from(len) else {
            return Err(io::Error::last_os_error());
        };
        let mut received = Received {
            len,
            segment: len,
            traffic_class: 0,
            to: None,
        };
        // SAFETY: the kernel has filled in the message's control part.
        unsafe { received.read_control(&message) };
        if received.segment == 0 {
            received.segment = len;
        }
        Ok(received)
    }

    /// Takes one error off the queue: the address that it is about, where there was one.
    /// `None`: the queue is empty.
    pub(crate) fn take_error(&self) -> Option<Option<SocketAddr>> {
        let mut name = RawAddress::empty();
        let mut bytes = [0u8; 64];
        let mut control = Control::EMPTY;
        let mut part = libc::iovec {
            iov_base: bytes.as_mut_ptr().cast(),
            iov_len: bytes.len(),
        };
        // SAFETY: zeros are a valid msghdr.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        let storage: *mut libc::sockaddr_storage = &mut name.storage;
        message.msg_name = storage.cast();
        message.msg_namelen = name.len;
        message.msg_iov = &mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.0.as_mut_ptr().cast();
        message.msg_controllen = control.0.len() as _;
        let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
        // SAFETY: the kernel writes no more than the lengths allow, to memory that lives until
        // the call returns.
        let taken = unsafe { libc::recvmsg(self.file.as_raw_fd(), &mut message, flags) };
        (taken >= 0).then(|| name.address())
    }
}

impl AsFd for UdpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// The MTU of the path to an address, as the system knows it now.
pub(crate) fn path_mtu(to: SocketAddr) -> io::Result<usize> {
    let any: SocketAddr = match to.is_ipv4() {
        true => (Ipv4Addr::UNSPECIFIED, 0).into(),
        false => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = std::net::UdpSocket::bind(any)?;
    socket.connect(to)?;
    let (level, name) = match to.is_ipv4() {
        true => (libc::IPPROTO_IP, libc::IP_MTU),
        false => (libc::IPPROTO_IPV6, libc::IPV6_MTU),
    };
    let mut value: libc::c_int = 0;
    let mut len = size_of::<libc::c_int>() as libc::socklen_t;
    let room: *mut libc::c_int = &mut value;
    // SAFETY: the kernel writes an int to where one lives.
    let done = unsafe { libc::getsockopt(socket.as_raw_fd(), level, name, room.cast(), &mut len) };
    match done {
        0 => Ok(usize::try_from(value).unwrap_or(0)),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(is_v4: bool) -> Option<(UdpSocket, UdpSocket, RawAddress)> {
        let [a, b] = [(); 2].map(|()| UdpSocket::bind(is_v4, 0, false).ok());
        let (a, b) = (a?, b?);
        let address = rustix::net::getsockname(&b).unwrap();
        let address = SocketAddr::try_from(address).unwrap();
        let loopback: IpAddr = match is_v4 {
            true => Ipv4Addr::LOCALHOST.into(),
            false => Ipv6Addr::LOCALHOST.into(),
        };
        Some((a, b, SocketAddr::new(loopback, address.port()).into()))
    }

    #[test]
    fn a_train_arrives_with_its_traffic_class() {
        for is_v4 in [true, false] {
            let Some((a, b, to)) = pair(is_v4) else {
                continue;
            };
            let bytes: Vec<u8> = (0..2500u32).map(|n| n as u8).collect();
            let from: IpAddr = match is_v4 {
                true => Ipv4Addr::LOCALHOST.into(),
                false => Ipv6Addr::LOCALHOST.into(),
            };
            let sending = Sending {
                to: &to,
                from: Some(from),
                segment: a.has_send_offload().then_some(1000),
                traffic_class: 0xb9,
            };
            a.send(&bytes, sending).unwrap();
            let (mut all, mut buffer) = (Vec::new(), vec![0; 65536]);
            let mut from = RawAddress::empty();
            b.tell_destinations().unwrap();
            while all.len() < bytes.len() {
                match b.receive(&mut buffer, &mut from) {
                    Ok(received) => {
                        assert_eq!(received.traffic_class, 0xb9, "IPv4 {is_v4}");
                        assert_eq!(received.to, to.address().map(|to| to.ip()));
                        assert_eq!(from.address().map(|from| from.ip()), received.to);
                        all.extend_from_slice(&buffer[..received.len]);
                    }
                    Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
                }
            }
            assert_eq!(all, bytes);
        }
    }

    #[test]
    fn the_mtu_of_loopback_is_known() {
        let to = (Ipv4Addr::LOCALHOST, 9).into();
        assert!(path_mtu(to).unwrap() >= 1280);
    }
}
