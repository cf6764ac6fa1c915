//! A gateway that runs: its threads, and what changes while it does.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use cipherlane_core::Framework;
use rustix::event::{EventfdFlags, eventfd};

use crate::control::ports::Ports;
use crate::control::server::Control;
use crate::counters::Counters;
use crate::keeper::{Keeper, Paths, Reserve};
use crate::metrics::{self, Server};
use crate::path::{io::Io, wait::Waiter, worker};
use crate::shared::{Shared, lock};
use crate::state::{FileStore, Store};
use crate::status::{self, Offloads, Socket, Source, Status, TunnelStatus};
use crate::sys::steering::Steering;
use crate::sys::udp::UdpSocket;
use crate::table::Table;
use crate::tunnel::Tunnel;
use crate::{Config, Error, TunnelConfig};

/// A gateway.
pub struct Gateway {
    shared: Arc<Shared>,
    reserve: Arc<Mutex<Reserve>>,
    config: Config,
    status: Source,
    socket: PathBuf,
    threads: Vec<(JoinHandle<()>, Arc<OwnedFd>)>,
    helpers: Vec<JoinHandle<()>>,
    metrics: Option<SocketAddr>,
}

/// What a changed configuration did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Tunnels that were not there before.
    pub added: usize,
    /// Tunnels that are not there any more.
    pub removed: usize,
    /// Tunnels whose SAs were made anew.
    pub changed: usize,
    /// Tunnels that have noticed nothing.
    pub unchanged: usize,
}

impl Gateway {
    /// Opens devices and sockets, reserves sequence numbers, and starts the threads. Flows keep to
    /// one queue of the device by `steering`, where there are several.
    pub fn start(
        framework: &Framework,
        config: Config,
        steering: Option<Steering>,
    ) -> Result<Gateway, Error> {
        let store = match &config.state {
            Some(path) => Some(Box::new(FileStore::open(path)?) as Box<dyn Store>),
            None => None,
        };
        Gateway::start_with(framework, config, store, steering)
    }

    /// As [`start`](Self::start), with the sequence numbers kept elsewhere than in a file.
    pub fn start_with(
        framework: &Framework,
        config: Config,
        store: Option<Box<dyn Store>>,
        steering: Option<Steering>,
    ) -> Result<Gateway, Error> {
        let mut reserve = Reserve::new(store);
        let socket = Socket::bind(&config.socket)?;
        let metrics = config.metrics.map(Server::bind).transpose()?;
        let made = config
            .tunnels
            .iter()
            .map(|tunnel| make(framework, tunnel, (config.port, config.threads), &reserve));
        let tunnels = made.collect::<Result<Vec<_>, _>>()?;
        let mut paths = Paths::default();
        for tunnel in &tunnels {
            if let Some(path) = paths.mtu(tunnel.peer()) {
                tunnel.learn_path_mtu(path);
            }
        }
        reserve.refill(&tunnels.iter().collect::<Vec<_>>())?;
        let table = Table::new(tunnels, Arc::default());
        let mut families = config.families(true);
        families[0] |= config.tunnels.is_empty();
        if config.control.is_some() {
            // Who is the peer is known later where IKE says it.
            families = [true, false].map(Ports::has_family);
        }
        let control = Control::bind(&config)?;
        let inbox = control.as_ref().map(Control::inbox);
        let shared = Arc::new(Shared::new(&config, table, inbox, steering));
        let mut ios = Vec::new();
        for thread in 0..config.threads {
            let counters = Arc::new(Counters::default());
            let name = &config.interface.name;
            let is_shared = shared.is_shared();
            let mut io = Io::open(name, config.port, is_shared, families, thread, counters)?;
            io.open_raw(config.families(false))?;
            ios.push(io);
        }
        shared.steer(&ios[0].tun);
        shared.set_up_interface()?;
        let system = |doing: &str| {
            let doing = doing.to_owned();
            |source| Error::System { doing, source }
        };
        let control = match control {
            Some(control) => Some(control.open(framework, &shared, &ios)?),
            None => None,
        };
        let inlets = ios
            .iter()
            .map(|_| ios[0].inlets())
            .collect::<Result<Vec<_>, _>>();
        let inlets = inlets.map_err(system("copy a socket"))?;
        for (io, inlets) in ios.iter_mut().zip(inlets) {
            io.inlets = inlets;
        }
        let copies = ios[0].sockets.iter().map(UdpSocket::try_clone);
        let copies = copies
            .collect::<std::io::Result<Vec<_>>>()
            .map_err(system("copy a socket"))?;
        let counters: Vec<_> = ios.iter().map(|io| io.counters.clone()).collect();
        let status = source(&shared, &ios[0], counters);
        let mut threads = Vec::new();
        for (number, io) in ios.into_iter().enumerate() {
            let wake = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC);
            let wake = wake.map_err(|error| system("make a thread wakeable")(error.into()))?;
            let wake = Arc::new(wake);
            let waiter = Waiter::new(&io, &wake);
            let waiter = waiter.map_err(system("wait for packets"))?;
            let (shared, woken) = (shared.clone(), wake.clone());
            let thread = spawn(&format!("gateway-{number}"), move || {
                worker::run(&shared, io, &waiter, &woken);
            })?;
            threads.push((thread, wake));
        }
        if let Some(order) = &shared.order {
            let wakes = threads.iter().map(|(_, wake)| wake.clone());
            order.sleepers.set_wakes(wakes);
        }
        let reserve = Arc::new(Mutex::new(reserve));
        let keeper = Keeper {
            shared: shared.clone(),
            reserve: reserve.clone(),
            sockets: copies,
        };
        let (asked, answers) = (shared.clone(), status.clone());
        let path = config.socket.clone();
        let mut helpers = vec![
            spawn("gateway-keeper", move || keeper.run())?,
            spawn("gateway-status", move || {
                socket.serve(|| asked.is_stopping(), || answers());
            })?,
        ];
        let asked_for_metrics = metrics.as_ref().and_then(|server| server.address().ok());
        if let Some(server) = metrics {
            let (asked, answers) = (shared.clone(), status.clone());
            helpers.push(spawn("gateway-metrics", move || {
                server.serve(|| asked.is_stopping(), || metrics::text(&answers()));
            })?);
        }
        if let Some(server) = control {
            helpers.push(spawn("gateway-control", move || server.run())?);
        }
        Ok(Gateway {
            shared,
            reserve,
            config,
            status,
            socket: path,
            threads,
            helpers,
            metrics: asked_for_metrics,
        })
    }

    /// What it has done.
    pub fn status(&self) -> Status {
        (self.status)()
    }

    /// Takes a changed configuration. A tunnel that has not changed keeps its SAs and loses no
    /// packet. With an error everything stays as it was.
    pub fn reload(&mut self, framework: &Framework, config: Config) -> Result<Changes, Error> {
        let fixed = |config: &Config| {
            (
                config.port,
                config.threads,
                config.state.clone(),
                config.socket.clone(),
                config.metrics,
                config.control.clone(),
                config.interface.clone(),
            )
        };
        let families = |config: &Config| [config.families(true), config.families(false)].concat();
        let has_new_family = families(&config)
            .iter()
            .zip(families(&self.config))
            .any(|(new, old)| *new && !old);
        if fixed(&config) != fixed(&self.config) || has_new_family {
            return Err(Error::System {
                doing:
                    "change port, threads, state, socket, metrics, control, interface or the first \
                        peer of a family or an encapsulation while it runs; start the gateway \
                        again for that"
                        .to_owned(),
                source: std::io::ErrorKind::InvalidInput.into(),
            });
        }
        let old = self.shared.table();
        let before: HashMap<&str, &Arc<Tunnel>> = old
            .configured()
            .iter()
            .map(|tunnel| (tunnel.name(), tunnel))
            .collect();
        let mut changes = Changes::default();
        let mut reserve = lock(&self.reserve);
        // The keys of tunnels that go or change may be those of tunnels that come.
        let wanted: HashMap<&str, &TunnelConfig> = config
            .tunnels
            .iter()
            .map(|tunnel| (tunnel.name.as_str(), tunnel))
            .collect();
        let stays = |tunnel: &Arc<Tunnel>| wanted.get(tunnel.name()) == Some(&&tunnel.config);
        let leaving: Vec<_> = old
            .configured()
            .iter()
            .filter(|t| !stays(t))
            .cloned()
            .collect();
        let mut tunnels = Vec::with_capacity(config.tunnels.len());
        let mut new = Vec::new();
        let mut paths = Paths::default();
        for wanted in &config.tunnels {
            match before.get(wanted.name.as_str()) {
                Some(tunnel) if tunnel.config == *wanted => {
                    changes.unchanged += 1;
                    tunnels.push((*tunnel).clone());
                }
                known => {
                    match known {
                        Some(_) => changes.changed += 1,
                        None => changes.added += 1,
                    }
                    let own = (config.port, config.threads);
                    let tunnel = make(framework, wanted, own, &reserve)?;
                    if let Some(path) = paths.mtu(tunnel.peer()) {
                        tunnel.learn_path_mtu(path);
                    }
                    new.push(tunnel.clone());
                    tunnels.push(tunnel);
                }
            }
        }
        changes.removed = leaving.len() - changes.changed.min(leaving.len());
        reserve.refill(&new.iter().collect::<Vec<_>>())?;
        self.shared.replace(tunnels);
        drop(reserve);
        self.wake_threads();
        self.shared.set_up_interface()?;
        let routes: HashSet<_> = config.tunnels.iter().flat_map(|t| &t.routes).collect();
        let gone: Vec<_> = leaving
            .iter()
            .flat_map(|tunnel| tunnel.config.routes.iter().copied())
            .filter(|route| !routes.contains(route))
            .collect();
        let removed = crate::link::remove_routes(&self.config.interface, &gone);
        if let Err(error) = removed {
            tracing::warn!("routes of tunnels that are gone could not be removed: {error}");
        }
        self.config = config;
        Ok(changes)
    }

    fn wake_threads(&self) {
        for (_, wake) in &self.threads {
            // It can only fail where the thread is woken already.
            let _ = rustix::io::write(wake, &1u64.to_ne_bytes());
        }
    }

    /// Stops the threads, and gives back the sequence numbers that were not used.
    pub fn stop(mut self) -> Result<(), Error> {
        self.shared.stop();
        self.wake_threads();
        status::nudge(&self.socket);
        if let Some(address) = self.metrics {
            metrics::nudge(address);
        }
        let mut is_sound = true;
        for (thread, _) in self.threads.drain(..) {
            is_sound &= thread.join().is_ok();
        }
        for helper in self.helpers.drain(..) {
            is_sound &= helper.join().is_ok();
        }
        // A thread that panicked may have used numbers that nobody knows of.
        match is_sound {
            true => lock(&self.reserve).give_back(self.shared.table().configured()),
            false => Ok(()),
        }
    }

    /// Whether a thread has ended, which none should.
    pub fn is_broken(&self) -> bool {
        let threads = self.threads.iter().map(|(thread, _)| thread);
        threads.chain(&self.helpers).any(JoinHandle::is_finished)
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, Error> {
    let builder = std::thread::Builder::new().name(name.to_owned());
    builder.spawn(work).map_err(|source| Error::System {
        doing: "start a thread".to_owned(),
        source,
    })
}

/// A tunnel of a gateway with its `own` port and number of threads. Its SAs go on after what was
/// reserved or received before.
fn make(
    framework: &Framework,
    config: &TunnelConfig,
    own: (u16, usize),
    reserve: &Reserve,
) -> Result<Arc<Tunnel>, Error> {
    use crate::state::Identity;
    let of = |sa: &crate::config::SaConfig| reserve.mark(Identity::of(&sa.key, config.transform));
    let (sent, received) = (of(&config.outbound), of(&config.inbound));
    Tunnel::new(framework, config.clone(), own, (sent, sent), received).map(Arc::new)
}

fn source(shared: &Arc<Shared>, io: &Io, counters: Vec<Arc<Counters>>) -> Source {
    let shared = shared.clone();
    let tun = io.offloads;
    let offloads = Offloads {
        tun_checksum: tun.checksum,
        tun_tso: tun.tso,
        tun_uso: tun.uso,
        udp_segment: io.cuts.load(Relaxed),
        udp_gro: io.sockets.iter().all(UdpSocket::has_receive_offload),
    };
    let cuts = io.cuts.clone();
    Arc::new(move || {
        let mut status = Status {
            pid: std::process::id(),
            interface: shared.interface.name.clone(),
            port: shared.port,
            threads: shared.threads,
            offloads: offloads.clone(),
            ..Status::default()
        };
        status.offloads.udp_segment = cuts.load(Relaxed);
        for counters in &counters {
            counters.add_to(&mut status.calls);
        }
        status.per_packet = status.calls.per_packet();
        let table = shared.table();
        status.tunnels = table
            .tunnels()
            .iter()
            .map(|t| TunnelStatus::of(t))
            .collect();
        status
    })
}
