//! Peers that prove who they are by certificates, or by EAP.

use std::path::PathBuf;

use super::{CHILD, gateways};
use crate::charon::{Carrier, Charon, Daemon, Settings};
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
    let by_eap = "auth = eap-md5\n id = carol\n eap_id = carol".to_owned();
    let secret = "eap-carol { id = carol\n secret = \"another secret\" }";
    for is_eap in [false, true] {
        let own = |end| by_certificate(end, true);
        let other = |end| by_certificate(end, false);
        let (as_a, a_for_b, secrets) = match is_eap {
            true => (
                by_eap.clone(),
                by_eap.clone(),
                [secret; 2].map(str::to_owned),
            ),
            false => (own("a"), other("a"), [String::new(), String::new()]),
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
        let how = if is_eap {
            "with EAP successful"
        } else {
            "with ECDSA"
        };
        assert!(b.count(how) > 0, "{how}\n{}", b.log());
        a.swanctl(&["--terminate", "--ike", "net"]);
        rig.wait_for(Host::A, "the end", |status| {
            status["tunnels"] == serde_json::json!([])
        });
    }
}
