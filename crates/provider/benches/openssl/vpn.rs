//! OpenVPN, AES-128-GCM, one TCP stream of iperf3 between two network namespaces.
//!
//! Both tunnels are up all the time, one with the provider at both ends, one without it.

use crate::certificate::certify;
use crate::figure::{Figure, Turns, turns};
use crate::network::Network;
use crate::openvpn::{Iperf, Tunnel};
use crate::place::{From, Place, skip};
use crate::processor;

pub(crate) const NAME: &str = "OpenVPN, AES-128-GCM, one TCP stream";

pub(crate) fn measure(rounds: usize) -> Vec<Figure> {
    if let Some(reason) = Tunnel::lacks() {
        skip("OpenVPN", &reason);
        return Vec::new();
    }
    let place = Place::uncounted();
    certify(&place);
    let network = Network::new(&place);
    let tunnels = [(1, From::Default), (2, From::Cipherlane)].map(|(number, from)| {
        let tunnel = Tunnel::start(&place, &network, number, "AES-128-GCM", [from; 2]);
        let iperf = Iperf::start(&place, &network.right, &tunnel.right());
        (from, tunnel, iperf)
    });
    let [mut rates, mut costs] = [Turns::default(), Turns::default()];
    for round in 0..rounds {
        for from in turns(round) {
            let (_, tunnel, iperf) = tunnels.iter().find(|tunnel| tunnel.0 == from).unwrap();
            let used = || tunnel.processes().map(processor::used);
            let before = used();
            let (bytes, seconds) = iperf.transfer(&place, &network.left, 2, &[]);
            let after = used();
            let spent: f64 = (0..2)
                .map(|end| (after[end] - before[end]).as_secs_f64())
                .sum();
            rates.add(from, bytes as f64 * 8.0 / 1e6 / seconds);
            costs.add(from, spent / (bytes as f64 / 1e9));
        }
    }
    for (_, tunnel, _) in tunnels {
        tunnel.end();
    }
    let rate = rates.figure(NAME, None, "Mbit/s");
    let cost = costs.figure(
        NAME,
        None,
        "processor seconds of both ends a GB, less is better",
    );
    rate.into_iter().chain(cost).collect()
}
