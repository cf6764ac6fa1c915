//! Programs that are run to see what they use the provider for.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use serde_json::Value;

use super::{changed, configured, enc, provider, under, words};
use crate::place::{Place, data, refused, run, same};
use crate::schema::judge;

#[test]
fn an_unmodified_program_is_served_and_counted() {
    let place = configured();
    let openssl = |line: &str| {
        let mut command = place.openssl(line);
        command.env_remove("OPENSSL_CONF");
        command
    };
    place.write("in", data(1_000_003));
    for cipher in ["aes-128-ctr", "aes-128-cbc"] {
        run(&mut openssl(&enc(cipher, "theirs")), 0);
        let line = format!("openssl status -- openssl {}", enc(cipher, "ours"));
        let said = words(&run(&mut under(&place, "ours.cnf", &line), 0));
        assert!(same(&place.path("ours"), &place.path("theirs")), "{cipher}");
        assert!(said.contains(&cipher.to_uppercase()), "{said}");
        assert!(said.contains("1000003"), "{said}");
    }
    let status = run(&mut under(&place, "ours.cnf", "openssl status"), 0);
    assert!(words(&status).contains("encrypts by it"), "{status:?}");
}

#[test]
fn every_process_of_a_program_is_told_and_its_exit_status_passed_on() {
    let place = configured();
    place.write("in", data(5000));
    let script = format!(
        "openssl {}; openssl {}; exit 7",
        enc("aes-128-ctr", "a"),
        enc("aes-128-cbc", "b")
    );
    let mut command = under(&place, "ours.cnf", "openssl status --json -- sh -c");
    let output = run(command.arg(&script), 7);
    judge("openssl-watch", &output.stderr);
    let report: Value = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!(report["processes"].as_array().unwrap().len(), 2);
    for cipher in ["AES-128-CTR", "AES-128-CBC"] {
        assert_eq!(report["totals"][cipher]["bytes"], 5000, "{report:#}");
        assert_eq!(report["totals"][cipher]["contexts"], 1, "{report:#}");
    }
    let mut command = under(&place, "ours.cnf", "openssl status -- sh -c");
    let said = words(&run(command.arg(&script), 7));
    assert!(said.contains("all AES-128-CTR 1"), "{said}");
    let mut killed = under(&place, "ours.cnf", "openssl status -- sh -c");
    run(killed.arg("kill -TERM $$"), 128 + 15);
    let mut absent = under(&place, "ours.cnf", "openssl status -- ./no-such-program");
    refused(&mut absent, 127, &["no-such-program"]);
}

#[test]
fn cores_that_are_not_there_are_told() {
    let place = configured();
    place.write("in", data(5000));
    let module = "\nactivate = 1\n# '?'";
    changed(
        &place,
        "absent.cnf",
        module,
        "\nactivate = 1\ncores = 100000\n# '?'",
    );
    let line = format!("openssl status -- openssl {}", enc("aes-128-ctr", "out"));
    let said = words(&run(&mut under(&place, "absent.cnf", &line), 0));
    for part in [
        "AES-128-CTR",
        "no list of cores that are online",
        "remedy: correct CIPHERLANE_CORES",
    ] {
        assert!(said.contains(part), "'{part}' is not in: {said}");
    }
}

/// `openssl s_server` that tells of itself by HTTP; dropped, it is killed.
struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start(place: &Place) -> Server {
        let request = "req -x509 -nodes -newkey rsa:2048 -subj /CN=localhost -keyout k -out c";
        run(place.openssl(request).env_remove("OPENSSL_CONF"), 0);
        let line = "s_server -accept 127.0.0.1:0 -www -cert c -key k";
        let mut child = place
            .openssl(line)
            .env_remove("OPENSSL_CONF")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let said = BufReader::new(child.stdout.take().unwrap());
        let address = said
            .lines()
            .find_map(|line| Some(line.unwrap().strip_prefix("ACCEPT ")?.to_owned()))
            .unwrap();
        Server { child, address }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn curl_is_told_what_it_used() {
    let place = configured();
    let server = Server::start(&place);
    let curl = |cnf: &str, options: &str, status: i32| {
        let line = format!(
            "openssl status {options} -- curl -q -sS --noproxy * -k -o page --tlsv1.3 \
             --tls13-ciphers TLS_AES_128_GCM_SHA256 https://{}/",
            server.address
        );
        run(&mut under(&place, cnf, &line), status)
    };
    let report = curl("ours.cnf", "--json", 0).stderr;
    let report: Value = serde_json::from_slice(&report).unwrap();
    let page = std::fs::read(place.path("page")).unwrap().len() as u64;
    let used = &report["totals"]["AES-128-GCM"];
    assert!(
        page > 1000 && used["bytes"].as_u64() > Some(page),
        "{report:#}"
    );
    let records = used["operations"].as_u64();
    assert!(
        used["contexts"].as_u64() >= Some(2) && records > Some(2),
        "{report:#}"
    );
    let said = words(&curl("ours.cnf", "", 0));
    assert!(said.contains("AES-128-GCM"), "{said}");

    // It fails, whatever it used before, and is told why.
    changed(&place, "strict.cnf", "= ?provider", "= provider");
    let said = words(&curl("strict.cnf", "", 35));
    assert!(said.contains("has no '?'"), "{said}");
    let entry = "[cipherlane_default]\nactivate = 1";
    changed(&place, "default.cnf", entry, "[cipherlane_default]");
    let said = words(&curl("default.cnf", "", 35));
    assert!(said.contains("default provider"), "{said}");
    // It succeeds without the provider, and is told that too.
    let module = provider().canonicalize().unwrap().display().to_string();
    changed(&place, "missing.cnf", &module, "/nowhere/cipherlane.so");
    let said = words(&curl("missing.cnf", "", 0));
    assert!(
        said.contains("'/nowhere/cipherlane.so' is missing"),
        "{said}"
    );
}

#[test]
fn a_program_that_does_not_use_the_provider_is_told_why() {
    let place = configured();
    place.write("in", "x");
    let why = |line: &str, status| {
        let line = format!("openssl status -- {line}");
        words(&run(&mut under(&place, "ours.cnf", &line), status))
    };
    let said = why("true", 0);
    assert!(said.contains("did not load OpenSSL's libcrypto"), "{said}");
    let said = why("openssl dgst -sha256 in", 0);
    assert!(said.contains("none of its ciphers"), "{said}");
    let line = format!("env -u OPENSSL_CONF openssl {}", enc("aes-128-ctr", "out"));
    let said = why(&line, 0);
    assert!(said.contains("does not read the configuration"), "{said}");
    place.write("alone.c", "int main(void) { return 3; }\n");
    run(
        place
            .command("cc")
            .args(["-static", "-o", "alone", "alone.c"]),
        0,
    );
    let said = why("./alone", 3);
    assert!(said.contains("linked statically"), "{said}");
}
