//! `cipherlane profile` of a gateway that runs takes the bytes of work from what its SAs count.

use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::carrying::transfer;
use crate::rig::{Host, pair};

/// Bytes that the SAs of the only tunnel have sealed and opened.
fn bytes(status: &Value) -> u64 {
    let sas = ["outbound", "inbound"];
    let bytes = sas.map(|sa| status["tunnels"][0][sa]["bytes"].as_u64().unwrap());
    bytes.iter().sum()
}

/// Whether a process has events open, before which a recorder has asked the gateway.
fn records(process: u32) -> bool {
    let Ok(files) = std::fs::read_dir(format!("/proc/{process}/fd")) else {
        return false;
    };
    let mut names = files.flatten().map(|file| std::fs::read_link(file.path()));
    names.any(|name| name.is_ok_and(|name| name.to_string_lossy().contains("[perf_event]")))
}

#[test]
fn the_work_of_a_gateway_is_what_its_sas_count() {
    const LEN: u64 = 20 << 20;
    let Some(rig) = pair() else {
        return;
    };
    let before = rig.status(Host::A).unwrap();
    let file = rig.path("recording");
    let pid = before["pid"].to_string();
    let mut command = rig.command(Host::A, &["profile", "--rate", "997", "--pid", &pid, "-o"]);
    let mut recorder = command.arg(&file).stderr(Stdio::piped()).spawn().unwrap();
    while !records(recorder.id()) {
        if recorder.try_wait().unwrap().is_some() {
            let ended = recorder.wait_with_output().unwrap();
            let said = String::from_utf8_lossy(&ended.stderr);
            assert!(said.contains("perf_event"), "{said}");
            eprintln!("SKIPPED: {said}");
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    transfer(&rig, ["10.9.0.1", "10.9.0.2"], 5001, LEN as usize);
    kill_process(Pid::from_raw(recorder.id() as i32).unwrap(), Signal::INT).unwrap();
    let ended = recorder.wait_with_output().unwrap();
    assert!(ended.status.success(), "{ended:?}");
    let counted = bytes(&rig.status(Host::A).unwrap()) - bytes(&before);
    let recording: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    let work = &recording["work"];
    let source = work["source"].as_str().unwrap_or_default();
    assert!(
        source.starts_with("bytes that the gateway's SAs counted"),
        "{work}"
    );
    let amount = work["amount"].as_u64().unwrap();
    // Both directions of the transfer, and not more than was counted around the recording.
    assert!(
        (2 * LEN..=counted).contains(&amount),
        "{amount} of {counted}"
    );
}
