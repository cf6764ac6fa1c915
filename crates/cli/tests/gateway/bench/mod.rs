//! `gateway bench`: what it measures, says and refuses. No test asserts on what it finds out.

mod peers;

use std::process::Command;

use crate::rig::rig;

/// Whether the bench can run here; where it cannot, that is said.
fn can_bench() -> bool {
    let is_here = rig().is_some();
    let has_iperf = Command::new("iperf3").arg("-v").output().is_ok();
    if is_here && !has_iperf {
        let message = "SKIPPED, gateway bench is NOT tested: iperf3 is not here\n";
        std::io::Write::write_all(&mut std::io::stderr(), message.as_bytes()).unwrap();
    }
    is_here && has_iperf
}

/// The bare pair of devices does nothing for a packet that the gateway does not do, too: that the
/// gateway is slower than it, and by packets, ciphers or system calls, is so on every machine.
#[test]
fn the_bench_says_why_the_gateway_is_slower_than_nothing() {
    if !can_bench() {
        return;
    }
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let page = directory.path().join("page.html");
    // Others on the machine may hide the reason once, but not every time.
    let mut report = serde_json::Value::Null;
    for _ in 0..3 {
        let mut bench = Command::new(env!("CARGO_BIN_EXE_cipherlane"));
        bench.args("gateway bench --peers cipherlane,bare --tests tcp".split(' '));
        bench.args("--rounds 1 --seconds 3 --profile --json - --html".split(' '));
        let output = bench.arg(&page).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        if !output.status.success() && said.contains("perf_event_paranoid") {
            let message = format!("SKIPPED, --profile of gateway bench is NOT tested: {said}\n");
            std::io::Write::write_all(&mut std::io::stderr(), message.as_bytes()).unwrap();
            return;
        }
        assert!(output.status.success(), "{said}");
        crate::schema::judge("gateway-bench", &output.stdout);
        report = serde_json::from_slice(&output.stdout).unwrap();
        if !report["profile"]["reasons"].as_array().unwrap().is_empty() {
            break;
        }
    }
    assert_eq!(report["cells"].as_array().unwrap().len(), 2);
    let [reason] = &report["profile"]["reasons"].as_array().unwrap()[..] else {
        panic!("{report}");
    };
    assert_eq!(reason["case"], "TCP, 1 stream");
    assert_eq!(reason["each"], "KB");
    assert_eq!(reason["slower"], "cipherlane (aes-gcm-16)");
    assert_eq!(reason["faster"], "the bare veth pair");
    // The gateway's processes are there: nothing else enciphers.
    let phases = reason["phases"].as_array().unwrap();
    let cipher = phases.iter().find(|phase| phase["phase"] == "cipher");
    let cipher = cipher.unwrap_or_else(|| panic!("{reason}"));
    let of = |name: &str| cipher[name].as_f64().unwrap();
    assert!(of("b") > of("a"), "{reason}");
    let page = std::fs::read_to_string(page).unwrap();
    for part in [
        "<tr><th>cipherlane<th>aes-gcm-16<td>1<td>TCP, 1 stream<td>",
        "<h2>cipherlane (aes-gcm-16) and the bare veth pair<small> TCP, 1 stream</small>",
        "<tr><th>Cipher</th>",
        "<h3>Processor time of cipherlane (aes-gcm-16) against the bare veth pair</h3>",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!page.contains("src=") && !page.contains("://"));
    assert!(page.len() < 1_000_000, "{} bytes", page.len());
}

/// What cannot be written is known before anything is measured.
#[test]
fn the_bench_refuses_a_page_that_cannot_be_written() {
    if !can_bench() {
        return;
    }
    for (line, words) in [
        ("--html /absent/page.html", "/absent"),
        ("--html - --json", "only one of --json and --html"),
    ] {
        let mut bench = Command::new(env!("CARGO_BIN_EXE_cipherlane"));
        bench.args("gateway bench --peers bare --tests tcp".split(' '));
        let output = bench.args(line.split(' ')).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(words), "{said}");
    }
}

/// Each number of threads has its own cells, and each pair of iperf3 carries something.
#[test]
fn the_bench_compares_numbers_of_threads() {
    if !can_bench() {
        return;
    }
    let mut bench = Command::new(env!("CARGO_BIN_EXE_cipherlane"));
    bench.args("gateway bench --peers cipherlane --tests tcp,udp1400,loaded".split(' '));
    bench.args("--threads 1,3 --flows 2 --rounds 1 --seconds 1 --json".split(' '));
    let output = bench.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    crate::schema::judge("gateway-bench", &output.stdout);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let cells = report["cells"].as_array().unwrap();
    let of = |cell: &serde_json::Value| (cell["threads"].as_u64(), cell["flows"].as_u64());
    let expected = [1, 1, 1, 3, 3, 3].map(|threads| (Some(threads), Some(2)));
    assert_eq!(cells.iter().map(of).collect::<Vec<_>>(), expected);
    for cell in cells {
        let figure = match cell["test"].as_str() {
            Some("ping") => "p50_us",
            _ => "bits_per_second",
        };
        assert!(cell[figure].as_f64().unwrap() > 0.0, "{cell}");
    }
    let said = String::from_utf8_lossy(&output.stderr);
    for part in [
        "round 1 of 1: cipherlane (aes-gcm-16, 3 threads)",
        "2 × TCP, 1 stream",
        "2 TCP streams through the gateway carry",
        "times aes-gcm-16 with 3 threads at each end",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn the_bench_of_many_tunnels_has_its_form() {
    if !can_bench() {
        return;
    }
    let mut bench = Command::new(env!("CARGO_BIN_EXE_cipherlane"));
    bench.args(["gateway", "bench", "--tunnels", "1,20"]);
    let output = bench.args(["--seconds", "1", "--json"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    crate::schema::judge("gateway-tunnels", &output.stdout);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let machine = report["machine"].as_str().unwrap();
    assert!(machine.contains(", TCP by "), "{machine}");
    for (cell, tunnels) in report["cells"].as_array().unwrap().iter().zip([1, 20]) {
        assert_eq!(cell["tunnels"], tunnels);
        assert!(cell["memory_bytes"].as_u64().unwrap() > 0, "{cell}");
        assert!(cell["bits_per_second"].as_f64().unwrap() > 0.0, "{cell}");
    }
}
