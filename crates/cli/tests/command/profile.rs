//! `cipherlane profile`: what it shows, compares and refuses. That recordings are right is tested
//! in `crates/profile`.

use std::path::PathBuf;

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

#[test]
fn a_command_keeps_its_output_and_its_failure_is_told() {
    let place = Place::new();
    let mut command = place.cipherlane("profile -o rec -- sh -c");
    let ended = command.arg("echo out; i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; exit 3");
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
