//! Large files by scp, sftp, rsync, and curl.

use std::fs;
use std::process::Command;

use crate::ends::{Ends, Work, data, lacks, soak, write};
use crate::place::{Place, succeeded};

use super::{Sshd, absent, client};

const LARGE: usize = 100 << 20;

/// Of programs that ask OpenSSH for what others have asked for already.
const MIDDLE: usize = (10 << 20) + 77;

/// Carries a file to the server's end and another one back with a cipher of OpenSSH.
type Carry = fn(&Ends, cipher: &str) -> Vec<Command>;

fn sftp(ends: &Ends, cipher: &str) -> Vec<Command> {
    let folder = ends.place.path().display();
    let batch = format!("put {folder}/data {folder}/there\nget {folder}/there {folder}/back\n");
    let batch = write(ends.place, "batch", batch.as_bytes());
    let mut sftp = client(ends, "sftp");
    sftp.args(["-q", "-c", cipher, "-b"]).arg(batch).arg("here");
    vec![sftp]
}

fn scp_with(ends: &Ends, options: &[&str]) -> Vec<Command> {
    let remote = format!("here:{}/there", ends.place.path().display());
    [["data", &remote], [&remote, "back"]]
        .into_iter()
        .map(|files| {
            let mut scp = client(ends, "scp");
            scp.args(options).args(files);
            scp
        })
        .collect()
}

fn scp(ends: &Ends, cipher: &str) -> Vec<Command> {
    scp_with(ends, &["-q", "-c", cipher])
}

/// By the protocol of before OpenSSH 9.
fn old_scp(ends: &Ends, cipher: &str) -> Vec<Command> {
    scp_with(ends, &["-O", "-q", "-c", cipher])
}

fn rsync(ends: &Ends, cipher: &str) -> Vec<Command> {
    let folder = ends.place.path().display();
    let shell = format!("ssh -F {folder}/ssh_config -c {cipher}");
    let remote = format!("here:{folder}/there");
    [["data", &remote], [&remote, "back"]]
        .into_iter()
        .map(|files| {
            let mut rsync = ends.client("rsync");
            rsync.args(["--whole-file", "-e", &shell]).args(files);
            rsync
        })
        .collect()
}

/// libssh2 gives libcrypto one block per call. It takes the cipher that it likes best, which is AES-128-CTR.
fn curl(ends: &Ends, _: &str) -> Vec<Command> {
    let place = ends.place;
    let settings = fs::read_to_string(place.path().join("ssh_config")).unwrap();
    let port = settings.lines().find_map(|line| line.strip_prefix("Port "));
    let remote = format!(
        "sftp://127.0.0.1:{}{}/there",
        port.unwrap(),
        place.path().display()
    );
    let user = succeeded(Command::new("id").arg("-un")).stdout;
    let user = format!("{}:", String::from_utf8(user).unwrap().trim());
    [["--upload-file", "data"], ["--output", "back"]]
        .into_iter()
        .map(|file| {
            let mut curl = ends.client("curl");
            curl.args(["--silent", "--show-error", "--insecure", "--user", &user]);
            curl.args(["--key", "user", "--pubkey", "user.pub"]);
            curl.args(file).arg(&remote);
            curl
        })
        .collect()
}

fn carry(what: &str, carry: Carry, len: usize, ciphers: &[[&str; 2]]) {
    if absent(what) {
        return;
    }
    let place = Place::new();
    let data = data(len, 7);
    write(&place, "data", &data);
    for ends in Ends::each(&place) {
        for [cipher, provided] in ciphers {
            let sshd = Sshd::start(&ends, "");
            for name in ["there", "back"] {
                let _ = fs::remove_file(place.path().join(name));
            }
            for mut command in carry(&ends, cipher) {
                succeeded(&mut command);
            }
            for name in ["there", "back"] {
                let carried = fs::read(place.path().join(name)).unwrap();
                assert!(carried == data, "{ends}: {what}: {cipher}: {name}");
            }
            sshd.end();
            let work = Work {
                cipher: provided,
                client: 2 * len,
                server: 2 * len,
            };
            ends.prove(what, &[work]);
        }
    }
}

const GCM: [&str; 2] = ["aes128-gcm@openssh.com", "AES-128-GCM"];
const CTR: [&str; 2] = ["aes256-ctr", "AES-256-CTR"];
const CBC: [&str; 2] = ["aes256-cbc", "AES-256-CBC"];

/// All of them where time is no matter.
fn some(first: [&'static str; 2]) -> Vec<[&'static str; 2]> {
    match soak() {
        true => vec![GCM, CTR, CBC],
        false => vec![first],
    }
}

#[test]
fn scp_carries_100_mib() {
    carry("scp", scp, LARGE, &some(GCM));
}

#[test]
fn sftp_carries_100_mib() {
    carry("sftp", sftp, LARGE, &some(CTR));
}

#[test]
fn scp_of_old_carries_files() {
    carry("scp -O", old_scp, MIDDLE, &some(CBC));
}

#[test]
fn curl_carries_files_by_sftp() {
    if !lacks("sftp by curl", &["/usr/lib/x86_64-linux-gnu/libssh2.so.1"]) {
        carry(
            "sftp by curl",
            curl,
            MIDDLE,
            &[["aes128-ctr", "AES-128-CTR"]],
        );
    }
}

#[test]
fn rsync_carries_files_over_ssh() {
    if !lacks("rsync over ssh", &["/usr/bin/rsync"]) {
        carry("rsync over ssh", rsync, MIDDLE, &some(GCM));
    }
}
