use std::fs::{self, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, chown, symlink};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::*;

/// The user and the group that own nothing.
const NOBODY: u32 = 65534;

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Who abandons all temporary names takes those of tests beside it, too.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// Whether foreign files can be made here; says loudly where not.
fn is_root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        eprintln!("NOT TESTED: other users' files can be made by root only; run the tests as root");
    }
    root
}

#[test]
fn a_file_appears_whole_or_not_at_all() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("out");
    for round in 0..4 {
        let named = round % 2 == 1;
        let create = || {
            let place = Place::find(&path, true).unwrap();
            match named {
                true => Target::create_named(place).unwrap(),
                false => Target::create(place).unwrap(),
            }
        };
        let before = names(dir.path());
        let target = create();
        target.reserve(1 << 20).unwrap();
        target.file().write_all(b"half").unwrap();
        drop(target);
        assert_eq!(names(dir.path()), before);
        let target = create();
        target.reserve(1 << 20).unwrap();
        write!(target.file(), "new {round}").unwrap();
        assert_eq!(names(dir.path()).len(), before.len() + usize::from(named));
        target.commit(5).unwrap();
        drop(target);
        assert_eq!(text(&path), format!("new {round}"));
        assert_eq!(names(dir.path()), ["out"]);
    }
    let place = Place::find(&path, true).unwrap();
    let abandoned = Target::create_named(place).unwrap();
    assert_eq!(names(dir.path()).len(), 2);
    abandon();
    assert_eq!(names(dir.path()), ["out"]);
    drop(abandoned);
}

#[test]
fn what_is_synced_is_whole_and_of_the_owner() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    create_private(&path("new"), b"first").unwrap();
    assert_eq!(fs::metadata(path("new")).unwrap().mode() & 0o777, 0o600);
    symlink("elsewhere", path("dangling")).unwrap();
    symlink("new", path("link")).unwrap();
    for taken in ["new", "dangling", "link"] {
        let error = create_private(&path(taken), b"second").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists, "{taken}");
    }
    assert!(!path("elsewhere").exists());
    assert!(create_private(Path::new("/dev/full/x"), b"x").is_err());
    write_synced(&path("link"), b"second").unwrap();
    assert_eq!(text(&path("new")), "second");
    assert!(path("link").is_symlink());
    assert_eq!(fs::metadata(path("new")).unwrap().mode() & 0o777, 0o600);
    assert!(write_synced(Path::new("/dev/null"), b"x").is_err());
    assert_eq!(names(dir.path()), ["dangling", "link", "new"]);
}

#[test]
fn owner_and_permissions_stay() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("out");
    fs::write(&path, "old").unwrap();
    set_mode(&path, 0o640);
    if is_root() {
        chown(&path, Some(NOBODY), Some(NOBODY)).unwrap();
    }
    let before = fs::metadata(&path).unwrap();
    write(&path, b"new").unwrap();
    let after = fs::metadata(&path).unwrap();
    assert_eq!(text(&path), "new");
    assert_eq!(after.mode(), before.mode());
    assert_eq!((after.uid(), after.gid()), (before.uid(), before.gid()));
}

#[test]
fn links_stay_links_and_create_what_they_name() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    fs::create_dir(path("sub")).unwrap();
    fs::write(path("real"), "old").unwrap();
    symlink(path("real"), path("link")).unwrap();
    symlink("../link", path("sub/far")).unwrap();
    symlink("sub/absent", path("dangling")).unwrap();
    symlink("sub", path("dir")).unwrap();
    symlink("circle", path("circle")).unwrap();
    write(&path("sub/far"), b"new").unwrap();
    assert_eq!(text(&path("real")), "new");
    write(&path("dangling"), b"made").unwrap();
    assert_eq!(text(&path("sub/absent")), "made");
    write(&path("dir/../dir/./inside"), b"in").unwrap();
    assert_eq!(text(&path("sub/inside")), "in");
    for link in ["link", "sub/far", "dangling", "dir"] {
        assert!(
            fs::symlink_metadata(path(link)).unwrap().is_symlink(),
            "{link}"
        );
    }
    for bad in [
        "dir", "sub/", "absent/", "real/x", "real/", "circle", "none/x", "dir/..",
    ] {
        let error = write(&path(bad), b"x").unwrap_err();
        assert!(check(&path(bad)).is_err(), "{bad}: {error}");
    }
    assert!(write(Path::new(""), b"x").is_err());
    assert!(write(Path::new("/"), b"x").is_err());
    assert_eq!(text(&path("real")), "new");
}

#[test]
fn what_is_no_regular_file_is_written_through() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    // A pipe.
    let mode = Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(
        rustix::fs::CWD,
        path("pipe"),
        rustix::fs::FileType::Fifo,
        mode,
        0,
    )
    .unwrap();
    let reader = std::thread::spawn({
        let pipe = path("pipe");
        move || fs::read(pipe).unwrap()
    });
    write(&path("pipe"), b"through").unwrap();
    assert_eq!(reader.join().unwrap(), b"through");
    assert!(
        fs::symlink_metadata(path("pipe"))
            .unwrap()
            .file_type()
            .is_fifo()
    );
    // A device, also by a link.
    symlink("/dev/null", path("null")).unwrap();
    write(&path("null"), b"gone").unwrap();
    assert!(
        fs::metadata("/dev/null")
            .unwrap()
            .file_type()
            .is_char_device()
    );
    let error = write(Path::new("/dev/full"), b"x").unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    // An open file, by its number: added to, where others have it open as well.
    fs::write(path("log"), "begun ").unwrap();
    let log = File::options().append(true).open(path("log")).unwrap();
    let number = std::os::fd::AsRawFd::as_raw_fd(&log);
    write(Path::new(&format!("/proc/self/fd/{number}")), b"more").unwrap();
    write(Path::new(&format!("/dev/fd/{number}")), b" and more").unwrap();
    assert_eq!(text(&path("log")), "begun more and more");
}

/// A directory like /tmp, that belongs to `owner`.
fn shared(dir: &Path, owner: u32) -> PathBuf {
    let path = dir.join(format!("shared-by-{owner}"));
    fs::create_dir(&path).unwrap();
    chown(&path, Some(owner), None).unwrap();
    set_mode(&path, 0o1777);
    path
}

#[test]
fn others_links_and_files_in_shared_directories_are_not_used() {
    if !is_root() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let victim = dir.path().join("victim");
    fs::write(&victim, "precious").unwrap();
    let shared_dir = shared(dir.path(), 0);
    let foreign = |name: &str, to: &Path| {
        let link = shared_dir.join(name);
        symlink(to, &link).unwrap();
        std::os::unix::fs::lchown(&link, Some(NOBODY), Some(NOBODY)).unwrap();
        link
    };
    let refused = |path: &Path| {
        let error = write(path, b"x").unwrap_err();
        assert!(error.to_string().contains("user 65534"), "{error}");
        assert!(check(path).is_err());
        assert!(append(path).is_err());
    };
    refused(&foreign("to-file", &victim));
    refused(&foreign("to-nothing", &dir.path().join("made")));
    // In the middle of a path too, where the kernel's own rule does not look.
    refused(&foreign("to-dir", dir.path()).join("victim"));
    refused(&foreign("to-dir-2", dir.path()).join("made"));
    // At the end of a chain that begins with a link of one's own.
    let own = dir.path().join("own");
    symlink(shared_dir.join("to-file"), &own).unwrap();
    refused(&own);
    let planted = shared_dir.join("planted");
    fs::write(&planted, "planted").unwrap();
    chown(&planted, Some(NOBODY), None).unwrap();
    refused(&planted);
    let pipe = shared_dir.join("pipe");
    let (kind, mode) = (rustix::fs::FileType::Fifo, Mode::from_raw_mode(0o666));
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, kind, mode, 0).unwrap();
    chown(&pipe, Some(NOBODY), None).unwrap();
    refused(&pipe);
    assert_eq!(text(&victim), "precious");
    assert_eq!(text(&planted), "planted");
    assert!(!dir.path().join("made").exists());

    // One's own links and files, and those of the directory's owner, are used.
    let own = shared_dir.join("own");
    symlink(&victim, &own).unwrap();
    write(&own, b"wanted").unwrap();
    assert_eq!(text(&victim), "wanted");
    let theirs = shared(dir.path(), NOBODY);
    let file = theirs.join("file");
    fs::write(&file, "old").unwrap();
    chown(&file, Some(NOBODY), None).unwrap();
    write(&file, b"new").unwrap();
    assert_eq!(text(&file), "new");
    // So are all of them where the directory is not shared.
    set_mode(&shared_dir, 0o755);
    write(&shared_dir.join("to-file"), b"all right").unwrap();
    assert_eq!(text(&victim), "all right");
}

#[test]
fn what_took_the_name_meanwhile_is_not_replaced_unless_it_is_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("out");
    let begin = || match Destination::open(&path).unwrap() {
        Destination::Regular(target) => target,
        Destination::Stream(_) => panic!("it is a stream"),
    };
    let target = begin();
    target.file().write_all(b"new").unwrap();
    symlink("elsewhere", &path).unwrap();
    assert!(target.commit(3).is_err());
    assert!(fs::symlink_metadata(&path).unwrap().is_symlink());
    fs::remove_file(&path).unwrap();
    let target = begin();
    target.file().write_all(b"new").unwrap();
    fs::create_dir(&path).unwrap();
    assert!(target.commit(3).is_err());
    fs::remove_dir(&path).unwrap();
    assert!(names(dir.path()).is_empty());
    // A file that somebody else has made in the same moment is as if it had been there.
    let target = begin();
    target.file().write_all(b"new").unwrap();
    fs::write(&path, "other").unwrap();
    target.commit(3).unwrap();
    assert_eq!(text(&path), "new");
}

#[test]
fn temporary_names_cannot_be_foretold() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("out");
    let make = || Target::create_named(Place::find(&path, true).unwrap()).unwrap();
    let targets = [make(), make(), make()];
    let names = names(dir.path());
    assert_eq!(names.len(), targets.len());
    let process = std::process::id().to_string();
    for name in names {
        let random = name.strip_prefix(".cipherlane-").unwrap();
        assert!(
            random.len() == 32 && !random.starts_with(&process),
            "{name}"
        );
        assert!(
            u128::from_str_radix(random, 16).unwrap() >> 64 != 0,
            "{name}"
        );
    }
}

#[test]
fn appending_takes_regular_files_only() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    for line in ["one\n", "two\n"] {
        append(&path("log"))
            .unwrap()
            .write_all(line.as_bytes())
            .unwrap();
    }
    assert_eq!(text(&path("log")), "one\ntwo\n");
    symlink(path("log"), path("link")).unwrap();
    for bad in ["link", ".", "none/log"] {
        assert!(append(&path(bad)).is_err(), "{bad}");
    }
    assert!(append(Path::new("/dev/null")).is_err());
    assert_eq!(text(&path("log")), "one\ntwo\n");
}

#[test]
fn what_is_set_aside_overwrites_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("p.json");
    for (round, expected) in ["p.damaged", "p.damaged.2", "p.damaged.3"]
        .iter()
        .enumerate()
    {
        fs::write(&path, round.to_string()).unwrap();
        assert_eq!(
            set_aside(&path, "damaged").unwrap(),
            dir.path().join(expected)
        );
    }
    for (round, name) in names(dir.path()).iter().enumerate() {
        assert_eq!(text(&dir.path().join(name)), round.to_string());
    }
    assert!(set_aside(&path, "damaged").is_err());
    assert!(set_aside(dir.path(), "damaged").is_err());
    assert!(set_aside(Path::new("/dev/null"), "damaged").is_err());
}

#[test]
fn names_need_not_be_text() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(std::ffi::OsStr::from_bytes(b"\xff\n"));
    write(&path, b"x").unwrap();
    assert_eq!(text(&path), "x");
}
