//! Programs that speak TLS to each other: each pair with the provider at the client only, at
//! the server only, and at both.
//!
//! A program is a row: the files that it needs, and how its server and its client carry data.
//!
//! | file | server | client |
//! |---|---|---|
//! | `web` | nginx, Apache httpd, HAProxy before nginx | curl, `openssl s_time` |
//! | `tunnels` | stunnel, socat | stunnel, socat |
//! | `databases` | PostgreSQL, Redis | psql, redis-cli |
//! | `git` | git behind Apache httpd | git (its TLS is GnuTLS: the server's end only) |
//! | `dns` | named | dig |

mod apache;
mod databases;
mod dns;
mod git;
mod postgresql;
mod tunnels;
mod web;

use std::fs::{self, File};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::certificate::certify;
use crate::ends::{Ends, Work, lacks};
use crate::place::Place;
use crate::running::{Running, wait_until};

/// A server and a client.
struct Pair {
    name: &'static str,
    /// Files that packages bring.
    needs: &'static [&'static str],
    /// Starts both, compares what was carried, and ends both.
    talk: fn(&Ends) -> Carried,
}

/// Bytes that were carried: each end encrypted or decrypted at least that.
struct Carried {
    client: usize,
    server: usize,
}

impl Carried {
    /// The same at both ends.
    fn both(bytes: usize) -> Carried {
        Carried {
            client: bytes,
            server: bytes,
        }
    }
}

/// The cipher of the suite that OpenSSL prefers.
const CIPHER: &str = "AES-256-GCM";

/// Several MiB, and no whole number of records.
const DATA: usize = (5 << 20) + 4321;

impl Pair {
    fn run(&self) {
        if lacks(self.name, self.needs) {
            return;
        }
        let place = Place::new();
        certify(&place);
        for ends in Ends::each(&place) {
            // It is seen where the test fails.
            println!("{}: {ends}", self.name);
            let Carried { client, server } = (self.talk)(&ends);
            let work = Work {
                cipher: CIPHER,
                client,
                server,
            };
            ends.prove(self.name, &[work]);
        }
    }
}

/// Starts a server, whose words go into a file: it is there when it listens on its port.
fn start(place: &Place, mut command: Command, port: u16) -> Running {
    let name = Path::new(command.get_program()).file_name().unwrap();
    let name = name.to_string_lossy().into_owned();
    let log = place.path().join(format!("{name}.log"));
    let file = || {
        File::options()
            .create(true)
            .append(true)
            .open(&log)
            .unwrap()
    };
    command.stdin(Stdio::null()).stdout(file()).stderr(file());
    let mut server = Running::start(&mut command);
    wait_until(&name, || {
        let said = || fs::read_to_string(&log);
        assert!(!server.ended(), "{name} ended: {:?}", said());
        TcpStream::connect(("127.0.0.1", port)).is_ok()
    });
    server
}
