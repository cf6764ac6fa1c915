//! curl and nginx, one of them with the provider, over TLS 1.2 and 1.3.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::nginx::{Nginx, publish};
use crate::place::{From, Place, Used, skip, succeeded};

/// Several MiB, and no whole number of records.
const DATA: usize = (5 << 20) + 4321;

/// Protocol, curl's option for suites, suite, and the provider's cipher.
const SUITES: [[&str; 4]; 6] = [
    [
        "1.2",
        "--ciphers",
        "ECDHE-RSA-AES128-GCM-SHA256",
        "AES-128-GCM",
    ],
    [
        "1.2",
        "--ciphers",
        "ECDHE-RSA-AES256-GCM-SHA384",
        "AES-256-GCM",
    ],
    [
        "1.2",
        "--ciphers",
        "ECDHE-RSA-CHACHA20-POLY1305",
        "ChaCha20-Poly1305",
    ],
    [
        "1.3",
        "--tls13-ciphers",
        "TLS_AES_128_GCM_SHA256",
        "AES-128-GCM",
    ],
    [
        "1.3",
        "--tls13-ciphers",
        "TLS_AES_256_GCM_SHA384",
        "AES-256-GCM",
    ],
    [
        "1.3",
        "--tls13-ciphers",
        "TLS_CHACHA20_POLY1305_SHA256",
        "ChaCha20-Poly1305",
    ],
];

fn start(place: &Place, from: From) -> Nginx {
    let names = |protocol| {
        let suites = SUITES.into_iter().filter(|suite| suite[0] == protocol);
        suites.map(|suite| suite[2]).collect::<Vec<_>>().join(":")
    };
    Nginx::start(place, from, 2, [&names("1.2"), &names("1.3")])
}

/// Fetches the data into `fetched`: which worker served it.
fn fetch(place: &Place, from: From, port: u16, [protocol, option, suite, _]: [&str; 4]) -> u32 {
    let mut curl = place.command("curl", from);
    curl.args(["-q", "-sS", "--noproxy", "*", "--cacert", "rsa.pem"])
        .args(["--resolve", &format!("localhost:{port}:127.0.0.1")])
        .args([&format!("--tlsv{protocol}"), "--tls-max", protocol])
        .args([option, suite, "-D", "headers", "-o", "fetched"])
        .arg(format!("https://localhost:{port}/data"));
    succeeded(&mut curl);
    let headers = fs::read_to_string(place.path().join("headers")).unwrap();
    let worker = headers
        .lines()
        .find_map(|line| line.strip_prefix("X-Worker: "));
    worker
        .unwrap_or_else(|| panic!("{headers}"))
        .parse()
        .unwrap()
}

fn ready() -> Option<(Place, Vec<u8>)> {
    if !Path::new("/usr/sbin/nginx").exists() {
        skip("curl and nginx", "nginx is absent; scripts/needs test");
        return None;
    }
    let place = Place::new();
    let data: Vec<u8> = (0..DATA).map(|i| (i * 31 + i / 997) as u8).collect();
    publish(&place, "data", &data);
    Some((place, data))
}

#[test]
fn every_worker_of_nginx_encrypts_for_curl() {
    let Some((place, data)) = ready() else {
        return;
    };
    let nginx = start(&place, From::Cipherlane);
    // Which worker serves a connection is chance: all suites, until both have had some.
    let mut served = BTreeMap::<u32, Used>::new();
    for round in 0.. {
        for suite in SUITES {
            let worker = fetch(&place, From::Default, nginx.port(), suite);
            let fetched = fs::read(place.path().join("fetched")).unwrap();
            assert!(fetched == data, "{suite:?}");
            let bytes = served.entry(worker).or_default();
            *bytes.entry(suite[3].to_owned()).or_default() += DATA as u64;
        }
        if served.len() == 2 {
            break;
        }
        assert!(round < 50, "one worker serves all");
    }
    assert!(!served.contains_key(&nginx.master()));
    nginx.end();
    let used = place.processes();
    for (worker, ciphers) in served {
        for (cipher, bytes) in ciphers {
            let used = used.get(&worker).and_then(|used| used.get(&cipher));
            assert!(used >= Some(&bytes), "{worker} {cipher} {bytes}: {used:?}");
        }
    }
}

#[test]
fn curl_decrypts_what_nginx_sends() {
    let Some((place, data)) = ready() else {
        return;
    };
    let nginx = start(&place, From::Default);
    for suite in SUITES {
        fetch(&place, From::Cipherlane, nginx.port(), suite);
        let fetched = fs::read(place.path().join("fetched")).unwrap();
        assert!(fetched == data, "{suite:?}");
        let used = place.used();
        assert!(used.get(suite[3]) >= Some(&(DATA as u64)), "{used:?}");
    }
    nginx.end();
}
