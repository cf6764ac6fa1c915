//! nginx with one worker serving a file of 1 MiB over TLS 1.3, AES-128-GCM, on the loopback.
//!
//! The client is `wrk` with four connections, and has the provider in all turns: it is not
//! what is measured, and shall not be what is waited for.

use std::path::Path;

use crate::figure::{Figure, Turns, turns};
use crate::nginx::{Nginx, publish};
use crate::place::{From, Place, skip, succeeded};
use crate::processor;
use crate::running::wait_until;

pub(crate) const NAME: &str = "nginx, 1 MiB over TLS 1.3, AES-128-GCM";

const FILE: usize = 1 << 20;
const SUITES: [&str; 2] = ["ECDHE-RSA-AES128-GCM-SHA256", "TLS_AES_128_GCM_SHA256"];

/// A server with one of the providers.
struct Server {
    place: Place,
    nginx: Nginx,
    worker: u32,
}

impl Server {
    fn start(from: From) -> Server {
        let place = Place::uncounted();
        publish(&place, "data", &vec![0x5a; FILE]);
        let nginx = Nginx::start(&place, from, 1, SUITES);
        let mut workers = Vec::new();
        wait_until("a worker of nginx", || {
            workers = processor::children(nginx.master());
            !workers.is_empty()
        });
        Server {
            place,
            nginx,
            worker: workers[0],
        }
    }

    /// Requests per second, and processor seconds of the worker per GB.
    fn turn(&self) -> [f64; 2] {
        let before = processor::used(self.worker);
        let mut wrk = self.place.command("wrk", From::Cipherlane);
        wrk.args(["-t", "1", "-c", "4", "-d", "2s"])
            .arg(format!("https://127.0.0.1:{}/data", self.nginx.port()));
        let said = succeeded(&mut wrk).stdout;
        let seconds = (processor::used(self.worker) - before).as_secs_f64();
        let said = String::from_utf8(said).unwrap();
        let number = |before: &str, after: &str| -> f64 {
            let found = said.lines().find_map(|line| {
                let (_, rest) = line.split_once(before)?;
                rest.split(after).next()?.trim().parse().ok()
            });
            found.unwrap_or_else(|| panic!("{said}"))
        };
        assert!(!said.contains("Non-2xx"), "{said}");
        let requests = number("  ", "requests in");
        let bytes = requests * FILE as f64;
        [number("Requests/sec:", "\n"), seconds / (bytes / 1e9)]
    }
}

pub(crate) fn measure(rounds: usize) -> Vec<Figure> {
    for program in ["/usr/sbin/nginx", "/usr/bin/wrk"] {
        if !Path::new(program).exists() {
            skip("nginx", &format!("{program} is absent; scripts/needs test"));
            return Vec::new();
        }
    }
    let servers = [From::Default, From::Cipherlane].map(|from| (from, Server::start(from)));
    let [mut rates, mut costs] = [Turns::default(), Turns::default()];
    for round in 0..rounds {
        for from in turns(round) {
            let (_, server) = servers.iter().find(|server| server.0 == from).unwrap();
            let [rate, cost] = server.turn();
            rates.add(from, rate);
            costs.add(from, cost);
        }
    }
    for (_, server) in servers {
        server.nginx.end();
    }
    let rate = rates.figure(NAME, None, "requests/s");
    let cost = costs.figure(
        NAME,
        None,
        "processor seconds of the worker per GB, less is better",
    );
    rate.into_iter().chain(cost).collect()
}
