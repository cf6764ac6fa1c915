//! OpenVPN through an engine that is slower than software: a profile of both says so, and names the
//! reason. The engine is the model of the AM335x in real time; a provider of OpenSSL in C, over this
//! library, stands between.

use std::io::{BufRead, BufReader, Lines, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use cipherlane_profile::diff::Diff;
use cipherlane_profile::record::{Options, Target, record};
use cipherlane_profile::recording::{Recording, Unit, Work};
use cipherlane_profile::rules::Rules;

const CRATE: &str = env!("CARGO_MANIFEST_DIR");
/// Others on the machine may hide the reason once, but not every time.
const TRIES: usize = 4;

/// Why it cannot be tried here.
fn lacks() -> Option<String> {
    for needed in ["/usr/sbin/openvpn", "/usr/bin/iperf3", "/dev/net/tun"] {
        if !Path::new(needed).exists() {
            return Some(format!("{needed} is absent; scripts/needs test"));
        }
    }
    let unshare = Command::new("unshare").args(["--net", "true"]).output();
    match unshare {
        Ok(output) if output.status.success() => None,
        Ok(output) => Some(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        Err(error) => Some(format!("unshare: {error}")),
    }
}

/// The library under the names that programs link to, and the provider beside it.
fn build(place: &Path) {
    let library = std::env::current_exe().unwrap();
    let library = library.with_file_name("libcipherlane_capi.so");
    for name in ["libcipherlane.so", "libcipherlane.so.0"] {
        std::os::unix::fs::symlink(&library, place.join(name)).unwrap();
    }
    let source = PathBuf::from(CRATE).join("tests/programs/engine.c");
    let compiled = Command::new("cc")
        .args(["-std=c99", "-D_POSIX_C_SOURCE=200809L", "-O1"])
        .args(["-Wall", "-Wextra", "-Werror", "-pedantic"])
        .args(["-shared", "-fPIC", "-fno-omit-frame-pointer", "-pthread"])
        .arg(format!("-I{CRATE}/include"))
        .arg("-o")
        .args([&place.join("engine.so"), &source])
        .arg(format!("-L{}", place.display()))
        .args(["-lcipherlane", "-lcrypto"])
        .output();
    let compiled = compiled.unwrap();
    assert!(compiled.status.success(), "{compiled:?}");
}

/// The tunnel, which says what it does and is told when.
struct Tunnel {
    script: Child,
    told: ChildStdin,
    says: Lines<BufReader<ChildStdout>>,
}

impl Tunnel {
    /// With the left end's process.
    fn start(place: &Path, driver: &str) -> (Self, u32) {
        let _ = std::fs::remove_file(place.join("far"));
        let mut script = Command::new("unshare")
            .args(["--net", "sh"])
            .arg(PathBuf::from(CRATE).join("tests/programs/tunnel.sh"))
            .arg(place)
            .env("CIPHERLANE_FORCE", driver)
            .env("LD_LIBRARY_PATH", place)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let told = script.stdin.take().unwrap();
        let says = BufReader::new(script.stdout.take().unwrap()).lines();
        let mut tunnel = Self { script, told, says };
        let process = tunnel.said("ready ").try_into().unwrap();
        (tunnel, process)
    }

    /// The number in what it says next.
    #[track_caller]
    fn said(&mut self, word: &str) -> u64 {
        let line = self.says.next().and_then(Result::ok).unwrap_or_default();
        let number = line
            .strip_prefix(word)
            .and_then(|number| number.parse().ok());
        number.unwrap_or_else(|| {
            let more: Vec<_> = self.says.by_ref().map_while(Result::ok).collect();
            panic!("the tunnel says: {line}\n{}", more.join("\n"))
        })
    }

    fn tell(&mut self) {
        self.told.write_all(b"\n").unwrap();
    }
}

/// The left end while a stream goes through the tunnel; `None`, loudly, where nothing may be
/// recorded.
fn recorded(place: &Path, driver: &str) -> Option<Recording> {
    let (mut tunnel, process) = Tunnel::start(place, driver);
    let over = AtomicBool::new(false);
    let (recorded, bytes) = std::thread::scope(|scope| {
        let recorder = scope.spawn(|| {
            let options = Options {
                children: false,
                time: None,
                rate: Some(499),
                work: None,
                meter: None,
                exact: false,
            };
            record(&Target::Process(process), &options, &over)
        });
        tunnel.tell();
        let bytes = tunnel.said("done ");
        over.store(true, Ordering::Relaxed);
        (recorder.join().unwrap(), bytes)
    });
    tunnel.tell();
    tunnel.script.wait().unwrap();
    match recorded {
        Ok(mut recording) if recording.missing.iter().all(|of| !of.contains("kernel's")) => {
            recording.work = Some(Work {
                amount: bytes,
                unit: Unit::Byte,
                source: "of the stream".to_owned(),
            });
            Some(recording)
        }
        Ok(recording) => {
            eprintln!("SKIPPED: {}", recording.missing.join("; "));
            None
        }
        Err(error) => {
            eprintln!("SKIPPED: {error}");
            None
        }
    }
}

#[test]
fn openvpn_through_a_slow_engine_waits_for_the_device() {
    if let Some(reason) = lacks() {
        return eprintln!("SKIPPED: {reason}");
    }
    let place = tempfile::tempdir().unwrap();
    build(place.path());
    let rules = Rules::built_in();
    let mut seen = Vec::new();
    let named = (0..TRIES).any(|_| {
        let runs = ["software", "dma:am335x"].map(|driver| recorded(place.path(), driver));
        let [Some(software), Some(engine)] = runs else {
            return true;
        };
        keep(&software, "openvpn-software");
        keep(&engine, "openvpn-engine");
        let diff = Diff::new(&software, &engine, &rules);
        let mut grown = diff.phases.iter();
        // Other programs on the machine come on top.
        let first = grown.find(|row| row.clear && row.difference > 0.0 && row.phase != "queue");
        let is_it = first.is_some_and(|row| row.phase == "device");
        let is_told = diff.verdict.contains("'Waiting for a device'")
            && diff.advice.iter().any(|of| of.contains("cipherlane plan"));
        seen.push(format!("{} {:#?}", diff.verdict, diff.phases));
        is_it && is_told
    });
    assert!(named, "{seen:#?}");
}

/// The recordings stay where the tests' variable names a folder: fixtures are made so.
fn keep(recording: &Recording, name: &str) {
    #[allow(clippy::disallowed_methods)]
    if let Some(folder) = std::env::var_os("CIPHERLANE_KEEP_RECORDINGS") {
        let file = Path::new(&folder).join(format!("{name}.json"));
        std::fs::write(file, recording.to_bytes()).unwrap();
    }
}
