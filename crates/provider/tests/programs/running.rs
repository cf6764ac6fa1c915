//! Programs that run beside the test, and end with it.

use std::net::TcpListener;
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

/// How long anything may take that a program does at once.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long a program may take to end that a test has no use for.
const POLITENESS: Duration = Duration::from_secs(2);

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(5);

/// A program that runs; dropped, it is told to end, with the workers that it may have, and
/// killed if it does not.
pub(crate) struct Running {
    child: Child,
}

impl Running {
    pub(crate) fn start(command: &mut Command) -> Running {
        let child = command
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}; scripts/needs test installs it"));
        Running::of(child)
    }

    pub(crate) fn of(child: Child) -> Running {
        Running { child }
    }

    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    /// Whether it has ended already.
    pub(crate) fn ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    pub(crate) fn signal(&self, signal: i32) {
        let process = self.child.id().try_into().unwrap();
        // SAFETY: no memory is passed; nobody else waits for the child, so the number is its.
        assert_eq!(unsafe { libc::kill(process, signal) }, 0);
    }

    /// Has it end in order, by the signal that asks for that.
    pub(crate) fn end(mut self, signal: i32) {
        self.signal(signal);
        wait_until("the program's end", || self.ended());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(status) = self.child.try_wait().unwrap() {
            // The other end tells of a connection that was closed, and not why.
            if thread::panicking() {
                println!(
                    "process {}, beside the test, ended: {status}",
                    self.child.id()
                );
            }
            return;
        }
        self.signal(libc::SIGTERM);
        let start = Instant::now();
        while start.elapsed() < POLITENESS && !self.ended() {
            thread::sleep(PAUSE);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits for something that comes within moments.
pub(crate) fn wait_until(what: &str, mut come: impl FnMut() -> bool) {
    let start = Instant::now();
    while !come() {
        assert!(start.elapsed() < PATIENCE, "waited in vain for {what}");
        thread::sleep(PAUSE);
    }
}

/// A TCP port of the loopback that nobody has.
pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// Whether root may mount here: in a container it may not.
#[allow(dead_code, reason = "benches/openssl does not ask")]
pub(crate) fn may_mount() -> bool {
    let tried = Command::new("unshare").args(["--mount", "true"]).output();
    tried.is_ok_and(|output| output.status.success())
}

/// Whether root runs the test.
#[allow(dead_code, reason = "benches/openssl does not ask")]
pub(crate) fn root() -> bool {
    // SAFETY: the call takes nothing and cannot fail.
    unsafe { libc::geteuid() == 0 }
}
