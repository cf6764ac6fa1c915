//! Two gateways, and a router between them that sees and does what an enemy could:
//!
//! ```text
//! [a] 192.0.2.1 ---- 192.0.2.254 [m] 198.51.100.254 ---- 198.51.100.1 [b]
//!     10.9.0.1, fd09::1                          10.9.0.2, fd09::2
//! ```
//!
//! Each is a network namespace of this test; all of it goes when the test ends, also badly.

mod observers;

use std::ffi::OsStr;
use std::io::Read;
use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use serde_json::Value;

pub(crate) use self::observers::bound;

/// How long something that must happen may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// The outer addresses of the gateways.
pub(crate) const OUTER: [&str; 2] = ["192.0.2.1", "198.51.100.1"];

/// Which namespace.
#[derive(Clone, Copy)]
pub(crate) enum Host {
    A = 0,
    B = 1,
    Router = 2,
}

pub(crate) struct Rig {
    number: String,
    directory: tempfile::TempDir,
    gateways: [Option<Child>; 2],
}

/// `None`, said loudly, where namespaces or TUN devices cannot be had.
pub(crate) fn rig() -> Option<Rig> {
    let is_root = rustix::process::geteuid().is_root();
    let has_tun = std::path::Path::new("/dev/net/tun").exists();
    let has_ip = Command::new("ip").arg("-V").output().is_ok();
    // A container may have root and no right to make namespaces.
    let may_unshare = Command::new("unshare").args(["--net", "true"]).output();
    let may_unshare = may_unshare.is_ok_and(|output| output.status.success());
    if !(is_root && has_tun && has_ip && may_unshare) {
        let message = format!(
            "SKIPPED, the gateway is NOT tested: it needs root ({is_root}), /dev/net/tun \
             ({has_tun}), the program ip ({has_ip}) and network namespaces ({may_unshare})\n"
        );
        // Past the harness, which shows nothing of a test that passes.
        std::io::Write::write_all(&mut std::io::stderr(), message.as_bytes()).unwrap();
        return None;
    }
    Some(Rig::up())
}

/// Two gateways that are connected, as [`rig`] says.
pub(crate) fn pair() -> Option<Rig> {
    let mut rig = rig()?;
    rig.configure(&[]);
    rig.start_both();
    Some(rig)
}

impl Rig {
    fn up() -> Rig {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let rig = Rig {
            number: format!("{}-{number}", std::process::id()),
            directory: tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap(),
            gateways: [None, None],
        };
        let [a, m, b] = [Host::A, Host::Router, Host::B].map(|host| rig.namespace(host));
        for name in [&a, &m, &b] {
            ip(&format!("netns add {name}"));
            ip(&format!("-n {name} link set lo up"));
        }
        for (name, far, near, own, other) in [
            (&a, "to-a", "wire", "192.0.2.1", "192.0.2.254"),
            (&b, "to-b", "wire", "198.51.100.1", "198.51.100.254"),
        ] {
            ip(&format!(
                "link add {near} netns {name} type veth peer name {far} netns {m}"
            ));
            ip(&format!("-n {name} addr add {own}/24 dev {near}"));
            ip(&format!("-n {m} addr add {other}/24 dev {far}"));
            ip(&format!("-n {name} link set {near} up"));
            ip(&format!("-n {m} link set {far} up"));
            ip(&format!("-n {name} route add default via {other}"));
        }
        rig.within(Host::Router, || {
            std::fs::write("/proc/sys/net/ipv4/ip_forward", "1").unwrap();
        });
        rig
    }

    fn namespace(&self, host: Host) -> String {
        let name = match host {
            Host::A => "a",
            Host::B => "b",
            Host::Router => "m",
        };
        format!("clgw-{}-{name}", self.number)
    }

    /// `ip` in a namespace.
    pub(crate) fn ip(&self, host: Host, arguments: &str) {
        ip(&format!("-n {} {arguments}", self.namespace(host)));
    }

    /// Outer addresses of IPv6: `2001:db8:a::1` and `2001:db8:b::1`.
    pub(crate) fn add_ipv6(&self) {
        for (host, own, other) in [(Host::A, "a", "b"), (Host::B, "b", "a")] {
            self.ip(
                host,
                &format!("addr add 2001:db8:{own}::1/64 dev wire nodad"),
            );
            self.ip(
                Host::Router,
                &format!("addr add 2001:db8:{own}::ff/64 dev to-{own} nodad"),
            );
            self.ip(
                host,
                &format!("route add 2001:db8:{other}::/64 via 2001:db8:{own}::ff"),
            );
        }
        self.within(Host::Router, || {
            std::fs::write("/proc/sys/net/ipv6/conf/all/forwarding", "1").unwrap();
        });
    }

    /// Runs `work` in a namespace; the sockets that it makes stay there.
    pub(crate) fn within<T: Send + 'static>(
        &self,
        host: Host,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        self.beside(host, work).join().unwrap()
    }

    /// The same on a thread of its own.
    pub(crate) fn beside<T: Send + 'static>(
        &self,
        host: Host,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        let file = std::fs::File::open(format!("/run/netns/{}", self.namespace(host))).unwrap();
        std::thread::spawn(move || {
            move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
            work()
        })
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Any program, in a namespace.
    pub(crate) fn within_namespace(&self, host: Host, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.namespace(host), program]);
        command
    }

    /// The command, in a namespace.
    pub(crate) fn command(&self, host: Host, arguments: &[&str]) -> Command {
        let mut command = self.program(host, env!("CARGO_BIN_EXE_cipherlane"));
        command.args(arguments);
        command
    }

    /// A program in a namespace, which has a mount namespace of its own as well.
    pub(crate) fn program(&self, host: Host, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.namespace(host)]);
        command.arg(program).stdin(Stdio::null());
        command
    }

    /// Writes the configurations of both ends.
    pub(crate) fn configure(&self, more: &[&str]) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cipherlane"));
        command.args(["gateway", "new"]).arg(self.directory.path());
        command.args(["--a", OUTER[0], "--b", OUTER[1]]).args(more);
        let made = command.output().unwrap();
        assert!(made.status.success(), "{made:?}");
        for end in ["a", "b"] {
            self.edit(end, |text| format!("socket = \"status\"\n{text}"));
        }
    }

    /// Changes the configuration of an end.
    pub(crate) fn edit(&self, end: &str, change: impl Fn(String) -> String) {
        let path = self.path(end).join("gateway.toml");
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, change(text)).unwrap();
    }

    fn config(&self, host: Host) -> String {
        let path = self.path(["a", "b"][host as usize]).join("gateway.toml");
        path.to_str().unwrap().to_owned()
    }

    /// Starts the gateway of a host, and waits until it answers.
    pub(crate) fn start(&mut self, host: Host) {
        self.start_by(host, "true");
    }

    /// The same, after a command of the shell, for which $0 is the program and $4 its
    /// configuration.
    pub(crate) fn start_by(&mut self, host: Host, first: &str) {
        let config = self.config(host);
        let log = std::fs::File::options()
            .create(true)
            .append(true)
            .open(self.path(["a.log", "b.log"][host as usize]))
            .unwrap();
        let mut command = self.program(host, "sh");
        command.args(["-c", &format!("{first} && exec \"$0\" \"$@\"")]);
        command.arg(env!("CARGO_BIN_EXE_cipherlane"));
        command.args(["gateway", "run", "--config", &config]);
        let child = command.stderr(log).spawn().unwrap();
        let pid = child.id();
        self.gateways[host as usize] = Some(child);
        self.wait_for(host, "the start", |status| status["pid"] == pid);
    }

    /// Starts both gateways, and waits until packets pass.
    pub(crate) fn start_both(&mut self) {
        self.start(Host::A);
        self.start(Host::B);
        self.wait_until_connected();
    }

    /// What `gateway status --json` prints.
    pub(crate) fn shown(&self, host: Host) -> Vec<u8> {
        let config = self.config(host);
        let shown = ["gateway", "status", "--config", &config, "--json"];
        self.command(host, &shown).output().unwrap().stdout
    }

    /// The status, once it is there.
    pub(crate) fn status(&self, host: Host) -> Option<Value> {
        let socket = self.path(["a", "b"][host as usize]).join("status");
        let mut stream = std::os::unix::net::UnixStream::connect(socket).ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        serde_json::from_str(&text).ok()
    }

    /// Waits until the status is as it must be.
    pub(crate) fn wait_for(&self, host: Host, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let begin = Instant::now();
        loop {
            let status = self.status(host);
            if let Some(status) = &status
                && is_so(status)
            {
                return status.clone();
            }
            assert!(
                begin.elapsed() < PATIENCE,
                "{what} has not happened: {status:?}\n{}{}",
                self.log(Host::A),
                self.log(Host::B)
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until the log of a host has some words.
    pub(crate) fn wait_for_words(&self, host: Host, words: &str) {
        let begin = Instant::now();
        while !self.log(host).contains(words) {
            assert!(
                begin.elapsed() < PATIENCE,
                "'{words}' was not said: {}",
                self.log(host)
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub(crate) fn log(&self, host: Host) -> String {
        let path = self.path(["a.log", "b.log"][host as usize]);
        std::fs::read_to_string(path).unwrap_or_default()
    }

    pub(crate) fn signal(&self, host: Host, signal: Signal) {
        let child = self.gateways[host as usize].as_ref().unwrap();
        kill_process(Pid::from_raw(child.id() as i32).unwrap(), signal).unwrap();
    }

    /// Ends the gateway of a host; whether it ended well.
    pub(crate) fn end(&mut self, host: Host, signal: Signal) -> bool {
        self.signal(host, signal);
        let mut child = self.gateways[host as usize].take().unwrap();
        child.wait().unwrap().success()
    }

    /// Waits until packets pass from a to b and back.
    pub(crate) fn wait_until_connected(&self) {
        self.wait_until_answered(Host::A, "10.9.0.1", "10.9.0.2:7");
    }

    /// Waits until packets pass from an address of a host, a or b, to one of the other and back.
    pub(crate) fn wait_until_answered(&self, from: Host, own: &str, other: &str) {
        let begin = Instant::now();
        let at = match from {
            Host::A => Host::B,
            _ => Host::A,
        };
        let echo = self.echo_at(at, other);
        let (own, other) = (format!("{own}:0"), other.to_owned());
        let passed = self.within(from, move || {
            let socket = UdpSocket::bind(own).unwrap();
            socket
                .set_read_timeout(Some(Duration::from_millis(200)))
                .unwrap();
            while begin.elapsed() < PATIENCE {
                let _ = socket.send_to(b"hello", &other);
                if socket.recv(&mut [0; 16]).is_ok() {
                    return true;
                }
            }
            false
        });
        drop(echo);
        assert!(passed, "{}{}", self.log(Host::A), self.log(Host::B));
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        for gateway in self.gateways.iter_mut().flatten() {
            let _ = gateway.kill();
            let _ = gateway.wait();
        }
        for host in [Host::A, Host::Router, Host::B] {
            let name = self.namespace(host);
            let _ = Command::new("ip").args(["netns", "del", &name]).status();
        }
    }
}

fn ip(arguments: &str) {
    let output = Command::new("ip")
        .args(arguments.split(' '))
        .output()
        .unwrap();
    assert!(output.status.success(), "ip {arguments}: {output:?}");
}
