//! Peers that prove who they are by certificates, or by EAP.

use std::path::{Path, PathBuf};

use super::{CHILD, gateways};
use crate::charon::{Carrier, Charon, Daemon, PLUGINS, Settings};
use crate::rig::{Host, Rig};

/// Keys and certificates of a CA and of both ends.
fn certificates(rig: &Rig) -> PathBuf {
    let place = rig.path("pki");
    std::fs::create_dir_all(&place).unwrap();
    let openssl = |arguments: &str| {
        let mut command = std::process::Command::new("openssl");
        command.args(arguments.split(' ')).current_dir(&place);
        let made = command.output().unwrap();
        assert!(made.status.success(), "openssl {arguments}: {made:?}");
    };
    let key = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes";
    openssl(&format!(
        "req -x509 {key} -keyout ca.key -out ca.pem -subj /CN=ca -days 2"
    ));
    for end in ["a", "b"] {
        openssl(&format!(
            "req {key} -keyout {end}.key -out {end}.csr -subj /CN={end}.example"
        ));
        let names = format!("subjectAltName=DNS:{end}.example\n");
        std::fs::write(place.join(format!("{end}.ext")), names).unwrap();
        openssl(&format!(
            "x509 -req -in {end}.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out {end}.pem -days 2 \
             -extfile {end}.ext"
        ));
    }
    place
}

/// Whether charon has a method of EAP; if not, that is said loudly.
fn has_plugin(method: &str) -> bool {
    let file = format!("{PLUGINS}/libstrongswan-{method}.so");
    let is_there = Path::new(&file).exists();
    if !is_there {
        let message = format!("SKIPPED, {method} is NOT tested: {file} is missing\n");
        std::io::Write::write_all(&mut std::io::stderr(), message.as_bytes()).unwrap();
    }
    is_there
}

#[test]
fn certificates_and_eap_open_a_tunnel() {
    let Some(rig) = gateways(&[Host::A, Host::B]) else {
        return;
    };
    let place = certificates(&rig);
    let file = |name: &str| place.join(name).display().to_string();
    let private = |end: &str| Some(place.join(format!("{end}.key")));
    let by_certificate = |end: &str, is_own: bool| {
        let certificate = match is_own {
            true => format!("cert {{ file = {} }}", file(&format!("{end}.pem"))),
            false => format!("cacert {{ file = {} }}", file("ca.pem")),
        };
        format!("auth = pubkey\n id = {end}.example\n {certificate}")
    };
    let secret = "eap-carol { id = carol\n secret = \"another secret\" }";
    for (method, how) in [
        (None, "with ECDSA"),
        (Some("eap-md5"), "EAP method EAP_MD5 succeeded"),
        (Some("eap-mschapv2"), "EAP method EAP_MSCHAPV2 succeeded"),
    ] {
        if method.is_some_and(|method| !has_plugin(method)) {
            continue;
        }
        let own = |end| by_certificate(end, true);
        let other = |end| by_certificate(end, false);
        let (as_a, a_for_b, secrets) = match method {
            Some(method) => {
                let by_eap = format!("auth = {method}\n id = carol\n eap_id = carol");
                (by_eap.clone(), by_eap, [secret; 2].map(str::to_owned))
            }
            None => (own("a"), other("a"), [String::new(), String::new()]),
        };
        let [of_a, of_b] = secrets;
        let settings_a = Settings {
            authentication: Some([as_a, other("b")]),
            secrets: of_a,
            key: private("a"),
            ..Settings::default()
        };
        let settings_b = Settings {
            authentication: Some([own("b"), a_for_b]),
            connection: "send_cert = always".to_owned(),
            secrets: of_b,
            key: private("b"),
            ..Settings::default()
        };
        let b = Charon::start(&rig, Host::B, Carrier::Gateway, &settings_b);
        let a = Charon::start(&rig, Host::A, Carrier::Gateway, &settings_a);
        a.swanctl(&["--initiate", CHILD[0], CHILD[1]]);
        rig.wait_until_connected();
        assert!(b.count(how) > 0, "{how}\n{}", b.log());
        a.swanctl(&["--terminate", "--ike", "net"]);
        rig.wait_for(Host::A, "the end", |status| {
            status["tunnels"] == serde_json::json!([])
        });
    }
}
