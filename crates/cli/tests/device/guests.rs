//! Stock Linux guests: their kernel's self-tests, AF_ALG and IPsec judge what the device does, and
//! its counters tell that it was the device.

use crate::rig::{Device, guest};
use crate::schema::judge;

/// In front of each script.
const BEGIN: &str = "\
set -e
device=virtio_crypto_aes_cbc
software='cbc(aes-generic)'
";

/// The kernel refuses a driver whose self-tests fail. Then random cases, a program of libkcapi,
/// and ESP over the loopback interface.
const STOCK: &str = "\
grep -A 6 \": $device\" /proc/crypto | grep selftest
afalg compare $device \"$software\" 60
head -c 32 /dev/urandom >key; head -c 100000 /dev/urandom >in
for driver in $device \"$software\"; do
    kcapi-enc -q -e -c \"$driver\" --iv 000102030405060708090a0b0c0d0e0f --keyfd 3 -i in \\
        -o out.\"$driver\" 3<key
done
cmp out.$device \"out.$software\"
for interface in lo all; do
    echo 0 >/proc/sys/net/ipv4/conf/$interface/disable_xfrm
    echo 0 >/proc/sys/net/ipv4/conf/$interface/disable_policy
done
ip link set lo up
for way in '1 2' '2 1'; do
    from=127.0.0.${way% *} to=127.0.0.${way#* }
    ip xfrm state add src $from dst $to proto esp spi ${way% *} mode transport \\
        auth 'hmac(sha1)' 0x0102030405060708090a0b0c0d0e0f1011121314 \\
        enc 'cbc(aes)' 0x000102030405060708090a0b0c0d0e0f
    for direction in out in; do
        ip xfrm policy add src $from dst $to dir $direction \\
            tmpl src $from dst $to proto esp mode transport
    done
done
ping -q -c 20 -i 0.02 -s 1000 -I 127.0.0.1 127.0.0.2
grep -o 'authenc(hmac(sha1-generic),virtio_crypto_aes_cbc)' /proc/crypto
";

#[test]
fn a_stock_guest_encrypts_by_the_device() {
    let device = Device::start(&[]);
    let mut options = Vec::new();
    for module in [
        "ctr",
        "drbg",
        "sha1_generic",
        "authenc",
        "echainiv",
        "esp4",
        "xfrm_user",
    ] {
        options.extend(["--module", module]);
    }
    options.extend(["--program", "ip", "--program", "ping"]);
    let script = format!("{BEGIN}{STOCK}");
    let Some(text) = guest(&device.socket(), &options, &script, |_| {}) else {
        return;
    };
    assert!(text.contains("selftest     : passed"), "{text}");
    assert!(text.contains("compared 60 cases, 0 differ"), "{text}");
    assert!(text.contains("20 received, 0% packet loss"), "{text}");
    assert!(text.contains("authenc(hmac(sha1-generic),virtio"), "{text}");
    let status = device.wait_for("the guest's end", |status| status["is_connected"] == false);
    judge("device-status", &device.asked(&["--json"]));
    let requests = status["requests"].as_u64().unwrap();
    // The self-tests of the kernel make 80; a ping is sealed and opened, and its answer too.
    assert!(requests >= 80 + 60 + 2 + 80, "{status}");
    assert_eq!(status["refused"], serde_json::json!({}), "{status}");
    assert_eq!(status["sessions"], 0, "those of a guest that is gone");
    let served = status["drivers"].as_object().unwrap().values();
    let served: u64 = served.filter_map(|count| count.as_u64()).sum();
    assert_eq!(served, requests, "drivers have encrypted all of it");
    // Another machine on the same socket.
    let script = format!("{BEGIN}afalg compare $device \"$software\" 10");
    guest(&device.socket(), &[], &script, |_| {}).unwrap();
    assert_eq!(device.status()["connections"], 2);
    let log = device.end();
    assert!(log.contains("requests: "), "{log}");
}

/// Linux waits for a request for ever: its driver has no timeout. The rest of the guest goes on.
const FAULT: &str = "\
dmesg -n 1
afalg once $device
afalg rate $device 1024 1 60 >rate &
sleep 1
echo 'kill it now'
sleep 3
afalg once \"$software\"
[ ! -s rate ]
pidof afalg
";

#[test]
fn a_back_end_that_is_killed_costs_the_requests_under_way_alone() {
    let mut device = Some(Device::start(&[]));
    let socket = device.as_ref().unwrap().socket();
    let script = format!("{BEGIN}{FAULT}");
    let text = guest(&socket, &[], &script, |line| {
        if line == "kill it now" {
            let running = device.take().unwrap();
            assert!(running.status()["requests"].as_u64().unwrap() > 81);
            device = Some(running.die_and_return());
        }
    });
    let (Some(text), Some(device)) = (text, device) else {
        return;
    };
    assert!(text.contains("once: cbc(aes-generic) works"), "{text}");
    // The socket that the dead one has left was replaced, and serves the next machine.
    let script = format!("{BEGIN}afalg once $device");
    guest(&device.socket(), &[], &script, |_| {}).unwrap();
    device.wait_for("the guest's end", |status| status["is_connected"] == false);
    device.end();
}
