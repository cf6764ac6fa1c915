//! nginx with two workers on the loopback.

use std::fs;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use crate::certificate::certify;
use crate::place::{From, Place};
use crate::running::{Running, free_port, wait_until};

pub(crate) const NGINX: &str = "/usr/sbin/nginx";

/// A server of the files that lie in `files` of its place. The master loads the provider, and
/// its workers, which are forks of it and have given up root's rights, encrypt by it.
pub(crate) struct Nginx {
    master: Running,
    port: u16,
}

impl Nginx {
    /// With this many workers, and the names of suites for TLS 1.2 and 1.3.
    pub(crate) fn start(place: &Place, from: From, workers: u32, suites: [&str; 2]) -> Nginx {
        Nginx::start_by(place, place.command(NGINX, from), workers, suites)
    }

    /// By a command of the place without arguments.
    pub(crate) fn start_by(
        place: &Place,
        mut command: Command,
        workers: u32,
        suites: [&str; 2],
    ) -> Nginx {
        certify(place);
        fs::create_dir_all(place.path().join("files")).unwrap();
        let port = free_port();
        let [suites_2, suites_3] = suites;
        let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|name| format!("  {name}_temp_path temporary;\n"))
            .concat();
        let configuration = format!(
            "daemon off;\nworker_processes {workers};\npid nginx.pid;\nerror_log nginx.log;\n\
             events {{}}\n\
             http {{\n\
             {temporary}  access_log off;\n  keepalive_requests 1000000;\n\
             \x20 server {{\n\
             \x20   listen 127.0.0.1:{port} ssl reuseport;\n\
             \x20   ssl_certificate rsa.pem;\n    ssl_certificate_key rsa.key;\n\
             \x20   ssl_protocols TLSv1.2 TLSv1.3;\n    ssl_ciphers {suites_2};\n\
             \x20   ssl_conf_command Ciphersuites {suites_3};\n\
             \x20   add_header X-Worker $pid;\n    root files;\n  }}\n}}\n"
        );
        fs::write(place.path().join("nginx.conf"), configuration).unwrap();
        let master = Running::start(
            command
                .arg("-p")
                .arg(place.path())
                .args(["-e", "nginx.log", "-c", "nginx.conf"])
                .stdin(Stdio::null()),
        );
        let mut nginx = Nginx { master, port };
        wait_until("nginx", || {
            let log = || fs::read_to_string(place.path().join("nginx.log"));
            assert!(!nginx.master.ended(), "nginx ended: {:?}", log());
            TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
        nginx
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// The process of the master.
    pub(crate) fn master(&self) -> u32 {
        self.master.process()
    }

    /// Ends it once its workers have answered what they were asked.
    pub(crate) fn end(self) {
        self.master.end(libc::SIGQUIT);
    }
}

/// Puts a file where servers of the place find it.
pub(crate) fn publish(place: &Place, name: &str, data: &[u8]) {
    let folder = place.path().join("files");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(name), data).unwrap();
    for (path, mode) in [(folder.clone(), 0o755), (folder.join(name), 0o644)] {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
}
