//! Tells the program which commit it is built from, for `cipherlane --version --verbose`.

use std::path::Path;
use std::process::Command;

#[expect(
    clippy::disallowed_methods,
    reason = "cargo tells build scripts by variables"
)]
fn main() {
    // Every commit adds a line to it. Without the repository nothing is to be watched.
    let log = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.git/logs/HEAD");
    if log.exists() {
        println!("cargo::rerun-if-changed={}", log.display());
    }
    println!("cargo::rerun-if-changed=build.rs");
    let commit = git(&["rev-parse", "--short=12", "HEAD"]);
    println!(
        "cargo::rustc-env=CIPHERLANE_COMMIT={}",
        commit.unwrap_or_else(|| "unknown".to_owned())
    );
    for variable in ["TARGET", "PROFILE"] {
        println!(
            "cargo::rustc-env=CIPHERLANE_{variable}={}",
            std::env::var(variable).unwrap_or_default()
        );
    }
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    (output.status.success() && !text.trim().is_empty()).then(|| text.trim().to_owned())
}
