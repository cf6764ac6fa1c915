//! A Linux guest behind the router, as the far end of tunnels:
//!
//! ```text
//! [a] 192.0.2.1 ---- [m] 203.0.113.254 ---- 203.0.113.1 [guest: Linux's IPsec]
//!     2001:db8:a::1      2001:db8:c::ff     2001:db8:c::1
//! ```
//!
//! It is a machine under QEMU with a kernel of its own (`scripts/guest`), so that what it does is
//! what any Linux does. It is told what to do by scripts that it is sent.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::rig::{Host, Rig};

/// How long a guest may take to start: the kernel may have to be downloaded first.
const PATIENCE: Duration = Duration::from_secs(240);
/// How long it may take to end, and its script to tidy up.
const ENDS: Duration = Duration::from_secs(20);

/// How long a guest that runs may take to accept a connection: a path that loses packets may lose
/// the first ones, which TCP repeats after 1, 3, 7 and 15 seconds (RFC 6298, section 2.1).
const ACCEPTS: Duration = Duration::from_secs(30);

/// What `scripts/guest` ends with where there can be no guest.
const NO_GUESTS: i32 = 125;

/// Its outer addresses.
pub(crate) const OUTER4: &str = "203.0.113.1";
pub(crate) const OUTER6: &str = "2001:db8:c::1";

/// What Linux's IPsec needs, and `sch_netem` for a bad path. A guest loads none by itself, so
/// what an algorithm is made of stands before it.
const MODULES: [&str; 17] = [
    "virtio_pci",
    "virtio_net",
    "sch_netem",
    "ctr",
    "sha512_generic",
    "drbg",
    "seqiv",
    "echainiv",
    "ghash-generic",
    "gcm",
    "chacha_generic",
    "poly1305_generic",
    "chacha20poly1305",
    "authencesn",
    "esp4",
    "esp6",
    "xfrm_user",
];

/// Past the harness, which shows nothing of a test that passes.
fn skipped(reason: &str) {
    let message = format!("SKIPPED, Linux's IPsec is NOT tried: {reason}");
    std::io::stderr().write_all(message.as_bytes()).unwrap();
}

pub(crate) struct Guest {
    process: Child,
    log: std::path::PathBuf,
}

impl Guest {
    /// Starts it behind the router of a rig. `None`, said loudly, where there can be none.
    pub(crate) fn start(rig: &Rig) -> Option<Guest> {
        Guest::start_with(rig, &[])
    }

    /// The same with more arguments for `scripts/guest`, two for each option.
    pub(crate) fn start_with(rig: &Rig, more: &[String]) -> Option<Guest> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let script = root.join("../../scripts/guest");
        // The namespaces have no way to the network.
        let fetched = Command::new(&script).arg("--fetch").output().unwrap();
        if !fetched.status.success() {
            assert_eq!(fetched.status.code(), Some(NO_GUESTS));
            skipped(&String::from_utf8_lossy(&fetched.stderr));
            return None;
        }
        rig.ip(Host::Router, "tuntap add dev guest mode tap");
        rig.ip(Host::Router, "addr add 203.0.113.254/24 dev guest");
        rig.ip(Host::Router, "addr add 2001:db8:c::ff/64 dev guest nodad");
        rig.ip(Host::Router, "link set guest up");
        rig.add_ipv6();
        rig.ip(Host::A, "route add 2001:db8:c::/64 via 2001:db8:a::ff");
        let log = rig.path("guest.log");
        let mut command = rig.program(Host::Router, &script);
        for module in MODULES {
            command.args(["--module", module]);
        }
        for program in ["ip", "tc", "perl"] {
            command.args(["--program", program]);
        }
        let here = root.join("tests/gateway");
        command.arg("--file");
        command.arg(format!("{}:/far-end.pl", here.join("far-end.pl").display()));
        command
            .args(more)
            .args(["--limit", "600"])
            .arg(here.join("far-end.sh"));
        command.args(["--", "-netdev"]);
        command.arg("tap,id=n,ifname=guest,script=no,downscript=no");
        command.args(["-device", "virtio-net-pci,netdev=n"]);
        let file = std::fs::File::create(&log).unwrap();
        command.stdout(file.try_clone().unwrap()).stderr(file);
        // QEMU and what has started it are ended together.
        command.stdin(Stdio::null()).process_group(0);
        let mut guest = Guest {
            process: command.spawn().unwrap(),
            log,
        };
        let begin = Instant::now();
        while guest.try_run(rig, "true", Duration::from_secs(1)).is_none() {
            if let Some(ended) = guest.process.try_wait().unwrap() {
                assert_eq!(ended.code(), Some(NO_GUESTS), "{}", guest.log());
                skipped(&guest.log());
                return None;
            }
            let is_late = begin.elapsed() > PATIENCE;
            assert!(!is_late, "the guest does not start: {}", guest.log());
            std::thread::sleep(Duration::from_millis(100));
        }
        Some(guest)
    }

    fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Runs a shell script to its end; what it has printed, and its exit status. `None` where the
    /// guest has not accepted the connection within `patience`.
    fn try_run(&self, rig: &Rig, script: &str, patience: Duration) -> Option<(String, String)> {
        let script = format!("(\n{script}\n) 2>&1\necho \"status $?\"\n");
        let text = rig.within(Host::Router, move || {
            let address: SocketAddr = (OUTER4.parse::<std::net::IpAddr>().unwrap(), 23).into();
            let mut stream = TcpStream::connect_timeout(&address, patience).ok()?;
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            stream.write_all(script.as_bytes()).ok()?;
            stream.shutdown(Shutdown::Write).ok()?;
            let mut text = String::new();
            stream.read_to_string(&mut text).ok()?;
            Some(text)
        })?;
        let (output, status) = text.trim_end().rsplit_once("status ")?;
        Some((output.to_owned(), status.to_owned()))
    }

    /// Runs a shell script, which must end well; what it has printed.
    pub(crate) fn run(&self, rig: &Rig, script: &str) -> String {
        let Some((output, status)) = self.try_run(rig, script, ACCEPTS) else {
            panic!("the guest does not answer: {}", self.log());
        };
        assert_eq!(status, "0", "{script}:\n{output}");
        output
    }

    /// Ends it; whether it found that all was well.
    pub(crate) fn end(mut self, rig: &Rig) -> bool {
        self.run(rig, "kill $(cat /tmp/far-end.pid)");
        self.process.wait().unwrap().success()
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        if let Ok(None) = self.process.try_wait() {
            // Asked to end, the script removes what it has made, which is some 30 MB.
            let group = Pid::from_raw(self.process.id() as i32).unwrap();
            let _ = kill_process_group(group, Signal::TERM);
            let begin = Instant::now();
            while let Ok(None) = self.process.try_wait() {
                if begin.elapsed() > ENDS {
                    let _ = kill_process_group(group, Signal::KILL);
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }
}
