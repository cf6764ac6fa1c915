//! The thread that listens at the control socket, and hands messages, datagrams and events over.

mod commands;

use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cipherlane_core::Framework;
use cipherlane_files::local;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::socket_peercred;
use rustix::net::{RecvFlags, SendFlags, SocketFlags, SocketType, accept_with, recv, send};
use zeroize::Zeroize;

pub use self::commands::keep_keys_in;
use super::database::Database;
use super::inbox::{Inbox, Notice};
use super::message::{Datagram, Event, LONGEST, LONGEST_DATAGRAM};
use super::ports::Ports;
use super::request::Role;
use super::routes::Routes;
use crate::path::io::Io;
use crate::selector::Prefix;
use crate::shared::Shared;
use crate::{Config, Error};

/// The most connections: an IKE daemon has three, and a new one may come before the old one has gone.
const CONNECTIONS: usize = 16;

/// How often it looks at what grows old.
const TICK: Duration = Duration::from_secs(1);

/// How long SAs stay when the daemon that made them has gone.
const GRACE: Duration = Duration::from_secs(60);

/// The most events that wait for a daemon.
const EVENTS: usize = 4096;

/// The most datagrams that are read from one socket before others are looked at.
const TURNS: usize = 16;

/// A control socket that nobody serves yet.
pub(crate) struct Control {
    listener: OwnedFd,
    path: PathBuf,
    inbox: Arc<Inbox>,
}

impl Control {
    /// Listens, where the configuration wants it. A socket that a dead gateway has left is
    /// replaced; that of a living one is not.
    pub(crate) fn bind(config: &Config) -> Result<Option<Control>, Error> {
        let Some(path) = &config.control else {
            return Ok(None);
        };
        let failed = |source: io::Error| Error::System {
            doing: format!(
                "listen at '{}' (set 'control' to a place that can be written)",
                path.display()
            ),
            source,
        };
        let kind = SocketType::SEQPACKET;
        let listener = local::listener(path, kind, SocketFlags::NONBLOCK, CONNECTIONS as i32);
        let listener = listener.map_err(failed)?;
        let inbox = Arc::new(Inbox::new().map_err(failed)?);
        Ok(Some(Control {
            listener,
            path: path.clone(),
            inbox,
        }))
    }

    pub(crate) fn inbox(&self) -> Arc<Inbox> {
        self.inbox.clone()
    }

    /// Opens IKE's ports.
    pub(crate) fn open(
        self,
        framework: &Framework,
        shared: &Arc<Shared>,
        ios: &[Io],
    ) -> Result<Server, Error> {
        let mut life = [0; 8];
        getrandom::fill(&mut life).map_err(|error| Error::System {
            doing: "have random numbers".to_owned(),
            source: io::Error::other(error),
        })?;
        Ok(Server {
            ports: Ports::open(shared.port, ios)?,
            database: Database::new(framework.clone(), self.inbox.clone(), ios.len()),
            routes: Routes::new(&shared.interface.name),
            shared: shared.clone(),
            control: self,
            life: u64::from_ne_bytes(life),
            connections: Vec::new(),
            events: VecDeque::new(),
            orphaned: None,
            fitted: BTreeSet::new(),
            left_out: Vec::new(),
            buffer: vec![0; LONGEST_DATAGRAM],
        })
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// A client; its role is known from its first message on.
struct Connection {
    socket: OwnedFd,
    role: Option<Role>,
    is_over: bool,
}

/// The control thread.
pub(crate) struct Server {
    control: Control,
    shared: Arc<Shared>,
    ports: Ports,
    database: Database,
    routes: Routes,
    /// Tells a client whether the gateway is the one that it knows.
    life: u64,
    connections: Vec<Connection>,
    events: VecDeque<Vec<u8>>,
    /// Since when nobody commands, while there are SAs.
    orphaned: Option<Instant>,
    /// The tunnels, and their MTUs, that the interface was set up for.
    fitted: BTreeSet<(String, usize)>,
    /// Prefixes that are not routed, and that the log has.
    left_out: Vec<Prefix>,
    buffer: Vec<u8>,
}

impl Server {
    /// Works until the gateway stops.
    pub(crate) fn run(mut self) {
        let mut last_tick = Instant::now();
        let mut device = crate::link::index(&self.shared.interface.name).ok();
        loop {
            let ready = self.wait();
            if self.shared.is_stopping() {
                return;
            }
            self.take_notices();
            let ports = self.ports.ike().len();
            for number in (0..ports).filter(|number| ready[2 + number]) {
                self.receive_ike(number);
            }
            for number in 0..self.connections.len() {
                if ready.get(2 + ports + number) == Some(&true) {
                    self.hear(number);
                }
            }
            if ready[1] {
                self.accept();
            }
            if last_tick.elapsed() >= TICK {
                last_tick = Instant::now();
                if self.database.tick() {
                    self.publish();
                }
                let now = crate::link::index(&self.shared.interface.name).ok();
                if now.is_some() && now != device {
                    self.routes.repair();
                    device = now;
                }
            }
            self.send_events();
            self.connections.retain(|connection| !connection.is_over);
            self.look_for_orphans();
        }
    }

    /// Waits for something to do: what is readable of the inbox, the listener, the ports and the
    /// connections.
    fn wait(&self) -> Vec<bool> {
        let mut files = vec![
            PollFd::new(self.control.inbox.waker(), PollFlags::IN),
            PollFd::new(&self.control.listener, PollFlags::IN),
        ];
        let ports = self.ports.ike().iter();
        files.extend(ports.map(|socket| PollFd::new(socket, PollFlags::IN)));
        let connections = self.connections.iter();
        files.extend(connections.map(|one| PollFd::new(&one.socket, PollFlags::IN)));
        let limit = Timespec {
            tv_sec: TICK.as_secs() as i64,
            tv_nsec: 0,
        };
        let _ = poll(&mut files, Some(&limit));
        let ready = files.iter().map(|file| !file.revents().is_empty());
        ready.collect()
    }

    fn take_notices(&mut self) {
        for notice in self.control.inbox.take() {
            match notice {
                Notice::Datagram { from, to, payload } => self.deliver(&Datagram {
                    source: from,
                    destination: to,
                    payload: &payload,
                }),
                Notice::Event(event) => self.tell(event),
                Notice::Expired { serial, is_hard } => {
                    if let Some(id) = self.database.find(serial) {
                        self.tell(Event::Expire { id, is_hard });
                    }
                }
            }
        }
    }

    fn tell(&mut self, event: Event) {
        if self.events.len() < EVENTS {
            self.events.push_back(event.bytes());
        }
    }

    fn send_events(&mut self) {
        let mut connections = self.connections.iter();
        let Some(connection) = connections.find(|one| one.is(Role::Events)) else {
            return;
        };
        while let Some(event) = self.events.front() {
            if !connection.send(event) {
                break;
            }
            self.events.pop_front();
        }
    }

    /// Gives a datagram of IKE to who wants it. IKE sends again what is lost.
    fn deliver(&self, datagram: &Datagram<'_>) {
        let mut connections = self.connections.iter();
        if let Some(connection) = connections.find(|one| one.is(Role::Datagrams)) {
            connection.send(&datagram.bytes());
        }
    }

    fn receive_ike(&mut self, number: usize) {
        let mut buffer = std::mem::take(&mut self.buffer);
        for _ in 0..TURNS {
            let deliver = |datagram: Datagram<'_>| self.deliver(&datagram);
            if !self.ports.receive(number, &mut buffer, deliver) {
                break;
            }
        }
        self.buffer = buffer;
    }

    fn accept(&mut self) {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = match accept_with(&self.control.listener, flags) {
            Ok(socket) => socket,
            Err(error) => {
                tracing::debug!("nobody was accepted at the control socket: {error}");
                // Out of descriptors, for one: accept would fail again at once.
                std::thread::sleep(Duration::from_millis(10));
                return;
            }
        };
        let own = rustix::process::geteuid();
        match socket_peercred(&socket) {
            Ok(peer) if peer.uid.is_root() || peer.uid == own => {}
            Ok(peer) => {
                tracing::warn!(
                    uid = peer.uid.as_raw(),
                    "somebody else than root wants to control the gateway, and may not"
                );
                return;
            }
            Err(_) => return,
        }
        if self.connections.len() >= CONNECTIONS {
            tracing::warn!("too many clients at the control socket; the new one is turned away");
            return;
        }
        self.connections.push(Connection {
            socket,
            role: None,
            is_over: false,
        });
    }

    /// A client has said something, or has gone.
    fn hear(&mut self, number: usize) {
        let mut buffer = std::mem::take(&mut self.buffer);
        for _ in 0..TURNS {
            let socket = &self.connections[number].socket;
            let flags = RecvFlags::DONTWAIT | RecvFlags::TRUNC;
            match recv(socket, &mut buffer[..], flags) {
                Ok((len, whole)) if len > 0 && whole <= buffer.len() => {
                    self.answer(number, &buffer[..len]);
                    // It may hold keys.
                    buffer[..len.min(LONGEST)].zeroize();
                }
                Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => break,
                // It has gone, or says more than there is to say.
                _ => self.connections[number].is_over = true,
            }
            if self.connections[number].is_over {
                break;
            }
        }
        self.buffer = buffer;
    }

    /// SAs whose daemon has gone are of use for a while: it may come back.
    fn look_for_orphans(&mut self) {
        let is_commanded = self.connections.iter().any(|one| one.is(Role::Commands));
        if is_commanded || !self.database.has_sas() {
            self.orphaned = None;
            return;
        }
        let since = *self.orphaned.get_or_insert_with(|| {
            tracing::warn!(
                "the IKE daemon has gone; its SAs stay for {} s, its policies until another comes",
                GRACE.as_secs()
            );
            Instant::now()
        });
        if since.elapsed() >= GRACE {
            tracing::warn!("the SAs of the IKE daemon that has gone are removed");
            self.database.flush_sas();
            self.publish();
        }
    }
}

impl Connection {
    fn is(&self, role: Role) -> bool {
        self.role == Some(role) && !self.is_over
    }

    /// Whether the client takes a message now.
    fn send(&self, message: &[u8]) -> bool {
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        send(&self.socket, message, flags).is_ok()
    }
}
