//! Databases over TLS: PostgreSQL with psql, Redis with redis-cli.

use crate::certificate::certify;
use crate::ends::{Ends, Work, write};
use crate::place::{Place, succeeded};
use crate::running::free_port;

use super::postgresql::Cluster;
use super::{CIPHER, Carried, Pair, start};

/// Lines that a database keeps as they are.
fn lines(seed: usize) -> String {
    (0..80_000)
        .map(|i| format!("{i}\tline {:x} of the data\n", i * 2_654_435_761 + seed))
        .collect()
}

#[test]
fn redis_keeps_what_redis_cli_gives_it() {
    Pair {
        name: "Redis",
        needs: &["/usr/bin/redis-server", "/usr/bin/redis-cli"],
        talk: redis,
    }
    .run();
}

fn redis(ends: &Ends) -> Carried {
    let place = ends.place;
    let port = free_port();
    let number = port.to_string();
    let mut server = ends.server("/usr/bin/redis-server");
    server
        .args(["--bind", "127.0.0.1", "--port", "0", "--tls-port", &number])
        .args(["--tls-cert-file", "rsa.pem", "--tls-key-file", "rsa.key"])
        .args(["--tls-ca-cert-file", "rsa.pem", "--tls-auth-clients", "no"])
        .args(["--save", "", "--appendonly", "no"]);
    let server = start(place, server, port);
    let cli = || {
        let mut cli = ends.client("/usr/bin/redis-cli");
        cli.args([
            "-h",
            "127.0.0.1",
            "-p",
            &number,
            "--tls",
            "--cacert",
            "rsa.pem",
        ]);
        cli
    };
    let data = lines(3);
    let sent = std::fs::File::open(write(place, "sent", data.as_bytes())).unwrap();
    succeeded(cli().args(["-x", "SET", "key"]).stdin(sent));
    let got = succeeded(cli().args(["--raw", "GET", "key"])).stdout;
    // redis-cli ends its output by a new line.
    assert!(got == (data.clone() + "\n").as_bytes(), "{ends}");
    server.end(libc::SIGTERM);
    Carried::both(2 * data.len())
}

#[test]
fn postgresql_keeps_what_psql_gives_it() {
    let Some(programs) = Cluster::programs("PostgreSQL") else {
        return;
    };
    let place = Place::new();
    certify(&place);
    let cluster = Cluster::new(&place, programs);
    let data = lines(4);
    write(&place, "sent", data.as_bytes());
    for ends in Ends::each(&place) {
        let server = cluster.start(&ends);
        let script = "DROP TABLE IF EXISTS kept;\nCREATE TABLE kept (number int, line text);\n\
                      \\copy kept FROM sent\n\\copy (SELECT * FROM kept ORDER BY number) TO got\n\
                      SELECT ssl, version, cipher FROM pg_stat_ssl WHERE pid = pg_backend_pid();\n";
        write(&place, "script", script.as_bytes());
        let mut psql = cluster.psql(&ends);
        let said = succeeded(psql.args(["--tuples-only", "--no-align", "--file", "script"])).stdout;
        let said = String::from_utf8(said).unwrap();
        assert!(said.contains("t|TLSv1.3|TLS_AES_256_GCM_SHA384"), "{said}");
        let got = std::fs::read(place.path().join("got")).unwrap();
        assert!(got == data.as_bytes(), "{ends}");
        server.end(libc::SIGINT);
        let bytes = 2 * data.len();
        let work = Work {
            cipher: CIPHER,
            client: bytes,
            server: bytes,
        };
        ends.prove("PostgreSQL", &[work]);
    }
}
