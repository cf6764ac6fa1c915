//! The kernel's tracepoints need a file system that is not mounted everywhere.

use std::process::Command;

/// Runs that test where the tracepoints' numbers can be read.
#[track_caller]
pub(crate) fn with_tracepoints(name: &str) {
    const MOUNT: &str = "test -e /sys/kernel/tracing/events || \
        mount -t tracefs tracefs /sys/kernel/tracing || exit 77; exec \"$@\"";
    let own = std::env::current_exe().unwrap();
    let test = ["--ignored", "--exact", name, "--nocapture"];
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", MOUNT, "sh"])
        .arg(own)
        .args(test)
        .output();
    let output = match output {
        Ok(output) => output,
        Err(error) => return eprintln!("SKIPPED: unshare: {error}"),
    };
    let said = String::from_utf8_lossy(&output.stderr);
    eprint!("{said}");
    if matches!(output.status.code(), Some(1 | 77)) && !said.contains("panicked") {
        return eprintln!("SKIPPED: no file system for tracing may be mounted here");
    }
    assert!(output.status.success(), "{said}");
}
