//! Programs that would read freed or shared memory do not compile.
//!
//! Each program of `misuse/` says by `//~` in which lines the compiler must refuse it, and by
//! which error: an error's number, or a part of its text where it has no number. No other line
//! may have errors, and such a line no others, so that a program is refused for its misuse and
//! not for another reason, such as a function that has another name now.
//!
//! trybuild compiles the programs. What it would compare, all that the compiler prints, differs
//! from one compiler to the next; so it is told to write that down instead, and this reads the
//! errors and their lines from there.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The errors of a program, by line. The compiler may say one twice.
type Errors = BTreeMap<usize, Vec<String>>;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.iter().any(|argument| argument == "--list") {
        return;
    }
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/misuse");
    let to = Path::new(env!("CARGO_TARGET_TMPDIR")).join("misuse");
    let _ = fs::remove_dir_all(&to);
    fs::create_dir_all(&to).expect("cargo's directory for tests can be written");
    let mut programs = Vec::new();
    for program in fs::read_dir(from).expect("there are programs") {
        let path = program.expect("a program").path();
        let copy = to.join(path.file_name().expect("a file"));
        fs::copy(&path, &copy).expect("a program can be read");
        programs.push(copy);
    }
    assert!(programs.len() >= 9, "programs were lost: {programs:?}");
    // SAFETY: no other thread has been started.
    unsafe { std::env::set_var("TRYBUILD", "overwrite") };
    let compiler = trybuild::TestCases::new();
    programs
        .iter()
        .for_each(|program| compiler.compile_fail(program));
    // It compiles them now, and panics if one of them is accepted.
    drop(compiler);
    let wrong = programs.iter().filter(|program| {
        let source = fs::read_to_string(program).expect("a program");
        let printed = fs::read_to_string(program.with_extension("stderr")).expect("its errors");
        !judge(program, &expected(&source), &found(&printed))
    });
    assert_eq!(wrong.count(), 0, "programs were refused for other reasons");
}

/// What the comments of a program say.
fn expected(source: &str) -> Errors {
    let mut errors = Errors::new();
    for (line, text) in source.lines().enumerate() {
        if let Some((_, error)) = text.split_once("//~") {
            errors.insert(line + 1, vec![error.trim().to_owned()]);
        }
    }
    errors
}

/// What the compiler printed: `error[E0521]: ...`, and then `--> FILE:LINE:COLUMN`.
fn found(printed: &str) -> Errors {
    let mut errors = Errors::new();
    let mut error = None;
    for text in printed.lines() {
        if text.starts_with("error") {
            error = Some(text.to_owned());
        } else if let Some(place) = text.trim_start().strip_prefix("-->")
            && let Some(error) = error.take()
        {
            let line = place.rsplit(':').nth(1).and_then(|line| line.parse().ok());
            errors.entry(line.unwrap_or(0)).or_default().push(error);
        }
    }
    errors
}

fn judge(program: &Path, expected: &Errors, found: &Errors) -> bool {
    let matches = |(want, have): (&Vec<String>, &Vec<String>)| {
        have.iter().all(|error| error.contains(want[0].as_str()))
    };
    let right = !expected.is_empty()
        && expected.keys().eq(found.keys())
        && expected.values().zip(found.values()).all(matches);
    if !right {
        let name = program.display();
        println!("{name}: expected by line {expected:#?}, found {found:#?}");
    }
    right
}
