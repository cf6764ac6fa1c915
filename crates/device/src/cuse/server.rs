//! The file `/dev/cuse` and the threads that serve it.

use std::io::IoSlice;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cipherlane_core::Framework;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, read, writev};
use zeroize::Zeroizing;

use super::KeepKeys;
use super::counters::Counters;
use super::device::Device;
use super::files::Limits;
use super::status::Status;
use super::wire::{BUFFER, Body, Message, Reply};
use crate::Error;
use crate::threads::{Stop, Threads, listen};

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
    threads: Threads,
}

struct Shared {
    framework: Framework,
    counters: Arc<Counters>,
    device: Device,
    /// The file that programs open.
    name: String,
    /// The kernel removes the device when this is closed.
    cuse: OwnedFd,
    stop: Arc<Stop>,
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
        let asked = listen(&options.status)?;
        let threads = Threads::new(&options.status)?;
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
            stop: threads.stop().clone(),
        });
        let mut server = Server {
            shared: shared.clone(),
            threads,
        };
        let answering = shared.clone();
        let threads = &mut server.threads;
        threads.tell("cuse-status", asked, move || answering.status())?;
        for _ in 0..options.threads {
            let shared = shared.clone();
            threads.spawn("cuse", move || shared.serve())?;
        }
        Ok(server)
    }

    /// What it has done.
    pub fn status(&self) -> Status {
        self.shared.status()
    }

    /// Whether a thread has ended: by a mistake, or since the kernel has taken the device away.
    pub fn is_broken(&self) -> bool {
        self.threads.is_broken()
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
        let is_sound = self.threads.end();
        self.shared.device.close_all();
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
        while !self.stop.is_stopping() {
            match read(&self.cuse, &mut buffer[..]) {
                Ok(len) => self.answer(&mut buffer[..len]),
                Err(Errno::AGAIN) => {
                    if let Err(error) = wait(&[&self.stop.event, &self.cuse]) {
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
