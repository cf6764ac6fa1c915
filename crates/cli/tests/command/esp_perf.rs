//! `cipherlane esp-perf` as its users meet it, and tshark as a judge of what it seals.

use std::process::Command;

use serde_json::Value;

use crate::place::{Place, printed, refused, run, text};

/// `cipherlane esp-perf` with words separated by spaces, soon over.
fn esp_perf(place: &Place, line: &str) -> Command {
    place.cipherlane(&format!("esp-perf --seconds 0.001 {line}"))
}

#[test]
fn every_transform_is_measured_in_both_directions_and_all_cells_are_reported() {
    let names = "gcm-128,gcm-192,gcm-256,cbc-sha256,cbc-sha512,ctr-sha256,chacha,null-sha256,\
                 gmac-128,gost-4m,gost-1k,kuznyechik-mgm,magma-mgm";
    let place = Place::new();
    let (json, csv, html, svg) = (
        place.path("j"),
        place.path("c"),
        place.path("h"),
        place.path("s"),
    );
    let options = "--size 64,imix --threads 2 --multipacket 16 --json=j --csv c --html h --svg s";
    let table = printed(esp_perf(&place, options).args(["--transform", names]));
    assert!(
        table.contains("Mpps") && table.contains("chacha, open"),
        "{table}"
    );

    let results: Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    assert!(results["machine"]["cpu"].is_string());
    let cells = results["cells"].as_array().unwrap();
    // Threads and packets per call: 1 is always among them.
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
    assert_eq!(std::fs::read_dir(&svg).unwrap().count(), 13 * 2 * 3);
    let chart = std::fs::read_to_string(svg.join("gcm-128-open-threads.svg")).unwrap();
    assert!(chart.starts_with("<svg xmlns") && chart.contains("class=\"curve"));
}

#[test]
fn wrong_options_are_named_with_what_is_right() {
    let place = Place::new();
    for (line, expected) in [
        ("--transform rot13", "cbc-sha256"),
        ("--multipacket 65", "1 to 64"),
        ("--multipacket 0", "1 to 64"),
        ("--threads 0", "1 to 512"),
        ("--size 19", "20 to 65535"),
        ("--size big", "imix"),
        ("--json --csv -", "only one"),
        ("--pcap /dev/null", "no whole pcap"),
    ] {
        refused(&mut esp_perf(&place, line), 2, &[expected]);
    }
    refused(&mut place.cipherlane("esp-perf --seconds 0"), 2, &["0.001"]);
    refused(&mut esp_perf(&place, "--pcap absent"), 1, &["absent"]);
    // An IP packet, but with what ESP adds it would be none.
    let longest = "--size 65535 --direction open";
    refused(&mut esp_perf(&place, longest), 1, &["65535"]);
}

#[test]
fn a_capture_that_was_written_is_traffic_again() {
    let place = Place::new();
    let quick = |line: &str| {
        let options = "--threads 1 --multipacket 1 --json";
        run(&mut esp_perf(&place, &format!("{options} {line}")), 0)
    };
    let output = quick("--size imix --write-pcap sealed.pcap");
    assert!(text(&output.stderr).contains("esp_sa"));
    let output = quick("--pcap sealed.pcap");
    let results: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(results["cells"].as_array().unwrap().len(), 2);
    assert_eq!(results["cells"][0]["size"], "pcap");
}

#[test]
fn an_interrupt_ends_it_in_order_with_what_there_is() {
    let options = "--threads 1 --multipacket 1 --size 64 --seconds 3600 --json";
    let place = Place::new();
    let child = place
        .cipherlane(&format!("esp-perf {options}"))
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
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(said.contains("interrupted"));
    serde_json::from_slice::<Value>(&output.stdout).expect("whole JSON");
}

/// tshark decrypts what was sealed, finds every ICV good, and the packets that went in.
#[test]
fn tshark_decrypts_every_packet() {
    if Command::new("tshark").arg("--version").output().is_err() {
        eprintln!("SKIPPED: tshark is not installed (apt-get install tshark)");
        return;
    }
    let place = Place::new();
    for transform in [
        "gcm-128",
        "gcm-192",
        "gcm-256",
        "cbc-sha256",
        "cbc-sha512",
        "ctr-sha256",
        "null-sha256",
    ] {
        let options = "--size imix --threads 1 --multipacket 1 --direction seal --write-pcap";
        let line = format!("{options} {transform} --transform {transform}");
        let said = text(&run(&mut esp_perf(&place, &line), 0).stderr);
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
        let decoded = printed(
            place
                .command("tshark")
                .args(["-r", transform])
                .args(["-o", "esp.enable_encryption_decode:TRUE"])
                .args(["-o", "esp.enable_authentication_check:TRUE"])
                .arg("-o")
                .arg(format!("uat:esp_sa:{}", line.1))
                .args(["-T", "fields"])
                .args(fields.iter().flat_map(|field| ["-e", field])),
        );
        assert_eq!(decoded.lines().count(), 64, "{transform}: {decoded}");
        for (number, line) in decoded.lines().enumerate() {
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
