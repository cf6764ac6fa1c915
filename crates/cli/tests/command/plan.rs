//! `cipherlane plan`: what it says of a device, and what it refuses. How fast this machine is
//! changes nothing here but figures: the devices are far slower or far faster than any.

use std::process::Command;

use serde_json::Value;

use crate::place::{Place, printed, run, text};

/// `cipherlane plan`, soon over.
fn plan(place: &Place, arguments: &[&str]) -> Command {
    let mut command = place.cipherlane("plan --seconds 0.002");
    command.args(arguments);
    command
}

fn json(place: &Place, arguments: &[&str]) -> Value {
    serde_json::from_str(&printed(plan(place, arguments).arg("--json"))).unwrap()
}

/// The description of the modern card, with a line replaced.
fn card(place: &Place, name: &str, changes: &[(&str, &str)]) {
    let preset = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../dma-model/src/presets/pcie-modern.toml"
    );
    let mut text = std::fs::read_to_string(preset).unwrap();
    for (setting, value) in changes {
        let found = text.lines().any(|line| line.starts_with(setting));
        assert!(found, "{setting}");
        let lines: Vec<String> = text
            .lines()
            .map(|line| match line.split_once(" = ") {
                Some((known, _)) if known == *setting => format!("{setting} = {value}"),
                _ => line.to_owned(),
            })
            .collect();
        text = lines.join("\n");
    }
    place.write(name, text);
}

#[test]
fn an_old_device_does_not_help_and_the_reason_is_told() {
    let place = Place::new();
    let arguments = ["--device", "glxsb-geode-lx", "--workload", "16,256"];
    let said = printed(&mut plan(&place, &arguments));
    assert!(
        said.contains("dma:glxsb-geode-lx: It does not help at any"),
        "{said}"
    );
    let record = json(&place, &arguments);
    let forecasts = record["forecasts"].as_array().unwrap();
    assert_eq!(forecasts.len(), 2, "waiting, and 16 under way");
    for forecast in forecasts {
        for row in forecast["rows"].as_array().unwrap() {
            assert_eq!(row["verdict"], "no_help");
            assert!(row["times"].as_f64().unwrap() < 1.0);
            let latency = row["device"]["latency_ns"].as_f64().unwrap();
            assert!(latency > row["software"]["latency_ns"].as_f64().unwrap());
        }
    }
    assert_eq!(record["cells"].as_array().unwrap().len(), 8);
}

#[test]
fn a_device_that_costs_nothing_helps_from_the_size_on_that_it_takes() {
    let place = Place::new();
    let free = [
        ("latency_ns", "1.0"),
        ("descriptor_ns", "0.0"),
        ("inbound_bytes_per_second", "1.0e13"),
        ("outbound_bytes_per_second", "1.0e13"),
        ("request_ns", "0.0"),
        ("bytes_per_second", "1.0e13"),
        ("host_request_ns", "1.0"),
        ("doorbell_ns", "0.0"),
        ("map_ns", "0.0"),
        ("poll_ns", "1.0"),
        ("max_request", "8192"),
    ];
    card(&place, "card.toml", &free);
    let record = json(
        &place,
        &[
            "--device",
            "card.toml",
            "--workload",
            "4K,8K,64K",
            "--submit",
            "0",
        ],
    );
    let rows = record["forecasts"][0]["rows"].as_array().unwrap();
    let verdicts: Vec<&str> = rows
        .iter()
        .map(|r| r["verdict"].as_str().unwrap())
        .collect();
    assert_eq!(verdicts, ["faster", "faster", "not_taken"]);
    let verdict = record["verdict"].as_str().unwrap();
    assert!(verdict.contains("does not help above 8 KiB"), "{verdict}");
    assert!(verdict.contains("faster from 4 KiB on"), "{verdict}");
}

#[test]
fn faults_to_order_are_ignored_and_that_is_said() {
    let place = Place::new();
    let device = include_str!("../../../dma-model/src/presets/pcie-modern.toml");
    let fault = "{kind = \"hang\", after = 0, count = 1000000}";
    place.write(
        "card.toml",
        format!("{device}\n[behaviour]\nfaults = [{fault}]\n"),
    );
    let arguments = [
        "--device",
        "card.toml",
        "--workload",
        "64K",
        "--submit",
        "0",
    ];
    let said = printed(&mut plan(&place, &arguments));
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        said.contains("orders 1 faults, which are ignored"),
        "{said}"
    );
    let record = json(&place, &arguments);
    assert!(
        record["forecasts"][0]["rows"][0]["device"].is_object(),
        "{record}"
    );
}

#[test]
fn a_mix_and_a_capture_are_judged_as_a_whole() {
    let place = Place::new();
    let words: [u32; 6] = [0xa1b2_c3d4, 0x0004_0002, 0, 0, 1 << 18, 101];
    let mut capture: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
    for size in [60u16, 60, 60, 1400] {
        let len = u32::from(size);
        capture.extend([0, 0, len, len].into_iter().flat_map(u32::to_le_bytes));
        let mut packet = vec![0; usize::from(size)];
        packet[0] = 0x45;
        packet[2..4].copy_from_slice(&size.to_be_bytes());
        capture.extend(packet);
    }
    place.write("few.pcap", capture);
    let common = [
        "--device",
        "cyclone-v-soc-aes",
        "--submit",
        "0",
        "--workload",
    ];
    let record = json(&place, &[&common[..], &["few.pcap"]].concat());
    let forecast = &record["forecasts"][0];
    let shares: Vec<(u64, f64)> = forecast["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            (
                row["size"].as_u64().unwrap(),
                row["share"].as_f64().unwrap(),
            )
        })
        .collect();
    assert_eq!(shares, [(64, 0.75), (1408, 0.25)]);
    let mix = &forecast["mix"];
    assert!(
        mix["best_bytes_per_second"].as_f64() >= mix["device_bytes_per_second"].as_f64(),
        "{mix}"
    );
    let said = printed(plan(&place, &common).arg("imix"));
    assert!(said.contains("IMIX as a whole:"), "{said}");
}

#[test]
fn the_page_has_verdicts_charts_and_figures() {
    let place = Place::new();
    let arguments = [
        "--device",
        "am335x",
        "--workload",
        "64,1K",
        "--html",
        "plan.html",
    ];
    printed(&mut plan(&place, &arguments));
    let page = std::fs::read_to_string(place.path("plan.html")).unwrap();
    for part in [
        "Would it help?",
        "dma:am335x: It",
        "<section class=\"case\"",
        "1 KiB: ",
    ] {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn what_cannot_be_is_refused_by_name_with_a_remedy() {
    let place = Place::new();
    place.write("bad.toml", "title = 'x'");
    place.write("text.pcap", "no capture");
    let preset = |rest: &[&'static str]| [&["--device", "cyclone-v-soc-aes"], rest].concat();
    for (arguments, said) in [
        (vec!["--device", "geode"], ["geode", "glxsb-geode-lx"]),
        (vec!["--device", "none.toml"], ["none.toml", "pcie-modern"]),
        (vec!["--device", "bad.toml"], ["bad.toml", "algorithms"]),
        (preset(&["gcm(aes)"]), ["gcm(aes)", "it offers cbc(aes)"]),
        (preset(&["--keybits", "256"]), ["256 bits", "--keybits 128"]),
        (preset(&["--workload", "imax"]), ["imax", "imix"]),
        (
            preset(&["--workload", "text.pcap"]),
            ["text.pcap", "pcapng"],
        ),
        (preset(&["--batch", "0"]), ["--batch 0", "1 to"]),
        (
            preset(&["--workload", "64M", "--submit", "200"]),
            ["64 MiB", "--submit"],
        ),
    ] {
        let output = run(&mut plan(&place, &arguments), 2);
        let message = text(&output.stderr);
        assert!(said.iter().all(|part| message.contains(part)), "{message}");
    }
}
