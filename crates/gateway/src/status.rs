//! What `status` shows: read from counters, written as JSON to whoever connects to the socket.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use cipherlane_esp::Refusal;
use cipherlane_esp::statistics::Statistics;
use cipherlane_files::local;
use rustix::net::{SocketFlags, SocketType};
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::encapsulation;
use crate::service::Selector;
use crate::tunnel::Tunnel;

/// Readers that may wait for their turn.
const BACKLOG: i32 = 128;

/// The longest status that is read.
const LONGEST: u64 = 256 << 20;

/// A gateway at one moment.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Status {
    /// Its process.
    pub pid: u32,
    /// The TUN device.
    pub interface: String,
    /// UDP port.
    pub port: u16,
    /// Threads that carry packets.
    pub threads: usize,
    /// Which offloads the system gave, and where not, what it costs.
    pub offloads: Offloads,
    /// System calls, packets, and packets dropped by reason; all threads together.
    pub calls: Calls,
    /// The tunnels.
    pub tunnels: Vec<TunnelStatus>,
    /// What a packet costs.
    pub per_packet: PerPacket,
}

/// What a packet has cost since the start; 0 before the first one.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct PerPacket {
    /// System calls of the threads that carry packets, over packets in both directions.
    pub system_calls: f64,
    /// Copies that the gateway itself has made; those of the kernel are not among them.
    pub copies: f64,
}

/// Offloads that were probed at the start.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Offloads {
    /// Partial checksums to and from the TUN device.
    pub tun_checksum: bool,
    /// TCP super-packets to and from the TUN device.
    pub tun_tso: bool,
    /// UDP super-packets to and from the TUN device.
    pub tun_uso: bool,
    /// The kernel cuts what is sent into datagrams.
    pub udp_segment: bool,
    /// The kernel joins datagrams that are received.
    pub udp_gro: bool,
}

/// Counters of system calls and packets since the start.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Calls {
    /// Reads of the TUN device that brought something.
    pub tun_reads: u64,
    /// Packets that they stood for.
    pub tun_packets: u64,
    /// Reads whose packet had to be moved, because it had another shape than the one before.
    pub tun_moved: u64,
    /// Calls that sent.
    pub sends: u64,
    /// Datagrams sent.
    pub sent_packets: u64,
    /// Calls that received something.
    pub receives: u64,
    /// Datagrams received.
    pub received_packets: u64,
    /// Writes to the TUN device.
    pub tun_writes: u64,
    /// Packets that they stood for.
    pub written_packets: u64,
    /// Times that a thread waited.
    pub waits: u64,
    /// Calls that found nothing to do.
    pub empty_calls: u64,
    /// Packets whose bytes the gateway itself has moved; one that was moved twice counts twice.
    pub copies: u64,
    /// Times that a thread has panicked and gone on.
    pub panics: u64,
    /// Reads of the socket that a thread opened before their turn to be written came, where there
    /// are several threads.
    #[serde(default)]
    pub turns_awaited: u64,
    /// Those of them whose turn did not come in time, because of packets that were lost or late: a
    /// flow may have been written out of order.
    #[serde(default)]
    pub turns_missed: u64,
    /// Packets dropped, by reason.
    pub dropped: BTreeMap<String, u64>,
    /// Packets that SAs refused to seal or to open, by reason; those of SAs that were replaced too.
    #[serde(default)]
    pub refused: BTreeMap<String, u64>,
}

impl Calls {
    /// What a packet costs, in both directions.
    pub fn per_packet(&self) -> PerPacket {
        let calls = self.tun_reads + self.sends + self.receives + self.tun_writes + self.waits;
        let packets = self.sent_packets + self.received_packets;
        let each = |count: u64| count as f64 / packets.max(1) as f64;
        PerPacket {
            system_calls: each(calls + self.empty_calls),
            copies: each(self.copies),
        }
    }

    /// Packets in one call: read, sent, received, written.
    pub fn batches(&self) -> [f64; 4] {
        let mean = |packets: u64, calls: u64| packets as f64 / calls.max(1) as f64;
        [
            mean(self.tun_packets, self.tun_reads),
            mean(self.sent_packets, self.sends),
            mean(self.received_packets, self.receives),
            mean(self.written_packets, self.tun_writes),
        ]
    }
}

/// A tunnel.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct TunnelStatus {
    /// Its name.
    pub name: String,
    /// Address of the far end, and its port where ESP is in UDP.
    pub peer: String,
    /// What carries ESP: `udp`, or `none` for IP protocol 50.
    #[serde(default)]
    pub encapsulation: String,
    /// Cipher and integrity.
    pub transform: String,
    /// Addresses on this side.
    pub local: Vec<String>,
    /// Addresses on the far side.
    pub remote: Vec<String>,
    /// The MTU of the path to the peer.
    pub path_mtu: usize,
    /// The longest inner packet that passes in one piece.
    pub inner_mtu: usize,
    /// The SA that seals.
    pub outbound: SaStatus,
    /// The SA that opens.
    pub inbound: SaStatus,
    /// The last sequence number that is reserved.
    pub reserved: u64,
    /// Packets that the system refused to send.
    pub send_failures: u64,
    /// Why it refused the last one.
    pub last_failure: Option<String>,
}

/// An SA.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SaStatus {
    /// Its SPI.
    pub spi: u32,
    /// The last sequence number sent, or the highest one received.
    pub sequence: u64,
    /// Packets sealed or opened.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Numbers that never came.
    pub lost: u64,
    /// Whether it does nothing any more.
    pub is_over: bool,
    /// Packets refused, by reason; those that there were.
    pub refused: BTreeMap<String, u64>,
}

impl SaStatus {
    fn new(spi: u32, sequence: u64, is_over: bool, statistics: &Statistics) -> Self {
        let refused = Refusal::ALL
            .iter()
            .map(|refusal| (refusal.name(), statistics.refused[refusal.index()]))
            .filter(|(_, count)| *count > 0);
        SaStatus {
            spi,
            sequence,
            packets: statistics.packets,
            bytes: statistics.bytes,
            lost: statistics.lost,
            is_over,
            refused: refused
                .map(|(name, count)| (name.to_owned(), count))
                .collect(),
        }
    }
}

impl TunnelStatus {
    pub(crate) fn of(tunnel: &Tunnel) -> Self {
        let (outbound, inbound) = (&tunnel.outbound, &tunnel.inbound);
        let config = &tunnel.config;
        let texts = |prefixes: &[crate::Prefix], text: fn(&Selector) -> String| {
            let all = prefixes.iter().map(|prefix| prefix.to_string());
            match config.services.is_empty() {
                true => all.collect(),
                false => {
                    let named: BTreeSet<_> = config.services.iter().map(text).collect();
                    named.into_iter().collect::<Vec<_>>()
                }
            }
        };
        let failures = tunnel.send_failures.load(Relaxed);
        let last = io::Error::from_raw_os_error(tunnel.last_failure.load(Relaxed));
        TunnelStatus {
            name: tunnel.name().to_owned(),
            peer: encapsulation::shown_peer(tunnel.peer(), tunnel.config.in_udp),
            encapsulation: encapsulation::word(tunnel.config.in_udp).to_owned(),
            transform: tunnel.config.transform_name.to_owned(),
            local: texts(&config.local, Selector::local_text),
            remote: texts(&config.remote, Selector::remote_text),
            path_mtu: tunnel.path_mtu(),
            inner_mtu: tunnel.inner_mtu(),
            outbound: SaStatus::new(
                outbound.spi(),
                outbound.next_sequence() - 1,
                outbound.is_over(),
                &outbound.statistics(),
            ),
            inbound: SaStatus::new(
                inbound.spi(),
                inbound.highest_sequence(),
                inbound.is_over(),
                &inbound.statistics(),
            ),
            reserved: tunnel.mark(),
            send_failures: failures,
            last_failure: (failures > 0).then(|| last.to_string()),
        }
    }
}

/// Asks the gateway whose socket it is.
pub fn ask(socket: &Path) -> Result<Status, Error> {
    let failed = |source: io::Error| Error::System {
        doing: format!(
            "ask the gateway at '{}' (is it running, and are you allowed to?)",
            socket.display()
        ),
        source,
    };
    let text = local::ask(socket, LONGEST).map_err(failed)?;
    serde_json::from_slice(&text).map_err(|error| failed(io::Error::other(error)))
}

/// The socket's name is removed when it goes.
pub(crate) struct Socket {
    path: PathBuf,
    listener: UnixListener,
}

impl Socket {
    /// Listens. A socket that a dead gateway has left is replaced; that of a living one is not.
    pub(crate) fn bind(path: &Path) -> Result<Self, Error> {
        let failed = |source: io::Error| Error::System {
            doing: format!(
                "listen at '{}' (set 'socket' to a place that can be written)",
                path.display()
            ),
            source,
        };
        let listener = local::listener(path, SocketType::STREAM, SocketFlags::empty(), BACKLOG);
        let listener = UnixListener::from(listener.map_err(failed)?);
        Ok(Socket {
            path: path.to_owned(),
            listener,
        })
    }

    /// Answers until the gateway stops, which connects once more to say so.
    pub(crate) fn serve(&self, is_stopping: impl Fn() -> bool, status: impl Fn() -> Status) {
        let document = || Ok(serde_json::to_vec(&status())?);
        local::answer(&self.listener, is_stopping, document, |error| {
            tracing::debug!("nobody has read the status: {error}");
        });
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Wakes who waits at a socket.
pub(crate) fn nudge(path: &Path) {
    let _ = UnixStream::connect(path);
}

/// A status that another thread makes.
pub(crate) type Source = Arc<dyn Fn() -> Status + Send + Sync>;
