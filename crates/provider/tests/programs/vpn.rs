//! OpenVPN with the provider at one end: pings, and TCP both ways.

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
    for (number, cipher) in [(1, "AES-128-GCM"), (2, "AES-256-CBC")] {
        let from = [From::Cipherlane, From::Default];
        let tunnel = Tunnel::start(&place, &network, number, cipher, from);
        let mut ping = network.left.command(&place, "ping", From::Default);
        succeeded(ping.args(["-c", "3", "-i", "0.1", "-W", "5", &tunnel.right()]));
        let iperf = Iperf::start(&place, &network.right, &tunnel.right());
        let mut carried = 0;
        for options in [&[][..], &["-R"]] {
            carried += iperf.transfer(&place, &network.left, 1, options).0;
        }
        let [left, _] = tunnel.processes();
        tunnel.end();
        let processes = place.processes();
        let used = &processes[&left];
        assert!(carried > 1 << 20, "{carried}");
        assert!(used.get(cipher) >= Some(&carried), "{carried}: {used:?}");
    }
}
