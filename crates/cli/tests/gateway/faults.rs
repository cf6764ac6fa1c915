//! What breaks a gateway in operation: it names the fault, goes on with what it can, and recovers
//! when the fault is over.

use std::net::UdpSocket;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, prlimit};

use crate::rig::{Host, Rig, pair, rig};

/// The numbers that an SA is given at first.
const BLOCK: u64 = 1 << 16;

/// Sends datagrams that nobody answers.
fn send(rig: &Rig, count: u64) {
    rig.within(Host::A, move || {
        let socket = UdpSocket::bind("10.9.0.1:0").unwrap();
        for _ in 0..count {
            let _ = socket.send_to(&[0], "10.9.0.2:9");
        }
    });
}

#[test]
fn a_full_disk_stops_nothing_but_the_numbers() {
    let Some(mut rig) = rig() else {
        return;
    };
    rig.configure(&[]);
    let full = rig.path("a").join("full");
    std::fs::create_dir(&full).unwrap();
    rig.edit("a", |text| {
        text.replace("\"gateway.state\"", "\"full/gateway.state\"")
    });
    // A disk that only this gateway sees.
    let mount = format!("mount -t tmpfs -o size=64k none '{}'", full.display());
    rig.start_by(
        Host::A,
        &format!("{mount} && \"$0\" gateway new-state --config \"$4\""),
    );
    rig.start(Host::B);
    rig.wait_until_connected();
    let pid = rig.status(Host::A).unwrap()["pid"].as_u64().unwrap();
    let inside = PathBuf::from(format!("/proc/{pid}/root{}", full.display()));
    let filler = inside.join("filler");
    let _ = std::fs::write(&filler, vec![0; 1 << 20]);
    while rig.status(Host::A).unwrap()["calls"]["dropped"]["not_reserved"] == 0 {
        send(&rig, BLOCK / 4);
    }
    rig.wait_for_words(Host::A, "cannot be written: No space left on device");
    rig.wait_for_words(Host::A, "Free some space");
    // Not one number more than is reserved has left.
    let status = rig.status(Host::A).unwrap();
    let tunnel = &status["tunnels"][0];
    let number = |value: &serde_json::Value| value.as_u64().unwrap();
    let (sent, reserved) = (
        number(&tunnel["outbound"]["sequence"]),
        number(&tunnel["reserved"]),
    );
    assert!(sent <= reserved && reserved < 2 * BLOCK, "{tunnel}");
    // What comes from the peer goes on being opened.
    let before = tunnel["inbound"]["packets"].as_u64().unwrap();
    rig.within(Host::B, || {
        let socket = UdpSocket::bind("10.9.0.2:0").unwrap();
        for _ in 0..10 {
            let _ = socket.send_to(&[0], "10.9.0.1:9");
        }
    });
    rig.wait_for(Host::A, "packets of the peer", |status| {
        status["tunnels"][0]["inbound"]["packets"].as_u64() >= Some(before + 10)
    });
    std::fs::remove_file(&filler).unwrap();
    rig.wait_until_connected();
    rig.wait_for_words(Host::A, "can be reserved again");
    assert!(rig.end(Host::A, Signal::TERM));
}

#[test]
fn without_descriptors_it_says_so_and_recovers() {
    let Some(rig) = pair() else {
        return;
    };
    let pid = rig.status(Host::A).unwrap()["pid"].as_i64().unwrap();
    let process = Pid::from_raw(pid as i32).unwrap();
    let open = std::fs::read_dir(format!("/proc/{pid}/fd"))
        .unwrap()
        .count() as u64;
    let usual = getrlimit(Resource::Nofile);
    let limit = |current| Rlimit { current, ..usual };
    prlimit(Some(process), Resource::Nofile, limit(Some(open - 2))).unwrap();
    // Packets need no new descriptor.
    rig.wait_until_connected();
    rig.ip(Host::A, "link del cipherlane0");
    rig.wait_for_words(Host::A, "Too many open files");
    prlimit(Some(process), Resource::Nofile, usual).unwrap();
    rig.wait_for_words(Host::A, "is back");
    rig.wait_until_connected();
    assert!(rig.status(Host::A).is_some());
}

#[test]
fn too_few_descriptors_to_start_are_named() {
    let Some(rig) = rig() else {
        return;
    };
    rig.configure(&[]);
    let config = rig.path("a").join("gateway.toml");
    let mut command = rig.program(Host::A, "sh");
    command.args([
        "-c",
        "ulimit -n 8 && exec \"$0\" gateway run --config \"$1\"",
    ]);
    command.arg(env!("CARGO_BIN_EXE_cipherlane")).arg(config);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(said.contains("Too many open files"), "{said}");
}

#[test]
fn a_full_interface_is_named() {
    let Some(rig) = pair() else {
        return;
    };
    let mut tc = rig.program(Host::A, "tc");
    let slow = "qdisc add dev wire root tbf rate 1mbit burst 5kb limit 6kb";
    if !tc
        .args(slow.split(' '))
        .output()
        .is_ok_and(|output| output.status.success())
    {
        let message = "SKIPPED, a full interface is NOT tested: tc or tbf is not here\n";
        std::io::Write::write_all(&mut std::io::stderr(), message.as_bytes()).unwrap();
        return;
    }
    let failures = |status: &serde_json::Value| {
        let tunnel = &status["tunnels"][0];
        let last = tunnel["last_failure"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        (tunnel["send_failures"].as_u64().unwrap(), last)
    };
    while failures(&rig.status(Host::A).unwrap()).0 == 0 {
        send(&rig, 1000);
    }
    let (_, last) = failures(&rig.status(Host::A).unwrap());
    assert!(last.contains("No buffer space available"), "{last}");
    rig.wait_for_words(Host::A, "the outer interface is full or stopped");
    // The mend is quick: the queue held little.
    let mut tc = rig.program(Host::A, "tc");
    let deleted = tc.args(["qdisc", "del", "dev", "wire", "root"]).output();
    assert!(deleted.unwrap().status.success());
    rig.wait_until_connected();
}

#[test]
fn data_threads_have_no_way_out() {
    let Some(rig) = pair() else {
        return;
    };
    let pid = rig.status(Host::A).unwrap()["pid"].as_u64().unwrap();
    let mut found = 0;
    for task in std::fs::read_dir(format!("/proc/{pid}/task")).unwrap() {
        let task = task.unwrap().path();
        if std::fs::read_to_string(task.join("comm")).unwrap().trim() != "gateway-0" {
            continue;
        }
        found += 1;
        let status = std::fs::read_to_string(task.join("status")).unwrap();
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.unwrap().trim().to_owned()
        };
        assert_eq!(field("CapEff:"), "0".repeat(16));
        assert_eq!(field("CapPrm:"), "0".repeat(16));
        assert_eq!(field("NoNewPrivs:"), "1");
        if cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
            assert_eq!(field("Seccomp:"), "2", "no filter");
        }
    }
    assert_eq!(found, 1);
}

#[test]
fn a_link_in_the_way_of_the_state_is_not_followed() {
    let Some(mut rig) = rig() else {
        return;
    };
    rig.configure(&[]);
    let victim = rig.path("victim");
    std::fs::write(&victim, "precious").unwrap();
    symlink(&victim, rig.path("a").join("gateway.state.new")).unwrap();
    rig.start_both();
    assert!(rig.end(Host::A, Signal::TERM));
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious");
    let state = std::fs::read_to_string(rig.path("a").join("gateway.state")).unwrap();
    assert!(state.lines().count() == 4, "{state}");
}
