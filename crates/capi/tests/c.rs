//! Programs in C against the library as it is built for users, judged by libcrypto.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

const CRATE: &str = env!("CARGO_MANIFEST_DIR");
/// What a careful program is compiled with.
const STRICT: [&str; 6] = [
    "-std=c99",
    "-D_POSIX_C_SOURCE=200809L",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-pedantic",
];

const HEADERS: [&str; 2] = ["cipherlane.h", "cipherlane_esp.h"];

fn header(name: &str) -> PathBuf {
    Path::new(CRATE).join("include").join(name)
}

/// The shared library as cargo builds it for these tests.
fn library() -> PathBuf {
    let library = std::env::current_exe()
        .unwrap()
        .with_file_name("libcipherlane_capi.so");
    assert!(library.exists(), "{} was built", library.display());
    library
}

#[track_caller]
fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

/// A directory with the library under the names that users have.
fn place() -> TempDir {
    let place = tempfile::tempdir().unwrap();
    for name in ["libcipherlane.so", "libcipherlane.so.0"] {
        symlink(library(), place.path().join(name)).unwrap();
    }
    place
}

fn compiled(place: &Path, source: &str, with: &[&str]) -> PathBuf {
    let source = Path::new(CRATE).join(source);
    let program = place.join(source.file_stem().unwrap());
    run(Command::new("cc")
        .args(STRICT)
        .arg(format!("-I{CRATE}/include"))
        .arg("-o")
        .args([&program, &source])
        .arg(format!("-L{}", place.display()))
        .arg("-lcipherlane")
        .args(with));
    program
}

#[track_caller]
fn runs(source: &str, with: &[&str]) -> String {
    let place = place();
    let program = compiled(place.path(), source, with);
    let output = run(Command::new(program).env("LD_LIBRARY_PATH", place.path()));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn every_way_of_calling_agrees_with_libcrypto() {
    runs("tests/programs/peer.c", &["-lcrypto"]);
}

#[test]
fn mistakes_are_refused_in_words() {
    runs("tests/programs/misuse.c", &[]);
}

#[test]
fn threads_share_a_session_and_a_child_has_its_own() {
    runs("tests/programs/threads.c", &["-pthread"]);
}

#[test]
fn packets_are_what_rfc_4106_says() {
    runs("tests/programs/esp.c", &["-lcrypto"]);
}

#[test]
fn the_example_runs() {
    let told = runs("examples/seal.c", &[]);
    assert!(told.contains("attack at dawn"), "{told}");
    assert!(told.contains("serves gcm(aes)"), "{told}");
}

/// A function that one of the two lacks would be found by a user's linker.
#[test]
fn the_library_has_what_the_header_declares_and_nothing_else() {
    let headers = HEADERS.map(|name| std::fs::read_to_string(header(name)).unwrap());
    let header = headers.concat();
    let mut declared: Vec<&str> = header
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| word.starts_with("cipherlane_"))
        .filter(|word| header.contains(&format!("{word}(")))
        .collect();
    declared.sort_unstable();
    declared.dedup();
    let symbols = run(Command::new("nm")
        .args(["--dynamic", "--defined-only", "--format=posix"])
        .arg(library()));
    let symbols = String::from_utf8(symbols.stdout).unwrap();
    let mut exported: Vec<&str> = symbols
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    exported.sort_unstable();
    assert_eq!(exported, declared);
}

/// C and Rust lay the structures out alike.
#[test]
fn structures_have_one_layout() {
    use cipherlane_capi::{Algorithm, Options, Request, esp};
    let place = place();
    let source = place.path().join("layout.c");
    let structures = [
        ("algorithm", size_of::<Algorithm>()),
        ("options", size_of::<Options>()),
        ("request", size_of::<Request>()),
        ("sa_parameters", size_of::<esp::Parameters>()),
        ("packet", size_of::<esp::Packet>()),
        ("esp_statistics", size_of::<esp::Statistics>()),
    ];
    let checks: String = structures
        .iter()
        .map(|(name, size)| {
            format!("typedef char {name}[sizeof(struct cipherlane_{name}) == {size} ? 1 : -1];\n")
        })
        .collect();
    let text = format!("#include <cipherlane_esp.h>\n{checks}int main(void) {{ return 0; }}\n");
    std::fs::write(&source, text).unwrap();
    compiled(place.path(), source.to_str().unwrap(), &[]);
}

#[test]
fn the_header_is_c_plus_plus_too() {
    if Command::new("c++").arg("--version").output().is_err() {
        eprintln!("SKIPPED: there is no compiler for C++");
        return;
    }
    for name in HEADERS {
        run(Command::new("c++")
            .args(["-x", "c++", "-std=c++11"])
            .args(["-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only"])
            .arg(format!("-I{CRATE}/include"))
            .arg(header(name)));
    }
}
