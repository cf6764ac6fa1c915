//! A tunnel: its two SAs, its peer, its selectors, and what is known of the path.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, AtomicUsize, Ordering::Relaxed};

use cipherlane_core::Framework;
use cipherlane_esp::headers::{Ecn, Fields, Tunnel as Outer};
use cipherlane_esp::order::Turns;
use cipherlane_esp::{Encapsulation, InboundSa, OutboundSa, SaParameters};

use crate::Error;
use crate::config::TunnelConfig;
use crate::control::Child;
use crate::selector::Prefix;
use crate::service::Flow;
use crate::state::{Block, Identity};
use crate::sys::sockaddr::RawAddress;

/// The least MTU that is believed of a path: IPv4 hosts take 576 bytes (RFC 791), and what a
/// forged ICMP message says below that is not worth a tunnel.
const LEAST_PATH: usize = 576;

/// A tunnel that is up.
pub(crate) struct Tunnel {
    pub(crate) config: TunnelConfig,
    pub(crate) to: RawAddress,
    pub(crate) outbound: Arc<OutboundSa>,
    pub(crate) inbound: Arc<InboundSa>,
    /// Whose turn it is to write what was opened; `None`: one thread opens all.
    pub(crate) turns: Option<Arc<Turns>>,
    /// Where IKE has made it.
    pub(crate) child: Option<Child>,
    pub(crate) outbound_identity: Identity,
    pub(crate) inbound_identity: Identity,
    outer: Outer,
    /// The last sequence number that may be sent.
    mark: AtomicU64,
    /// With fewer reserved numbers than this, more are asked for.
    low: AtomicU64,
    /// Whether the mark was asked to be raised and was not yet.
    is_short: AtomicBool,
    path_mtu: AtomicUsize,
    inner_mtu: AtomicUsize,
    /// Packets that the system refused to send, and its last reason.
    pub(crate) send_failures: AtomicU64,
    pub(crate) last_failure: AtomicI32,
}

impl Tunnel {
    /// Makes the SAs. They go on after the numbers given, by `state`.
    pub(crate) fn new(
        framework: &Framework,
        config: TunnelConfig,
        (port, threads): (u16, usize),
        (last_sent, mark): (u64, u64),
        last_received: u64,
    ) -> Result<Self, Error> {
        let failed = |direction| {
            let tunnel = config.name.clone();
            move |source| Error::Association {
                tunnel,
                direction,
                source,
            }
        };
        let encapsulation = match config.in_udp {
            true => Encapsulation::Udp {
                source: port,
                destination: config.peer.port(),
            },
            false => Encapsulation::None,
        };
        let parameters = |end: &crate::config::SaConfig, last: u64| {
            let keys = end.key.keys(config.transform);
            let mut parameters = SaParameters::new(end.spi, config.transform, keys);
            parameters.esn = config.esn;
            parameters.replay_window = config.window;
            parameters.encapsulation = encapsulation;
            parameters.resume_after(last);
            parameters
        };
        let outbound = OutboundSa::new(framework, parameters(&config.outbound, last_sent));
        let outbound = outbound.map_err(failed("out"))?;
        let inbound = InboundSa::new(framework, parameters(&config.inbound, last_received));
        let inbound = inbound.map_err(failed("in"))?;
        let (outbound, inbound) = (Arc::new(outbound), Arc::new(inbound));
        Ok(Self::assemble(
            config, outbound, inbound, mark, threads, None,
        ))
    }

    /// Of SAs that IKE has made; `before` is the tunnel in whose place it comes.
    pub(crate) fn of_child(
        config: TunnelConfig,
        outbound: Arc<OutboundSa>,
        inbound: Arc<InboundSa>,
        threads: usize,
        child: Child,
        before: Option<&Arc<Tunnel>>,
    ) -> Self {
        // IKE's keys are fresh and end with the process: nothing has to be reserved.
        let mark = u64::MAX >> 1;
        let mut tunnel = Self::assemble(config, outbound, inbound, mark, threads, Some(child));
        if let Some(before) = before {
            // Threads may hold packets of the same SA.
            tunnel.turns.clone_from(&before.turns);
        }
        match before.filter(|before| before.peer() == tunnel.peer()) {
            Some(before) => {
                tunnel.learn_path_mtu(before.path_mtu());
                let failures = before.send_failures.load(Relaxed);
                tunnel.send_failures.store(failures, Relaxed);
                let last = before.last_failure.load(Relaxed);
                tunnel.last_failure.store(last, Relaxed);
            }
            None => {
                if let Ok(path) = crate::sys::udp::path_mtu(tunnel.peer()) {
                    tunnel.learn_path_mtu(path);
                }
            }
        }
        tunnel
    }

    fn assemble(
        config: TunnelConfig,
        outbound: Arc<OutboundSa>,
        inbound: Arc<InboundSa>,
        mark: u64,
        threads: usize,
        child: Option<Child>,
    ) -> Self {
        let mut outer = Outer::new(config.peer.ip(), config.peer.ip());
        outer.dscp = config.dscp;
        outer.ecn = config.ecn;
        let tunnel = Tunnel {
            to: config.peer.into(),
            outbound_identity: Identity::of(&config.outbound.key, config.transform),
            inbound_identity: Identity::of(&config.inbound.key, config.transform),
            outbound,
            inbound,
            turns: (threads > 1).then(|| Arc::new(Turns::new(threads))),
            child,
            outer,
            config,
            mark: AtomicU64::new(mark),
            low: AtomicU64::new(Block::FIRST.low()),
            is_short: AtomicBool::new(false),
            path_mtu: AtomicUsize::new(0),
            inner_mtu: AtomicUsize::new(0),
            send_failures: AtomicU64::new(0),
            last_failure: AtomicI32::new(0),
        };
        tunnel.learn_path_mtu(1500);
        tunnel
    }

    /// Name in the configuration.
    pub(crate) fn name(&self) -> &str {
        &self.config.name
    }

    /// Address of the far end, and its port, which is 0 for plain ESP.
    pub(crate) fn peer(&self) -> SocketAddr {
        self.config.peer
    }

    /// Bytes of an outer IP header, and that of UDP where there is one.
    fn outer_headers(&self) -> usize {
        let ip = if self.peer().is_ipv4() { 20 } else { 40 };
        let udp = if self.config.in_udp { 8 } else { 0 };
        ip + udp
    }

    /// The longest inner packet of a path of `path` bytes.
    fn fitting(&self, path: usize) -> usize {
        let room = path.saturating_sub(self.outer_headers());
        let mut inner = room.saturating_sub(self.outbound.sealed_len(0));
        // The padding makes steps of a block; the start is at most one of them below.
        while self.outbound.sealed_len(inner + 1) <= room {
            inner += 1;
        }
        inner
    }

    /// What the system knows of the path; whether that is news.
    pub(crate) fn learn_path_mtu(&self, path: usize) -> bool {
        let path = path.clamp(LEAST_PATH, usize::from(u16::MAX));
        self.inner_mtu.store(self.fitting(path), Relaxed);
        self.path_mtu.swap(path, Relaxed) != path
    }

    pub(crate) fn path_mtu(&self) -> usize {
        self.path_mtu.load(Relaxed)
    }

    /// The longest inner packet that passes in one piece.
    #[inline]
    pub(crate) fn inner_mtu(&self) -> usize {
        self.inner_mtu.load(Relaxed)
    }

    /// The outer TOS or traffic class for an inner one.
    #[inline]
    pub(crate) fn outer_class(&self, inner: u8) -> u8 {
        self.outer.traffic_class(Fields {
            dscp: inner >> 2,
            ecn: Ecn::of(inner),
            df: true,
            hop_limit: 0,
        })
    }

    /// Whether `count` more packets may be sealed; `wake` is called where the reserve is low.
    #[inline]
    pub(crate) fn may_seal(&self, count: usize, wake: impl FnOnce()) -> bool {
        let mark = self.mark.load(Relaxed);
        let next = self.outbound.next_sequence();
        let left = (mark + 1).saturating_sub(next);
        if left < self.low.load(Relaxed) && !self.is_short.swap(true, Relaxed) {
            wake();
        }
        count as u64 <= left
    }

    /// Whether a sealed packet may be sent. Threads may have taken numbers at the same time, so
    /// this is asked after sealing.
    #[inline]
    pub(crate) fn is_reserved(&self, sequence: u64) -> bool {
        sequence <= self.mark.load(Relaxed)
    }

    pub(crate) fn mark(&self) -> u64 {
        self.mark.load(Relaxed)
    }

    pub(crate) fn is_short(&self) -> bool {
        self.is_short.load(Relaxed)
    }

    /// The numbers up to `mark` are on the disk, the last of them by `block`.
    pub(crate) fn raise(&self, mark: u64, block: Block) {
        self.mark.fetch_max(mark, Relaxed);
        self.low.store(block.low(), Relaxed);
        self.is_short.store(false, Relaxed);
    }

    /// Whether the peer may have sent such a packet.
    #[inline]
    pub(crate) fn admits(&self, flow: &Flow) -> bool {
        if self.has_services() {
            let mut selectors = self.config.services.iter();
            return selectors.any(|selector| selector.admits(flow));
        }
        let holds = |selectors: &[Prefix], address| selectors.iter().any(|p| p.holds(address));
        holds(&self.config.remote, flow.source) && holds(&self.config.local, flow.destination)
    }

    /// Whether protocols and ports decide about its packets, and not addresses alone.
    #[inline]
    pub(crate) fn has_services(&self) -> bool {
        !self.config.services.is_empty()
    }

    /// The system refused to send.
    #[cold]
    pub(crate) fn count_failure(&self, error: &std::io::Error, packets: usize) {
        self.last_failure
            .store(error.raw_os_error().unwrap_or(0), Relaxed);
        self.send_failures.fetch_add(packets as u64, Relaxed);
    }
}
