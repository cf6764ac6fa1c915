//! No sequence number is sent twice, however a gateway ends; a changed configuration does not
//! disturb what has not changed.

use std::collections::HashSet;
use std::net::UdpSocket;
use std::time::Duration;

use rustix::process::Signal;

use crate::rig::{Host, OUTER, pair, rig};

/// SPI and sequence number of all packets in payloads of ESP; a train has many.
fn numbers(payloads: &[Vec<u8>]) -> Vec<(u32, u32)> {
    let long = |bytes: &[u8]| u32::from_be_bytes(bytes[..4].try_into().unwrap());
    let mut numbers = Vec::new();
    for payload in payloads {
        let mut at = Some(0);
        while let Some(from) = at {
            let (spi, number) = (long(&payload[from..]), long(&payload[from + 4..]));
            numbers.push((spi, number));
            // The next one of a train has the next number.
            let mut next = [0; 8];
            next[..4].copy_from_slice(&spi.to_be_bytes());
            next[4..].copy_from_slice(&number.wrapping_add(1).to_be_bytes());
            let rest = &payload[from + 8..];
            let found = rest.windows(8).position(|window| window == next);
            at = found.map(|place| from + 8 + place);
        }
    }
    numbers
}

#[test]
fn a_restart_repeats_no_sequence_number() {
    let Some(mut rig) = rig() else {
        return;
    };
    rig.configure(&[]);
    let mut all = Vec::new();
    rig.start(Host::B);
    for signal in [Signal::TERM, Signal::KILL, Signal::KILL, Signal::TERM] {
        // Each packet is forwarded once, so the router sees each twice: coming and going.
        let watch = rig.watch();
        rig.start(Host::A);
        rig.wait_until_connected();
        rig.within(Host::A, || {
            let socket = UdpSocket::bind("10.9.0.1:0").unwrap();
            for number in 0..500u32 {
                let _ = socket.send_to(&number.to_be_bytes(), "10.9.0.2:9");
            }
        });
        rig.wait_for(Host::A, "100 packets", |status| {
            let packets = &status["tunnels"][0]["outbound"]["packets"];
            packets.as_u64().is_some_and(|packets| packets >= 100)
        });
        rig.end(Host::A, signal);
        std::thread::sleep(Duration::from_millis(200));
        let once: HashSet<_> = numbers(&watch.esp_from(OUTER[0])).into_iter().collect();
        assert!(once.len() >= 100, "{}", once.len());
        all.push(once);
    }
    for (place, numbers) in all.iter().enumerate() {
        for others in &all[place + 1..] {
            assert!(
                numbers.is_disjoint(others),
                "a number was sent in two lives"
            );
        }
    }
}

#[test]
fn without_its_state_a_gateway_does_not_start() {
    let Some(rig) = rig() else {
        return;
    };
    rig.configure(&[]);
    let state = rig.path("a").join("gateway.state");
    let config = rig.path("a").join("gateway.toml");
    let config = config.to_str().unwrap();
    std::fs::remove_file(&state).unwrap();
    let run = || {
        let output = rig
            .command(Host::A, &["gateway", "run", "--config", config])
            .output();
        let output = output.unwrap();
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    let said = run();
    assert!(
        said.contains("new-state") && said.contains("new keys"),
        "{said}"
    );
    let mut new = rig.command(Host::A, &["gateway", "new-state", "--config", config]);
    assert!(new.output().unwrap().status.success());
    assert!(
        !new.output().unwrap().status.success(),
        "a state is never forgotten"
    );
    std::fs::write(&state, "cipherlane gateway state, version 1\nab").unwrap();
    let said = run();
    assert!(
        said.contains("damaged") && said.contains("new keys"),
        "{said}"
    );
    rig.edit("a", |text| text.replace("state = \"gateway.state\"\n", ""));
    let said = run();
    assert!(said.contains("set 'state'"), "{said}");
}

#[test]
fn a_changed_configuration_loses_no_packet_of_other_tunnels() {
    let Some(rig) = pair() else {
        return;
    };
    let echo = rig.echo("10.9.0.2:7");
    let traffic = rig.beside(Host::A, || {
        let socket = UdpSocket::bind("10.9.0.1:0").unwrap();
        socket
            .set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        let mut bytes = [0; 4];
        for number in 0..3000u32 {
            socket.send_to(&number.to_be_bytes(), "10.9.0.2:7").unwrap();
            let received = socket.recv(&mut bytes).map(|_| u32::from_be_bytes(bytes));
            if received.as_ref().ok() != Some(&number) {
                return Err((number, received));
            }
        }
        Ok(())
    });
    let digits = |n: u8| format!("{n:02x}").repeat(36);
    let added = format!(
        "[[tunnel]]\nname = \"other\"\npeer = \"192.0.2.77\"\nlocal = [\"10.9.0.1\"]\nremote = \
         [\"10.77.0.0/16\"]\nout = {{ spi = 999, key = \"{}\" }}\nin = {{ spi = 998, key = \"{}\" \
         }}\n",
        digits(1),
        digits(2)
    );
    for round in 0..6 {
        let has_other = round % 2 == 0;
        rig.edit("a", |text| match has_other {
            true => format!("{text}{added}"),
            false => text.replace(&added, ""),
        });
        rig.signal(Host::A, Signal::HUP);
        let count = if has_other { 2 } else { 1 };
        rig.wait_for(Host::A, "the change", |status| {
            status["tunnels"]
                .as_array()
                .is_some_and(|tunnels| tunnels.len() == count)
        });
    }
    // What is wrong changes nothing.
    rig.edit("a", |text| format!("{text}mistake = 1\n"));
    rig.signal(Host::A, Signal::HUP);
    let came = traffic.join().unwrap();
    assert!(
        came.is_ok(),
        "{came:?}: {:?} {:?}",
        rig.status(Host::A),
        rig.status(Host::B)
    );
    drop(echo);
    assert!(
        rig.log(Host::A).contains("everything stays as it was"),
        "{}",
        rig.log(Host::A)
    );
    let status = rig.status(Host::A).unwrap();
    assert_eq!(status["tunnels"][0]["inbound"]["lost"], 0);
}
