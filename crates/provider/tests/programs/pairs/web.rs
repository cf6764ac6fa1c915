//! curl and `openssl s_time`, and web servers: nginx, Apache httpd, and HAProxy with another
//! server behind it.

use std::fs;
use std::process::Command;

use crate::ends::{Ends, data, write};
use crate::nginx::{NGINX, Nginx, publish};
use crate::place::{From, succeeded};
use crate::running::free_port;

use super::apache::Apache;
use super::{Carried, DATA, Pair, start};

const SUITES: [&str; 2] = ["DEFAULT", "TLS_AES_256_GCM_SHA384"];

#[test]
fn apache_and_curl() {
    Pair {
        name: "Apache httpd and curl",
        needs: &["/usr/sbin/apache2", "/usr/bin/curl"],
        talk: apache,
    }
    .run();
}

#[test]
fn nginx_and_curl() {
    Pair {
        name: "nginx and curl",
        needs: &[NGINX, "/usr/bin/curl"],
        talk: nginx,
    }
    .run();
}

#[test]
fn haproxy_between_curl_and_nginx() {
    Pair {
        name: "HAProxy",
        needs: &["/usr/sbin/haproxy", NGINX, "/usr/bin/curl"],
        talk: haproxy,
    }
    .run();
}

#[test]
fn nginx_and_s_time() {
    Pair {
        name: "nginx and openssl s_time",
        needs: &[NGINX],
        talk: s_time,
    }
    .run();
}

/// curl, with the options that reach a server of the place.
pub(super) fn curl(ends: &Ends, port: u16) -> Command {
    let mut curl = ends.client("curl");
    curl.args([
        "-q",
        "-sS",
        "--fail",
        "--noproxy",
        "*",
        "--cacert",
        "rsa.pem",
    ])
    .args(["--resolve", &format!("localhost:{port}:127.0.0.1")]);
    curl
}

/// Fetches a file of the server by its path, and compares it.
fn fetch(ends: &Ends, port: u16, path: &str, data: &[u8]) {
    let mut curl = curl(ends, port);
    let url = format!("https://localhost:{port}/{path}");
    succeeded(curl.args(["-o", "fetched", &url]));
    let fetched = fs::read(ends.place.path().join("fetched")).unwrap();
    assert!(fetched == data, "{ends}: {path}");
}

/// Up by WebDAV, and down again, by HTTP/1.1 and HTTP/2.
fn apache(ends: &Ends) -> Carried {
    let apache = Apache::start(ends);
    let data = data(DATA, 4);
    write(ends.place, "sent", &data);
    let versions = ["--http1.1", "--http2"];
    for version in versions {
        let mut curl = curl(ends, apache.port());
        let url = format!("https://localhost:{}/upload", apache.port());
        succeeded(curl.args([version, "-T", "sent", &url]));
        fetch(ends, apache.port(), "upload", &data);
    }
    apache.end();
    Carried::both(2 * versions.len() * DATA)
}

fn nginx(ends: &Ends) -> Carried {
    let data = data(DATA, 5);
    publish(ends.place, "data", &data);
    let nginx = Nginx::start_by(ends.place, ends.server(NGINX), 2, SUITES);
    for _ in 0..3 {
        fetch(ends, nginx.port(), "data", &data);
    }
    nginx.end();
    Carried::both(3 * DATA)
}

/// A page over each of the connections that are made within a second.
fn s_time(ends: &Ends) -> Carried {
    let page = data(100_000, 7);
    publish(ends.place, "page", &page);
    let nginx = Nginx::start_by(ends.place, ends.server(NGINX), 1, SUITES);
    let mut client = ends.client("openssl");
    let address = format!("127.0.0.1:{}", nginx.port());
    client.args(["s_time", "-connect", &address, "-time", "1", "-new"]);
    let said = succeeded(client.args(["-www", "/page", "-CAfile", "rsa.pem"])).stdout;
    let said = String::from_utf8(said).unwrap();
    // "17 connections in 0.40s; 42.50 connections/user sec, bytes read 1701500"
    let bytes = said
        .split_once("bytes read ")
        .map(|(_, rest)| rest.lines().next());
    let bytes: usize = bytes.flatten().unwrap_or(&said).parse().expect(&said);
    assert!(bytes >= page.len(), "{said}");
    nginx.end();
    Carried::both(bytes)
}

/// HAProxy decrypts what nginx sends, and encrypts it for curl.
fn haproxy(ends: &Ends) -> Carried {
    let place = ends.place;
    let data = data(DATA, 6);
    publish(place, "data", &data);
    let nginx = Nginx::start(place, From::Default, 1, SUITES);
    let port = free_port();
    let both = ["rsa.pem", "rsa.key"].map(|name| fs::read(place.path().join(name)).unwrap());
    write(place, "haproxy.pem", &both.concat());
    let settings = format!(
        "global\n  nbthread 2\n  log stdout format raw daemon\n\
         defaults\n  mode http\n  log global\n  option httplog\n\
         \x20 timeout connect 30s\n  timeout client 30s\n  timeout server 30s\n\
         frontend front\n  bind 127.0.0.1:{port} ssl crt haproxy.pem\n  default_backend back\n\
         backend back\n  server nginx 127.0.0.1:{} ssl verify required ca-file rsa.pem \
         verifyhost localhost\n",
        nginx.port()
    );
    write(place, "haproxy.cfg", settings.as_bytes());
    let mut haproxy = ends.server("/usr/sbin/haproxy");
    haproxy.args(["-db", "-f", "haproxy.cfg"]);
    let haproxy = start(place, haproxy, port);
    fetch(ends, port, "data", &data);
    // In order, when its connections have ended.
    haproxy.end(libc::SIGUSR1);
    nginx.end();
    Carried {
        client: DATA,
        server: 2 * DATA,
    }
}
