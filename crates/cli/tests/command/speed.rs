//! `cipherlane speed`: what it writes, and what it refuses. Nothing here depends on how fast
//! anything is.

use std::process::Command;

use serde_json::Value;

use crate::place::{Place, printed, refused, run, text};

/// `cipherlane speed`, soon over.
fn speed(place: &Place, arguments: &[&str]) -> Command {
    let mut command = place.cipherlane("speed --seconds 0.002");
    command.args(arguments);
    command
}

fn record(place: &Place, arguments: &[&str]) -> Value {
    let output = printed(speed(place, arguments).arg("--json"));
    serde_json::from_str(&output).unwrap()
}

fn cells(record: &Value) -> &Vec<Value> {
    record["cells"].as_array().unwrap()
}

#[test]
fn json_has_the_agreed_shape_and_auto_is_calibrated_and_kept() {
    let place = Place::new();
    let options = [
        "gcm(aes)",
        "aes-256-ctr",
        "--cores",
        "0",
        "--drivers",
        "software,cores,auto",
        "--sizes",
        "64,8K",
        "--batch",
        "1,4",
    ];
    let output = run(speed(&place, &options).arg("--json=out.json"), 0);
    let said = text(&output.stderr);
    assert!(said.contains("calibrating first"), "{said}");
    assert!(said.contains("8 cells by up to 3 drivers"), "{said}");
    let profile =
        std::fs::read_to_string(place.path("home/.cache/cipherlane/profile.json")).unwrap();
    assert!(profile.contains("gcm(aes) 128") && profile.contains("ctr(aes) 256"));

    let json = std::fs::read_to_string(place.path("out.json")).unwrap();
    let record: Value = serde_json::from_str(&json).unwrap();
    assert!(record["machine"]["cpus"].as_u64().unwrap() > 0);
    assert_eq!(cells(&record).len(), 2 * 2 * 2 * 3);
    for cell in cells(&record) {
        for name in [
            "bytes_per_second",
            "ci_low",
            "ci_high",
            "ns_per_request_p50",
        ] {
            assert!(cell[name].as_f64().unwrap() > 0.0, "{name}: {cell}");
        }
        assert!(cell["ns_per_request_p99"].as_f64() >= cell["ns_per_request_p50"].as_f64());
        assert!(cell["ci_low"].as_f64() <= cell["ci_high"].as_f64());
        for name in [
            "user_seconds_per_gb",
            "system_seconds_per_gb",
            "voluntary_switches_per_request",
            "involuntary_switches_per_request",
            "page_faults_per_request",
        ] {
            assert!(cell[name].as_f64().unwrap() >= 0.0, "{name}: {cell}");
        }
        assert!(cell["noisy"].is_boolean());
        assert_eq!(cell["direction"], "encrypt");
        assert_eq!(cell["threads"], 1);
        assert!(cell.get("depth").is_none());
    }
    let seen =
        |name: &str, value: Value| cells(&record).iter().filter(|c| c[name] == value).count();
    assert_eq!(seen("algorithm", "gcm(aes)".into()), 12);
    assert_eq!(seen("keybits", 256.into()), 12);
    assert_eq!(seen("driver", "auto".into()), 8);
    assert_eq!(seen("size", 8192.into()), 12);
    assert_eq!(seen("batch", 4.into()), 12);
    let crossovers = record["crossovers"].as_array().unwrap();
    assert_eq!(crossovers.len(), 2 * 2 * 2);
    for entry in crossovers {
        assert_eq!(entry["base"], "software");
        assert!(!entry["sentence"].as_str().unwrap().is_empty());
    }

    let table = text(&output.stdout);
    assert!(
        table.contains("gcm(aes), 128-bit key, encrypt, 4 requests per batch"),
        "{table}"
    );
    assert!(table.contains("8 KiB") && table.contains('*'), "{table}");
    let prose = table.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        prose.contains(crossovers[0]["sentence"].as_str().unwrap()),
        "{table}"
    );
    let widest = table.lines().map(|line| line.chars().count()).max();
    assert!(widest <= Some(80) && !table.contains('\x1b'), "{table}");
    assert!(table.contains("auto reaches 97 % or more"), "{table}");

    // What is known is not measured again.
    let again = run(&mut speed(&place, &options), 0);
    assert!(!text(&again.stderr).contains("calibrating"));
}

/// As `cryptsetup benchmark`: seconds, one small table, one sentence.
#[test]
fn without_more_it_gives_a_short_answer() {
    let place = Place::new();
    let table = printed(&mut speed(&place, &[]));
    for part in [
        "driver",
        "64 bytes",
        "16 KiB",
        "software",
        "gcm(aes), 128 bits",
        "--full",
    ] {
        assert!(table.contains(part), "'{part}' is not in: {table}");
    }
    assert!(table.lines().count() < 30, "{table}");
    assert!(
        table.lines().all(|line| line.chars().count() <= 80),
        "{table}"
    );
    let record = record(&place, &[]);
    let sizes: std::collections::BTreeSet<u64> = cells(&record)
        .iter()
        .map(|c| c["size"].as_u64().unwrap())
        .collect();
    assert_eq!(sizes.len(), 3);
    assert!(
        cells(&record)
            .iter()
            .all(|c| c["batch"] == 1 && c["driver"] != "auto")
    );
}

#[test]
fn tables_in_other_units_and_as_markdown() {
    let place = Place::new();
    let options = [
        "ecb(aes)",
        "--drivers",
        "software",
        "--sizes",
        "64,1K",
        "--batch",
        "1",
    ];
    for (unit, head) in [
        ("gbs", "GB/s"),
        ("cpb", "cycles/byte"),
        ("ns", "ns/request"),
    ] {
        let table = printed(speed(&place, &options).args(["--unit", unit]));
        assert!(table.contains(head), "{table}");
        let markdown = printed(speed(&place, &options).args(["--unit", unit, "--markdown", "-"]));
        let row = format!("| {head} | 64 bytes | 1 KiB |\n|---|---:|---:|\n| software | ");
        assert!(markdown.contains(&row), "{markdown}");
    }
}

/// Software did the work of a device that lied, and its figures were shown as the device's.
#[test]
fn a_driver_that_is_set_aside_has_no_figures_and_is_named() {
    let place = Place::new();
    let device = include_str!("../../../dma-model/src/presets/pcie-modern.toml");
    let fault = "{kind = \"wrong-result\", after = 250, count = 1000}";
    place.write(
        "device.toml",
        format!("{device}\n[behaviour]\nfaults = [{fault}]\n"),
    );
    place.write("settings.toml", "verify = 1\n");
    let file = place.path("device.toml");
    let mut command = place.cipherlane("--config settings.toml speed ctr(aes) --seconds 0.05");
    command.args(["--sizes", "4K,16K", "--batch", "16", "--json", "--drivers"]);
    let name = format!("dma:{}", file.display());
    let output = run(command.arg(format!("software,{name}")), 0);
    let said = text(&output.stderr);
    assert!(
        said.contains("is left out where software did its work: quarantined"),
        "{said}"
    );
    let record: Value = serde_json::from_slice(&output.stdout).unwrap();
    let of = |driver: &str| {
        cells(&record)
            .iter()
            .filter(|c| c["driver"] == driver)
            .count()
    };
    assert_eq!(of("software"), 2);
    assert!(of(&name) < 2, "{record}");
}

#[test]
fn every_algorithm_runs_both_ways_waiting_and_not() {
    let place = Place::new();
    let all = cipherlane_core::Algorithm::names();
    let options = [
        "--drivers",
        "software",
        "--sizes",
        "16,65",
        "--batch",
        "1,3",
        "--submit",
        "0,2",
    ];
    let options = [&all[..], &options].concat();
    for decrypt in [&[][..], &["--decrypt"]] {
        let record = record(&place, &[&options[..], decrypt].concat());
        for name in &all {
            let of = cells(&record).iter().filter(|c| c["algorithm"] == *name);
            // Block modes do not take 65 bytes.
            let block = cipherlane_core::Algorithm::find(name).unwrap().block;
            let expected = if block > 1 { 4 } else { 8 };
            assert_eq!(of.count(), expected, "{name}");
        }
        let depths = cells(&record).iter().filter(|cell| cell["depth"] == 2);
        assert_eq!(depths.count() * 2, cells(&record).len());
        let direction = if decrypt.is_empty() {
            "encrypt"
        } else {
            "decrypt"
        };
        assert!(
            cells(&record)
                .iter()
                .all(|cell| cell["direction"] == direction)
        );
    }
}

#[test]
fn callers_share_a_session_and_dedicated_cores() {
    let place = Place::new();
    let record = record(
        &place,
        &[
            "ctr(aes)",
            "--cores",
            "0",
            "--drivers",
            "cores,software",
            "--sizes",
            "16,256K",
            "--batch",
            "1,5",
            "--threads",
            "1,3",
            "--submit",
            "0,40",
        ],
    );
    assert_eq!(cells(&record).len(), 2 * 2 * 2 * 2 * 2);
    assert!(cells(&record).iter().any(|cell| cell["threads"] == 3));
    // The yardstick is software wherever it stands.
    assert!(
        record["crossovers"]
            .as_array()
            .unwrap()
            .iter()
            .all(|c| c["base"] == "software")
    );
}

#[test]
fn pauses_between_calls_are_cells_and_do_not_count() {
    let place = Place::new();
    let options = [
        "ctr(aes)",
        "--drivers",
        "software",
        "--sizes",
        "16",
        "--batch",
        "1",
        "--submit",
        "0,2",
        "--pause",
        "0,20000",
    ];
    let record = record(&place, &options);
    let nobody = "speed ctr --submit 2 --pause 10";
    refused(&mut place.cipherlane(nobody), 2, &["--pause", "--submit 0"]);
    // Only a caller that waits pauses.
    let callers = cells(&record).iter();
    let callers = callers.map(|cell| (cell["depth"].as_u64(), cell["pause_us"].as_u64()));
    let callers: Vec<_> = callers.collect();
    assert_eq!(
        callers,
        [(None, None), (None, Some(20_000)), (Some(2), None)]
    );
    // One call of 16 bytes per pause would be 800 bytes per second.
    let rate = cells(&record)[1]["bytes_per_second"].as_f64().unwrap();
    assert!(rate > 800.0, "{rate}");
}

#[test]
fn csv_and_html_are_whole_and_ask_nobody() {
    let place = Place::new();
    let options = [
        "hmac(sha256)",
        "--drivers",
        "software,auto",
        "--sizes",
        "64,1K",
        "--batch",
        "1",
    ];
    let outputs = ["--csv", "a.csv", "--html", "a.html", "--verbose"];
    let table = printed(speed(&place, &options).args(outputs));
    assert!(
        table.contains("p99") && table.contains("user s/GB"),
        "{table}"
    );
    let csv = std::fs::read_to_string(place.path("a.csv")).unwrap();
    let columns: Vec<usize> = csv.lines().map(|line| line.split(',').count()).collect();
    assert_eq!(columns.len(), 1 + 4);
    assert!(columns.iter().all(|count| *count == columns[0]), "{csv}");
    assert!(csv.starts_with("algorithm,keybits,direction,driver,size,"));
    let html = std::fs::read_to_string(place.path("a.html")).unwrap();
    assert!(html.contains("default-src 'none'") && html.ends_with("</html>\n"));
    for outside in ["src=", "href=\"http", "@import", "<link"] {
        assert!(!html.contains(outside), "{outside}");
    }
    // Inside the page itself is allowed.
    assert!(html.split("url(").skip(1).all(|rest| rest.starts_with('#')));
}

#[test]
fn instruction_sets_stand_side_by_side() {
    let place = Place::new();
    let options = ["--instruction-sets", "gcm(aes)", "hmac(sha256)", "--sizes"];
    let mut sets = speed(&place, &options);
    let output = run(
        sets.args(["64,1400", "--batch", "1,2", "--threads", "2", "--json"]),
        0,
    );
    let record: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut names: Vec<&str> = cells(&record)
        .iter()
        .map(|cell| cell["driver"].as_str().unwrap())
        .collect();
    let all = names.len();
    names.dedup();
    let one = all / (2 * 2 * 2);
    assert_eq!(names.len(), all, "a set follows itself: {names:?}");
    names.truncate(one);
    assert_eq!(names.last(), Some(&"portable"));
    let sets: Vec<_> = cipherlane_kernels::cpu::instruction_sets()
        .iter()
        .map(|set| set.name)
        .collect();
    assert_eq!(names, sets);
    let said = text(&output.stderr);
    assert!(said.contains(&format!("{one} instruction sets")), "{said}");
    for entry in record["crossovers"].as_array().unwrap() {
        assert_eq!(entry["base"], names[0]);
    }
    if one > 1 {
        let entries = record["crossovers"].as_array().unwrap().len();
        assert_eq!(entries, 2 * 2 * (one - 1));
    }

    // The short answer in words, and a process with a set that is not there.
    let output = printed(&mut speed(&place, &["--instruction-sets"]));
    assert!(output.contains("portable"), "{output}");
    let output = run(&mut speed(&place, &["--turns-with", "neon"]), 2);
    let said = text(&output.stderr);
    assert!(
        said.contains("'neon'") && said.contains("portable"),
        "{said}"
    );
}

#[test]
fn a_definition_stands_in_for_options_and_options_win() {
    let place = Place::new();
    let text = "algorithms = ['ctr(aes)']\ndrivers = ['software']\nsizes = [16, 64]\nbatch = [2]\n\
                threads = [1]\nsubmit = [4]\nkeybits = 192\nseconds = 60.0\n";
    place.write("d.toml", text);
    let record = record(&place, &["--definition", "d.toml", "--sizes", "32"]);
    let [cell] = &cells(&record)[..] else {
        panic!("{record}");
    };
    assert_eq!((&cell["size"], &cell["batch"]), (&32.into(), &2.into()));
    assert_eq!((&cell["keybits"], &cell["depth"]), (&192.into(), &4.into()));
}

#[test]
fn a_driver_that_cannot_be_measured_is_named_with_its_reason() {
    let place = Place::new();
    let options = ["ctr(aes)", "--sizes", "64", "--batch", "1", "--drivers"];
    let output = run(speed(&place, &options).arg("software,cores"), 0);
    let said = text(&output.stderr);
    assert!(said.contains("driver 'cores' is left out: "), "{said}");
    let output = run(speed(&place, &options).arg("cores"), 1);
    let said = text(&output.stderr);
    assert!(
        said.contains("no driver is left") && said.contains("'cores'"),
        "{said}"
    );
}

#[test]
fn mistakes_are_named_and_nothing_is_left_behind() {
    let place = Place::new();
    for (arguments, status, said) in [
        (&["rot13"][..], 2, "'rot13'"),
        (&["gcm(aes)", "--keybits", "100"], 2, "100 bits"),
        (&["--keybits", "100"], 2, "--keybits 100"),
        (&["--drivers", "abacus"], 2, "'abacus'"),
        (&["--sizes", "0"], 2, "--sizes 0"),
        (&["--sizes", "1.5K"], 2, "1.5K"),
        (&["cbc(aes)", "--sizes", "17"], 2, "multiples of 16 bytes"),
        (&["--batch", "0"], 2, "--batch 0"),
        (&["--threads", "0"], 2, "--threads 0"),
        (&["--threads", "100000"], 2, "--threads 100000"),
        (&["--submit", "100000"], 2, "--submit 100000"),
        (&["--seconds", "0"], 2, "--seconds"),
        (&["--block", "0"], 2, "--block 0"),
        (
            &["--instruction-sets", "--drivers", "software"],
            2,
            "--drivers",
        ),
        (&["--instruction-sets", "--submit", "4"], 2, "--submit"),
        (&["--instruction-sets", "--pause", "4"], 2, "--pause"),
        (&["--turns-with", "neon"], 2, "'neon'"),
        (&["--json", "--csv", "-"], 2, "'-'"),
        (&["--json=no/such/place.json"], 1, "no/such/place.json"),
        (&["--html", "."], 1, "'.'"),
        (&["--definition", "none.toml"], 1, "none.toml"),
    ] {
        let output = run(&mut speed(&place, arguments), status);
        let message = text(&output.stderr);
        assert!(message.contains(said), "{arguments:?}: {message}");
        assert!(!message.contains("panicked"), "{arguments:?}: {message}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
    assert!(place.names().is_empty());
    assert!(!place.path("home/.cache").exists());
}
