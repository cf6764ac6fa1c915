//! Selectors with protocols and ports: what they hold is carried, and nothing else of the same
//! addresses, neither sealed nor in the clear.

use std::net::UdpSocket;

use serde_json::{Value, json};

use super::{CHILD, MARK, beside_libipsec};
use crate::carrying::holds;
use crate::charon::{Charon, Daemon, INNER, Settings};
use crate::rig::{Host, Rig};

/// How many packets are sent that must not pass.
const IN_VAIN: u64 = 20;

/// Datagrams from any port of a to port 7 of b. The far end has the same the other way round.
fn echo_alone(host: Host, more: &str) -> Settings {
    let [local, remote] = match host {
        Host::A => ["udp", "udp/7"],
        _ => ["udp/7", "udp"],
    };
    let (own, other) = (host as usize, 1 - host as usize);
    Settings {
        child: format!(
            "local_ts = {}/32[{local}]\n remote_ts = {}/32[{remote}]\n {more}",
            INNER[own], INNER[other]
        ),
        ..Settings::default()
    }
}

fn dropped(status: &Value, why: &str) -> u64 {
    status["calls"]["dropped"][why].as_u64().unwrap_or(0)
}

/// Sends datagrams with the mark from a to port 8 of b, which no selector names.
fn send_in_vain(rig: &Rig) {
    rig.within(Host::A, || {
        let socket = UdpSocket::bind((INNER[0], 0)).unwrap();
        for _ in 0..IN_VAIN {
            let _ = socket.send_to(MARK, (INNER[1], 8));
        }
    });
}

/// How many packets the far end has opened.
fn opened(b: &Charon) -> u64 {
    let shown = b.swanctl(&["--list-sas", "--raw"]);
    let count = shown.split("packets-in=").nth(1).unwrap_or("0");
    let end = count.find(|c: char| !c.is_ascii_digit());
    count[..end.unwrap_or(count.len())].parse().unwrap()
}

#[test]
fn only_the_named_protocol_and_port_is_carried() {
    let Some((rig, a, b)) = beside_libipsec([&echo_alone(Host::A, ""), &echo_alone(Host::B, "")])
    else {
        return;
    };
    let watch = rig.watch();
    a.swanctl(&["--initiate", CHILD[0], CHILD[1]]);
    rig.wait_until_connected();
    let status = rig.status(Host::A).unwrap();
    let tunnel = &status["tunnels"][0];
    assert_eq!(tunnel["local"], json!(["10.9.0.1/32[udp]"]));
    assert_eq!(tunnel["remote"], json!(["10.9.0.2/32[udp/7]"]));
    crate::schema::judge("gateway-status", &rig.shown(Host::A));
    // Another port, and another protocol, of the same addresses.
    let before = opened(&b);
    assert!(before > 0);
    send_in_vain(&rig);
    let mut ping = rig.within_namespace(Host::A, "ping");
    ping.args(["-c", "3", "-i", "0.2", "-W", "1", "10.9.0.2"]);
    assert!(!ping.output().unwrap().status.success());
    rig.wait_for(Host::A, "packets without a policy", |status| {
        dropped(status, "no_policy") >= IN_VAIN + 3
    });
    assert_eq!(opened(&b), before);
    rig.wait_until_connected();
    assert!(watch.packets().iter().all(|packet| !holds(packet, MARK)));
}

#[test]
fn a_packet_of_another_port_asks_for_no_sa() {
    let Some((rig, a, _b)) = beside_libipsec([
        &echo_alone(Host::A, "start_action = trap"),
        &echo_alone(Host::B, ""),
    ]) else {
        return;
    };
    send_in_vain(&rig);
    rig.wait_for(Host::A, "packets without a policy", |status| {
        dropped(status, "no_policy") >= IN_VAIN
    });
    assert_eq!(a.count("creating acquire job"), 0, "{}", a.log());
    rig.wait_until_connected();
    assert!(a.count("creating acquire job") > 0, "{}", a.log());
}

#[test]
fn services_of_the_same_addresses_have_an_sa_each() {
    let both = |host: Host| {
        let mut settings = echo_alone(host, "");
        let [local, remote] = match host {
            Host::A => ["udp", "udp/9"],
            _ => ["udp/9", "udp"],
        };
        let (own, other) = (host as usize, 1 - host as usize);
        settings.child += &format!(
            "}}\n other {{\n local_ts = {}/32[{local}]\n remote_ts = {}/32[{remote}]\n \
             esp_proposals = aes128gcm16",
            INNER[own], INNER[other]
        );
        settings
    };
    let Some((rig, a, b)) = beside_libipsec([&both(Host::A), &both(Host::B)]) else {
        return;
    };
    for (child, port) in [("net", 7), ("other", 9)] {
        a.swanctl(&["--initiate", "--child", child]);
        rig.wait_until_answered(Host::A, INNER[0], &format!("{}:{port}", INNER[1]));
    }
    let status = rig.status(Host::A).unwrap();
    let tunnels = status["tunnels"].as_array().unwrap();
    for port in [7, 9] {
        let named = json!([format!("10.9.0.2/32[udp/{port}]")]);
        let tunnel = tunnels.iter().find(|tunnel| tunnel["remote"] == named);
        let tunnel = tunnel.unwrap_or_else(|| panic!("{status}"));
        for direction in ["outbound", "inbound"] {
            assert!(tunnel[direction]["packets"].as_u64() > Some(0), "{tunnel}");
        }
    }
    assert_eq!(dropped(&status, "selectors"), 0, "{status}");
    assert_eq!(b.count("established with SPIs"), 2, "{}", b.log());
}

#[test]
fn types_of_icmp_are_refused_with_a_reason() {
    let typed = |own: usize| Settings {
        child: format!(
            "local_ts = {}/32[icmp/2048]\n remote_ts = {}/32[icmp/2048]",
            INNER[own],
            INNER[1 - own]
        ),
        ..Settings::default()
    };
    let Some((rig, a, _b)) = beside_libipsec([&typed(0), &typed(1)]) else {
        return;
    };
    let initiate = a.try_swanctl(&["--initiate", CHILD[0], CHILD[1]]);
    assert!(!initiate.status.success(), "{initiate:?}");
    assert!(a.log().contains("types of ICMP"), "{}", a.log());
    assert_eq!(rig.status(Host::A).unwrap()["tunnels"], json!([]));
}
