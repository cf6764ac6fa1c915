//! Debian's charon, unmodified: with the plugin of this project it drives the gateway of its host,
//! with kernel-libipsec it is a far end that was not written here.

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::rig::{Host, OUTER, Rig};

pub(crate) const CHARON: &str = "/usr/sbin/charon-systemd";
pub(crate) const SWANCTL: &str = "/usr/sbin/swanctl";
pub(crate) const PLUGINS: &str = "/usr/lib/ipsec/plugins";

/// Addresses inside the tunnel.
pub(crate) const INNER: [&str; 2] = ["10.9.0.1", "10.9.0.2"];

/// How long charon may take to start.
const PATIENCE: Duration = Duration::from_secs(30);

/// What carries the packets of a charon.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Carrier {
    /// The gateway of its host.
    Gateway,
    /// charon's own ESP in user space.
    Libipsec,
}

/// A daemon of IKE, wherever it runs.
pub(crate) trait Daemon {
    /// Runs its command, which must succeed; what it prints.
    fn swanctl(&self, arguments: &[&str]) -> String;

    fn log(&self) -> String;

    /// How often its log has a text.
    fn count(&self, text: &str) -> usize {
        self.log().matches(text).count()
    }
}

/// A charon that runs.
pub(crate) struct Charon {
    child: Child,
    place: PathBuf,
}

/// The plugin, built once; why not, where it cannot be.
fn plugin() -> Result<&'static Path, String> {
    static PLUGIN: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let built = PLUGIN.get_or_init(|| {
        for needed in [
            CHARON,
            SWANCTL,
            "/usr/lib/ipsec/plugins/libstrongswan-openssl.so",
            "/usr/lib/ipsec/plugins/libstrongswan-kernel-libipsec.so",
        ] {
            if !Path::new(needed).exists() {
                return Err(format!(
                    "{needed} is missing; 'scripts/needs test' installs it"
                ));
            }
        }
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/charon-plugin");
        let place =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join("libstrongswan-kernel-cipherlane.so");
        let made = Command::new(script).arg(&place).output();
        let made = made.map_err(|error| error.to_string())?;
        match made.status.success() {
            true => Ok(place),
            false => Err(String::from_utf8_lossy(&made.stderr).into_owned()),
        }
    });
    built.as_deref().map_err(String::clone)
}

/// Whether charon and the plugin can be had; if not, that is said loudly.
pub(crate) fn is_there() -> bool {
    match plugin() {
        Ok(_) => true,
        Err(reason) => {
            let message = format!("SKIPPED, IKEv2 is NOT tested: {reason}\n");
            std::io::Write::write_all(&mut std::io::stderr(), message.as_bytes()).unwrap();
            false
        }
    }
}

impl Charon {
    /// Starts a charon on a host, and gives it the connection `net` with what `connection` says of
    /// it and of its child; `secrets` stands behind it.
    pub(crate) fn start(rig: &Rig, host: Host, carrier: Carrier, settings: &Settings) -> Charon {
        let place = rig.path(["charon-a", "charon-b"][host as usize]);
        let plugins = place.join("plugins");
        let _ = std::fs::create_dir_all(&plugins);
        for file in std::fs::read_dir(PLUGINS).unwrap() {
            let file = file.unwrap();
            std::fs::copy(file.path(), plugins.join(file.file_name())).unwrap();
        }
        let own = plugin().unwrap();
        std::fs::copy(own, plugins.join(own.file_name().unwrap())).unwrap();
        let shown = place.display();
        let carrying = match carrier {
            Carrier::Gateway => "kernel-cipherlane",
            Carrier::Libipsec => "socket-default kernel-libipsec",
        };
        let control = rig.path(["a", "b"][host as usize]).join("control");
        let strongswan = format!(
            "charon-systemd {{\n load = random nonce openssl kdf pem pkcs1 pkcs8 x509 pubkey \
             eap-identity eap-md5 eap-mschapv2 {carrying} kernel-netlink vici\n\
             retransmit_timeout = 0.5\n retransmit_tries = 4\n\
             plugins {{\n vici {{ socket = unix://{shown}/vici }}\n\
             kernel-cipherlane {{ control = {} }}\n openssl {{ load_legacy = yes }}\n }}\n\
             filelog {{ file {{ path = {shown}/log\n append = yes\n flush_line = yes\n default = 1\n \
             knl = 2\n }} }}\n journal {{ default = -1 }}\n}}\nswanctl {{ load = openssl pem pkcs1 \
             pkcs8 x509 pubkey }}\n",
            control.display()
        );
        std::fs::write(place.join("strongswan.conf"), strongswan).unwrap();
        std::fs::write(place.join("swanctl.conf"), settings.text(host)).unwrap();
        let _ = std::fs::create_dir(place.join("private"));
        if let Some(key) = &settings.key {
            std::fs::copy(key, place.join("private/own.key")).unwrap();
        }
        let mut command = rig.within_namespace(host, "sh");
        let _ = std::fs::remove_file(place.join("vici"));
        let script = format!(
            "mount --bind '{}' {PLUGINS} && exec {CHARON}",
            plugins.display()
        );
        command.args(["-c", &script]).stdin(Stdio::null());
        command.env("STRONGSWAN_CONF", place.join("strongswan.conf"));
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let mut charon = Charon {
            child: child.unwrap(),
            place,
        };
        let begin = Instant::now();
        while UnixStream::connect(charon.place.join("vici")).is_err() {
            let ended = charon.child.try_wait().unwrap();
            let is_late = begin.elapsed() > PATIENCE;
            assert!(ended.is_none() && !is_late, "{ended:?}\n{}", charon.log());
            std::thread::sleep(Duration::from_millis(50));
        }
        let file = charon.place.join("swanctl.conf").display().to_string();
        charon.swanctl(&["--load-all", "--noprompt", "--file", &file]);
        charon
    }

    pub(crate) fn try_swanctl(&self, arguments: &[&str]) -> std::process::Output {
        let mut command = Command::new(SWANCTL);
        command.env("STRONGSWAN_CONF", self.place.join("strongswan.conf"));
        command.env("SWANCTL_DIR", &self.place);
        command
            .args(arguments)
            .args(["--uri", &format!("unix://{}/vici", self.place.display())]);
        command.output().unwrap()
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.child.id() as i32).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// kill -9.
    pub(crate) fn kill(mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Daemon for Charon {
    fn swanctl(&self, arguments: &[&str]) -> String {
        let output = self.try_swanctl(arguments);
        assert!(
            output.status.success(),
            "{arguments:?}: {output:?}\n{}",
            self.log()
        );
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.place.join("log")).unwrap_or_default()
    }
}

impl Drop for Charon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What swanctl.conf says.
#[derive(Clone, Default)]
pub(crate) struct Settings {
    /// Of the connection.
    pub(crate) connection: String,
    /// The outer addresses of one's own side and of the other, where they are not the usual ones.
    pub(crate) addresses: Option<[String; 2]>,
    /// Of its child.
    pub(crate) child: String,
    /// Authentication of one's own side and of the other; without it a secret that both know.
    pub(crate) authentication: Option<[String; 2]>,
    /// Secrets beside that one.
    pub(crate) secrets: String,
    /// Sections beside the connections.
    pub(crate) beside: String,
    /// The file of one's own private key.
    pub(crate) key: Option<PathBuf>,
}

impl Settings {
    pub(crate) fn text(&self, host: Host) -> String {
        let (own, other) = (host as usize, 1 - host as usize);
        let by_secret = |at: usize| format!("auth = psk\n id = {}", OUTER[at]);
        let [here, there] = match &self.addresses {
            Some(addresses) => addresses.clone(),
            None => [own, other].map(|at| OUTER[at].to_owned()),
        };
        let [local, remote] = match &self.authentication {
            Some(authentication) => authentication.clone(),
            None => [by_secret(own), by_secret(other)],
        };
        format!(
            "connections {{\n net {{\n version = 2\n local_addrs = {here}\n remote_addrs = {there}\n \
             proposals = aes128gcm16-prfsha256-x25519\n {}\n local {{ {local}\n }}\n remote {{ \
             {remote}\n }}\n children {{ net {{\n local_ts = {}/32\n remote_ts = {}/32\n \
             esp_proposals = aes128gcm16\n {}\n }} }}\n }}\n}}\nsecrets {{ ike {{ secret = \"a \
             secret of the test\" }}\n {} }}\n{}\n",
            self.connection, INNER[own], INNER[other], self.child, self.secrets, self.beside
        )
    }
}
