//! Debian's Node.js, which is linked to the system's libcrypto: both ends of TLS. Others bring an
//! OpenSSL of their own.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::certificate::certify;
use crate::ends::{Ends, Work, data, soak, write};
use crate::place::{Place, skip, succeeded};
use crate::running::{Running, free_port, wait_until};

const DATA: usize = (3 << 20) + 77;

/// Where Debian's Node.js is to be had.
enum Node {
    Installed,
    /// Unpacked into a directory, with what it needs.
    Unpacked(PathBuf),
}

impl Node {
    fn find() -> Result<Node, String> {
        let installed = Path::new("/usr/lib/x86_64-linux-gnu/libnode.so.108");
        if installed.exists() && Path::new("/usr/bin/node").exists() {
            return Ok(Node::Installed);
        }
        if !soak() {
            return Err("Debian's nodejs is not installed; make soak unpacks it".to_owned());
        }
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("node");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/unpack");
        let mut unpack = Command::new(script);
        unpack
            .arg(&folder)
            .args(["nodejs=18.*", "libnode108", "node-acorn"]);
        unpack.args([
            "node-cjs-module-lexer",
            "node-undici",
            "libc-ares2",
            "libuv1",
            "libicu72",
        ]);
        match unpack.output() {
            Ok(output) if output.status.success() => Ok(Node::Unpacked(folder)),
            Ok(output) => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Runs `tls.js` by a command that has no arguments yet.
    fn run(&self, command: impl Fn(&str) -> Command) -> Command {
        let mut node = match self {
            Node::Installed => command("/usr/bin/node"),
            Node::Unpacked(folder) => {
                // It has parts of itself under /usr/share, and nowhere else.
                let script = "mount -t overlay overlay -o \"lowerdir=$0/usr/share:/usr/share\" \
                              /usr/share && exec \"$0/usr/bin/node\" \"$@\"";
                let mut unshare = command("unshare");
                unshare.args(["--map-root-user", "--mount", "sh", "-c", script]);
                unshare.arg(folder);
                unshare.env("LD_LIBRARY_PATH", folder.join("usr/lib/x86_64-linux-gnu"));
                unshare
            }
        };
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/node/tls.js");
        // Without it, Node.js reads a section of its own, nodejs_conf.
        node.arg("--openssl-shared-config").arg(script);
        node
    }
}

#[test]
fn node_carries_data_both_ways() {
    let node = match Node::find() {
        Ok(node) => node,
        Err(reason) => {
            skip("Node.js", &reason);
            return;
        }
    };
    let place = Place::new();
    certify(&place);
    write(&place, "data", &data(DATA, 13));
    for ends in Ends::each(&place) {
        let port = free_port();
        let number = port.to_string();
        let mut server = node.run(|program| ends.server(program));
        server.args(["server", "rsa.pem", "rsa.key", &number]);
        let mut server = Running::start(&mut server);
        wait_until("Node.js", || {
            assert!(!server.ended(), "{ends}: Node.js ended");
            std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
        let mut client = node.run(|program| ends.client(program));
        succeeded(client.args(["client", "rsa.pem", &number, "data"]));
        server.end(libc::SIGTERM);
        let work = Work {
            cipher: "AES-256-GCM",
            client: 2 * DATA,
            server: 2 * DATA,
        };
        ends.prove("Node.js", &[work]);
    }
}
