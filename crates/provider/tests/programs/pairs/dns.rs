//! A zone that dig transfers from named over TLS.

use crate::ends::{Ends, write};
use crate::place::succeeded;
use crate::running::free_port;

use super::{Carried, Pair, start};

const NAMED: &str = "/usr/sbin/named";

const RECORDS: usize = 20_000;

#[test]
fn dig_transfers_a_zone_from_named() {
    Pair {
        name: "named and dig +tls",
        needs: &[NAMED, "/usr/bin/dig"],
        talk,
    }
    .run();
}

fn text(number: usize) -> String {
    format!("record {number} has {:x}", number * 2_654_435_761)
}

fn talk(ends: &Ends) -> Carried {
    let place = ends.place;
    let [port, plain] = [free_port(), free_port()];
    let folder = place.path().display();
    let mut zone =
        "$TTL 60\n@ SOA localhost. root.localhost. 1 60 60 60 60\n@ NS localhost.\n".to_owned();
    for number in 0..RECORDS {
        zone += &format!("r{number} TXT \"{}\"\n", text(number));
    }
    write(place, "zone", zone.as_bytes());
    let settings = format!(
        "tls own {{ cert-file \"{folder}/rsa.pem\"; key-file \"{folder}/rsa.key\"; }};\n\
         options {{\n  directory \"{folder}\"; pid-file none; session-keyfile none;\n\
         \x20 listen-on port {port} tls own {{ 127.0.0.1; }};\n\
         \x20 listen-on port {plain} {{ 127.0.0.1; }};\n  listen-on-v6 {{ none; }};\n\
         \x20 recursion no; dnssec-validation no; notify no; allow-transfer {{ any; }};\n}};\n\
         controls {{ }};\n\
         zone \"test.\" {{ type primary; file \"{folder}/zone\"; }};\n"
    );
    let settings = write(place, "named.conf", settings.as_bytes());
    let mut named = ends.server(NAMED);
    named.args(["-f", "-n", "1", "-c"]).arg(settings);
    let named = start(place, named, port);
    let mut dig = ends.client("/usr/bin/dig");
    dig.args(["@127.0.0.1", "-p", &port.to_string()])
        .args(["+tls-ca=rsa.pem", "+tls-hostname=localhost"])
        .args(["+noall", "+answer", "test.", "AXFR"]);
    let said = String::from_utf8(succeeded(&mut dig).stdout).unwrap();
    let mut bytes = 0;
    let mut got: Vec<_> = said
        .lines()
        .filter_map(|line| {
            line.split_once("TXT\t")?
                .1
                .strip_prefix('"')?
                .strip_suffix('"')
        })
        .collect();
    let mut wanted: Vec<_> = (0..RECORDS).map(text).collect();
    wanted.iter().for_each(|text| bytes += text.len());
    got.sort_unstable();
    wanted.sort_unstable();
    assert!(got == wanted, "{ends}: {} records", got.len());
    named.end(libc::SIGTERM);
    Carried::both(bytes)
}
