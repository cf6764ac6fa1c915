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
    let rows = rows["rows"].as_array().unwrap();
    for algorithm in cipherlane_core::Algorithm::names() {
        assert!(table.contains(algorithm), "{table}");
        assert!(rows.iter().any(|row| row["algorithm"] == algorithm
            && row["driver"] == "software"
            && row["self_test"] == "passed"));
    }
    let widest = table.lines().map(|line| line.chars().count()).max();
    assert!(widest <= Some(80), "{table}");
}

/// One reason stood in as many lines as there are algorithms.
#[test]
fn drivers_is_a_matrix_and_says_each_reason_once() {
    let place = Place::new();
    let table = text(&mut place.cipherlane("drivers"));
    let algorithms = cipherlane_core::Algorithm::names().len();
    assert!(table.lines().count() < 3 * algorithms, "{table}");
    let prose = table.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(
        prose.matches("no cores are dedicated").count(),
        1,
        "{prose}"
    );
    let detail = text(&mut place.cipherlane("drivers aes-128-gcm"));
    assert!(
        detail.contains("gcm(aes)") && detail.contains("self-test"),
        "{detail}"
    );
    assert!(!detail.contains("ctr(aes)"), "{detail}");
    let all = text(&mut place.cipherlane("drivers --all"));
    for text in [&detail, &all] {
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(80), "{text}");
    }
    refused(&mut place.cipherlane("drivers rot13"), 2, &["rot13"]);
}

#[test]
fn weight_and_colour_are_for_those_who_ask() {
    let place = Place::new();
    let line = "speed ecb --sizes 64 --batch 1 --seconds 0.002";
    let plain = text(&mut place.cipherlane(line));
    assert!(!plain.contains('\x1b'), "a pipe has none: {plain}");
    let bold = text(&mut place.cipherlane(&format!("{line} --color always")));
    assert!(bold.contains("\x1b[1m"), "{bold}");
    let never = text(
        place
            .cipherlane(&format!("{line} --color never"))
            .env("NO_COLOR", "1"),
    );
    assert!(!never.contains('\x1b'), "{never}");
}

#[test]
fn the_version_names_the_commit_and_the_kernels() {
    let place = Place::new();
    assert_eq!(text(&mut place.cipherlane("--version")).lines().count(), 1);
    let verbose = text(&mut place.cipherlane("--version --verbose"));
    for part in [
        "commit: ",
        "built for: ",
        "processor: ",
        "AES: ",
        "GHASH: ",
        "SHA-256: ",
    ] {
        assert!(verbose.contains(part), "'{part}' is not in: {verbose}");
    }
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
        let rows = rows["rows"].as_array().unwrap();
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
    let output = run(&mut place.cipherlane("--costs p.json drivers"), 0);
    let warning = String::from_utf8(output.stderr).unwrap();
    assert!(
        warning.contains("p.json") && warning.contains("calibrate"),
        "{warning}"
    );
    assert_eq!(place.names(), ["p.json"]);
    run(
        &mut place.cipherlane("--costs p.json calibrate ecb(aes) --seconds 0.02"),
        0,
    );
    assert_eq!(place.names(), ["p.damaged", "p.json"]);
    let output = run(&mut place.cipherlane("--costs p.json drivers"), 0);
    assert!(output.stderr.is_empty());
}

#[test]
fn what_does_not_exist_is_refused_by_name() {
    let place = Place::new();
    place.write("cut.toml", "force = 'soft");
    for (line, words) in [
        ("why rot13 16", ["rot13", "gcm(aes)"].as_slice()),
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

/// Each was accepted in silence, made the program panic, or was read without end.
#[test]
fn settings_without_sense_are_refused_by_name() {
    let place = Place::new();
    for (settings, words) in [
        (
            "calibration_seconds = 1e300",
            ["calibration_seconds", "0.01 to 3600"],
        ),
        (
            "calibration_seconds = -1",
            ["calibration_seconds", "0.01 to 3600"],
        ),
        (
            "calibration_seconds = nan",
            ["calibration_seconds", "0.01 to 3600"],
        ),
        (
            "[drivers.nosuch]\nx = 1",
            ["[drivers.nosuch]", "cores, dma"],
        ),
        ("[drivers.software]", ["[drivers.software]", "cores, dma"]),
        ("disable = ['software']", ["'software'", "give up"]),
        (
            "force = 'cores'\ndisable = ['cores']",
            ["'cores'", "forced and disabled"],
        ),
    ] {
        place.write("c.toml", settings);
        refused(
            &mut place.cipherlane("--config c.toml calibrate ecb(aes)"),
            2,
            &words,
        );
    }
    for (line, words) in [
        ("--disable software drivers", ["'software'", "give up"]),
        (
            "--driver openssl --disable openssl drivers",
            ["'openssl'", "forced and disabled"],
        ),
    ] {
        refused(&mut place.cipherlane(line), 2, &words);
    }
    let mut command = place.cipherlane("drivers");
    refused(
        command.args(["--cores", ""]),
        2,
        &["--cores", "1-3", "--disable cores"],
    );
}

/// The command with 4 GB of memory and 60 s of processor time at most: were such a file read,
/// the command would end and not the machine.
fn confined(place: &Place, line: &str) -> Command {
    let mut command = place.command("sh");
    command
        .args(["-c", "ulimit -v 4000000; ulimit -t 60; exec \"$0\" \"$@\""])
        .arg(env!("CARGO_BIN_EXE_cipherlane"))
        .args(line.split_whitespace());
    command
}

#[test]
fn files_that_never_end_are_refused_by_name() {
    let place = Place::new();
    let long = std::fs::File::create(place.path("long.toml")).unwrap();
    long.set_len(1 << 40).unwrap();
    let fifo = place.path("fifo.toml");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &fifo,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
    std::os::unix::fs::symlink("/dev/zero", place.path("zero.toml")).unwrap();
    for (file, words) in [
        ("/dev/zero", "no regular file"),
        ("./zero.toml", "no regular file"),
        ("./fifo.toml", "no regular file"),
        ("./home", "directory"),
        ("./long.toml", "more than"),
    ] {
        for line in [
            format!("--config {file} drivers"),
            format!("--driver dma:{file} drivers"),
            format!("plan --device {file} cbc(aes)"),
            format!("speed --definition {file}"),
        ] {
            refused(&mut confined(&place, &line), 2, &[file, words]);
        }
    }
    let profile = |file: &str| {
        let output = run(&mut confined(&place, &format!("--costs {file} drivers")), 0);
        String::from_utf8(output.stderr).unwrap()
    };
    let warning = profile("long.toml");
    assert!(
        warning.contains("long.toml") && warning.contains("ignored"),
        "{warning}"
    );
    assert_eq!(profile("/dev/zero"), "", "a device keeps nothing");
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
        // zsh has a backslash before a colon.
        let script = script.replace('\\', "");
        for offered in [
            "calibrate",
            "aes-256-ctr",
            "dma:am335x",
            "pcie-modern",
            "ipsec_mb",
        ] {
            assert!(script.contains(offered), "{shell}: {offered}");
        }
        // The generator for fish offers no values of arguments without a name.
        assert!(shell == "fish" || script.contains("aes-256-gcm"), "{shell}");
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
