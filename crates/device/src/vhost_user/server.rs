//! The sockets of a device and the thread that serves it.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Duration;

use cipherlane_core::Framework;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{SocketFlags, accept_with};

use super::budget::Budget;
use super::connection::{Connection, Found, Message};
use super::counters::{Counters, add};
use super::device::Device;
use super::sessions::KeepKeys;
use super::status::Status;
use crate::Error;
use crate::threads::{Stop, Threads, listen};

/// Messages that are read before the rings have their turn again.
const MESSAGES: usize = 64;

/// What a device is given.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where a front-end connects.
    pub socket: PathBuf,
    /// Where the status is asked for.
    pub status: PathBuf,
    /// Sessions of a guest at most.
    pub sessions: usize,
    /// Processors that the guest may have this process use: 0.5 is half of one.
    pub processors: Option<f64>,
    /// Runs work within which what is allocated belongs to keys, such as in locked memory.
    pub keep_keys: KeepKeys,
}

/// A device that runs.
pub struct Server {
    shared: Arc<Shared>,
    socket: PathBuf,
    threads: Threads,
}

struct Shared {
    framework: Framework,
    counters: Arc<Counters>,
    is_connected: AtomicBool,
    stop: Arc<Stop>,
}

impl Shared {
    fn status(&self) -> Status {
        Status::of(
            &self.counters,
            self.is_connected.load(Acquire),
            &self.framework,
        )
    }
}

impl Server {
    /// Listens, and serves one front-end after the other.
    pub fn start(framework: &Framework, options: Options) -> Result<Server, Error> {
        if options.sessions == 0 {
            return Err(Error::Limit {
                what: "the limit of sessions",
                given: "0".to_owned(),
                remedy: "a guest needs two for each key",
            });
        }
        if let Some(share) = options.processors
            && !(0.001..=1024.0).contains(&share)
        {
            return Err(Error::Limit {
                what: "the limit of processors",
                given: share.to_string(),
                remedy: "0.001 to 1024 are possible",
            });
        }
        let (front, asked) = (listen(&options.socket)?, listen(&options.status)?);
        let threads = Threads::new(&options.status)?;
        let shared = Arc::new(Shared {
            framework: framework.clone(),
            counters: Arc::default(),
            is_connected: AtomicBool::new(false),
            stop: threads.stop().clone(),
        });
        let mut server = Server {
            shared: shared.clone(),
            socket: options.socket.clone(),
            threads,
        };
        let answering = shared.clone();
        let threads = &mut server.threads;
        threads.tell("device-status", asked, move || answering.status())?;
        threads.spawn("device", move || {
            Loop::new(&shared, &options).run(&front);
        })?;
        Ok(server)
    }

    /// What it has done.
    pub fn status(&self) -> Status {
        self.shared.status()
    }

    /// Whether a thread has ended, which none should.
    pub fn is_broken(&self) -> bool {
        self.threads.is_broken()
    }

    /// Ends it: the batch under way is finished, keys are wiped, the sockets' names removed. What
    /// it has done.
    pub fn stop(mut self) -> Result<Status, Error> {
        let is_sound = self.end();
        match is_sound {
            true => Ok(self.shared.status()),
            false => Err(Error::Broken),
        }
    }

    fn end(&mut self) -> bool {
        let is_sound = self.threads.end();
        let _ = std::fs::remove_file(&self.socket);
        is_sound
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if !self.threads.is_empty() {
            self.end();
        }
    }
}

/// The thread that serves.
struct Loop<'s> {
    shared: &'s Shared,
    device: Device,
    budget: Budget,
    connection: Option<Connection>,
}

impl<'s> Loop<'s> {
    fn new(shared: &'s Shared, options: &Options) -> Loop<'s> {
        let counters = shared.counters.clone();
        Loop {
            shared,
            device: Device::new(
                &shared.framework,
                options.keep_keys,
                options.sessions,
                counters,
            ),
            budget: Budget::new(options.processors),
            connection: None,
        }
    }

    fn run(&mut self, listener: &OwnedFd) {
        self.device.prepare();
        let mut kicked = Vec::new();
        while !self.shared.stop.is_stopping() {
            // Over its share, the guest is not heard at all: its messages cost time too.
            let pause = self.budget.pause();
            if let Some(pause) = pause {
                add(&self.shared.counters.pauses, 1);
                self.wait_for_stop(pause);
                continue;
            }
            let at_once = Timespec::default();
            let timeout = self.device.is_pending().then_some(&at_once);
            let has_message = {
                let front = match &self.connection {
                    Some(connection) => {
                        PollFd::from_borrowed_fd(connection.stream(), PollFlags::IN)
                    }
                    None => PollFd::new(listener, PollFlags::IN),
                };
                let mut wait = vec![PollFd::new(&self.shared.stop.event, PollFlags::IN), front];
                let rings: Vec<_> = self.device.kicks().collect();
                let kick = |(_, kick)| PollFd::from_borrowed_fd(kick, PollFlags::IN);
                wait.extend(rings.iter().copied().map(kick));
                if poll(&mut wait, timeout).is_err() {
                    continue;
                }
                kicked.clear();
                let told = wait[2..].iter().zip(&rings);
                let told = told.filter(|(waited, _)| !waited.revents().is_empty());
                kicked.extend(told.map(|(_, (index, _))| *index));
                !wait[1].revents().is_empty()
            };
            kicked.iter().for_each(|&index| self.device.kicked(index));
            self.device.serve();
            if has_message {
                self.hear(listener);
            }
        }
        self.device.reset();
    }

    fn wait_for_stop(&self, pause: Duration) {
        let timeout = Timespec::try_from(pause).unwrap_or_default();
        let mut wait = [PollFd::new(&self.shared.stop.event, PollFlags::IN)];
        let _ = poll(&mut wait, Some(&timeout));
    }

    /// Reads messages, or lets a front-end in.
    fn hear(&mut self, listener: &OwnedFd) {
        if self.connection.is_none() {
            match accept_with(listener, SocketFlags::CLOEXEC) {
                Ok(stream) => {
                    add(&self.shared.counters.connections, 1);
                    self.shared.is_connected.store(true, Relaxed);
                    self.connection = Some(Connection::new(stream));
                    tracing::info!("a front-end is connected");
                }
                // Out of descriptors, for one: accept would fail again at once.
                Err(_) => std::thread::sleep(Duration::from_millis(10)),
            }
            return;
        }
        for _ in 0..MESSAGES {
            let Some(connection) = &mut self.connection else {
                return;
            };
            match connection.read() {
                Ok(Found::Message(message)) => {
                    if let Err(reason) = self.answer(message) {
                        return self.end(Some(&reason));
                    }
                }
                Ok(Found::Nothing) => return,
                Ok(Found::End) => return self.end(None),
                Err(reason) => return self.end(Some(&reason)),
            }
        }
    }

    /// Does what a message says. An error ends the connection.
    fn answer(&mut self, message: Message) -> Result<(), String> {
        let header = message.header;
        let done = self.device.handle(message);
        let Some(connection) = &self.connection else {
            return Ok(());
        };
        match done {
            Ok(Some(body)) => connection.reply(header, &body),
            Ok(None) if header.wants_reply() => connection.reply(header, &0u64.to_ne_bytes()),
            Ok(None) => Ok(()),
            // A front-end that asks whether something was done hears that it was not.
            Err(reason) if header.wants_reply() => {
                connection.reply(header, &1u64.to_ne_bytes())?;
                self.device
                    .say(format!("message {} is refused: {reason}", header.request));
                Ok(())
            }
            Err(reason) => Err(format!("message {}: {reason}", header.request)),
        }
    }

    /// The front-end goes, or is made to.
    fn end(&mut self, reason: Option<&str>) {
        match reason {
            Some(reason) => tracing::warn!("the front-end is disconnected: {reason}"),
            None => tracing::info!("the front-end is gone"),
        }
        self.connection = None;
        self.device.reset();
        // Who sees this sees that all of the guest is gone.
        self.shared.is_connected.store(false, Release);
    }
}
