//! `openssl s_server` and `s_client` over every suite that the default provider offers: one
//! side has the provider, the other has not.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::certificate::certify;
use crate::place::{From, Place, succeeded};

/// Longer than four records.
const DATA: usize = 70_000;

/// Without AES instructions the default provider has no CBC and HMAC in one, which TLS would
/// prefer to a CBC where the MAC comes first. The provider looks for itself.
const NO_AES_NI: &str = "~0x200000200000000";

const PATIENCE: Duration = Duration::from_secs(60);

/// Data without letters that the programs take as commands.
fn data(seed: usize) -> String {
    (0..DATA)
        .map(|i| match i % 60 {
            59 => '\n',
            _ => (b'0' + ((i * 7 + i / 61 + seed) % 10) as u8) as char,
        })
        .collect()
}

/// Says the data into a program, and keeps its standard input open: its end would end it.
fn say(child: &mut Child, data: String) -> ChildStdin {
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(data.as_bytes()).unwrap();
    stdin
}

/// Waits until a program has written `data`, which must come within a minute.
fn hear(mut output: impl Read + Send + 'static, data: String) -> mpsc::Receiver<()> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut heard: Vec<u8> = Vec::new();
        let mut piece = [0; 4096];
        let wanted = data.trim_end().as_bytes();
        while let Ok(len @ 1..) = output.read(&mut piece) {
            heard.extend(&piece[..len]);
            if heard
                .windows(wanted.len())
                .rev()
                .take(len)
                .any(|heard| heard == wanted)
            {
                let _ = sender.send(());
            }
        }
    });
    receiver
}

/// Data both ways over one connection.
fn talk(place: &Place, options: &[&str], server_from: From, client_from: From) {
    let mut server = place
        .command("openssl", server_from)
        .args(["s_server", "-accept", "127.0.0.1:0", "-naccept", "1"])
        .args([
            "-cert", "rsa.pem", "-key", "rsa.key", "-dcert", "ec.pem", "-dkey", "ec.key",
        ])
        .args(options)
        .env("OPENSSL_ia32cap", NO_AES_NI)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut server_says = BufReader::new(server.stdout.take().unwrap());
    let mut line = String::new();
    let address = loop {
        line.clear();
        assert_ne!(server_says.read_line(&mut line).unwrap(), 0, "{options:?}");
        if let Some(address) = line.strip_prefix("ACCEPT ") {
            break address.trim().to_owned();
        }
    };
    let mut client = client(place.command("openssl", client_from), &address, options);
    let (there, back) = (data(1), data(2));
    let at_server = hear(server_says, there.clone());
    let at_client = hear(client.stdout.take().unwrap(), back.clone());
    let client_input = say(&mut client, there);
    let server_input = say(&mut server, back);
    for (side, heard) in [("server", at_server), ("client", at_client)] {
        if heard.recv_timeout(PATIENCE).is_err() {
            let _ = (server.kill(), client.kill());
            panic!("{options:?}: the {side} did not get its data");
        }
    }
    drop(client_input);
    assert!(client.wait().unwrap().success(), "{options:?}");
    drop(server_input);
    server.wait().unwrap();
}

fn client(mut command: Command, address: &str, options: &[&str]) -> Child {
    command
        .args(["s_client", "-connect", address, "-quiet", "-no_ign_eof"])
        .args(options)
        .env("OPENSSL_ia32cap", NO_AES_NI)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// The provider's cipher of a suite; `None` where it has none.
fn cipher(suite: &str) -> Option<String> {
    if suite.contains("CCM") {
        return None;
    }
    if suite.contains("CHACHA20") {
        return Some("ChaCha20-Poly1305".to_owned());
    }
    let bits = ["128", "256"].into_iter().find(|bits| {
        suite.contains(&format!("AES{bits}")) || suite.contains(&format!("AES_{bits}"))
    })?;
    let mode = if suite.contains("GCM") { "GCM" } else { "CBC" };
    Some(format!("AES-{bits}-{mode}"))
}

fn suites(place: &Place, version: &str) -> Vec<String> {
    let output = succeeded(place.command("openssl", From::Default).args([
        "ciphers",
        "-s",
        version,
        "DEFAULT:@SECLEVEL=0",
    ]));
    let suites = String::from_utf8(output.stdout).unwrap();
    suites.trim().split(':').map(str::to_owned).collect()
}

#[test]
fn every_suite_of_every_version_carries_data_both_ways() {
    let place = Place::new();
    certify(&place);
    let mut ours = 0;
    for version in ["-tls1", "-tls1_1", "-tls1_2", "-tls1_3"] {
        for (i, suite) in suites(&place, version).iter().enumerate() {
            let list = format!("{suite}:@SECLEVEL=0");
            let mut options = match version {
                "-tls1_3" => vec![version, "-ciphersuites", suite],
                _ => vec![version, "-cipher", &list],
            };
            let (server, client) = match i % 2 {
                0 => (From::Cipherlane, From::Default),
                _ => (From::Default, From::Cipherlane),
            };
            let cipher = cipher(suite);
            let records = |options: &[&str]| {
                talk(&place, options, server, client);
                let used = place.used();
                if let Some(cipher) = &cipher {
                    let wanted = 2 * DATA as u64;
                    assert!(used.get(cipher) >= Some(&wanted), "{options:?}: {used:?}");
                }
            };
            records(&options);
            if cipher
                .as_ref()
                .is_some_and(|cipher| cipher.ends_with("CBC"))
            {
                // The MAC first and then the padding, which are the provider's to take off.
                options.push("-no_etm");
                records(&options);
            }
            ours += u32::from(cipher.is_some());
        }
    }
    assert!(ours > 30, "{ours} suites");
}
