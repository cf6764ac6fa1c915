use super::super::request::Range;
use super::*;
use crate::service::Flow;
use crate::table::Table;

fn database() -> Database {
    let framework = cipherlane_drivers::framework(cipherlane_core::Config::default()).unwrap();
    Database::new(framework, Arc::new(Inbox::new().unwrap()), 1)
}

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// A datagram from a port of its own to 53.
fn flow(source: &str, destination: &str) -> Flow {
    Flow {
        source: address(source),
        destination: address(destination),
        protocol: 17,
        ports: Some((1024, 53)),
    }
}

/// An SA between 192.0.2.1, which is here, and `peer`.
fn sa(spi: u32, is_inbound: bool, reqid: u32, peer: &str) -> NewSa {
    let here: SocketAddr = "192.0.2.1:4500".parse().unwrap();
    let there = SocketAddr::new(address(peer), 4500);
    NewSa {
        spi,
        is_inbound,
        is_tunnel: true,
        esn: true,
        is_in_udp: true,
        copies_dscp: true,
        copies_ecn: true,
        reqid,
        window: 32,
        source: if is_inbound { there } else { here },
        destination: if is_inbound { here } else { there },
        encryption: 20,
        integrity: 0,
        seconds: (None, None),
        bytes: (None, None),
        packets: (None, None),
        encryption_key: vec![spi as u8; 20].into(),
        integrity_key: Vec::new().into(),
    }
}

fn policy(direction: Direction, reqid: u32, source: &str, destination: &str) -> Policy {
    let range = |text: &str| {
        let (from, to) = text.split_once('-').unwrap_or((text, text));
        Range {
            from: address(from),
            to: address(to),
            protocol: 0,
            ports: (0, u16::MAX),
        }
    };
    Policy {
        direction,
        action: Action::Protect,
        reqid,
        source: range(source),
        destination: range(destination),
    }
}

fn out(reqid: u32) -> Policy {
    policy(
        Direction::Out,
        reqid,
        "10.1.0.0-10.1.0.255",
        "10.2.0.0-10.2.0.255",
    )
}

fn table(database: &mut Database) -> Table {
    Table::new(Vec::new(), Arc::new(database.children()))
}

/// The SPI by which a packet from 10.1.0.1 to 10.2.0.1 is sent.
fn sent_by(table: &Table) -> Option<u32> {
    let (place, _) = table.by_flow(&flow("10.1.0.1", "10.2.0.1"))?;
    Some(table.tunnels()[place].outbound.spi())
}

#[test]
fn an_sa_is_replaced_before_the_old_one_goes() {
    let mut all = database();
    let peer = "198.51.100.1";
    all.add_policy(out(1), None).unwrap();
    assert!(sent_by(&table(&mut all)).is_none());
    assert!(
        table(&mut all)
            .trap(&flow("10.1.0.9", "10.2.0.1"))
            .is_some()
    );
    all.add_sa(sa(0x1001, true, 1, peer)).unwrap();
    all.add_sa(sa(0x2001, false, 1, peer)).unwrap();
    assert_eq!(sent_by(&table(&mut all)), Some(0x2001));
    // The far side rekeys: it may send by the new SA, and both old ones work on.
    all.add_sa(sa(0x1002, true, 1, peer)).unwrap();
    let both = table(&mut all);
    assert_eq!(sent_by(&both), Some(0x2001));
    assert!(both.by_spi(0x1001).is_some() && both.by_spi(0x1002).is_some());
    all.add_sa(sa(0x2002, false, 1, peer)).unwrap();
    let switched = table(&mut all);
    assert_eq!(sent_by(&switched), Some(0x2002));
    assert!(switched.by_spi(0x1001).is_some() && switched.by_spi(0x1002).is_some());
    all.delete_sa((0x2001, address(peer))).unwrap();
    all.delete_sa((0x1001, address("192.0.2.1"))).unwrap();
    let after = table(&mut all);
    assert_eq!(sent_by(&after), Some(0x2002));
    assert!(after.by_spi(0x1001).is_none() && after.by_spi(0x1002).is_some());
    // Without the outbound SA packets are dropped, and an SA is asked for.
    all.delete_sa((0x2002, address(peer))).unwrap();
    let trapped = table(&mut all);
    assert!(sent_by(&trapped).is_none() && trapped.by_spi(0x1002).is_none());
    let trap = trapped.trap(&flow("10.1.0.1", "10.2.0.1")).unwrap();
    assert!(trap.acquires && trap.reqid == 1);
}

#[test]
fn policies_are_counted_and_the_narrowest_one_decides() {
    let mut all = database();
    let peer = "198.51.100.1";
    let wide = policy(
        Direction::Out,
        1,
        "10.1.0.0-10.1.0.255",
        "10.0.0.0-10.255.255.255",
    );
    for (added, count) in [(wide, 2), (out(2), 1)] {
        for _ in 0..count {
            all.add_policy(added, None).unwrap();
        }
    }
    all.add_sa(sa(0x1001, true, 1, peer)).unwrap();
    all.add_sa(sa(0x2001, false, 1, peer)).unwrap();
    // The SA of the wide policy is there, that of the narrow one is not.
    assert!(sent_by(&table(&mut all)).is_none());
    all.delete_policy(out(2)).unwrap();
    assert_eq!(sent_by(&table(&mut all)), Some(0x2001));
    all.delete_policy(wide).unwrap();
    assert_eq!(sent_by(&table(&mut all)), Some(0x2001));
    all.delete_policy(wide).unwrap();
    let none = table(&mut all);
    assert!(sent_by(&none).is_none() && none.by_spi(0x1001).is_none());
    assert_eq!(
        all.delete_policy(wide).unwrap_err().reason,
        Reason::NotFound
    );
    let mut drops = out(3);
    drops.action = Action::Drop;
    all.add_policy(drops, None).unwrap();
    let dropping = table(&mut all);
    let trap = dropping.trap(&flow("10.1.0.1", "10.2.0.1")).unwrap();
    assert!(!trap.acquires);
}

#[test]
fn what_cannot_be_done_is_refused_with_a_remedy() {
    let mut all = database();
    let refused = |all: &mut Database, change: &dyn Fn(&mut NewSa)| {
        let mut new = sa(0x1001, true, 1, "198.51.100.1");
        change(&mut new);
        all.add_sa(new).unwrap_err()
    };
    for (change, says) in [
        (
            &(|new: &mut NewSa| new.is_tunnel = false) as &dyn Fn(&mut NewSa),
            "mode = tunnel",
        ),
        (&|new: &mut NewSa| new.is_in_udp = false, "encap = yes"),
        (&|new: &mut NewSa| new.encryption = 3, "aes128gcm16"),
        (&|new: &mut NewSa| new.spi = 7, "reserved"),
        (
            &|new: &mut NewSa| new.encryption_key.truncate(7),
            "key of 7 bytes",
        ),
        (&|new: &mut NewSa| new.source.set_port(0), "peer"),
    ] {
        let refusal = refused(&mut all, change);
        assert!(refusal.text.contains(says), "{}", refusal.text);
    }
    all.add_sa(sa(0x1001, true, 1, "198.51.100.1")).unwrap();
    assert_eq!(refused(&mut all, &|_| {}).reason, Reason::Exists);
    let mut types = out(1);
    types.source.protocol = 1;
    types.destination.protocol = 1;
    types.source.ports = (8 << 8, 8 << 8);
    let mut opaque = out(1);
    opaque.source.protocol = 17;
    opaque.destination.protocol = 17;
    opaque.destination.ports = (u16::MAX, 0);
    let mut passes = out(1);
    passes.action = Action::Pass;
    for wrong in [types, opaque, passes] {
        let refusal = all.add_policy(wrong, None).unwrap_err();
        assert_eq!(refusal.reason, Reason::Unsupported);
    }
    assert_eq!(all.count(), (1, 0));
}

#[test]
fn a_peer_that_moves_is_followed() {
    let mut all = database();
    all.add_policy(out(1), None).unwrap();
    all.add_sa(sa(0x1001, true, 1, "198.51.100.1")).unwrap();
    all.add_sa(sa(0x2001, false, 1, "198.51.100.1")).unwrap();
    let here: SocketAddr = "192.0.2.1:4500".parse().unwrap();
    let there: SocketAddr = "203.0.113.5:1024".parse().unwrap();
    let old = address("198.51.100.1");
    all.update_sa((0x2001, old), here, there, true).unwrap();
    all.update_sa((0x1001, here.ip()), there, here, true)
        .unwrap();
    let moved = table(&mut all);
    let tunnel = moved.by_spi(0x1001).unwrap();
    assert_eq!(tunnel.peer(), there);
    assert_eq!(tunnel.child.as_ref().unwrap().source, there);
    assert_eq!(tunnel.outbound.spi(), 0x2001);
    assert!(all.query_sa((0x2001, old)).is_err());
    assert!(all.query_sa((0x2001, there.ip())).is_ok());
    assert!(
        all.update_sa((0x2001, there.ip()), here, there, false)
            .is_err()
    );
}

#[test]
fn routes_are_those_of_policies_but_for_the_way_to_the_peer() {
    let mut all = database();
    let own = address("10.1.0.1");
    all.add_policy(out(1), Some(own)).unwrap();
    let everything = policy(Direction::Out, 2, "10.1.0.1", "0.0.0.0-255.255.255.255");
    all.add_policy(everything, None).unwrap();
    all.add_sa(sa(0x2001, false, 1, "198.51.100.1")).unwrap();
    let around = policy(Direction::Out, 3, "10.1.0.1", "198.51.100.0-198.51.100.255");
    all.add_policy(around, None).unwrap();
    let (wanted, left_out) = all.routes();
    assert_eq!(
        wanted.into_iter().collect::<Vec<_>>(),
        [((address("10.2.0.0"), 24), Some(own))]
    );
    assert_eq!(left_out.len(), 2);
}

#[test]
fn what_a_dead_daemon_protected_is_dropped_while_the_next_one_begins() {
    let mut all = database();
    all.add_policy(out(1), None).unwrap();
    all.add_sa(sa(0x1001, true, 1, "198.51.100.1")).unwrap();
    all.add_sa(sa(0x2001, false, 1, "198.51.100.1")).unwrap();
    all.retire();
    let retired = table(&mut all);
    assert!(retired.tunnels().is_empty());
    assert!(
        !retired
            .trap(&flow("10.1.0.1", "10.2.0.1"))
            .unwrap()
            .acquires
    );
    assert_eq!(all.routes().0.len(), 1);
    assert!(!all.tick());
    all.retired_until = Some(Instant::now());
    assert!(all.tick() && !all.tick());
    assert!(all.routes().0.is_empty());
    let none = table(&mut all);
    assert!(none.trap(&flow("10.1.0.1", "10.2.0.1")).is_none());
}

#[test]
fn spis_are_of_the_gateway_and_of_nobody_else() {
    let mut all = database();
    let spi = all.allot(std::iter::empty()).unwrap();
    assert_eq!(spi::shard(spi), spi::ALONE);
    assert!(all.larval.contains_key(&spi));
    all.add_sa(sa(spi, true, 1, "198.51.100.1")).unwrap();
    assert!(all.larval.is_empty());
    let larval = all.allot(std::iter::empty()).unwrap();
    assert!(all.delete_sa((larval, address("192.0.2.1"))).is_ok());
    assert!(all.delete_sa((larval, address("192.0.2.1"))).is_err());
}

#[test]
fn a_lifetime_that_passes_is_told_by_the_id_that_the_sa_has_then() {
    let mut all = database();
    let mut new = sa(0x2001, false, 1, "198.51.100.1");
    new.seconds = (Some(0), Some(1 << 40));
    all.add_sa(new).unwrap();
    let here: SocketAddr = "192.0.2.1:4500".parse().unwrap();
    let there: SocketAddr = "203.0.113.5:4500".parse().unwrap();
    all.update_sa((0x2001, address("198.51.100.1")), here, there, true)
        .unwrap();
    all.tick();
    let told = all.inbox.take();
    let Some(super::super::inbox::Notice::Expired {
        serial,
        is_hard: false,
    }) = told.front()
    else {
        panic!("{told:?}");
    };
    assert_eq!(all.find(*serial), Some((0x2001, there.ip())));
}

#[test]
fn a_policy_with_ports_carries_them_alone() {
    let mut all = database();
    let mut asks = out(1);
    for range in [&mut asks.source, &mut asks.destination] {
        range.protocol = 17;
    }
    asks.destination.ports = (53, 53);
    all.add_policy(asks, None).unwrap();
    let other = Flow {
        ports: Some((1024, 54)),
        ..flow("10.1.0.1", "10.2.0.1")
    };
    let waiting = table(&mut all);
    assert!(waiting.trap(&flow("10.1.0.1", "10.2.0.1")).is_some());
    assert!(waiting.trap(&other).is_none());
    all.add_sa(sa(0x1001, true, 1, "198.51.100.1")).unwrap();
    all.add_sa(sa(0x2001, false, 1, "198.51.100.1")).unwrap();
    let open = table(&mut all);
    assert_eq!(sent_by(&open), Some(0x2001));
    assert_eq!(open.by_flow(&other), None);
    // The next packet is looked up by itself.
    let asked = open.by_flow(&flow("10.1.0.1", "10.2.0.1"));
    assert_eq!(asked.map(|(_, is_of_service)| is_of_service), Some(true));
    let answer = |port| Flow {
        ports: Some((port, 1024)),
        ..flow("10.2.0.1", "10.1.0.1")
    };
    let tunnel = open.by_spi(0x1001).unwrap();
    assert!(tunnel.admits(&answer(53)) && !tunnel.admits(&answer(54)));
    // The way is the same for all ports: what is not of the policy is dropped.
    assert_eq!(all.routes().0.len(), 1);
}
