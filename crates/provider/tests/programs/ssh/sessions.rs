//! What a person does: a terminal, hours of work with new keys, many sessions at once.

use std::fs;
use std::process::Stdio;
use std::thread;

use crate::ends::{Ends, Work, data};
use crate::place::{Place, skip, succeeded};
use crate::running::{Running, root, wait_until};

use super::{Sshd, absent, client, through};

const DATA: usize = 6 << 20;

/// Whether a server can give its user a terminal, whose group must be tty.
fn has_terminals() -> bool {
    let mounts = fs::read_to_string("/proc/mounts").unwrap();
    let mut mounts = mounts.lines();
    root() || mounts.any(|mount| mount.contains(" devpts ") && mount.contains("gid=5"))
}

#[test]
fn a_terminal_at_both_ends() {
    let test = "OpenSSH, a terminal";
    if absent(test) {
        return;
    }
    if !has_terminals() {
        skip(test, "/dev/pts is mounted without gid=5; run this as root");
        return;
    }
    let place = Place::new();
    for ends in Ends::each(&place) {
        let sshd = Sshd::start(&ends, "");
        let ssh = format!(
            "ssh -F {}/ssh_config -c aes256-gcm@openssh.com -e none -tt here 'exec sh'",
            place.path().display()
        );
        // It runs a program at a terminal of its own, and is the person before it.
        let mut script = ends.client("script");
        script
            .args(["--quiet", "--return", "--command", &ssh, "typed"])
            .env("TERM", "dumb");
        let typed = b"stty -echo -onlcr; tty; seq 20000\nexit\n";
        let seen = String::from_utf8(through(script, typed)).unwrap();
        let numbers: String = (1..=20000).map(|number| format!("{number}\n")).collect();
        assert!(
            seen.contains("/dev/pts/") && seen.contains(&numbers),
            "{ends}: {seen}"
        );
        sshd.end();
        let work = Work {
            cipher: "AES-256-GCM",
            client: numbers.len(),
            server: numbers.len(),
        };
        ends.prove("a terminal", &[work]);
    }
}

#[test]
fn keys_change_on_the_way() {
    if absent("OpenSSH, RekeyLimit") {
        return;
    }
    let place = Place::new();
    let data = data(DATA, 3);
    for ends in Ends::each(&place) {
        for (side, cipher, provided) in [
            ("client", "aes128-gcm@openssh.com", "AES-128-GCM"),
            ("client", "aes128-cbc", "AES-128-CBC"),
            ("server", "aes192-ctr", "AES-192-CTR"),
        ] {
            let (option, setting) = match side {
                "client" => ("RekeyLimit=512K", ""),
                _ => ("RekeyLimit=default", "RekeyLimit 512K\n"),
            };
            let sshd = Sshd::start(&ends, setting);
            let log = place.path().join("log");
            let _ = fs::remove_file(&log);
            let mut ssh = client(&ends, "ssh");
            ssh.args(["-v", "-E"]).arg(&log);
            ssh.args(["-o", option, "-o", "LogLevel=DEBUG1", "-c", cipher]);
            ssh.args(["-o", "KexAlgorithms=curve25519-sha256", "here", "cat"]);
            let what = format!("{side}'s RekeyLimit, {cipher}");
            assert!(through(ssh, &data) == data, "{ends}: {what}");
            let log = fs::read_to_string(&log).unwrap();
            let changes = log.matches("SSH2_MSG_NEWKEYS received").count();
            assert!(changes > 5, "{ends}: {what}: {changes} keys: {log}");
            sshd.end();
            let work = Work {
                cipher: provided,
                client: 2 * DATA,
                server: 2 * DATA,
            };
            ends.prove(&what, &[work]);
        }
    }
}

#[test]
fn many_sessions_share_a_connection() {
    if absent("OpenSSH, ControlMaster") {
        return;
    }
    let place = Place::new();
    let socket = place.path().join("master");
    let sessions = 6;
    for ends in Ends::each(&place) {
        let sshd = Sshd::start(&ends, "");
        let mut ssh = client(&ends, "ssh");
        ssh.args(["-c", "aes128-gcm@openssh.com", "-M", "-N", "-S"]);
        ssh.arg(&socket).arg("here").stdin(Stdio::null());
        let mut master = Running::start(&mut ssh);
        wait_until("the master", || {
            assert!(!master.ended());
            socket.exists()
        });
        let share = || {
            let mut ssh = client(&ends, "ssh");
            ssh.arg("-S").arg(&socket);
            ssh
        };
        thread::scope(|scope| {
            for seed in 0..sessions {
                let mut ssh = share();
                ssh.args(["here", "cat"]);
                scope.spawn(move || {
                    let data = data(DATA / 2, seed as u64);
                    assert!(through(ssh, &data) == data, "session {seed}");
                });
            }
        });
        let mut ssh = share();
        succeeded(ssh.args(["-O", "exit", "here"]));
        wait_until("the master's end", || master.ended());
        sshd.end();
        let bytes = 2 * sessions * (DATA / 2);
        let work = Work {
            cipher: "AES-128-GCM",
            client: bytes,
            server: bytes,
        };
        ends.prove("ControlMaster", &[work]);
    }
}
