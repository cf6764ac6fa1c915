//! git over HTTPS, served by git's own CGI in Apache httpd, and over ssh. Debian's git has its
//! TLS from GnuTLS: over HTTPS only the server's end can have the provider.

use std::fs;
use std::process::Command;

use crate::certificate::certify;
use crate::ends::{Ends, Work, data, lacks, write};
use crate::place::{From, Place, succeeded};

use super::apache::Apache;
use super::{CIPHER, DATA};

/// git without settings of the user or the machine.
fn git(ends: &Ends) -> Command {
    let mut git = ends.place.command("git", From::Default);
    let folder = ends.place.path();
    git.env("HOME", folder)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_SSL_CAINFO", folder.join("rsa.pem"))
        .args([
            "-c",
            "user.name=Tester",
            "-c",
            "user.email=tester@localhost",
        ])
        .args(["-c", "http.proxy=", "-c", "safe.directory=*"])
        .args(["-c", "http.postBuffer=16777216", "-c", "core.compression=0"]);
    git
}

#[test]
fn git_pushes_and_clones_over_https() {
    let needs = [
        "/usr/sbin/apache2",
        "/usr/bin/git",
        "/usr/lib/git-core/git-http-backend",
    ];
    if lacks("git over https", &needs) {
        return;
    }
    let place = Place::new();
    certify(&place);
    let data = data(DATA, 8);
    for ends in Ends::each(&place)
        .into_iter()
        .filter(Ends::server_has_provider)
    {
        for name in ["repositories/bare", "work", "clone"] {
            let _ = fs::remove_dir_all(place.path().join(name));
        }
        let apache = Apache::start(&ends);
        let bare = place.path().join("repositories/bare");
        succeeded(git(&ends).args(["init", "-q", "--bare"]).arg(&bare));
        // The server serves it, and nobody has logged in: it must be told to take a push.
        let settings = "[http]\n\treceivepack = true\n";
        fs::write(
            bare.join("config"),
            fs::read_to_string(bare.join("config")).unwrap() + settings,
        )
        .unwrap();
        let open = format!("chmod -R a+rwX {}", bare.display());
        succeeded(place.command("sh", From::Default).args(["-c", &open]));
        succeeded(git(&ends).args(["init", "-q", "-b", "main", "work"]));
        write(&place, "work/data", &data);
        let within = || {
            let mut git = git(&ends);
            git.args(["-C", "work"]);
            git
        };
        succeeded(within().args(["add", "data"]));
        succeeded(within().args(["commit", "-q", "-m", "Data"]));
        let url = format!("https://localhost:{}/git/bare", apache.port());
        succeeded(within().args(["push", "-q", &url, "main"]));
        succeeded(git(&ends).args(["clone", "-q", "-b", "main", &url, "clone"]));
        let cloned = fs::read(place.path().join("clone/data")).unwrap();
        assert!(cloned == data, "{ends}");
        apache.end();
        let work = Work {
            cipher: CIPHER,
            client: 0,
            server: 2 * DATA,
        };
        ends.prove("git over https", &[work]);
    }
}
