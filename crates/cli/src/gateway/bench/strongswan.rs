//! strongSwan's charon at both ends with its plugin kernel-libipsec: ESP in user space, in UDP.

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use super::Stop;
use super::peers::program;
use super::rig::{INNER, OUTER, Rig, call, ip};
use crate::failure::Failure;

/// How long charon may take to start.
const PATIENCE: Duration = Duration::from_secs(30);

/// Where distributions have charon's plugins.
const PLUGINS: [&str; 4] = [
    "/usr/lib/ipsec/plugins",
    "/usr/lib64/strongswan/plugins",
    "/usr/lib/strongswan/plugins",
    "/usr/libexec/ipsec/plugins",
];

/// Its programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StrongSwan {
    charon: PathBuf,
    swanctl: PathBuf,
}

impl StrongSwan {
    /// The programs, or why it cannot be measured.
    pub(crate) fn find() -> Result<StrongSwan, String> {
        let found = StrongSwan {
            charon: program("charon-systemd")?,
            swanctl: program("swanctl")?,
        };
        for plugin in ["kernel-libipsec", "openssl"] {
            let file = format!("libstrongswan-{plugin}.so");
            let has = |directory: &&str| Path::new(directory).join(&file).exists();
            if !PLUGINS.iter().any(has) {
                return Err(format!("no plugin '{plugin}' of charon"));
            }
        }
        Ok(found)
    }

    /// Starts both ends, and has them make keys.
    pub(crate) fn start(&self, rig: &mut Rig, stop: &Stop) -> Result<(), Failure> {
        for end in [0, 1] {
            let namespace = rig.namespace(end);
            ip(&format!("-n {namespace} addr add {}/32 dev lo", INNER[end]))?;
            let directory = directory(rig, end);
            let made = std::fs::create_dir(&directory);
            made.map_err(|error| Failure::path("make", &directory, &error))?;
            for (name, text) in [
                ("strongswan.conf", daemon(&directory)),
                ("swanctl.conf", connection(end)),
            ] {
                let path = directory.join(name);
                let written = std::fs::write(&path, text);
                written.map_err(|error| Failure::path("write", &path, &error))?;
            }
            let mut command = rig.command(end, &self.charon);
            command.env("STRONGSWAN_CONF", directory.join("strongswan.conf"));
            rig.start(end, command, &format!("charon-{end}.log"))?;
        }
        for end in [1, 0] {
            wait_for(&socket(&directory(rig, end)), rig, stop)?;
            let file = directory(rig, end).join("swanctl.conf");
            let file = file.display().to_string();
            self.swanctl(rig, end, &["--load-all", "--noprompt", "--file", &file])?;
        }
        self.swanctl(rig, 0, &["--initiate", "--child", "net", "--timeout", "60"])
    }

    /// Has the charon of an end do something.
    fn swanctl(&self, rig: &Rig, end: usize, what: &[&str]) -> Result<(), Failure> {
        let directory = directory(rig, end);
        let mut command = Command::new(&self.swanctl);
        command.env("STRONGSWAN_CONF", directory.join("strongswan.conf"));
        command.env("SWANCTL_DIR", &directory);
        command.args(what).arg("--uri");
        command.arg(format!("unix://{}", socket(&directory).display()));
        call(&mut command).map(drop)
    }
}

/// For the files of an end.
fn directory(rig: &Rig, end: usize) -> PathBuf {
    rig.directory().join(["charon-a", "charon-b"][end])
}

fn socket(directory: &Path) -> PathBuf {
    directory.join("vici")
}

/// charon's own configuration. Of its implementations of AES-GCM the one for AES-NI comes first, as
/// in strongSwan's own order of plugins.
fn daemon(directory: &Path) -> String {
    format!(
        "charon-systemd {{\n load = aesni random nonce openssl kdf socket-default kernel-libipsec \
         kernel-netlink vici\n plugins {{ vici {{ socket = unix://{} }} }}\n \
         filelog {{ out {{ path = stderr\n default = 1 }} }}\n journal {{ default = -1 }}\n}}\n\
         swanctl {{ load = random openssl }}\n",
        socket(directory).display()
    )
}

/// The connection of an end. The secret is as public as the namespaces are closed.
fn connection(end: usize) -> String {
    let other = 1 - end;
    format!(
        "connections {{ bench {{\n version = 2\n local_addrs = {}\n remote_addrs = {}\n \
         proposals = aes256gcm16-prfsha256-x25519\n \
         local {{ auth = psk\n id = {} }}\n remote {{ auth = psk\n id = {} }}\n \
         children {{ net {{\n local_ts = {}/32\n remote_ts = {}/32\n esp_proposals = aes256gcm16 \
         }} }}\n}} }}\nsecrets {{ ike {{ secret = \"a secret of the bench\" }} }}\n",
        OUTER[end], OUTER[other], OUTER[end], OUTER[other], INNER[end], INNER[other]
    )
}

/// Until a daemon listens.
fn wait_for(socket: &Path, rig: &Rig, stop: &Stop) -> Result<(), Failure> {
    let begin = Instant::now();
    while UnixStream::connect(socket).is_err() {
        stop.check()?;
        if begin.elapsed() > PATIENCE {
            return Err(Failure::Runtime(format!(
                "gateway bench: charon has not started; it said: {}",
                rig.said()
            )));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}
