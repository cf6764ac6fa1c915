//! Front-ends that are not QEMU: garbage, half a message, and a second one.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::time::Duration;

use crate::rig::Device;

/// A message: number, flags, and a body.
fn message(number: u32, flags: u32, body: &[u8]) -> Vec<u8> {
    let header = [number, flags, body.len() as u32];
    let header = header.iter().flat_map(|field| field.to_ne_bytes());
    header.chain(body.iter().copied()).collect()
}

fn connect(device: &Device) -> UnixStream {
    let stream = UnixStream::connect(device.socket()).unwrap();
    let patience = Some(Duration::from_secs(20));
    stream.set_read_timeout(patience).unwrap();
    stream
}

/// Whether it is answered that the device has features.
fn is_served(stream: &mut UnixStream) {
    stream.write_all(&message(1, 1, &[])).unwrap();
    let mut reply = [0; 20];
    stream.read_exact(&mut reply).unwrap();
    assert_eq!(reply[..12], message(1, 5, &[0; 8])[..12]);
}

#[test]
fn garbage_ends_its_connection_and_the_next_front_end_is_served() {
    let device = Device::start(&[]);
    for garbage in [
        b"GET / HTTP/1.1\r\nHost: device\r\n\r\n".to_vec(),
        message(1, 0, &[]),
        message(26, 1, &[0; 700]),
        message(12, 1, &[0; 8]),
        message(8, 1, &[0; 3]),
        [99, 1, 5000]
            .iter()
            .flat_map(|n: &u32| n.to_ne_bytes())
            .collect(),
    ] {
        let mut stream = connect(&device);
        stream.write_all(&garbage).unwrap();
        let mut rest = Vec::new();
        // Closed with bytes unread is a reset.
        let _ = stream.read_to_end(&mut rest);
        assert!(rest.is_empty(), "{rest:?}");
    }
    // With the wish for a reply, a refusal is told, and the connection stays.
    let mut stream = connect(&device);
    stream.write_all(&message(8, 9, &[0; 3])).unwrap();
    let mut reply = [0; 20];
    stream.read_exact(&mut reply).unwrap();
    assert_eq!(reply, message(8, 5, &1u64.to_ne_bytes())[..]);
    is_served(&mut stream);
    let log = device.log();
    assert!(log.contains("are not those of version 1"), "{log}");
    drop(stream);
    device.end();
}

#[test]
fn half_a_message_holds_up_neither_the_status_nor_the_end() {
    let device = Device::start(&["--sessions", "10", "--processors", "0.5"]);
    let mut stream = connect(&device);
    is_served(&mut stream);
    stream.write_all(&message(26, 1, &[0; 632])[..300]).unwrap();
    // The next one waits for the first to go.
    let mut next = connect(&device);
    device.wait_for("a front-end", |status| status["is_connected"] == true);
    assert_eq!(device.status()["connections"], 1);
    drop(stream);
    is_served(&mut next);
    device.end();
}

#[test]
fn a_place_that_is_taken_is_not_taken_again() {
    let device = Device::start(&[]);
    let start = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cipherlane"));
        command.args(["device", "vhost-user", "--socket"]);
        let output = command
            .arg(device.socket())
            .args(arguments)
            .output()
            .unwrap();
        let words = String::from_utf8(output.stderr).unwrap();
        (output.status.code(), words)
    };
    let (status, words) = start(&[]);
    assert_eq!(status, Some(1));
    assert!(words.contains("another process answers there"), "{words}");
    for wrong in [["--sessions", "0"], ["--processors", "0"]] {
        assert_eq!(start(&wrong).0, Some(2), "{wrong:?}");
    }
    let text = String::from_utf8(device.asked(&[])).unwrap();
    assert!(text.contains("no front-end is connected"), "{text}");
    let log = device.end();
    assert!(log.contains("waiting for a front-end"), "{log}");
}
