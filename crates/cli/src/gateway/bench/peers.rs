//! How each VPN is set up between the two ends.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use cipherlane_gateway::pair::{self, Common, End};

use super::BenchArgs;
use super::rig::{INNER, OUTER, Rig, call, find, ip};
use crate::failure::Failure;

/// What is measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    /// This program, with a transform.
    Cipherlane(String),
    /// The veth pair by itself.
    Bare,
    /// A WireGuard in user space: its name here, its program.
    WireGuard(&'static str, PathBuf),
    /// OpenVPN 2.
    OpenVpn(PathBuf),
}

const NAMES: [&str; 5] = ["cipherlane", "bare", "wireguard-go", "boringtun", "openvpn"];

impl Peer {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Peer::Cipherlane(_) => "cipherlane",
            Peer::Bare => "bare",
            Peer::WireGuard(name, _) => name,
            Peer::OpenVpn(_) => "openvpn",
        }
    }
}

/// The cipher that a VPN uses.
pub(crate) fn transform(peer: &Peer) -> String {
    match peer {
        Peer::Cipherlane(transform) => transform.clone(),
        Peer::Bare => "none".to_owned(),
        Peer::WireGuard(..) => "chacha20-poly1305".to_owned(),
        Peer::OpenVpn(_) => "aes-256-gcm".to_owned(),
    }
}

/// Those that are here, and why the others are not.
pub(crate) fn chosen(args: &BenchArgs) -> Result<(Vec<Peer>, Vec<String>), Failure> {
    if let Some(unknown) = args
        .peers
        .iter()
        .find(|name| !NAMES.contains(&name.as_str()))
    {
        return Err(Failure::Usage(format!(
            "gateway bench: there is no peer '{unknown}'; those that there are: {}",
            NAMES.join(", ")
        )));
    }
    let (mut present, mut absent) = (Vec::new(), Vec::new());
    let is_wanted = |name: &&str| args.peers.is_empty() || args.peers.iter().any(|n| n == name);
    for name in NAMES.into_iter().filter(is_wanted) {
        if name == "cipherlane" {
            present.extend(args.transform.iter().cloned().map(Peer::Cipherlane));
            continue;
        }
        match look_for(name, args) {
            Ok(peer) => present.push(peer),
            Err(missing) => absent.push(format!("{name} (no program '{missing}')")),
        }
    }
    Ok((present, absent))
}

/// A VPN, or the name of the program that it lacks.
fn look_for(name: &'static str, args: &BenchArgs) -> Result<Peer, String> {
    let program = |name: &str| find(name).ok_or_else(|| name.to_owned());
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
        _ => {
            program("openssl")?;
            Ok(Peer::OpenVpn(program("openvpn")?))
        }
    }
}

/// Sets a VPN up; the address of end b through it.
pub(crate) fn start(peer: &Peer, rig: &mut Rig) -> Result<String, Failure> {
    match peer {
        Peer::Bare => return Ok(OUTER[1].to_owned()),
        Peer::Cipherlane(transform) => cipherlane(rig, transform)?,
        Peer::WireGuard(name, program) => wireguard(rig, name, program)?,
        Peer::OpenVpn(program) => openvpn(rig, program)?,
    }
    Ok(INNER[1].to_owned())
}

fn cipherlane(rig: &mut Rig, transform: &str) -> Result<(), Failure> {
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
        let written = std::fs::read_to_string(&config)
            .and_then(|text| std::fs::write(&config, format!("socket = \"status\"\n{text}")));
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

fn openvpn(rig: &mut Rig, program: &PathBuf) -> Result<(), Failure> {
    let mut prints = Vec::new();
    for name in ["a", "b"] {
        let file = |kind: &str| rig.directory().join(format!("{name}.{kind}"));
        let mut make = Command::new("openssl");
        make.args(["req", "-x509", "-newkey", "ec", "-pkeyopt"]);
        make.args(["ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj"]);
        make.arg(format!("/CN={name}"))
            .arg("-keyout")
            .arg(file("key"));
        make.arg("-out").arg(file("crt"));
        call(&mut make)?;
        let mut print = Command::new("openssl");
        print.args(["x509", "-noout", "-fingerprint", "-sha256", "-in"]);
        let text = call(print.arg(file("crt")))?;
        prints.push(
            text.trim()
                .rsplit('=')
                .next()
                .unwrap_or_default()
                .to_owned(),
        );
    }
    for (end, name) in [(0, "a"), (1, "b")] {
        let file = |kind: &str| rig.directory().join(format!("{name}.{kind}"));
        let (cert, key) = (file("crt"), file("key"));
        let mut command = rig.command(end, program);
        let own = match end {
            0 => format!("--tls-client --remote {} 1194 --nobind", OUTER[1]),
            _ => format!("--tls-server --dh none --local {} --lport 1194", OUTER[1]),
        };
        command.args(own.split_whitespace());
        let common = "--dev ovpn0 --dev-type tun --proto udp --cipher AES-256-GCM --data-ciphers \
                      AES-256-GCM --disable-dco --topology subnet --sndbuf 1048576 --rcvbuf \
                      1048576 --verb 1";
        command.args(common.split_whitespace());
        command.args(["--ifconfig", INNER[end], "255.255.255.0"]);
        command.args(["--peer-fingerprint", &prints[1 - end]]);
        command.arg("--cert").arg(cert).arg("--key").arg(key);
        rig.start(end, command, &format!("openvpn-{name}.log"))?;
    }
    Ok(())
}
