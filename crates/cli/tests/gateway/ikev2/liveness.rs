//! Dead peer detection: a far end that is silent is found dead, nothing leaves in the clear
//! meanwhile, and the tunnel comes back with the far end.

use rustix::process::Signal;

use super::{CHILD, beside_libipsec, send_in_vain, wait_until};
use crate::carrying::holds;
use crate::charon::{Carrier, Charon, Daemon, Settings};
use crate::rig::{Host, Rig};

/// What makes the far end silent.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// Its daemon, which carries its packets too, does nothing any more.
    Stopped,
    /// Its daemon is killed, and another one is started later.
    Killed,
    /// The link to it is cut.
    Cut,
}

/// The far end is asked whether it lives when a second has passed without a word from it, and each
/// question is sent five times. It does not ask itself: a question is a sign of life.
fn settings() -> Settings {
    Settings {
        connection: "dpd_delay = 1s".to_owned(),
        child: "start_action = trap\n dpd_action = trap".to_owned(),
        ..Settings::default()
    }
}

/// The far end is of strongSwan alone.
fn is_found_dead_and_comes_back(fault: Fault) {
    let Some((rig, a, mut b)) = beside_libipsec([&settings(), &Settings::default()]) else {
        return;
    };
    let watch = rig.watch();
    a.swanctl(&["--initiate", CHILD[0], CHILD[1]]);
    rig.wait_until_connected();
    wait_until("a question whether the peer lives", &[&a, &b], || {
        a.count("sending DPD request") > 0
    });
    let dead = "giving up after 4 retransmits";
    let before = a.count(dead);
    match fault {
        Fault::Stopped => b.signal(Signal::STOP),
        Fault::Killed => b.signal(Signal::KILL),
        Fault::Cut => rig.ip(Host::Router, "link set to-b down"),
    }
    wait_until("the death of the peer", &[&a], || {
        send_in_vain(&rig);
        a.count(dead) > before
    });
    rig.wait_for(Host::A, "the end of the dead SAs", |status| {
        status["tunnels"] == serde_json::json!([])
    });
    send_in_vain(&rig);
    match fault {
        Fault::Stopped => b.signal(Signal::CONT),
        Fault::Killed => {
            drop(b);
            b = Charon::start(&rig, Host::B, Carrier::Libipsec, &Settings::default());
        }
        Fault::Cut => rig.ip(Host::Router, "link set to-b up"),
    }
    // The first packet asks for new SAs.
    rig.wait_until_connected();
    assert!(b.count("CHILD_SA net{") > 0, "{}", b.log());
    nothing_is_clear(&rig, &watch.packets());
}

/// The far end's address within the tunnel.
const FAR: [u8; 4] = [10, 9, 0, 2];

/// Of what the gateway has sent, no packet has the mark, and none is to an inner address. The far end
/// itself answers in the clear what it finds in its queue once it goes on, its SAs being gone.
fn nothing_is_clear(rig: &Rig, packets: &[Vec<u8>]) {
    let esp = packets.iter().filter(|packet| packet[0] == 0x45);
    assert!(esp.count() > 0, "{}", rig.log(Host::A));
    let is_of_far_end = |packet: &&Vec<u8>| packet[0] == 0x45 && packet[12..16] == FAR;
    for packet in packets.iter().filter(|packet| !is_of_far_end(packet)) {
        let shown = &packet[..packet.len().min(60)];
        assert!(!holds(packet, super::MARK), "clear text: {shown:02x?}");
        let is_inner = packet[0] == 0x45 && packet[16..18] == [10, 9];
        assert!(!is_inner, "an inner packet: {shown:02x?}");
    }
}

#[test]
fn a_peer_that_is_stopped_is_found_dead_and_comes_back() {
    is_found_dead_and_comes_back(Fault::Stopped);
}

#[test]
fn a_peer_that_is_killed_is_found_dead_and_comes_back() {
    is_found_dead_and_comes_back(Fault::Killed);
}

#[test]
fn a_peer_whose_link_is_cut_is_found_dead_and_comes_back() {
    is_found_dead_and_comes_back(Fault::Cut);
}
