//! No kernel branches on a secret or makes an address of one.
//!
//! Every kernel runs under valgrind's memcheck with its keys and data marked undefined.
//! Valgrind 3.19 knows neither VAES nor AVX-512 nor the SHA instructions, so what is
//! watched are the paths of AES-NI and of AVX2, and the portable one. The wider AES paths
//! are the same functions, compiled for longer vectors.
//!
//! Overflow checks branch on sums, secret ones too, so a build with debug assertions says
//! nothing of the code that ships. `make constant-time` builds what is watched here: the
//! optimised code, with processor features to be denied, and without the instructions
//! that the crates below the portable path would find by themselves.
#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

#[path = "../every_kernel/mod.rs"]
mod every_kernel;
mod memcheck;

use memcheck as watch;

use std::hint::black_box;
use std::io::Write;
use std::process::Command;

/// What memcheck makes the exit status when it has reported anything.
const REPORTED: i32 = 86;

/// Runs one of the ignored tests below under memcheck: its exit status and its output,
/// or nothing where there is no valgrind.
fn watched(test: &str, denied: &str) -> Option<(Option<i32>, String)> {
    let outside =
        cipherlane_kernels::environment::text("CIPHERLANE_CPU_DISABLE").unwrap_or_default();
    let output = Command::new("valgrind")
        .args(["--tool=memcheck", "--quiet", "--num-callers=30"])
        .arg(format!("--error-exitcode={REPORTED}"))
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--ignored", "--nocapture"])
        .arg("--test-threads=1")
        .env("CIPHERLANE_CPU_DISABLE", format!("{outside},{denied}"))
        .output();
    let output = match output {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            // Straight to the stream: what a test prints is not shown if it passes.
            let _ = writeln!(
                std::io::stderr(),
                "SKIPPED: constant time is not checked, for valgrind is not installed \
                 (scripts/needs test)"
            );
            return None;
        }
        output => output.unwrap(),
    };
    let text = [output.stdout, output.stderr].concat();
    Some((
        output.status.code(),
        String::from_utf8_lossy(&text).into_owned(),
    ))
}

#[test]
#[cfg_attr(debug_assertions, ignore = "see `make constant-time`")]
fn no_kernel_branches_on_a_secret() {
    let denials: &[&str] = match cfg!(cipherlane_cpu_disable) {
        true => &["", "avx2", "pclmulqdq", "aes,pclmulqdq,avx2"],
        false => &[""],
    };
    for denied in denials {
        let Some((status, text)) = watched("every_kernel", denied) else {
            return;
        };
        assert_eq!(status, Some(0), "without '{denied}': {text}");
        assert!(text.contains("1 passed"), "{text}");
        let (_, features) = text.split_once("features:").expect("they are printed");
        let features = features.lines().next().unwrap_or_default();
        println!("nothing to report with the features:{features}");
    }
}

#[test]
fn memcheck_notices_a_branch_on_a_secret() {
    notices("leaks_by_branch", "Conditional jump");
}

#[test]
fn memcheck_notices_an_address_made_of_a_secret() {
    notices("leaks_by_address", "Use of uninitialised value");
}

fn notices(test: &str, report: &str) {
    if let Some((status, text)) = watched(test, "") {
        assert_eq!(status, Some(REPORTED), "{text}");
        assert!(text.contains(report) && text.contains(test), "{text}");
    }
}

/// Not a test of its own: what memcheck is given to watch.
#[test]
#[ignore = "run under memcheck by the tests above"]
fn every_kernel() {
    assert!(memcheck::is_watching(), "this runs under valgrind");
    every_kernel::run();
}

/// A control: memcheck has to notice it.
#[test]
#[ignore = "run under memcheck by the tests above"]
fn leaks_by_branch() {
    let secret = memcheck::secret(&[1, 2]);
    if secret[0] > secret[1] {
        black_box(&secret);
    }
}

/// A control: memcheck has to notice it.
#[test]
#[ignore = "run under memcheck by the tests above"]
fn leaks_by_address() {
    let table: Vec<u8> = (0..=255).collect();
    let secret = memcheck::secret(&[7]);
    black_box(table[usize::from(secret[0])]);
}
