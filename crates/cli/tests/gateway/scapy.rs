//! scapy (PyPI) as the far end: an ESP that was not written here.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::rig::{Host, rig};

/// A Python with scapy, installed at the first run.
fn python() -> Result<PathBuf, String> {
    let environment = Path::new(env!("CARGO_TARGET_TMPDIR")).join("scapy");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/scapy");
    let made = Command::new(script).arg(&environment).output();
    let made = made.map_err(|error| error.to_string())?;
    match made.status.success() {
        true => Ok(environment.join("bin/python")),
        false => Err(String::from_utf8_lossy(&made.stderr).into_owned()),
    }
}

#[test]
fn scapy_talks_to_the_gateway() {
    scapy_talks(&[]);
}

#[test]
fn scapy_talks_to_the_gateway_by_plain_esp() {
    scapy_talks(&["--plain"]);
}

fn scapy_talks(options: &[&str]) {
    let Some(mut rig) = rig() else {
        return;
    };
    let python = match python() {
        Ok(python) => python,
        Err(reason) => {
            let message = format!("SKIPPED, no scapy: {reason}\n");
            std::io::Write::write_all(&mut std::io::stderr(), message.as_bytes()).unwrap();
            return;
        }
    };
    rig.configure(options);
    rig.start(Host::A);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/gateway/peer.py");
    let directory = rig.path("b");
    let output = rig.within(Host::B, move || {
        let mut command = Command::new(python);
        command.arg(script).arg(directory).output().unwrap()
    });
    assert!(output.status.success(), "{output:?}");
    let status = rig.status(Host::A).unwrap();
    let tunnel = &status["tunnels"][0];
    assert_eq!(tunnel["inbound"]["packets"], 20, "{tunnel}");
    assert_eq!(tunnel["inbound"]["refused"]["replayed"], 5, "{tunnel}");
    assert_eq!(
        tunnel["inbound"]["refused"]["integrity_failures"], 5,
        "{tunnel}"
    );
}
