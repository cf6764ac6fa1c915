//! OpenVPN with the provider at one end, at the other, and at both: pings, and TCP both ways.

use crate::certificate::certify;
use crate::network::Network;
use crate::openvpn::{Iperf, Tunnel};
use crate::place::{From, Place, skip, succeeded};

#[test]
fn openvpn_carries_data_both_ways() {
    if let Some(reason) = Tunnel::lacks() {
        skip("OpenVPN", &reason);
        return;
    }
    let place = Place::new();
    certify(&place);
    let network = Network::new(&place);
    use From::{Cipherlane, Default};
    for (number, cipher, from) in [
        (1, "AES-128-GCM", [Cipherlane, Default]),
        (2, "AES-256-CBC", [Default, Cipherlane]),
        (3, "AES-256-GCM", [Cipherlane, Cipherlane]),
    ] {
        let tunnel = Tunnel::start(&place, &network, number, cipher, from);
        let mut ping = network.left.command(&place, "ping", From::Default);
        succeeded(ping.args(["-c", "3", "-i", "0.1", "-W", "5", &tunnel.right()]));
        let iperf = Iperf::start(&place, &network.right, &tunnel.right());
        let mut carried = 0;
        for options in [&[][..], &["-R"]] {
            carried += iperf.transfer(&place, &network.left, 1, options).0;
        }
        assert!(carried > 1 << 20, "{carried}");
        let ends = tunnel.processes();
        tunnel.end();
        let processes = place.processes();
        for (end, from) in ends.into_iter().zip(from) {
            let used = processes.get(&end);
            match from {
                Default => assert!(used.is_none(), "{from:?}: {used:?}"),
                Cipherlane => {
                    let bytes = used.and_then(|used| used.get(cipher));
                    assert!(bytes >= Some(&carried), "{from:?}: {carried}: {used:?}");
                }
            }
        }
    }
}
