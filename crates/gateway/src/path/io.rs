//! The descriptors of a thread, and which offloads they have left.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::Error;
use crate::counters::{Counters, add};
use crate::sys::raw::RawSocket;
use crate::sys::tun::{TunOffloads, TunQueue};
use crate::sys::udp::{Sending, UdpSocket, path_mtu};
use crate::tunnel::Tunnel;

/// What one thread reads and writes.
pub(crate) struct Io {
    /// The number of the thread.
    pub(crate) thread: usize,
    pub(crate) tun: TunQueue,
    pub(crate) offloads: TunOffloads,
    /// What it sends by.
    pub(crate) sockets: Vec<UdpSocket>,
    /// The same for the tunnels of plain ESP.
    pub(crate) raw: Vec<RawSocket>,
    /// What it receives by, which all threads share.
    pub(crate) inlets: Inlets,
    /// Whether the kernel cuts trains of datagrams; once refused, never asked again.
    pub(crate) cuts: Arc<AtomicBool>,
    pub(crate) counters: Arc<Counters>,
}

/// Sockets that all threads read from, so that packets keep their order until they are read.
#[derive(Default)]
pub(crate) struct Inlets {
    pub(crate) sockets: Vec<UdpSocket>,
    pub(crate) raw: Vec<RawSocket>,
}

/// How trains are marked.
#[derive(Clone, Copy)]
pub(crate) struct Marks {
    pub(crate) traffic_class: u8,
    /// The kernel may cut the outer packet, because the sender of the inner one allowed it.
    pub(crate) may_fragment: bool,
}

impl Io {
    /// Opens a queue of the device, and sockets of both families where the system has them.
    pub(crate) fn open(
        name: &str,
        port: u16,
        is_shared: bool,
        families: [bool; 2],
        thread: usize,
        counters: Arc<Counters>,
    ) -> Result<Self, Error> {
        let tun = TunQueue::open(name, is_shared)?;
        let offloads = tun.negotiate();
        let mut sockets = Vec::new();
        for (is_v4, is_wanted) in [(true, families[0]), (false, families[1])] {
            if is_wanted {
                let socket = UdpSocket::bind(is_v4, port, is_shared)?;
                // Before there is another one, whose datagrams nobody would read.
                if is_shared && thread == 0 {
                    socket.take_all().map_err(|source| Error::System {
                        doing: "have one socket receive all datagrams".to_owned(),
                        source,
                    })?;
                }
                sockets.push(socket);
            }
        }
        let cuts = sockets.iter().all(UdpSocket::has_send_offload);
        Ok(Io {
            thread,
            tun,
            offloads,
            sockets,
            raw: Vec::new(),
            inlets: Inlets::default(),
            cuts: Arc::new(AtomicBool::new(cuts)),
            counters,
        })
    }

    /// Opens raw sockets of those families; only those of the first thread receive.
    pub(crate) fn open_raw(&mut self, families: [bool; 2]) -> Result<(), Error> {
        for (is_v4, is_wanted) in [(true, families[0]), (false, families[1])] {
            if is_wanted {
                let socket = RawSocket::open(is_v4, self.thread == 0);
                self.raw.push(socket.map_err(|source| {
                    Error::System {
                        doing: "open a socket for plain ESP (encapsulation = \"none\" takes \
                            CAP_NET_RAW)"
                            .to_owned(),
                        source,
                    }
                })?);
            }
        }
        Ok(())
    }

    /// What the first thread's sockets receive, for another thread or itself.
    pub(crate) fn inlets(&self) -> io::Result<Inlets> {
        Ok(Inlets {
            sockets: self
                .sockets
                .iter()
                .map(UdpSocket::try_clone)
                .collect::<Result<_, _>>()?,
            raw: self
                .raw
                .iter()
                .map(RawSocket::try_clone)
                .collect::<Result<_, _>>()?,
        })
    }

    /// Sends sealed packets of `stride` bytes each, the last one may be shorter, to the tunnel's
    /// peer.
    #[inline]
    pub(crate) fn send(&self, tunnel: &Tunnel, bytes: &[u8], stride: usize, marks: Marks) {
        if !tunnel.config.in_udp {
            self.send_plain(tunnel, bytes, stride, marks);
            return;
        }
        let count = bytes.len().div_ceil(stride);
        let Some(socket) = self.socket(tunnel) else {
            self.fail(
                tunnel,
                &io::Error::from_raw_os_error(libc::EAFNOSUPPORT),
                count,
            );
            return;
        };
        if marks.may_fragment {
            let _ = socket.set_dont_fragment(false);
        }
        if count == 1 || self.cuts.load(Relaxed) {
            match self.send_once(socket, tunnel, bytes, stride, marks) {
                Ok(()) => add(&self.counters.sent_packets, count),
                Err(error) if count > 1 && self.is_refusal(tunnel, &error) => {
                    tracing::warn!(
                        "trains of datagrams (UDP_SEGMENT) are refused: {error}; each datagram is \
                         sent by itself from now on, which is slow: look at the offloads of the \
                         outer interface"
                    );
                    self.cuts.store(false, Relaxed);
                }
                Err(error) => self.fail(tunnel, &error, count),
            }
        }
        if count > 1 && !self.cuts.load(Relaxed) {
            for datagram in bytes.chunks(stride) {
                match self.send_once(socket, tunnel, datagram, stride, marks) {
                    Ok(()) => add(&self.counters.sent_packets, 1),
                    Err(error) => self.fail(tunnel, &error, 1),
                }
            }
        }
        if marks.may_fragment {
            let _ = socket.set_dont_fragment(true);
        }
    }

    /// The socket of the family of the tunnel's peer.
    #[inline]
    pub(crate) fn socket(&self, tunnel: &Tunnel) -> Option<&UdpSocket> {
        let is_v4 = tunnel.peer().is_ipv4();
        self.sockets.iter().find(|socket| socket.is_v4() == is_v4)
    }

    fn send_once(
        &self,
        socket: &UdpSocket,
        tunnel: &Tunnel,
        bytes: &[u8],
        stride: usize,
        marks: Marks,
    ) -> io::Result<()> {
        let sending = Sending {
            to: &tunnel.to,
            from: tunnel.config.source,
            segment: (bytes.len() > stride).then_some(stride as u16),
            traffic_class: marks.traffic_class,
        };
        add(&self.counters.sends, 1);
        match socket.send(bytes, sending) {
            // An earlier datagram was answered by ICMP, and the socket says so once.
            Err(error) if is_about_another(&error) => {
                self.take_errors();
                add(&self.counters.sends, 1);
                socket.send(bytes, sending)
            }
            done => done,
        }
    }

    /// Whether a train was refused because the kernel does not cut it, and not because the path
    /// has become narrower.
    #[cold]
    fn is_refusal(&self, tunnel: &Tunnel, error: &io::Error) -> bool {
        let is_refusal = matches!(
            error.raw_os_error(),
            Some(libc::EIO | libc::EINVAL | libc::EOPNOTSUPP)
        );
        is_refusal && !self.look_at_path(tunnel)
    }

    #[cold]
    pub(super) fn fail(&self, tunnel: &Tunnel, error: &io::Error, count: usize) {
        if matches!(error.raw_os_error(), Some(libc::EMSGSIZE | libc::EINVAL)) {
            self.look_at_path(tunnel);
        }
        tunnel.count_failure(error, count);
        self.counters.lose(crate::counters::Loss::NotSent, count);
    }

    /// Asks the system for the path's MTU; whether it has changed.
    #[cold]
    pub(crate) fn look_at_path(&self, tunnel: &Tunnel) -> bool {
        let Ok(path) = path_mtu(tunnel.peer()) else {
            return false;
        };
        let is_news = tunnel.learn_path_mtu(path);
        if is_news {
            tracing::info!(
                tunnel = tunnel.name(),
                path_mtu = path,
                inner_mtu = tunnel.inner_mtu(),
                "the path's MTU has changed"
            );
        }
        is_news
    }

    /// Empties the error queues of all sockets; the addresses that errors were about, in order,
    /// each once.
    #[cold]
    pub(crate) fn take_errors(&self) -> Vec<IpAddr> {
        let mut about = Vec::new();
        for socket in self.sockets.iter().chain(&self.inlets.sockets) {
            while let Some(address) = socket.take_error() {
                about.extend(address.map(|address| address.ip()));
            }
        }
        for socket in self.raw.iter().chain(&self.inlets.raw) {
            while let Some(address) = socket.take_error() {
                about.extend(address.map(|address| address.ip()));
            }
        }
        about.sort_unstable();
        about.dedup();
        about
    }
}

/// Whether an error stands for an ICMP message about an earlier datagram.
pub(super) fn is_about_another(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::ECONNREFUSED | libc::EHOSTUNREACH | libc::ENETUNREACH | libc::EPROTO)
    )
}
