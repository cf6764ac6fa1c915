//! What the command writes: nothing of the user's is lost, and nobody else says where it goes.

use std::io::Write;
use std::os::unix::fs::{FileTypeExt, PermissionsExt, chown, lchown, symlink};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};
use rustix::process::{Pid, Signal, kill_process};

use crate::place::{HEX, IV, Place, data, refused, run};

/// The user and the group that own nothing.
const NOBODY: u32 = 65534;

fn is_root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        eprintln!("NOT TESTED: devices and other users' files need root; run the tests as root");
    }
    root
}

fn enc(place: &Place, out: &Path) -> Command {
    let line = format!("enc -aes-128-ctr -K {} -iv {IV} -in in -out", &HEX[..32]);
    let mut command = place.cipherlane(&line);
    command.arg(out);
    command
}

fn calibrate(place: &Place, profile: &str) -> Command {
    place.cipherlane(&format!(
        "--costs {profile} calibrate ecb(aes) --seconds 0.02"
    ))
}

/// A directory like /tmp.
fn shared(place: &Place) -> PathBuf {
    let path = place.path("shared");
    std::fs::create_dir(&path).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o1777)).unwrap();
    path
}

/// The null device, under a name of this test.
fn null(place: &Place) -> PathBuf {
    let path = place.path("null");
    let mode = Mode::from_raw_mode(0o666);
    mknodat(CWD, &path, FileType::CharacterDevice, mode, makedev(1, 3)).unwrap();
    path
}

#[test]
fn others_links_in_shared_directories_are_not_followed() {
    if !is_root() {
        return;
    }
    let place = Place::new();
    place.write("in", data(1000));
    let victim = place.write("victim", "precious");
    let shared = shared(&place);
    for (name, to) in [("link", victim.clone()), ("new", place.path("made"))] {
        symlink(&to, shared.join(name)).unwrap();
        lchown(shared.join(name), Some(NOBODY), Some(NOBODY)).unwrap();
        let words = [name, "user 65534", "remove it"];
        refused(&mut enc(&place, &shared.join(name)), 1, &words);
        let mut pcap = place.cipherlane("esp-perf --write-pcap");
        refused(pcap.arg(shared.join(name)), 1, &words);
        let mut html = place.cipherlane("speed ctr(aes) --html");
        refused(html.arg(shared.join(name)), 1, &words);
    }
    let profile = shared.join("link").display().to_string();
    let output = calibrate(&place, &profile).output().unwrap();
    assert!(!output.status.success());
    assert_eq!(std::fs::read(&victim).unwrap(), b"precious");
    assert!(!place.path("made").exists());
    assert!(
        std::fs::symlink_metadata(shared.join("link"))
            .unwrap()
            .is_symlink()
    );
    // A file that somebody else has laid there.
    let planted = shared.join("planted");
    std::fs::write(&planted, "planted").unwrap();
    chown(&planted, Some(NOBODY), Some(NOBODY)).unwrap();
    refused(&mut enc(&place, &planted), 1, &["planted", "user 65534"]);
    // One's own link is followed.
    symlink(&victim, shared.join("own")).unwrap();
    run(&mut enc(&place, &shared.join("own")), 0);
    assert_eq!(std::fs::read(&victim).unwrap().len(), 1000);
}

#[test]
fn a_device_stays_a_device() {
    if !is_root() {
        return;
    }
    let place = Place::new();
    place.write("in", data(1000));
    let null = null(&place);
    run(&mut enc(&place, &null), 0);
    let options = "--threads 1 --multipacket 1 --size 64 --seconds 0.01 --transform gcm-128";
    let line = format!("esp-perf {options} --write-pcap null");
    run(&mut place.cipherlane(&line), 0);
    run(&mut calibrate(&place, "null"), 0);
    run(&mut place.cipherlane("--costs null why ecb(aes) 64"), 0);
    assert!(
        std::fs::metadata(&null)
            .unwrap()
            .file_type()
            .is_char_device()
    );
    assert_eq!(place.names(), ["in", "null"]);
}

#[test]
fn a_profile_takes_the_place_of_nothing_else() {
    let place = Place::new();
    std::fs::create_dir(place.path("dir")).unwrap();
    refused(&mut calibrate(&place, "dir"), 2, &["dir", "directory"]);
    assert!(place.path("dir").is_dir());
    for (name, text) in [
        ("mine.json", "{\"mine\": 1}"),
        ("cut.json", "{\"mine\": "),
        ("list.json", "[1, 2]"),
        ("other.json", "{\"format\": 1, \"mine\": true}"),
        ("notes.txt", "not to be lost"),
    ] {
        place.write(name, text);
        let output = calibrate(&place, name).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        if name == "other.json" {
            // It begins like a profile, and is kept beside the new one.
            assert!(
                output.status.success() && said.contains("other.damaged"),
                "{said}"
            );
            assert_eq!(
                std::fs::read_to_string(place.path("other.damaged")).unwrap(),
                text
            );
            continue;
        }
        assert_eq!(output.status.code(), Some(2), "{name}: {said}");
        assert!(
            said.contains(name) && said.contains("not a profile"),
            "{said}"
        );
        assert_eq!(std::fs::read_to_string(place.path(name)).unwrap(), text);
    }
    // What was set aside before is not overwritten.
    place.write("p.damaged", "kept since long ago");
    place.write("p.json", "{\"format\": 1, \"proc");
    run(&mut calibrate(&place, "p.json"), 0);
    let kept = std::fs::read_to_string(place.path("p.damaged")).unwrap();
    assert_eq!(kept, "kept since long ago");
    assert!(place.path("p.damaged.2").exists());
}

#[test]
fn a_dangling_link_creates_what_it_names() {
    let place = Place::new();
    place.write("in", data(1000));
    std::fs::create_dir(place.path("dir")).unwrap();
    symlink("dir/made", place.path("link")).unwrap();
    run(&mut enc(&place, Path::new("link")), 0);
    assert_eq!(std::fs::read(place.path("dir/made")).unwrap().len(), 1000);
    assert!(
        std::fs::symlink_metadata(place.path("link"))
            .unwrap()
            .is_symlink()
    );
}

/// Where files cannot be without a name (here since there is no /proc), the temporary name cannot
/// be foretold, and a signal removes it.
#[test]
fn a_signal_removes_the_temporary_name() {
    if !is_root() {
        return;
    }
    let place = Place::new();
    place.write("out", "old");
    let program = env!("CARGO_BIN_EXE_cipherlane");
    let line = format!("enc -aes-128-ctr -K {} -iv {IV} -out out", &HEX[..32]);
    let script = format!("umount -l /proc && exec env --default-signal {program} {line}");
    let mut child = place
        .command("unshare")
        .args(["--mount", "sh", "-c", &script])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    // Larger than a pipe: when it is written, the command is at work and wants more.
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(&data(8 << 20)).unwrap();
    let names = place.names();
    assert_eq!(names.len(), 2, "{names:?}");
    assert!(
        names[0].starts_with(".cipherlane-") && names[0].len() > 40,
        "{names:?}"
    );
    assert!(!names[0].contains(&child.id().to_string()), "{names:?}");
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let status = child.wait().unwrap();
    assert_eq!(status.signal(), Some(Signal::TERM.as_raw()));
    assert_eq!(place.names(), ["out"]);
    assert_eq!(std::fs::read(place.path("out")).unwrap(), b"old");
}
