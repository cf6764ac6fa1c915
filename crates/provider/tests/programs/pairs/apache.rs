//! Apache httpd on the loopback, with files that can be written by WebDAV and repositories
//! that git's own CGI serves.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use crate::ends::{Ends, write};
use crate::running::{Running, free_port};

use super::start;

pub(super) struct Apache {
    server: Running,
    port: u16,
}

impl Apache {
    pub(super) fn start(ends: &Ends) -> Apache {
        let place = ends.place;
        let port = free_port();
        let folder = place.path().display();
        // Its children give up root's rights.
        for name in ["web", "locks", "repositories"] {
            let folder = place.path().join(name);
            fs::create_dir_all(&folder).unwrap();
            fs::set_permissions(folder, Permissions::from_mode(0o777)).unwrap();
        }
        let modules: String = [
            "mpm_event",
            "authz_core",
            "unixd",
            "ssl",
            "http2",
            "dav",
            "dav_fs",
            "alias",
            "env",
            "cgid",
        ]
        .iter()
        // What is built in needs no file.
        .map(|name| (name, format!("/usr/lib/apache2/modules/mod_{name}.so")))
        .filter(|(_, file)| fs::exists(file).unwrap())
        .map(|(name, file)| format!("LoadModule {name}_module {file}\n"))
        .collect();
        let settings = format!(
            "{modules}\
             ServerRoot {folder}\nServerName localhost\nListen 127.0.0.1:{port} https\n\
             PidFile {folder}/apache.pid\nErrorLog {folder}/apache.log\n\
             ScriptSock {folder}/locks/cgi\nDavLockDB {folder}/locks/dav\n\
             User nobody\nGroup nogroup\nProtocols h2 http/1.1\n\
             SSLEngine on\nSSLCertificateFile {folder}/rsa.pem\n\
             SSLCertificateKeyFile {folder}/rsa.key\n\
             DocumentRoot {folder}/web\n\
             <Directory {folder}/web>\n  Dav On\n  Require all granted\n</Directory>\n\
             SetEnv GIT_PROJECT_ROOT {folder}/repositories\nSetEnv GIT_HTTP_EXPORT_ALL\n\
             SetEnv GIT_CONFIG_COUNT 1\n\
             SetEnv GIT_CONFIG_KEY_0 safe.directory\nSetEnv GIT_CONFIG_VALUE_0 *\n\
             ScriptAlias /git/ /usr/lib/git-core/git-http-backend/\n\
             <Directory /usr/lib/git-core>\n  Require all granted\n</Directory>\n"
        );
        let settings = write(place, "apache.conf", settings.as_bytes());
        let mut apache = ends.server("/usr/sbin/apache2");
        apache.args(["-D", "FOREGROUND", "-f"]).arg(settings);
        let server = start(place, apache, port);
        Apache { server, port }
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// Ends it, once its children have ended.
    pub(super) fn end(self) {
        self.server.end(libc::SIGTERM);
    }
}
