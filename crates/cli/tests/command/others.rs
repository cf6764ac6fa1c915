//! The other subcommands: their tables, their JSON, and what they refuse.

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};

use crate::place::{Place, refused, run};
use serde_json::Value;

#[track_caller]
fn text(command: &mut Command) -> String {
    String::from_utf8(run(command, 0).stdout).unwrap()
}

#[track_caller]
fn json(command: &mut Command) -> Value {
    serde_json::from_str(&text(command)).unwrap()
}

#[test]
fn drivers_lists_every_algorithm_and_its_self_test() {
    let place = Place::new();
    let table = text(&mut place.cipherlane("drivers"));
    let rows = json(&mut place.cipherlane("drivers --json"));
    let rows = rows.as_array().unwrap();
    for algorithm in cipherlane::Algorithm::names() {
        assert!(table.contains(algorithm), "{table}");
        assert!(rows.iter().any(|row| row["algorithm"] == algorithm
            && row["driver"] == "software"
            && row["self_test"] == "passed"));
    }
    let widest = table.lines().map(|line| line.chars().count()).max();
    assert!(widest <= Some(100), "{table}");
}

#[test]
fn calibrate_keeps_what_it_learned_for_why_and_drivers() {
    let place = Place::new();
    let result = json(&mut place.cipherlane("calibrate ctr(aes) --seconds 0.05 --json"));
    assert!(result["rows"][0]["gigabytes_per_second"].as_f64().unwrap() > 0.0);
    assert_eq!(result["serving"][0]["ranges"][0]["from_bytes"], 16);
    assert!(place.path("home/.cache/cipherlane/profile.json").exists());

    let rows = json(&mut place.cipherlane("drivers --json"));
    let known = |name: &str| {
        let rows = rows.as_array().unwrap();
        let row = rows.iter().find(|row| row["algorithm"] == name).unwrap();
        row["fixed_ns"].is_number()
    };
    assert!(known("ctr(aes)") && !known("gcm(aes)"));

    let output = run(
        &mut place.cipherlane("why ctr(aes) 1400 --keybits 256 --json"),
        0,
    );
    assert!(output.stderr.is_empty(), "it was measured already");
    let why: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&why["key_bits"], &why["size"]),
        (&Value::from(256), &Value::from(1400))
    );
    assert!(why["candidates"][0]["latency_ns"].as_f64().unwrap() > 0.0);

    let table = text(&mut place.cipherlane("calibrate ctr(aes) --seconds 0.05"));
    assert!(
        table.contains("GB/s") && table.contains("Kept in"),
        "{table}"
    );
}

#[test]
fn why_measures_first_what_is_not_known_and_says_so() {
    let place = Place::new();
    let line = "why xts(aes) 4K --batch 4 --submit --decrypt --goal cpu";
    let mut command = place.cipherlane(line);
    let output = run(command.env("CIPHERLANE_PROFILE", place.path("p.json")), 0);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("nothing is known of software with xts(aes)"),
        "{said}"
    );
    let answer = String::from_utf8(output.stdout).unwrap().replace('\n', " ");
    for words in [
        "'software' serves",
        "4 requests of 4 KiB",
        "does not wait",
        "decrypt",
    ] {
        assert!(answer.contains(words), "'{words}' is not in: {answer}");
    }
    assert!(place.path("p.json").exists());
}

/// A device may hang, and what that would cost must have been worked for.
#[test]
fn a_device_is_kept_out_until_it_is_paid_for_and_both_commands_say_so() {
    let place = Place::new();
    let config = "auto = [\"dma:pcie-modern\"]\ncalibration_seconds = 0.1\n";
    place.write("c.toml", config);
    let why = json(&mut place.cipherlane("--config c.toml why cbc(aes) 16K --batch 16 --json"));
    let candidates = why["candidates"].as_array().unwrap();
    let device = candidates.iter().find(|c| c["driver"] == "dma:pcie-modern");
    let device = device.unwrap()["not_used_because"].as_str();
    let reason = device.or(why["reason"].as_str()).unwrap();
    let (words, rest) = reason.split_once("used after ").expect(reason);
    assert!(words.contains("since it may hang"), "{reason}");
    let seconds: f64 = rest.split(' ').next().unwrap().parse().unwrap();
    assert!(
        seconds >= 50.5 && rest.contains("(0.0 s so far)"),
        "{reason}"
    );
    let why = text(&mut place.cipherlane("--config c.toml why cbc(aes) 2M"));
    let why = why.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(why.contains("'software' serves"), "{why}");
    let drivers = text(&mut place.cipherlane("--config c.toml drivers"));
    let drivers = drivers.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in ["a model, no hardware", "can be stuck in it for 1.010 s"] {
        assert!(drivers.contains(words), "{drivers}");
    }
}

#[test]
fn a_damaged_profile_is_reported_and_harms_nothing() {
    let place = Place::new();
    place.write("p.json", "{\"format\": 1, \"proc");
    let output = run(&mut place.cipherlane("--profile p.json drivers"), 0);
    let warning = String::from_utf8(output.stderr).unwrap();
    assert!(
        warning.contains("p.json") && warning.contains("calibrate"),
        "{warning}"
    );
    assert_eq!(place.names(), ["p.json"]);
    run(
        &mut place.cipherlane("--profile p.json calibrate ecb(aes) --seconds 0.02"),
        0,
    );
    assert_eq!(place.names(), ["p.damaged", "p.json"]);
    let output = run(&mut place.cipherlane("--profile p.json drivers"), 0);
    assert!(output.stderr.is_empty());
}

#[test]
fn what_does_not_exist_is_refused_by_name() {
    let place = Place::new();
    place.write("cut.toml", "force = 'soft");
    for (line, words) in [
        ("why rot13 16", ["rot13", "ctr(aes)"].as_slice()),
        (
            "why ctr(aes) 16 --keybits 512",
            &["512", "128 or 192 or 256"],
        ),
        ("why ctr(aes) many", &["many", "64K"]),
        ("why ctr(aes) 16 --batch 0", &["--batch"]),
        ("calibrate rot13", &["rot13"]),
        ("calibrate --seconds 0", &["--seconds"]),
        ("--driver nosuch drivers", &["nosuch", "software"]),
        ("--disable nosuch drivers", &["nosuch", "software"]),
        ("--goal fun drivers", &["fun", "latency"]),
        ("--config cut.toml drivers", &["cut.toml"]),
        ("nosuch", &["nosuch"]),
        ("completions nosuch", &["nosuch", "bash"]),
    ] {
        refused(&mut place.cipherlane(line), 2, words);
    }
    refused(
        &mut place.cipherlane("--config none.toml drivers"),
        1,
        &["none.toml", "check the name"],
    );
}

#[test]
fn options_stand_above_the_environment_and_that_above_files() {
    let place = Place::new();
    place.write("c.toml", "goal = 'cpu'\ncalibration_seconds = 0.02");
    let goal = |line: &str, variable: &str| {
        let line = format!("--config c.toml why ecb(aes) 64 --json {line}");
        let mut command = place.cipherlane(&line);
        if !variable.is_empty() {
            command.env("CIPHERLANE_GOAL", variable);
        }
        json(&mut command)["goal"].as_str().unwrap().to_owned()
    };
    assert_eq!(goal("", ""), "cpu");
    assert_eq!(goal("", "throughput"), "throughput");
    assert_eq!(goal("--goal latency", "throughput"), "latency");
}

#[test]
fn completions_and_manual_pages_know_the_commands() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = text(&mut place.cipherlane(&format!("completions {shell}")));
        assert!(
            script.contains("calibrate") && script.contains("aes-256-ctr"),
            "{shell}"
        );
    }
    assert!(text(&mut place.cipherlane("man")).contains(".TH cipherlane"));
    run(&mut place.cipherlane("man --dir pages"), 0);
    let page = std::fs::read_to_string(place.path("pages/cipherlane-enc.1")).unwrap();
    assert!(page.contains("hexadecimal"));
    refused(
        &mut place.cipherlane("man --dir /proc/pages"),
        1,
        &["/proc/pages"],
    );
}

#[test]
fn a_reader_that_goes_away_ends_it_quietly() {
    let place = Place::new();
    let mut child = place
        .cipherlane("completions bash")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(
        output.stderr.is_empty(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    // SIGPIPE, unless everything was written before the reader went.
    assert!(matches!(output.status.signal(), Some(13) | None));
}
