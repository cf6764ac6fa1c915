//! How each VPN is set up between the two ends.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use cipherlane_gateway::pair::{self, Common, End};

use super::openvpn::{Evidence, OpenVpn};
use super::rig::{INNER, OUTER, Rig, call, find, ip};
use super::strongswan::StrongSwan;
use super::{BenchArgs, Stop};
use crate::failure::Failure;

/// What is measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    /// This program, with a transform and with this number of threads at each end.
    Cipherlane(String, u16),
    /// The veth pair by itself.
    Bare,
    /// A WireGuard in user space: its name here, its program.
    WireGuard(&'static str, PathBuf),
    /// OpenVPN 2.
    OpenVpn(OpenVpn),
    /// strongSwan with its own ESP in user space.
    StrongSwan(StrongSwan),
}

/// Their names, in the order in which they are measured.
pub(crate) const NAMES: [&str; 7] = [
    "cipherlane",
    "bare",
    "wireguard-go",
    "boringtun",
    "openvpn",
    "openvpn-cipherlane",
    "strongswan",
];

/// A VPN that was started.
pub(crate) struct Started {
    /// The address of end b through it.
    pub(crate) target: String,
    /// What must hold once its programs have ended.
    pub(crate) evidence: Option<Evidence>,
}

impl Peer {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Peer::Cipherlane(..) => "cipherlane",
            Peer::Bare => "bare",
            Peer::WireGuard(name, _) => name,
            Peer::OpenVpn(openvpn) => openvpn.name(),
            Peer::StrongSwan(_) => "strongswan",
        }
    }
}

/// What a figure is of.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Subject {
    pub(crate) peer: &'static str,
    /// The cipher that it uses.
    pub(crate) transform: String,
    /// Threads at each end; `None`: it is not for us to say.
    pub(crate) threads: Option<u16>,
}

impl Subject {
    pub(crate) fn of(peer: &Peer) -> Subject {
        let (transform, threads) = match peer {
            Peer::Cipherlane(transform, threads) => (transform.as_str(), Some(*threads)),
            Peer::Bare => ("none", None),
            Peer::WireGuard(..) => ("chacha20-poly1305", None),
            Peer::OpenVpn(_) | Peer::StrongSwan(_) => ("aes-256-gcm", None),
        };
        Subject {
            peer: peer.name(),
            transform: transform.to_owned(),
            threads,
        }
    }

    /// In words.
    pub(crate) fn name(&self) -> String {
        let threads = match self.threads {
            Some(threads @ 2..) => format!(", {threads} threads"),
            _ => String::new(),
        };
        match self.peer {
            "bare" => "the bare veth pair".to_owned(),
            peer => format!("{peer} ({}{threads})", self.transform),
        }
    }
}

/// Those that are here, and why the others are not.
pub(crate) fn chosen(args: &BenchArgs) -> (Vec<Peer>, Vec<String>) {
    let (mut present, mut absent) = (Vec::new(), Vec::new());
    let is_wanted = |name: &&str| args.peers.is_empty() || args.peers.iter().any(|n| n == name);
    for name in NAMES.into_iter().filter(is_wanted) {
        if name == "cipherlane" {
            for transform in &args.transform {
                let threads = args.threads.iter();
                present.extend(threads.map(|&n| Peer::Cipherlane(transform.clone(), n)));
            }
            continue;
        }
        match look_for(name, args) {
            Ok(peer) => present.push(peer),
            Err(why) => absent.push(format!("{name} ({why})")),
        }
    }
    (present, absent)
}

/// A VPN, or why it cannot be measured.
fn look_for(name: &'static str, args: &BenchArgs) -> Result<Peer, String> {
    match name {
        "bare" => Ok(Peer::Bare),
        "wireguard-go" => {
            program("wg")?;
            let file = match &args.wireguard_go {
                Some(file) => file.clone(),
                None => program("wireguard-go")?,
            };
            Ok(Peer::WireGuard("wireguard-go", file))
        }
        "boringtun" => {
            program("wg")?;
            Ok(Peer::WireGuard("boringtun", program("boringtun-cli")?))
        }
        "openvpn" => OpenVpn::find().map(Peer::OpenVpn),
        "openvpn-cipherlane" => OpenVpn::find_with_provider().map(Peer::OpenVpn),
        _ => StrongSwan::find().map(Peer::StrongSwan),
    }
}

/// The file of a program that a VPN needs, or why there is none.
pub(super) fn program(name: &str) -> Result<PathBuf, String> {
    find(name).ok_or_else(|| format!("no program '{name}'"))
}

/// Sets a VPN up.
pub(crate) fn start(peer: &Peer, rig: &mut Rig, stop: &Stop) -> Result<Started, Failure> {
    let (mut target, mut evidence) = (INNER[1], None);
    match peer {
        Peer::Bare => target = OUTER[1],
        Peer::Cipherlane(transform, threads) => cipherlane(rig, transform, *threads)?,
        Peer::WireGuard(name, program) => wireguard(rig, name, program)?,
        Peer::OpenVpn(openvpn) => evidence = openvpn.start(rig)?,
        Peer::StrongSwan(strongswan) => strongswan.start(rig, stop)?,
    }
    Ok(Started {
        target: target.to_owned(),
        evidence,
    })
}

fn cipherlane(rig: &mut Rig, transform: &str, threads: u16) -> Result<(), Failure> {
    let address = |text: &str| text.parse().expect("an address of this program");
    let end = |name: &str, end: usize| End {
        name: name.to_owned(),
        outer: address(OUTER[end]),
        inner: vec![address(INNER[end])],
        networks: Vec::new(),
    };
    let common = Common {
        transform: transform.to_owned(),
        port: Some(4500),
        interface: "cipherlane0".to_owned(),
    };
    pair::write(rig.directory(), &[end("a", 0), end("b", 1)], &common)?;
    let program = std::env::current_exe();
    let program = program.map_err(|error| Failure::io("find", "this program", &error))?;
    for (end, name) in [(0, "a"), (1, "b")] {
        let directory = rig.directory().join(name);
        // The sockets of both ends are in one file system.
        let config = directory.join("gateway.toml");
        let own = format!("socket = \"status\"\nthreads = {threads}\n");
        let written = std::fs::read_to_string(&config)
            .and_then(|text| std::fs::write(&config, format!("{own}{text}")));
        written.map_err(|error| Failure::path("write", &config, &error))?;
        let mut command = rig.command(end, &program);
        command.args(["gateway", "run", "--config"]).arg(&config);
        rig.start(end, command, &format!("cipherlane-{name}.log"))?;
    }
    Ok(())
}

fn wireguard(rig: &mut Rig, name: &str, program: &PathBuf) -> Result<(), Failure> {
    let key = || call(Command::new("wg").arg("genkey"));
    let keys = [key()?, key()?];
    let file = |end: usize| rig.directory().join(format!("{end}.private"));
    let mut public = Vec::new();
    for (end, key) in keys.iter().enumerate() {
        let path = file(end);
        let written = std::fs::write(&path, key);
        written.map_err(|error| Failure::path("write", &path, &error))?;
        let input = std::fs::File::open(&path);
        let input = input.map_err(|error| Failure::path("read", &path, &error))?;
        let output = Command::new("wg").arg("pubkey").stdin(input).output();
        let output = output.map_err(|error| Failure::io("run", "wg pubkey", &error))?;
        public.push(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    // The name is also that of a socket outside of the namespace.
    let link = |end: usize| format!("cl{}{}", rig.number(), ["a", "b"][end]);
    let links = [link(0), link(1)];
    let files = [file(0), file(1)];
    for end in [0, 1] {
        let mut command = rig.command(end, program);
        match name {
            "boringtun" => command.args(["--foreground", "--disable-drop-privileges"]),
            _ => command.arg("-f"),
        };
        command.arg(&links[end]).env("LOG_LEVEL", "error");
        rig.start(end, command, &format!("{name}-{end}.log"))?;
    }
    for end in [0, 1] {
        let socket = PathBuf::from(format!("/var/run/wireguard/{}.sock", links[end]));
        for _ in 0..100 {
            if socket.exists() {
                break;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let other = 1 - end;
        let mut set = rig.command(end, "wg");
        set.args(["set", &links[end], "listen-port", "51820", "private-key"]);
        set.arg(&files[end]);
        set.args(["peer", &public[other], "allowed-ips", "0.0.0.0/0"]);
        set.args(["endpoint", &format!("{}:51820", OUTER[other])]);
        call(&mut set)?;
        address(rig, end, &links[end])?;
    }
    Ok(())
}

fn address(rig: &Rig, end: usize, link: &str) -> Result<(), Failure> {
    let namespace = rig.namespace(end);
    ip(&format!(
        "-n {namespace} addr add {}/24 dev {link}",
        INNER[end]
    ))?;
    ip(&format!("-n {namespace} link set {link} mtu 1420 up"))?;
    Ok(())
}
