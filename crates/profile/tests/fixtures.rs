//! Recordings of real programs, kept as files: what the rules make of their stacks.

use std::path::Path;

use cipherlane_profile::diff::Diff;
use cipherlane_profile::phases::Phases;
use cipherlane_profile::recording::{Kind, Recording};
use cipherlane_profile::rules::Rules;

fn kept(name: &str) -> Recording {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/recordings")
        .join(format!("{name}.json"));
    Recording::open(&path).unwrap()
}

#[test]
fn little_is_unknown_and_the_main_phase_is_right() {
    let rules = Rules::built_in();
    for (name, main) in [
        ("openssl-speed", "cipher"),
        // The library's functions have no names here: its file says cipher.
        ("openssl-sha256", "cipher"),
        ("pipe", "scheduling"),
        ("cipherlane-enc", "copy"),
        // Who waits for the device polls for it first.
        ("device", "device"),
        ("software", "cipher"),
        ("through-pipe", "scheduling"),
        ("from-file", "copy"),
        // luksFormat: a key is made of the passphrase by Argon2.
        ("cryptsetup", "digest"),
        ("nginx-tls", "cipher"),
        ("ssh", "cipher"),
        ("small", "file"),
        // The provider's test of languages: most of it is Ruby itself.
        ("ruby", "interpreter"),
        // VPNs: the kernel's part is the larger one of both that were recorded beside the gateway.
        ("wireguard-go", "scheduling"),
        ("openvpn", "network"),
        ("gateway", "copy"),
        ("vpn-software", "network"),
        ("vpn-engine", "device"),
        ("locks", "device"),
        ("file-software", "file"),
        ("file-cores", "copy"),
        // dd to dm-crypt, recorded with the threads of the kernel (guests/profile).
        ("dm-crypt", "cipher"),
    ] {
        let recording = kept(name);
        let phases = Phases::new(&recording, &rules);
        let unknown = phases.unknown(&rules);
        assert!(unknown <= 0.1, "{name}: {unknown}");
        let most = (0..rules.phases().len())
            .max_by(|a, b| phases.totals[*a].cpu.total_cmp(&phases.totals[*b].cpu))
            .unwrap();
        assert_eq!(rules.phases()[most].name, main, "{name}");
    }
}

/// The driver sleeps in poll(2) until its device reports: only its caller tells that from a wait for
/// a peer. The thread which plays the device is idle when it waits.
#[test]
fn a_driver_that_waits_by_poll_waits_for_its_device() {
    let rules = Rules::built_in();
    let recording = kept("device");
    let assigned = rules.of(&recording);
    let mut seen = 0;
    for sample in recording.samples.iter().filter(|of| of.kind == Kind::Wait) {
        let calls = |name: &str| {
            let mut frames = recording.frames_of(sample.stack);
            frames.any(|frame| frame.name.contains(name))
        };
        if !calls("do_sys_poll") {
            continue;
        }
        let phase = &rules.phases()[assigned.of(sample)].name;
        let is_driver = calls("Transport>::sleep");
        let plays = recording.threads[sample.thread as usize].name == "dma-device";
        let expected = match (is_driver, plays) {
            (true, _) => "device",
            (false, true) => "idle",
            (false, false) => "peer",
        };
        assert_eq!(phase, expected);
        seen += u32::from(is_driver);
    }
    assert!(seen > 20, "{seen}");
}

/// OpenVPN with AES-128-CBC by software, and by a provider over the model of a slow engine.
#[test]
fn a_vpn_through_a_slow_engine_waits_for_the_device() {
    let (software, engine) = (kept("vpn-software"), kept("vpn-engine"));
    let rules = Rules::built_in();
    let diff = Diff::new(&software, &engine, &rules);
    let told = "What changed most is 'Waiting for a device'";
    assert!(diff.verdict.contains(told), "{}", diff.verdict);
    assert!(diff.advice[0].contains("cipherlane plan"));
}

/// Threads of `cipherlane enc` that share the modelled engine: one waits for it, the others for that
/// one.
#[test]
fn who_waits_for_the_thread_that_waits_for_the_device_waits_for_the_device() {
    let rules = Rules::built_in();
    let waits = |recording: &Recording, name: &str| {
        let phases = Phases::new(recording, &rules);
        let at = rules.phases().iter().position(|phase| phase.name == name);
        phases.totals[at.unwrap()].wait
    };
    let mut recording = kept("locks");
    let passed_on = ["device", "lock"].map(|name| waits(&recording, name));
    recording.wakes.clear();
    let unknown = ["device", "lock"].map(|name| waits(&recording, name));
    assert!(unknown[1] > unknown[0], "{unknown:?}");
    // What is left is the thread that waits for the others to hand in their pieces.
    assert!(passed_on[0] > 4.0 * passed_on[1], "{passed_on:?}");
}

/// dd writes to a disk over dm-crypt: it waits for the device while threads of the kernel encipher for
/// it, so that only a recording of the whole machine has the cipher.
#[test]
fn threads_of_the_kernel_encipher_for_who_writes_to_dm_crypt() {
    let rules = Rules::built_in();
    let recording = kept("dm-crypt");
    let assigned = rules.of(&recording);
    let time = |kind: Kind, phase: &str, thread: &str| -> u64 {
        let samples = recording.samples.iter().filter(|sample| {
            let name = &recording.threads[sample.thread as usize].name;
            sample.kind == kind
                && rules.phases()[assigned.of(sample)].name == phase
                && name.starts_with(thread)
        });
        samples.map(|sample| sample.ns).sum()
    };
    let (cipher, of_kernel) = (
        time(Kind::Cpu, "cipher", ""),
        time(Kind::Cpu, "cipher", "kworker"),
    );
    assert!(of_kernel > cipher / 10 * 9, "{of_kernel} of {cipher}");
    let waits = |phase: &str| time(Kind::Wait, phase, "dd");
    assert!(waits("device") > cipher, "{} ns", waits("device"));
    // It has ended long before the recording.
    assert_eq!((waits("peer"), waits("other")), (0, 0));
    let phases = Phases::new(&recording, &rules);
    let other = phases.totals[rules.other()].wait;
    assert!(other <= 0.1 * phases.waits(&rules), "{other} ns");
}
