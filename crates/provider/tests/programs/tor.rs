//! Tor: a network of its own on the loopback, an authority and three relays, through which a client fetches a file.
//! Every relay takes off a layer of AES in CTR by contexts that live as long as the circuit.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::ends::{data, lacks};
use crate::place::{From, Place, succeeded};
use crate::running::{Running, free_port};

const DATA: usize = (8 << 20) + 77;
const TOR: &str = "/usr/sbin/tor";

/// All of them have the same settings, but for these.
const RELAYS: [&str; 4] = ["authority", "one", "two", "three"];

struct Network<'a> {
    place: &'a Place,
    /// The line that names the authority.
    trusted: String,
    directory: u16,
}

impl<'a> Network<'a> {
    fn new(place: &'a Place) -> Network<'a> {
        for name in RELAYS.iter().chain(&["client"]) {
            fs::create_dir_all(place.path().join(name).join("keys")).unwrap();
            let private = fs::Permissions::from_mode(0o700);
            fs::set_permissions(place.path().join(name), private).unwrap();
        }
        let directory = free_port();
        let mut make = place.command("/usr/bin/tor-gencert", From::Default);
        let keys = "authority/keys/authority_";
        make.args(["--create-identity-key", "-m", "12", "--passphrase-fd", "0"]);
        make.args(["-a", &format!("127.0.0.1:{directory}")]);
        make.args([
            "-i",
            &format!("{keys}identity_key"),
            "-s",
            &format!("{keys}signing_key"),
        ]);
        make.args(["-c", &format!("{keys}certificate")]);
        make.stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut made = make.spawn().unwrap();
        made.stdin
            .take()
            .unwrap()
            .write_all(b"correct horse\n")
            .unwrap();
        assert!(made.wait().unwrap().success());
        let certificate =
            fs::read_to_string(place.path().join(format!("{keys}certificate"))).unwrap();
        let identity = certificate
            .lines()
            .find_map(|line| line.strip_prefix("fingerprint "));
        let identity = identity.unwrap().to_owned();
        let authority = |relay: &str| {
            format!(
                "authority orport={} no-v2 v3ident={identity} 127.0.0.1:{directory} {relay}",
                free_port()
            )
        };
        let mut network = Network {
            place,
            trusted: authority(&"0".repeat(40)),
            directory,
        };
        // The authority's key as a relay is made here.
        let settings = network.settings("authority", free_port());
        let mut tell = place.command(TOR, From::Default);
        let told = succeeded(
            tell.args(["--quiet", "--list-fingerprint", "-f"])
                .arg(settings),
        )
        .stdout;
        let told = String::from_utf8(told).unwrap();
        let relay: String = told.lines().last().unwrap().split(' ').skip(1).collect();
        network.trusted = authority(&relay);
        network
    }

    /// Writes the settings of one of them.
    fn settings(&self, name: &str, port: u16) -> PathBuf {
        let Network {
            place,
            trusted,
            directory,
        } = self;
        let folder = place.path().join(name);
        let common = format!(
            "TestingTorNetwork 1\nDataDirectory {}\nNickname {name}\nLog notice file {}\nAssumeReachable 1\n\
             PathsNeededToBuildCircuits 0.25\nShutdownWaitLength 1\nDirAuthority {trusted}\n",
            folder.display(),
            place.path().join(format!("{name}.log")).display(),
        );
        let relay = format!(
            "SocksPort 0\nORPort 127.0.0.1:{port}\nAddress 127.0.0.1\nContactInfo nobody\nExitRelay 1\n\
             ExitPolicy accept 127.0.0.0/8:*\nExitPolicyRejectPrivate 0\n"
        );
        let own = match name {
            "client" => format!("SocksPort 127.0.0.1:{port}\n"),
            "authority" => format!(
                "{relay}DirPort 127.0.0.1:{directory}\nAuthoritativeDirectory 1\nV3AuthoritativeDirectory 1\n\
                 TestingV3AuthInitialVotingInterval 20\nTestingV3AuthInitialVoteDelay 4\n\
                 TestingV3AuthInitialDistDelay 4\nV3AuthVotingInterval 20\nV3AuthVoteDelay 4\n\
                 V3AuthDistDelay 4\nV3AuthNIntervalsValid 2\nTestingDirAuthVoteExit *\n\
                 TestingDirAuthVoteGuard *\nTestingDirAuthVoteHSDir *\n"
            ),
            _ => relay,
        };
        let file = folder.join("settings");
        fs::write(&file, common + &own).unwrap();
        file
    }

    fn start(&self, name: &str, port: u16, from: From) -> Running {
        let mut tor = self.place.command(TOR, from);
        Running::start(tor.args(["--quiet", "-f"]).arg(self.settings(name, port)))
    }
}

/// Gives the file to whoever connects.
fn serve(file: Vec<u8>) -> u16 {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    thread::spawn(move || {
        for mut client in server.incoming().flatten() {
            let asked = BufReader::new(&client).lines().map_while(Result::ok);
            asked.take_while(|line| !line.is_empty()).for_each(drop);
            let head = format!("HTTP/1.0 200 OK\r\nContent-Length: {}\r\n\r\n", file.len());
            let _ = client.write_all(head.as_bytes());
            let _ = client.write_all(&file);
        }
    });
    port
}

#[test]
fn a_file_comes_through_three_relays() {
    if lacks("tor", &[TOR, "/usr/bin/tor-gencert", "/usr/bin/curl"]) {
        return;
    }
    let place = Place::new();
    let original = data(DATA, 6);
    let port = serve(original.clone());
    let network = Network::new(&place);
    let authority = network.trusted.split("orport=").nth(1).unwrap();
    let authority: u16 = authority.split(' ').next().unwrap().parse().unwrap();
    // Every second one has the provider, so that any circuit passes both kinds.
    let mut running: Vec<Running> = Vec::new();
    for (name, from) in RELAYS
        .iter()
        .zip([From::Cipherlane, From::Default].iter().cycle())
    {
        let port = if *name == "authority" {
            authority
        } else {
            free_port()
        };
        running.push(network.start(name, port, *from));
    }
    let socks = free_port();
    running.push(network.start("client", socks, From::Cipherlane));
    // The second consensus names the relays, after 20 to 40 seconds.
    let fetched = (0..20).any(|_| {
        let mut curl = Command::new("curl");
        curl.args([
            "-s",
            "-f",
            "-m",
            "60",
            "--socks5-hostname",
            &format!("127.0.0.1:{socks}"),
        ]);
        let got = curl
            .arg(format!("http://127.0.0.1:{port}/"))
            .output()
            .unwrap();
        thread::sleep(Duration::from_secs(1));
        got.stdout == original
    });
    let log = fs::read_to_string(place.path().join("client.log"));
    assert!(fetched, "{}", log.unwrap_or_default());
    for tor in running {
        tor.end(libc::SIGINT);
    }
    // The client takes off three layers, and at least one relay with the provider one.
    let used = place.used();
    assert!(used["AES-128-CTR"] >= 4 * DATA as u64, "{used:?}");
}
