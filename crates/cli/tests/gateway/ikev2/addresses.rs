//! Addresses of another kind: IKE and ESP over IPv6, and addresses that the far end gives.

use serde_json::json;

use super::{CHILD, gateways, rekey_from_both_sides};
use crate::charon::{Carrier, Charon, Daemon, Settings};
use crate::rig::Host;
use crate::tshark::{self, Capture};

/// The outer addresses of IPv6 that the rig has.
const OUTER6: [&str; 2] = ["2001:db8:a::1", "2001:db8:b::1"];

/// The network whose addresses the server gives, and the first of them.
const POOL: &str = "pools { road { addrs = 10.3.0.0/24 } }";
const GIVEN: &str = "10.3.0.1";

#[test]
fn ike_and_esp_go_over_ipv6() {
    let Some(rig) = gateways(&[Host::A]) else {
        return;
    };
    rig.add_ipv6();
    rig.ip(Host::B, "addr add 10.9.0.2/32 dev lo");
    let over = |own: usize| Settings {
        addresses: Some([OUTER6[own].to_owned(), OUTER6[1 - own].to_owned()]),
        ..Settings::default()
    };
    let watch = rig.watch();
    let b = Charon::start(&rig, Host::B, Carrier::Libipsec, &over(1));
    let a = Charon::start(&rig, Host::A, Carrier::Gateway, &over(0));
    a.swanctl(&["--initiate", CHILD[0], CHILD[1]]);
    rig.wait_until_connected();
    let echo = rig.echo("10.9.0.2:7");
    assert_eq!(
        rekey_from_both_sides(&rig, [&a, &b]),
        0,
        "{}{}",
        a.log(),
        b.log()
    );
    drop(echo);
    let status = rig.wait_for(Host::A, "the end of the old SAs", |status| {
        status["tunnels"]
            .as_array()
            .is_some_and(|tunnels| tunnels.len() == 1)
    });
    assert_eq!(status["tunnels"][0]["peer"], "[2001:db8:b::1]:4500");
    assert_eq!(status["tunnels"][0]["inbound"]["refused"], json!({}));
    if !tshark::is_there() {
        return;
    }
    let mut protocols = Capture::of(&watch.packets()).protocols();
    protocols.retain(|shown| !shown.contains("icmpv6"));
    // There is no NAT on the way, and ESP is in UDP all the same.
    for known in [
        "raw:ipv6:udp:isakmp",
        "raw:ipv6:udp:udpencap:isakmp",
        "raw:ipv6:udp:udpencap:esp",
    ] {
        let place = protocols.iter().position(|shown| shown == known);
        let place = place.unwrap_or_else(|| panic!("no {known}: {protocols:?}"));
        protocols.remove(place);
    }
    assert_eq!(protocols, Vec::<String>::new());
}

/// What the side that gives addresses says, and the side that is given one.
fn road(server: usize) -> [Settings; 2] {
    let outer = |at: usize| crate::rig::OUTER[at].to_owned();
    let gives = Settings {
        addresses: Some([outer(server), "%any".to_owned()]),
        connection: "pools = road".to_owned(),
        child: "remote_ts = dynamic".to_owned(),
        beside: POOL.to_owned(),
        ..Settings::default()
    };
    let is_given = Settings {
        connection: "vips = 0.0.0.0".to_owned(),
        child: "local_ts = dynamic".to_owned(),
        ..Settings::default()
    };
    [gives, is_given]
}

#[test]
fn a_road_warrior_is_given_an_address() {
    let Some(rig) = gateways(&[Host::A]) else {
        return;
    };
    rig.ip(Host::B, "addr add 10.9.0.2/32 dev lo");
    let [gives, is_given] = road(1);
    let b = Charon::start(&rig, Host::B, Carrier::Libipsec, &gives);
    let a = Charon::start(&rig, Host::A, Carrier::Gateway, &is_given);
    a.swanctl(&["--initiate", CHILD[0], CHILD[1]]);
    assert!(
        a.count(&format!("installing new virtual IP {GIVEN}")) > 0,
        "{}",
        a.log()
    );
    // Which the host's own packets have as their source without being told.
    rig.wait_until_answered(Host::A, "0.0.0.0", "10.9.0.2:7");
    let status = rig.status(Host::A).unwrap();
    assert_eq!(
        status["tunnels"][0]["local"],
        json!([format!("{GIVEN}/32")])
    );
    assert!(
        b.swanctl(&["--list-sas", "--raw"])
            .contains(&format!("remote-vips=[{GIVEN}]"))
    );
    a.swanctl(&["--terminate", "--ike", "net"]);
    rig.wait_for(Host::A, "the end", |status| status["tunnels"] == json!([]));
}

#[test]
fn a_gateway_gives_an_address_to_a_road_warrior() {
    let Some(rig) = gateways(&[Host::A]) else {
        return;
    };
    let [gives, is_given] = road(0);
    let a = Charon::start(&rig, Host::A, Carrier::Gateway, &gives);
    let b = Charon::start(&rig, Host::B, Carrier::Libipsec, &is_given);
    b.swanctl(&["--initiate", CHILD[0], CHILD[1]]);
    assert!(
        b.count(&format!("installing new virtual IP {GIVEN}")) > 0,
        "{}",
        b.log()
    );
    rig.wait_until_answered(Host::B, "0.0.0.0", "10.9.0.1:7");
    let status = rig.status(Host::A).unwrap();
    assert_eq!(
        status["tunnels"][0]["remote"],
        json!([format!("{GIVEN}/32")])
    );
    drop(a);
}
