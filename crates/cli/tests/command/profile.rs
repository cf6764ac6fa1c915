//! `cipherlane profile`: what it shows, compares and refuses. That recordings are right is tested
//! in `crates/profile`.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::place::{Place, run, text};
use crate::schema::judge;

/// A recording that is kept as a file.
fn kept(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../profile/tests/recordings")
        .join(format!("{name}.json"));
    path.to_str().unwrap().to_owned()
}

#[test]
fn documents_have_the_forms_that_are_described() {
    let place = Place::new();
    let (a, b) = (kept("small"), kept("pipe"));
    let shown = run(
        &mut place.cipherlane(&format!("profile show {a} --json")),
        0,
    );
    judge("profile", &shown.stdout);
    let compared = run(
        &mut place.cipherlane(&format!("profile diff {a} {b} --json")),
        0,
    );
    judge("profile-diff", &compared.stdout);
}

#[test]
fn a_comparison_has_a_verdict_and_a_page() {
    let place = Place::new();
    let (a, b) = (kept("small"), kept("pipe"));
    let line = format!("profile diff {a} {b} --html page.html");
    let compared = text(&run(&mut place.cipherlane(&line), 0).stdout);
    assert!(compared.contains("What changed most is"), "{compared}");
    assert!(
        compared.lines().all(|line| line.chars().count() <= 100),
        "{compared}"
    );
    let page = std::fs::read_to_string(place.path("page.html")).unwrap();
    assert!(page.contains("class=\"flame\"") && page.len() < 1_000_000);
    let same = text(&run(&mut place.cipherlane(&format!("profile diff {b} {b}")), 0).stdout);
    assert!(same.contains("no difference beyond the noise"), "{same}");
    let script = text(
        &run(
            &mut place.cipherlane(&format!("profile show {a} --script")),
            0,
        )
        .stdout,
    );
    assert!(script.contains(" cpu-clock:\n\t"), "{script}");
    let told = run(
        &mut place.cipherlane(&format!("profile show {a} --pprof out.pb")),
        0,
    );
    assert!(!told.stdout.is_empty());
    let profile = std::fs::read(place.path("out.pb")).unwrap();
    let piped = run(
        &mut place.cipherlane(&format!("profile show {a} --pprof -")),
        0,
    );
    assert_eq!(piped.stdout, profile);
}

#[test]
fn what_cannot_be_is_refused_in_words() {
    let place = Place::new();
    place.write("foreign", "PERFILE2 and more");
    let whole = std::fs::read(kept("small")).unwrap();
    place.write("cut", &whole[..whole.len() / 2]);
    place.write("rules", "[[rule]]\nphase='nowhere'\nfunction=['x']\n");
    let small = kept("small");
    for (line, status, word) in [
        ("show foreign".to_owned(), 1, "perf record"),
        ("show cut".to_owned(), 1, "ends too early"),
        ("show absent".to_owned(), 1, "'absent'"),
        (format!("show {small} --rules rules"), 2, "'nowhere'"),
        ("--pid 4000000000".to_owned(), 2, "no process 4000000000"),
        ("--all".to_owned(), 2, "--seconds"),
        ("--seconds 0 -- true".to_owned(), 2, "--seconds"),
        ("--bytes 0 -- true".to_owned(), 2, "more than 0"),
        ("-- no-such-command".to_owned(), 2, "'no-such-command'"),
        ("-o /absent/file -- true".to_owned(), 1, "/absent"),
        (String::new(), 2, "CMD"),
    ] {
        let refused = run(&mut place.cipherlane(&format!("profile {line}")), status);
        let said = text(&refused.stderr);
        assert!(said.contains(word), "{line}: {said}");
    }
}

/// What a command printed as JSON with --profile; `None`, loudly, where nothing may be recorded.
#[track_caller]
fn profiled(schema: &str, command: &mut Command) -> Option<Value> {
    let output = command.output().unwrap();
    let said = text(&output.stderr);
    if !output.status.success() && said.contains("perf_event_paranoid") {
        eprintln!("SKIPPED: {said}");
        return None;
    }
    assert!(output.status.success(), "{said}");
    judge(schema, &output.stdout);
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(printed["profile"]["event"].is_string(), "{printed}");
    Some(printed)
}

/// The phase that grew most, of those that did beyond the noise.
fn first_grown(reason: &Value) -> &Value {
    let mut phases = reason["phases"].as_array().into_iter().flatten();
    let grown = |phase: &&Value| {
        phase["clear"] == true && phase["difference"].as_f64().is_some_and(|by| by > 0.0)
    };
    phases.find(grown).unwrap_or(&Value::Null)
}

/// The page says the same, with functions of both, and asks nobody for anything.
#[track_caller]
fn is_told_on_the_page(place: &Place, reason: &Value) {
    let page = std::fs::read_to_string(place.path("page.html")).unwrap();
    // Nothing that these names have is written in another way in HTML.
    let [slower, faster, place_in_it, title] = [
        &reason["slower"],
        &reason["faster"],
        &reason["place"],
        &first_grown(reason)["title"],
    ]
    .map(|text| text.as_str().unwrap());
    let (_, section) = page.split_once("<section id=\"why0\">").unwrap();
    let (section, _) = section.split_once("</section>").unwrap();
    for part in [
        format!("<h2>{slower} and {faster}<small> {place_in_it}; "),
        format!("<th>Phase</th><th>{faster}</th><th>{slower}</th>"),
        format!("<tr><th>{title}</th>"),
        format!("<h3>Processor time of {faster}</h3>"),
        format!("<h3>Processor time of {slower} against {faster}</h3>"),
    ] {
        assert!(section.contains(&part), "{part}: {section}");
    }
    assert!(section.matches("class=\"flame\"").count() >= 2);
    for outside in ["http://", "https://", "src=", "@import", "url("] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert!(page.contains("default-src 'none'") && page.ends_with("</html>\n"));
    assert!(page.len() < 1_000_000, "{} bytes", page.len());
}

/// The model of a device takes thousands of times as long as software for small requests: that is
/// so on every machine, however busy.
#[test]
fn speed_says_why_a_driver_is_slower() {
    let place = Place::new();
    let line = "speed ctr(aes) --drivers software,dma:am335x --sizes 64 --batch 1 --seconds 0.3 \
                --profile";
    // Others on the machine may hide the reason once, but not every time.
    let mut printed = Value::Null;
    for _ in 0..5 {
        let mut speed = place.cipherlane(&format!("{line} --json --html page.html"));
        let Some(told) = profiled("speed", &mut speed) else {
            return;
        };
        printed = told;
        if first_grown(&printed["profile"]["reasons"][0])["phase"] == "device" {
            break;
        }
    }
    assert_eq!(printed["cells"].as_array().unwrap().len(), 2);
    let [reason] = &printed["profile"]["reasons"].as_array().unwrap()[..] else {
        panic!("{printed}");
    };
    assert_eq!(reason["slower"], "dma:am335x");
    assert_eq!(reason["faster"], "software");
    assert_eq!(
        (&reason["place"], &reason["each"]),
        (&"64 bytes".into(), &"request".into())
    );
    assert!(reason["times"].as_f64().unwrap() > 2.0, "{reason}");
    let sentence = reason["sentence"].as_str().unwrap();
    assert!(sentence.starts_with("Why dma:am335x is "), "{sentence}");
    let grown = first_grown(reason);
    assert_eq!(grown["phase"], "device", "{reason}");
    let title = grown["title"].as_str().unwrap();
    assert!(
        sentence.contains(&format!(": '{title}' takes ")),
        "{sentence}"
    );
    is_told_on_the_page(&place, reason);
    // The kernels are those of the table: it is one process, with one set of instructions. A build
    // for release obeys no variable.
    let mut denied = place.cipherlane(&format!("{line} --json"));
    let denied = denied.env("CIPHERLANE_CPU_DISABLE", "avx2,vaes,vpclmulqdq,avx512,gfni");
    let denied = profiled("speed", denied).unwrap();
    let used = denied["machine"]["instructions"].as_array().unwrap();
    let denied = ["avx2", "vaes", "avx512"].map(Value::from);
    let obeys = cfg!(debug_assertions);
    assert_eq!(
        !used.iter().any(|name| denied.contains(name)),
        obeys,
        "{used:?}"
    );
    let mut shown = String::new();
    let said = (0..5).any(|_| {
        shown = text(&run(&mut place.cipherlane(line), 0).stdout);
        let prose = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        prose.contains("Why dma:am335x is ") && prose.contains("software")
    });
    assert!(said, "{shown}");
    assert!(
        shown.lines().all(|line| line.chars().count() <= 80),
        "{shown}"
    );
}

#[test]
fn speed_without_profile_records_nothing() {
    let place = Place::new();
    let line = "speed ecb(aes) --drivers software --sizes 64 --batch 1 --seconds 0.01 --json";
    let printed: Value =
        serde_json::from_slice(&run(&mut place.cipherlane(line), 0).stdout).unwrap();
    assert!(printed.get("profile").is_none(), "{printed}");
}

/// A short packet of Kuznyechik in MGM alone leaves most lanes empty, sixteen fill them: four times as
/// fast with the newest instructions, nine times with none.
#[test]
fn esp_perf_says_why_single_packets_are_slower() {
    let place = Place::new();
    let line = "esp-perf --transform kuznyechik-mgm --direction seal --size 64 --threads 1 \
                --multipacket 16 --seconds 0.5 --profile --json --html page.html";
    // Others on the machine may hide the reason once, but not every time.
    let mut printed = Value::Null;
    for _ in 0..5 {
        let Some(told) = profiled("esp-perf", &mut place.cipherlane(line)) else {
            return;
        };
        printed = told;
        if !printed["profile"]["reasons"].as_array().unwrap().is_empty() {
            break;
        }
    }
    assert_eq!(printed["cells"].as_array().unwrap().len(), 2);
    let [reason] = &printed["profile"]["reasons"].as_array().unwrap()[..] else {
        panic!("{printed}");
    };
    assert_eq!(
        (&reason["case"], &reason["place"], &reason["each"]),
        (
            &"kuznyechik-mgm, seal".into(),
            &"64 B".into(),
            &"packet".into()
        )
    );
    assert_eq!(reason["slower"], "1 threads, 1 packets per call");
    assert_eq!(reason["faster"], "1 threads, 16 packets per call");
    assert!(reason["times"].as_f64().unwrap() > 1.03, "{reason}");
    let sentence = reason["sentence"].as_str().unwrap();
    assert!(
        sentence.starts_with("Why 1 packet per call is "),
        "{sentence}"
    );
    let title = first_grown(reason)["title"].as_str().unwrap();
    assert!(
        sentence.contains(&format!(": '{title}' takes ")),
        "{sentence}"
    );
    is_told_on_the_page(&place, reason);
}

/// Each of two threads on one SA is compared with one alone.
#[test]
fn esp_perf_compares_several_threads_with_one() {
    let place = Place::new();
    let line = "esp-perf --transform cbc-sha256 --direction seal --size 64 --threads 2 \
                --multipacket 64 --seconds 0.5 --profile --json";
    let Some(printed) = profiled("esp-perf", &mut place.cipherlane(line)) else {
        return;
    };
    assert_eq!(printed["cells"].as_array().unwrap().len(), 4);
    for reason in printed["profile"]["reasons"].as_array().unwrap() {
        assert_ne!(reason["slower"], reason["faster"]);
    }
}

/// With CAP_PERFMON and without CAP_IPC_LOCK a user may record the kernel too, within the little memory
/// that users may lock: as every user where kernel.perf_event_paranoid is 1.
#[test]
fn a_user_who_may_record_the_kernel_needs_no_more_memory_than_users_have() {
    let place = Place::new();
    let words = [
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
        "--inh-caps=+perfmon",
        "--ambient-caps=+perfmon",
    ];
    let mut user = Command::new("setpriv");
    user.args(words);
    let allowed = user.arg("true").output();
    if !allowed.is_ok_and(|output| output.status.success()) {
        eprintln!("SKIPPED: it takes root, setpriv and a kernel that has CAP_PERFMON");
        return;
    }
    let mut user = place.command("setpriv");
    let busy = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
    let profile = ["profile", "-o", "/dev/null", "--", "sh", "-c", busy];
    user.args(words)
        .arg(env!("CARGO_BIN_EXE_cipherlane"))
        .args(profile);
    let ended = user.output().unwrap();
    let said = text(&ended.stderr);
    if said.contains("perf_event_paranoid") && !ended.status.success() {
        eprintln!("SKIPPED: {said}");
        return;
    }
    assert!(ended.status.success(), "{said}");
    assert!(!said.contains("locked memory"), "{said}");
}

#[test]
fn a_command_keeps_its_output_and_its_failure_is_told() {
    let place = Place::new();
    let mut command = place.cipherlane("profile -o rec -- sh -c");
    let ended = command.arg("echo out; i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; exit 3");
    let ended = ended.output().unwrap();
    let said = text(&ended.stderr);
    if said.contains("perf_event_paranoid") && ended.stdout.is_empty() {
        eprintln!("SKIPPED: {said}");
        return;
    }
    assert_eq!(ended.status.code(), Some(1), "{said}");
    assert_eq!(text(&ended.stdout), "out\n");
    assert!(said.contains("status 3"), "{said}");
    run(&mut place.cipherlane("profile show rec"), 0);
}
