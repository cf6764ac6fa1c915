//! A device as a process, and guests that have it.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

/// How long a device may take to start, and to end.
const PATIENCE: Duration = Duration::from_secs(60);

/// What `scripts/guest` ends with where there can be no guest.
const NO_GUESTS: i32 = 125;

/// What every guest loads: the device, what uses it, and software to compare with.
const MODULES: [&str; 7] = [
    "virtio_pci",
    "virtio_crypto",
    "crypto_user",
    "algif_skcipher",
    "cbc",
    "aes_generic",
    "sha512_generic",
];

pub(crate) struct Device {
    place: TempDir,
    process: Child,
}

impl Device {
    /// Starts one, with more arguments.
    pub(crate) fn start(arguments: &[&str]) -> Device {
        Device::start_in(tempfile::tempdir().unwrap(), arguments)
    }

    fn start_in(place: TempDir, arguments: &[&str]) -> Device {
        let log = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(place.path().join("log"))
            .unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_cipherlane"));
        command.args(["device", "vhost-user", "--socket"]);
        command.arg(place.path().join("socket")).args(arguments);
        let process = command.stderr(log).spawn().unwrap();
        let mut device = Device { place, process };
        let begin = Instant::now();
        let pid = device.process.id();
        while device
            .try_status()
            .is_none_or(|status| status["pid"] != pid)
        {
            let ended = device.process.try_wait().unwrap();
            assert!(ended.is_none(), "{}", device.log());
            assert!(begin.elapsed() < PATIENCE, "{}", device.log());
            std::thread::sleep(Duration::from_millis(10));
        }
        device
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.place.path().join("socket")
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.place.path().join("log")).unwrap()
    }

    /// What `device status --json` prints, if it answers.
    fn try_status(&self) -> Option<Value> {
        let output = self.asked(&["--json"]);
        serde_json::from_slice(&output).ok()
    }

    /// What `device status` prints.
    pub(crate) fn asked(&self, arguments: &[&str]) -> Vec<u8> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cipherlane"));
        command.args(["device", "status", "--socket"]);
        let output = command.arg(self.socket()).args(arguments).output();
        output.unwrap().stdout
    }

    pub(crate) fn status(&self) -> Value {
        self.try_status().expect("the device answers")
    }

    /// Waits until the status is as it must be.
    pub(crate) fn wait_for(&self, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let begin = Instant::now();
        loop {
            let status = self.status();
            if is_so(&status) {
                return status;
            }
            let is_late = begin.elapsed() > PATIENCE;
            assert!(
                !is_late,
                "{what} has not happened: {status}\n{}",
                self.log()
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Kills it as nobody should, and starts another one at the same place.
    pub(crate) fn die_and_return(mut self) -> Device {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        let place = std::mem::replace(&mut self.place, tempfile::tempdir().unwrap());
        Device::start_in(place, &[])
    }

    /// Ends it; its log.
    pub(crate) fn end(mut self) -> String {
        let pid = Pid::from_raw(self.process.id() as i32).unwrap();
        kill_process(pid, Signal::TERM).unwrap();
        assert!(self.process.wait().unwrap().success(), "{}", self.log());
        assert!(!self.socket().exists(), "its socket is gone");
        self.log()
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Runs a script in a guest that has a device; what it has printed. `told` hears each line as it
/// comes. `None`, said loudly, where there can be no guest.
pub(crate) fn guest(
    socket: &Path,
    options: &[&str],
    script: &str,
    told: impl FnMut(&str),
) -> Option<String> {
    let place = tempfile::tempdir().unwrap();
    let afalg = place.path().join("afalg");
    let mut compiler = Command::new("cc");
    compiler.args(["-O2", "-o"]).arg(&afalg);
    let compiled = compiler
        .arg(root().join("guests/afalg.c"))
        .output()
        .unwrap();
    assert!(compiled.status.success(), "{compiled:?}");
    let mut arguments = vec!["--shared"];
    for module in MODULES {
        arguments.extend(["--module", module]);
    }
    arguments.extend([
        "--program",
        "kcapi-enc",
        "--program",
        afalg.to_str().unwrap(),
    ]);
    arguments.extend(options);
    let chardev = format!("socket,id=c,path={}", socket.display());
    let machine = [
        "-chardev",
        &chardev,
        "-object",
        "cryptodev-vhost-user,id=d,chardev=c",
        "-device",
        "virtio-crypto-pci,cryptodev=d,vectors=0",
    ];
    run_guest(&arguments, script, &machine, told)
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Says that something was not tried, and why.
pub(crate) fn skip(what: &str, reason: &str) {
    let message = format!("SKIPPED, {what}: {reason}\n");
    // Past the harness, which shows nothing of a test that passes.
    std::io::stderr().write_all(message.as_bytes()).unwrap();
}

/// Runs a script in a guest with these options of `scripts/guest` and these arguments of QEMU.
pub(crate) fn run_guest(
    options: &[&str],
    script: &str,
    machine: &[&str],
    mut told: impl FnMut(&str),
) -> Option<String> {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("script");
    std::fs::write(&file, script).unwrap();
    let mut command = Command::new(root().join("scripts/guest"));
    command.args(["--limit", "240"]).args(options);
    command.arg(&file).arg("--").args(machine);
    let mut running = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut text = String::new();
    for line in BufReader::new(running.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        told(&line);
        text += &(line + "\n");
    }
    let ended = running.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    if ended.status.code() == Some(NO_GUESTS) {
        skip("no guest has tried the device", &said);
        return None;
    }
    assert!(ended.status.success(), "{:?}\n{text}{said}", ended.status);
    Some(text)
}
