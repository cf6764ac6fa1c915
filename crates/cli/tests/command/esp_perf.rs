//! `cipherlane esp-perf` as its users meet it, and tshark as a judge of what it seals.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// The command, without the settings and learned costs of whoever runs the tests.
fn esp_perf(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cipherlane"));
    let variables = std::env::vars_os().map(|(name, _)| name);
    for name in variables.filter(|name| name.to_string_lossy().starts_with("CIPHERLANE")) {
        command.env_remove(name);
    }
    let nowhere = "/nonexistent";
    command
        .env("HOME", nowhere)
        .env("XDG_CONFIG_HOME", nowhere)
        .env("XDG_CACHE_HOME", nowhere)
        .arg("esp-perf")
        .args(arguments);
    command
}

fn run(arguments: &[&str]) -> Output {
    esp_perf(arguments).output().expect("the command starts")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Arguments of a run that is over soon.
const SOON: [&str; 2] = ["--seconds", "0.001"];

#[test]
fn every_transform_is_measured_in_both_directions_and_all_cells_are_reported() {
    let names = "gcm-128,gcm-192,gcm-256,cbc-sha256,cbc-sha512,ctr-sha256,chacha,null-sha256,\
                 gmac-128,gost-4m,gost-1k,kuznyechik-mgm,magma-mgm";
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (json, csv, html, svg) = (path("j"), path("c"), path("h"), path("s"));
    let output = esp_perf(&["--transform", names, "--size", "64,imix"])
        .args(["--threads", "2", "--multipacket", "16", "--json", &json])
        .args(["--csv", &csv, "--html", &html, "--svg", &svg])
        .args(SOON)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        text.contains("Mpps") && text.contains("chacha, open"),
        "{text}"
    );

    let results: Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    assert!(results["machine"]["cpu"].is_string());
    let cells = results["cells"].as_array().unwrap();
    // Threads and packets a call: 1 is always among them.
    assert_eq!(cells.len(), 13 * 2 * 2 * 2 * 2);
    for cell in cells {
        let number = |name: &str| cell[name].as_f64().expect(name);
        let bytes = if cell["size"] == "64" {
            64.0
        } else {
            4084.0 / 12.0
        };
        let ratio = number("bytes_per_second") / number("packets_per_second") / bytes;
        assert!((ratio - 1.0).abs() < 1e-9, "{cell}");
        assert!(number("ci_low") <= number("bytes_per_second"), "{cell}");
        assert!(number("bytes_per_second") <= number("ci_high"), "{cell}");
        if cell["threads"] == 1 {
            assert_eq!(number("effective_threads"), 1.0);
        }
        if cell["multipacket"] == 1 {
            assert_eq!(number("multipacket_efficiency"), 1.0);
        }
        assert!(cell["noisy"].is_boolean());
    }
    assert_eq!(
        std::fs::read_to_string(&csv).unwrap().lines().count(),
        1 + cells.len()
    );
    let page = std::fs::read_to_string(&html).unwrap();
    assert_eq!(
        page.matches("role=\"img\" aria-label=\"E").count(),
        13 * 2 * 2
    );
    assert!(!page.contains("http://") && !page.contains("src="));
    assert_eq!(std::fs::read_dir(&svg).unwrap().count(), 13 * 2 * 2);
    let chart = std::fs::read_to_string(Path::new(&svg).join("gcm-128-open-threads.svg")).unwrap();
    assert!(chart.starts_with("<svg xmlns") && chart.contains("circle"));
}

#[test]
fn wrong_options_are_named_with_what_is_right() {
    for (arguments, expected) in [
        (&["--transform", "rot13"][..], "cbc-sha256"),
        (&["--multipacket", "65"], "1 to 64"),
        (&["--multipacket", "0"], "1 to 64"),
        (&["--threads", "0"], "1 to 512"),
        (&["--size", "19"], "20 to 65535"),
        (&["--size", "big"], "imix"),
        (&["--seconds", "0"], "0.001"),
        (&["--json", "-", "--csv", "-"], "only one"),
        (&["--pcap", "/dev/null"], "no whole pcap"),
    ] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(stderr(&output).contains(expected), "{}", stderr(&output));
    }
    let output = run(&["--pcap", "/nonexistent"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("/nonexistent"));
    // An IP packet, but with what ESP adds it would be none.
    let output = esp_perf(&["--size", "65535", "--direction", "open"])
        .args(SOON)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("65535"), "{}", stderr(&output));
}

#[test]
fn a_capture_that_was_written_is_traffic_again() {
    let dir = tempfile::tempdir().unwrap();
    let capture = dir.path().join("sealed.pcap");
    let capture = capture.to_str().unwrap();
    let quick = |arguments: &[&str]| {
        esp_perf(arguments)
            .args(["--threads", "1", "--multipacket", "1", "--json", "-"])
            .args(SOON)
            .output()
            .unwrap()
    };
    let output = quick(&["--size", "imix", "--write-pcap", capture]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stderr(&output).contains("esp_sa"));
    let output = quick(&["--pcap", capture]);
    assert!(output.status.success(), "{}", stderr(&output));
    let results: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(results["cells"].as_array().unwrap().len(), 2);
    assert_eq!(results["cells"][0]["size"], "pcap");
}

#[test]
fn an_interrupt_ends_it_in_order_with_what_there_is() {
    let child = esp_perf(&["--threads", "1", "--multipacket", "1", "--size", "64"])
        .args(["--seconds", "3600", "--json", "-"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let pid = rustix::process::Pid::from_child(&child);
    // Until it catches the signal: bit 1 of SigCgt.
    loop {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let caught = u64::from_str_radix(caught.unwrap().trim(), 16).unwrap();
        if caught & 2 != 0 {
            break;
        }
        std::thread::yield_now();
    }
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert!(stderr(&output).contains("interrupted"));
    serde_json::from_slice::<Value>(&output.stdout).expect("whole JSON");
}

/// tshark decrypts what was sealed, finds every ICV good, and the packets that went in.
#[test]
fn tshark_decrypts_every_packet() {
    if Command::new("tshark").arg("--version").output().is_err() {
        eprintln!("SKIPPED: tshark is not installed (apt-get install tshark)");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    for transform in [
        "gcm-128",
        "gcm-192",
        "gcm-256",
        "cbc-sha256",
        "cbc-sha512",
        "ctr-sha256",
        "null-sha256",
    ] {
        let capture = dir.path().join(transform);
        let output = esp_perf(&["--transform", transform, "--size", "imix"])
            .args([
                "--threads",
                "1",
                "--multipacket",
                "1",
                "--direction",
                "seal",
            ])
            .arg("--write-pcap")
            .arg(&capture)
            .args(SOON)
            .output()
            .unwrap();
        let said = stderr(&output);
        let line = said
            .lines()
            .find_map(|line| line.split_once("esp_sa line for Wireshark: "))
            .unwrap_or_else(|| panic!("{transform}: {said}"));
        let fields = [
            "ip.len",
            "ip.dst",
            "ip.proto",
            "esp.icv_good",
            "esp.sequence",
        ];
        let decoded = Command::new("tshark")
            .arg("-r")
            .arg(&capture)
            .args(["-o", "esp.enable_encryption_decode:TRUE"])
            .args(["-o", "esp.enable_authentication_check:TRUE"])
            .arg("-o")
            .arg(format!("uat:esp_sa:{}", line.1))
            .args(["-T", "fields"])
            .args(fields.iter().flat_map(|field| ["-e", field]))
            .output()
            .unwrap();
        assert!(
            decoded.status.success(),
            "{transform}: {}",
            stderr(&decoded)
        );
        let text = String::from_utf8(decoded.stdout).unwrap();
        assert_eq!(text.lines().count(), 64, "{transform}: {text}");
        for (number, line) in text.lines().enumerate() {
            let found: Vec<&str> = line.split('\t').collect();
            let inner = [40, 576, 40, 40, 576, 40, 1500, 40, 576, 40, 40, 576][number % 12];
            assert!(
                found[0].ends_with(&format!(",{inner}")),
                "{transform}: {line}"
            );
            assert_eq!(found[1], "198.51.100.1,10.0.1.1", "{transform}");
            assert_eq!(found[2], "50,253", "{transform}");
            assert!(matches!(found[3], "1" | "True"), "{transform}: {line}");
            assert_eq!(found[4], (number + 1).to_string(), "{transform}");
        }
    }
}
