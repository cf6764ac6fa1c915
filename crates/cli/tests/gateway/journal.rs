//! Messages of a service have their level before them, as journald takes it.

use rustix::process::Signal;

use crate::rig::{Host, rig};

#[test]
fn journald_is_told_the_level() {
    let Some(mut rig) = rig() else {
        return;
    };
    rig.configure(&[]);
    // As a service manager says that standard error is the journal.
    rig.start_by(
        Host::A,
        "export JOURNAL_STREAM=$(stat -L -c %d:%i /dev/stderr)",
    );
    rig.ip(Host::A, "link del cipherlane0");
    rig.wait_for_words(Host::A, "is back");
    assert!(rig.end(Host::A, Signal::TERM));
    let log = rig.log(Host::A);
    let line = |words: &str| log.lines().find(|line| line.contains(words)).unwrap();
    assert!(line("running").starts_with("<6>running"), "{log}");
    assert!(
        line("making it again").starts_with("<3>the TUN device"),
        "{log}"
    );
    // Another standard error is none, whatever the variable says.
    rig.start_by(Host::A, "export JOURNAL_STREAM=1:2");
    assert!(rig.end(Host::A, Signal::TERM));
    let last = rig.log(Host::A).replacen(&log, "", 1);
    assert!(!last.contains('<') && last.contains("running"), "{last}");
}
