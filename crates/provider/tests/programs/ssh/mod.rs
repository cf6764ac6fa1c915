//! OpenSSH's client and server on the loopback, with keys and settings of their own.
//!
//! | file | what is tried |
//! |---|---|
//! | `ciphers` | every cipher that `ssh -Q cipher` names, data both ways |
//! | `sessions` | a terminal, new keys by RekeyLimit, many sessions over one connection |
//! | `transfers` | scp, sftp and rsync of large files |
//! | `sandbox` | the server's processes: the sandboxed child, and the child of an ordinary user |

mod ciphers;
mod sandbox;
mod sessions;
mod transfers;

use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, PipeReader, Read, Write, pipe};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::{self, JoinHandle};

use crate::ends::{Ends, lacks};
use crate::observer;
use crate::place::{From, Place, skip, succeeded};
use crate::running::{Running, free_port, may_mount, root, wait_until};

const SSHD: &str = "/usr/sbin/sshd";

/// sshd's sandboxed child lives in /run/sshd, and who has no password may be locked out where
/// PAM is not asked: the server sees a /run and a list of passwords of its own.
const AS_ROOT: &str = "mount -t tmpfs tmpfs /run && mkdir -m 755 /run/sshd &&
    (umask 077 && sed 's/^\\([^:]*\\):![^:]*:/\\1:*:/' /etc/shadow >/run/shadow) &&
    mount --bind /run/shadow /etc/shadow && exec \"$@\"";

/// Whether a test cannot be made here, which it says.
fn absent(test: &str) -> bool {
    if lacks(test, &["/usr/bin/ssh", SSHD]) {
        return true;
    }
    let absent = root() && !may_mount();
    if absent {
        skip(test, "root may make no mount namespace here");
    }
    absent
}

/// A server, whose clients log in as the user who runs the test.
struct Sshd {
    server: Running,
    port: u16,
    said: JoinHandle<String>,
}

impl Sshd {
    /// With further lines of configuration.
    fn start(ends: &Ends, settings: &str) -> Sshd {
        let place = ends.place;
        make_keys(place);
        let port = free_port();
        let folder = place.path().display();
        let ciphers = ciphers(place).join(",");
        let configuration = format!(
            "ListenAddress 127.0.0.1:{port}\nHostKey {folder}/host\n\
             AuthorizedKeysFile {folder}/user.pub\nStrictModes no\nPermitRootLogin yes\n\
             UsePAM no\nPasswordAuthentication no\nPidFile none\nCiphers {ciphers}\n\
             MaxStartups 100\nMaxSessions 100\nSubsystem sftp internal-sftp\n{settings}"
        );
        fs::write(place.path().join("sshd_config"), configuration).unwrap();
        configure_client(place, port);
        let (said, speech) = pipe().unwrap();
        let mut command = match root() {
            true => {
                let mut unshare = ends.server("unshare");
                unshare.args(["--mount", "sh", "-c", AS_ROOT, "sh", SSHD]);
                unshare
            }
            false => ends.server(SSHD),
        };
        command
            .args(["-D", "-e", "-f"])
            .arg(place.path().join("sshd_config"))
            // The sandboxed child can open no file, and write to none that has a size.
            .env("CIPHERLANE_OPENSSL_STATS", "-")
            .env("LD_PRELOAD", observer::build(place))
            .stdin(Stdio::null())
            .stderr(speech);
        let server = Running::start(&mut command);
        // It holds the end of the pipe for writing, which must go for the pipe to end.
        drop(command);
        let counters = ends.counters("server");
        let said = thread::spawn(move || listen(said, &counters));
        let mut sshd = Sshd { server, port, said };
        wait_until("sshd", || {
            assert!(
                !sshd.server.ended() && !sshd.said.is_finished(),
                "sshd ended"
            );
            TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
        sshd
    }

    /// Ends it when its sessions have ended: what it said, besides counters.
    fn end(self) -> String {
        self.server.end(libc::SIGTERM);
        self.said.join().unwrap()
    }
}

/// Puts counters where the server's end has them, and keeps all else.
fn listen(said: PipeReader, counters: &Path) -> String {
    let mut kept = String::new();
    for line in BufReader::new(said).lines() {
        let line = line.unwrap_or_default();
        if line.starts_with("{\"process\"") {
            let mut file = OpenOptions::new().append(true).open(counters).unwrap();
            writeln!(file, "{line}").unwrap();
        } else {
            kept += &line;
            kept.push('\n');
        }
    }
    kept
}

/// Keys of the server and of the user.
fn make_keys(place: &Place) {
    for name in ["host", "user"] {
        if !place.path().join(name).exists() {
            let mut keygen = place.command("ssh-keygen", From::Default);
            succeeded(keygen.args(["-q", "-t", "ed25519", "-N", "", "-f", name]));
        }
    }
}

/// Names the server "here".
fn configure_client(place: &Place, port: u16) {
    let folder = place.path().display();
    let host = fs::read_to_string(place.path().join("host.pub")).unwrap();
    fs::write(place.path().join("known"), format!("here {host}")).unwrap();
    let settings = format!(
        "Host here\nHostName 127.0.0.1\nPort {port}\nHostKeyAlias here\n\
         UserKnownHostsFile {folder}/known\nGlobalKnownHostsFile /dev/null\n\
         IdentityFile {folder}/user\nIdentitiesOnly yes\nIdentityAgent none\n\
         BatchMode yes\nLogLevel ERROR\n"
    );
    fs::write(place.path().join("ssh_config"), settings).unwrap();
}

/// `ssh`, `scp` or `sftp` with the settings for the server "here".
fn client(ends: &Ends, program: &str) -> Command {
    let mut command = ends.client(program);
    command.arg("-F").arg(ends.place.path().join("ssh_config"));
    command
}

/// Every cipher of this OpenSSH.
fn ciphers(place: &Place) -> Vec<String> {
    let mut ssh = place.command("ssh", From::Default);
    let said = succeeded(ssh.args(["-Q", "cipher"])).stdout;
    let said = String::from_utf8(said).unwrap();
    said.lines().map(str::to_owned).collect()
}

/// Says data into a program: what it answered until its end, which must be in order.
fn through(mut command: Command, data: &[u8]) -> Vec<u8> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let said = data.to_vec();
    // A program that ends early tells why on standard error.
    let saying = thread::spawn(move || drop(stdin.write_all(&said)));
    let mut errors = child.stderr.take().unwrap();
    let erring = thread::spawn(move || {
        let mut text = String::new();
        errors.read_to_string(&mut text).map(|_| text)
    });
    let mut answer = Vec::new();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_end(&mut answer)
        .unwrap();
    saying.join().unwrap();
    let status = child.wait().unwrap();
    let errors = erring.join().unwrap();
    let said = || String::from_utf8_lossy(&answer[..answer.len().min(1000)]).into_owned();
    assert!(
        status.success(),
        "{command:?}: {status}: {errors:?}: {}",
        said()
    );
    answer
}
