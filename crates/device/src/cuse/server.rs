//! The file `/dev/cuse` and the threads that serve it.

use std::io::IoSlice;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::JoinHandle;

use cipherlane_core::Framework;
use cipherlane_files::local;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, read, writev};
use rustix::net::{SocketFlags, SocketType};
use zeroize::Zeroizing;

use super::KeepKeys;
use super::counters::Counters;
use super::device::Device;
use super::files::Limits;
use super::status::Status;
use super::wire::{BUFFER, Body, Message, Reply};
use crate::{Error, status};

/// Programs that may wait for the status.
const BACKLOG: i32 = 8;

/// Letters of a device's name at most.
const LONGEST_NAME: usize = 64;

/// What a device is given.
#[derive(Clone, Debug)]
pub struct Options {
    /// The kernel's door: `/dev/cuse`.
    pub path: PathBuf,
    /// The device's name below `/dev`.
    pub name: String,
    /// Where the status is asked for.
    pub status: PathBuf,
    /// Threads that serve.
    pub threads: usize,
    /// Open files at most.
    pub files: usize,
    /// Sessions of an open file at most.
    pub sessions: usize,
    /// Whether programs that look for an accelerator shall take this for one.
    pub is_accelerator: bool,
    /// Runs work within which what is allocated belongs to keys, such as in locked memory.
    pub keep_keys: KeepKeys,
}

/// A device that runs.
pub struct Server {
    shared: Arc<Shared>,
    status: PathBuf,
    threads: Vec<JoinHandle<()>>,
}

struct Shared {
    framework: Framework,
    counters: Arc<Counters>,
    device: Device,
    /// The file that programs open.
    name: String,
    /// The kernel removes the device when this is closed.
    cuse: OwnedFd,
    stop: OwnedFd,
    is_stopping: AtomicBool,
}

impl Shared {
    fn status(&self) -> Status {
        Status::of(&self.counters, &self.name, &self.framework)
    }
}

impl Server {
    /// Makes the device, and serves it.
    pub fn start(framework: &Framework, options: &Options) -> Result<Server, Error> {
        check(options)?;
        let cuse = make(&options.path, &options.name)?;
        let listener = local::listener(
            &options.status,
            SocketType::STREAM,
            SocketFlags::empty(),
            BACKLOG,
        );
        let listener = UnixListener::from(listener.map_err(|source| Error::Listen {
            path: options.status.clone(),
            source,
        })?);
        let stop = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC);
        let stop = stop.map_err(|error| Error::System {
            doing: "make a thread wakeable",
            source: error.into(),
        })?;
        let limits = Limits {
            files: options.files,
            sessions: options.sessions,
        };
        let counters = Arc::<Counters>::default();
        let device = Device::new(
            framework,
            options.keep_keys,
            limits,
            options.is_accelerator,
            counters.clone(),
        );
        let shared = Arc::new(Shared {
            framework: framework.clone(),
            counters,
            device,
            name: format!("/dev/{}", options.name),
            cuse,
            stop,
            is_stopping: AtomicBool::new(false),
        });
        let mut server = Server {
            shared: shared.clone(),
            status: options.status.clone(),
            threads: Vec::new(),
        };
        let answering = shared.clone();
        server.spawn("cuse-status", move || {
            status::serve(
                &listener,
                || answering.is_stopping.load(Relaxed),
                || answering.status(),
            );
        })?;
        for _ in 0..options.threads {
            let shared = shared.clone();
            server.spawn("cuse", move || shared.serve())?;
        }
        Ok(server)
    }

    fn spawn(&mut self, name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), Error> {
        let builder = std::thread::Builder::new().name(name.to_owned());
        let thread = builder.spawn(work).map_err(|source| Error::System {
            doing: "start a thread",
            source,
        })?;
        self.threads.push(thread);
        Ok(())
    }

    /// What it has done.
    pub fn status(&self) -> Status {
        self.shared.status()
    }

    /// Whether a thread has ended: by a mistake, or since the kernel has taken the device away.
    pub fn is_broken(&self) -> bool {
        self.threads.iter().any(JoinHandle::is_finished)
    }

    /// Ends it: requests under way are finished, keys are wiped, the device is removed. What it has
    /// done.
    pub fn stop(mut self) -> Result<Status, Error> {
        let is_sound = self.end();
        match is_sound {
            true => Ok(self.shared.status()),
            false => Err(Error::Broken),
        }
    }

    fn end(&mut self) -> bool {
        self.shared.is_stopping.store(true, Relaxed);
        let _ = rustix::io::write(&self.shared.stop, &1u64.to_ne_bytes());
        // Wakes the thread that waits there.
        let _ = UnixStream::connect(&self.status);
        let mut is_sound = true;
        for thread in self.threads.drain(..) {
            is_sound &= thread.join().is_ok();
        }
        self.shared.device.close_all();
        let _ = std::fs::remove_file(&self.status);
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

fn check(options: &Options) -> Result<(), Error> {
    let limits = [
        ("the number of threads", options.threads, 1024),
        ("the limit of open files", options.files, 1 << 20),
        ("the limit of sessions", options.sessions, 1 << 20),
    ];
    for (what, given, most) in limits {
        if !(1..=most).contains(&given) {
            return Err(Error::Limit {
                what,
                given: given.to_string(),
                remedy: "give 1 to 1024 threads, and 1 to 1048576 of the others",
            });
        }
    }
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    let name = &options.name;
    if name.is_empty() || name.len() > LONGEST_NAME || !name.bytes().all(is_plain) {
        return Err(Error::Limit {
            what: "the name of the device",
            given: format!("'{name}'"),
            remedy: "give letters, digits, '-' and '_', 64 at most",
        });
    }
    Ok(())
}

/// Has the kernel make the device.
fn make(path: &Path, name: &str) -> Result<OwnedFd, Error> {
    let file = Path::new("/dev").join(name);
    let failed = |problem: String| Error::Device {
        path: file.clone(),
        problem,
    };
    if file.exists() {
        return Err(failed(
            "there is one of that name; end who serves it, or give another name by --name"
                .to_owned(),
        ));
    }
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let cuse = open(path, flags, Mode::empty()).map_err(|error| {
        let shown = path.display();
        failed(match error {
            Errno::NOENT | Errno::NODEV | Errno::NXIO => {
                format!("{shown} is not there ({error}); load the kernel's module: 'modprobe cuse'")
            }
            Errno::ACCESS | Errno::PERM => format!(
                "this user may not open {shown} ({error}); run this as root, or give the user \
                 the file by a udev rule"
            ),
            _ => format!("{shown} cannot be opened: {error}"),
        })
    })?;
    let mut buffer = vec![0; BUFFER];
    wait(&[&cuse])
        .and_then(|()| read(&cuse, &mut buffer[..]))
        .map_err(|error| failed(format!("{} is no CUSE: {error}", path.display())))
        .and_then(|len| {
            let message = Message::read(&buffer[..len]);
            let Some(Message {
                unique,
                body: Body::Init { major, minor },
            }) = message
            else {
                return Err(failed(format!("{} is no CUSE", path.display())));
            };
            let mut reply = Reply::init(unique, major, minor, name).map_err(failed)?;
            let parts = reply.parts(&[]).map(IoSlice::new);
            writev(&cuse, &parts).map_err(|error| failed(format!("the kernel: {error}")))
        })?;
    // The kernel has made it before the write has returned, or has closed the door.
    let mut state = [PollFd::new(&cuse, PollFlags::IN)];
    let _ = poll(&mut state, Some(&Timespec::default()));
    if state[0].revents().contains(PollFlags::ERR) {
        return Err(failed(
            "the kernel has not made it; 'dmesg' says why".to_owned(),
        ));
    }
    Ok(cuse)
}

/// Waits until one of them can be read.
fn wait(files: &[&OwnedFd]) -> Result<(), Errno> {
    let mut waited: Vec<PollFd<'_>> = files
        .iter()
        .map(|file| PollFd::new(*file, PollFlags::IN))
        .collect();
    loop {
        match poll(&mut waited, None) {
            Err(Errno::INTR) => {}
            done => return done.map(drop),
        }
    }
}

impl Shared {
    /// What a thread does.
    fn serve(&self) {
        let mut buffer = Zeroizing::new(vec![0; BUFFER]);
        while !self.is_stopping.load(Relaxed) {
            match read(&self.cuse, &mut buffer[..]) {
                Ok(len) => self.answer(&mut buffer[..len]),
                Err(Errno::AGAIN) => {
                    if let Err(error) = wait(&[&self.stop, &self.cuse]) {
                        return tracing::error!("cannot wait for the kernel: {error}");
                    }
                }
                // A caller was killed before its request was read.
                Err(Errno::INTR | Errno::NOENT) => {}
                Err(error) => {
                    return tracing::error!("{}: the kernel has closed it: {error}", self.name);
                }
            }
        }
    }

    fn answer(&self, message: &mut [u8]) {
        let Some(mut reply) = self.device.answer(message) else {
            return;
        };
        let parts = reply.parts(message).map(IoSlice::new);
        // A caller that was killed meanwhile waits for nothing.
        if let Err(error) = writev(&self.cuse, &parts)
            && error != Errno::NOENT
        {
            tracing::debug!("a reply was not taken: {error}");
        }
    }
}
