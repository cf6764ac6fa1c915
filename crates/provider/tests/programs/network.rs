//! Two network namespaces, joined by a cable of their own: nothing leaves them.
//!
//! Both are made in a user namespace, so that no rights are needed where the system lets
//! anybody make those. They live as long as a process that waits for its input to end: when
//! this test is gone, so are they, however it ended.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::place::{From, Place, succeeded};
use crate::running::{Running, wait_until};

/// A namespace.
pub(crate) struct Host {
    holder: Running,
}

/// Both of them; each is reached under its address by the other.
pub(crate) struct Network {
    pub(crate) left: Host,
    pub(crate) right: Host,
}

/// Addresses that are set aside for tests (RFC 2544).
pub(crate) const LEFT: &str = "198.18.0.1";
pub(crate) const RIGHT: &str = "198.18.0.2";

impl Network {
    /// Why there can be none on this machine.
    pub(crate) fn lacks() -> Option<String> {
        let mut unshare = Command::new("unshare");
        unshare.args(["--map-root-user", "--net", "true"]);
        let reason = match unshare.output() {
            Ok(output) if output.status.success() => None,
            Ok(output) => Some(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
            Err(error) => Some(format!("unshare: {error}")),
        };
        reason.map(|reason| format!("no network namespaces without root: {reason}"))
    }

    /// Why programs can make no tunnels.
    pub(crate) fn lacks_tunnels() -> Option<String> {
        let device = "/dev/net/tun";
        let error = File::options().read(true).write(true).open(device).err()?;
        Some(format!(
            "{device}: {error}; load the module tun, or run this as root"
        ))
    }

    pub(crate) fn new(place: &Place) -> Network {
        let mut unshare = place.command("unshare", From::Default);
        unshare.args(["--map-root-user", "--net", "cat"]);
        let left = Host::hold(&mut unshare);
        let mut unshare = left.command(place, "unshare", From::Default);
        unshare.args(["--net", "cat"]);
        let right = Host::hold(&mut unshare);
        let network = Network { left, right };
        network.join(place);
        network
    }

    fn join(&self, place: &Place) {
        let ip = |host: &Host, line: &str| {
            let mut ip = host.command(place, "ip", From::Default);
            succeeded(ip.args(line.split(' ')));
        };
        let right = self.right.holder.process();
        ip(
            &self.left,
            &format!("link add cable type veth peer name cable netns {right}"),
        );
        for (host, address) in [(&self.left, LEFT), (&self.right, RIGHT)] {
            ip(host, &format!("address add {address}/24 dev cable"));
            ip(host, "link set cable up");
            ip(host, "link set lo up");
        }
    }
}

impl Host {
    /// Starts the process that is the namespace's life.
    fn hold(command: &mut Command) -> Host {
        let own = namespaces("self");
        let holder = Running::start(command.stdin(Stdio::piped()).stdout(Stdio::null()));
        let process = holder.process().to_string();
        let cat = Path::new("/proc").join(&process).join("comm");
        wait_until("a network namespace", || {
            std::fs::read_to_string(&cat).is_ok_and(|name| name.trim() == "cat")
        });
        assert_ne!(namespaces(&process), own);
        Host { holder }
    }

    /// A program of the place, in the namespace.
    pub(crate) fn command(&self, place: &Place, program: &str, from: From) -> Command {
        self.enter(place.command("nsenter", from), program)
    }

    /// A program in the namespace, by a command nsenter that has no arguments yet.
    pub(crate) fn enter(&self, mut command: Command, program: &str) -> Command {
        let target = self.holder.process().to_string();
        command
            .args(["--user", "--preserve-credentials", "--net", "--target"])
            .args([&target, program]);
        command
    }
}

/// The network namespace of a process.
fn namespaces(process: &str) -> std::path::PathBuf {
    std::fs::read_link(format!("/proc/{process}/ns/net")).unwrap()
}
