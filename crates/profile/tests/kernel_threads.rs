//! Kernel threads that work for a program are on its bill, and other programs are not.

mod support;
#[path = "support/tracing.rs"]
mod tracing;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Child, Command};

use cipherlane_profile::recording::Kind;

use self::support::{command, options, recorded};
use self::tracing::with_tracepoints;

/// What is written through the device, in MiB.
const WRITTEN: u64 = 192;

#[test]
fn what_a_loop_device_does_is_on_the_bill() {
    with_tracepoints("work_of_a_loop_device");
}

/// A loop device, whose work a kernel thread does, until it is dropped.
struct Loop(String);

impl Loop {
    fn on(file: &Path) -> Result<Self, String> {
        let found = Command::new("losetup")
            .args(["--find", "--show"])
            .arg(file)
            .output();
        let found = found.map_err(|error| format!("losetup: {error}"))?;
        match found.status.success() {
            true => Ok(Self(
                String::from_utf8_lossy(&found.stdout).trim().to_owned(),
            )),
            false => Err(String::from_utf8_lossy(&found.stderr).into_owned()),
        }
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["--detach", &self.0]).status();
    }
}

/// A program that has nothing to do with what is recorded, until it is dropped.
struct Other(Child);

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
#[ignore = "the test above runs it"]
fn work_of_a_loop_device() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("disk");
    let file = std::fs::File::create(&path).unwrap();
    file.set_len(WRITTEN << 20).unwrap();
    let device = match Loop::on(&path) {
        Ok(device) => device,
        Err(why) => return eprintln!("SKIPPED: no loop device can be made here: {why}"),
    };
    let busy = Command::new("sh")
        .args(["-c", "while :; do :; done"])
        .spawn();
    let _other = Other(busy.unwrap());
    let (to, count) = (format!("of={}", device.0), format!("count={WRITTEN}"));
    let words = [
        "dd",
        "if=/dev/zero",
        &to,
        "bs=1M",
        &count,
        "oflag=direct",
        "status=none",
    ];
    let Some(recording) = recorded(&command(&words), &options()) else {
        return;
    };
    if !recording.missing.is_empty() {
        return eprintln!("SKIPPED: {}", recording.missing.join("; "));
    }
    assert_eq!(recording.status, Some(0));
    let sampled = recording.samples.iter().filter(|of| of.kind == Kind::Cpu);
    let (mut ns, mut names) = (0, BTreeSet::new());
    for sample in sampled {
        let thread = &recording.threads[sample.thread as usize];
        names.insert(thread.name.as_str());
        if thread.name != "dd" {
            ns += sample.ns;
        }
    }
    assert!(names.contains("dd"), "{names:?}");
    assert!(
        names.iter().any(|name| name.starts_with("kworker/")),
        "{names:?}"
    );
    // All but the program itself are threads of the kernel.
    assert!(
        names.iter().all(|name| *name == "dd" || name.contains('/')),
        "{names:?}"
    );
    assert_eq!(recording.counters.kernel_threads_ns, ns);
    // What they do is seen by function.
    let copies = recording
        .frames
        .iter()
        .any(|frame| frame.name.starts_with("lo_") || frame.name.starts_with("loop_"));
    assert!(copies, "{:?}", recording.frames);
}
