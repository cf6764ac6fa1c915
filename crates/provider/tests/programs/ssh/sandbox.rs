//! The server's processes: the sandboxed child that speaks before the log-in, and the child
//! that an ordinary user's session has.

use std::fs;
use std::io::Write;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::ends::{Ends, Work, data, write};
use crate::place::{Place, Used, empty, skip, succeeded, told};
use crate::running::{root, wait_until};

use super::{Sshd, absent, client, through};

/// The processes whose parent is another, and theirs.
fn descendants(process: u32) -> Vec<u32> {
    let list = format!("/proc/{process}/task/{process}/children");
    let list = fs::read_to_string(list).unwrap_or_default();
    let children = list.split_whitespace().map(|child| child.parse().unwrap());
    children
        .flat_map(|child| [vec![child], descendants(child)].concat())
        .collect()
}

/// Whether a filter of system calls holds a process, and whether the provider is in its memory.
fn filtered_with_provider(process: u32) -> bool {
    let read = |file| fs::read_to_string(format!("/proc/{process}/{file}")).unwrap_or_default();
    read("status").contains("Seccomp:\t2") && read("maps").contains("libcipherlane_provider.so")
}

#[test]
fn the_sandboxed_child_has_the_provider() {
    if absent("OpenSSH, the sandboxed child") {
        return;
    }
    let place = Place::new();
    for ends in Ends::each(&place)
        .iter()
        .filter(|ends| ends.server_has_provider())
    {
        empty(&ends.counters("server"));
        let sshd = Sshd::start(ends, "");
        // A caller who says no more than a name is left to the sandboxed child.
        let mut silent = TcpStream::connect(("127.0.0.1", sshd.port)).unwrap();
        silent.write_all(b"SSH-2.0-silent\r\n").unwrap();
        wait_until("a process in the sandbox", || {
            descendants(sshd.server.process())
                .into_iter()
                .any(filtered_with_provider)
        });
        drop(silent);
        for (cipher, provided) in [
            ("aes128-ctr", "AES-128-CTR"),
            ("aes256-gcm@openssh.com", "AES-256-GCM"),
            ("aes128-cbc", "AES-128-CBC"),
        ] {
            let mut ssh = client(ends, "ssh");
            ssh.args(["-c", cipher, "here", "cat"]);
            assert_eq!(through(ssh, b"data"), b"data");
            // The child encrypts the log-in, and another process what follows.
            wait_until("the counters of two processes", || {
                let worked = told(&ends.counters("server"));
                let with = |used: &&Used| used.get(provided) > Some(&100);
                worked.values().filter(with).count() == 2
            });
        }
        let said = sshd.end();
        assert!(!said.contains("terminated by signal"), "{said}");
    }
}

#[test]
fn an_ordinary_users_session_goes_on_in_a_third_process() {
    let test = "OpenSSH, a session of an ordinary user";
    if absent(test) {
        return;
    }
    if !root() {
        skip(test, "another user's session needs root");
        return;
    }
    let place = Place::new();
    let data = data(5 << 20, 5);
    write(&place, "data", &data);
    // The user may write nowhere in the place but there.
    let folder = place.path().join("nobodys");
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
    for ends in Ends::each(&place) {
        // Users without a shell have internal-sftp, which runs in the session's process.
        let sshd = Sshd::start(&ends, "ForceCommand internal-sftp\n");
        let [there, back] = ["nobodys/there", "back"].map(|name| place.path().join(name));
        let carried = |file: &Path| fs::read(file).unwrap() == data;
        let batch = format!(
            "put {}/data {there}\nget {there} {back}\nrm {there}\n",
            place.path().display(),
            there = there.display(),
            back = back.display()
        );
        let batch = write(&place, "batch", batch.as_bytes());
        let mut sftp = client(&ends, "sftp");
        sftp.args(["-q", "-o", "User=nobody", "-c", "aes256-gcm@openssh.com"]);
        succeeded(sftp.arg("-b").arg(batch).arg("here"));
        assert!(carried(&back), "{ends}");
        sshd.end();
        let work = Work {
            cipher: "AES-256-GCM",
            client: 2 * data.len(),
            server: 2 * data.len(),
        };
        ends.prove(test, &[work]);
    }
}
