//! ntpsec: time by NTS, whose keys come over TLS, between two network namespaces.
//!
//! The package would take the place of another that keeps the time, so that it is unpacked and
//! not installed. In a user namespace nobody may set the clock.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::certificate::certify;
use crate::ends::{Ends, Work, write};
use crate::network::{Host, Network, RIGHT};
use crate::place::{Place, skip};
use crate::running::{Running, wait_until};

fn unpacked() -> Result<PathBuf, String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ntpsec");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/unpack");
    match Command::new(script).arg(&folder).arg("ntpsec").output() {
        Ok(output) if output.status.success() => Ok(folder),
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// Starts a daemon on a host, by a command nsenter without arguments.
fn start(
    place: &Place,
    host: &Host,
    nsenter: Command,
    name: &str,
    settings: &str,
) -> (Running, PathBuf) {
    let log = place.path().join(format!("{name}.log"));
    let _ = fs::remove_file(&log);
    let head = format!("disable ntp\nrestrict default\nlogfile {}\n", log.display());
    let settings = write(place, name, (head + settings).as_bytes());
    let ntpd = unpacked().unwrap().join("usr/sbin/ntpd");
    let mut ntpd = host.enter(nsenter, &ntpd.display().to_string());
    ntpd.arg("-n").arg("-c").arg(settings);
    ntpd.stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    (Running::start(&mut ntpd), log)
}

#[test]
fn ntpsec_gets_the_time_by_nts() {
    let test = "ntpsec";
    if let Some(reason) = unpacked().err().or_else(Network::lacks) {
        skip(test, &reason);
        return;
    }
    let place = Place::new();
    certify(&place);
    let network = Network::new(&place);
    for ends in Ends::each(&place) {
        let folder = place.path().display();
        let settings = format!(
            "tos orphan 3 orphanwait 1\nnts enable\nnts key {folder}/rsa.key\nnts cert {folder}/rsa.pem\n\
             nts cookie {folder}/cookies\n"
        );
        let (mut server, log) = start(
            &place,
            &network.right,
            ends.server("nsenter"),
            "ntp-server",
            &settings,
        );
        let said = |log: &Path| fs::read_to_string(log).unwrap_or_default();
        wait_until("ntpd", || {
            assert!(!server.ended(), "{}", said(&log));
            said(&log).contains("NTSs: Private Key OK")
        });
        let samples = place.path().join("samples");
        let _ = fs::remove_file(&samples);
        let settings = format!(
            "server {RIGHT} nts noval iburst minpoll 0\nstatsdir {folder}/\n\
             filegen peerstats file samples type none enable\n"
        );
        let (mut client, log) = start(
            &place,
            &network.left,
            ends.client("nsenter"),
            "ntp-client",
            &settings,
        );
        // Only answers whose NTS is right become samples.
        wait_until("samples of the time", || {
            assert!(!client.ended(), "{}", said(&log));
            said(&samples).matches(RIGHT).count() >= 3
        });
        client.end(libc::SIGTERM);
        server.end(libc::SIGTERM);
        // The log-in and the cookies over TLS, and SIV over CTR in each packet.
        let work = ["AES-256-GCM", "AES-128-CTR"].map(|cipher| Work {
            cipher,
            client: 100,
            server: 100,
        });
        ends.prove(test, &work);
    }
}
