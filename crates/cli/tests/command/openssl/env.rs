//! `openssl env`: a configuration for one user or one shell.

use serde_json::Value;

use super::{cipherlane, diagnosed, enc, text, under, words};
use crate::place::{Place, data, refused, run};
use crate::schema::judge;

#[test]
fn env_is_for_the_shell_and_keeps_the_configuration_of_the_system() {
    let place = Place::new();
    let output = run(&mut cipherlane(&place, "openssl env --no-measure"), 0);
    let file = place.path("home/.config/cipherlane/openssl.cnf");
    let export = format!("export OPENSSL_CONF='{}'\n", file.display());
    assert_eq!(text(&output.stdout), export);
    let written = std::fs::read_to_string(&file).unwrap();
    let json = run(
        &mut cipherlane(&place, "openssl env --no-measure --json"),
        0,
    );
    judge("openssl-env", &json.stdout);
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["openssl_conf"], file.to_str().unwrap());
    assert_eq!(std::fs::read_to_string(&file).unwrap(), written);
    // A request for a certificate needs [req] of the system's file, and the default provider.
    let mut request = place.openssl("req -new -newkey rsa:2048 -nodes -keyout k -subj /CN=x");
    run(request.env("OPENSSL_CONF", &file), 0);
    let garbage = place.write("garbage.so", "no library");
    let mut refuse = cipherlane(&place, "openssl env --no-measure --module");
    refused(
        refuse.arg(garbage),
        1,
        &["garbage.so", "cannot load", "--module"],
    );
}

/// A configuration that refuses what is not validated, and one more thing of its user's.
const VALIDATED: &str = "openssl_conf = init\n[init]\nalg_section = algorithms\n\
                         [algorithms]\ndefault_properties = fips=yes\n\
                         [mine]\nkept = yes\n";

#[test]
fn env_keeps_the_configuration_that_the_user_has() {
    let place = Place::new();
    place.write("in", data(1000));
    place.write("user.cnf", VALIDATED);
    let refuses = |cnf: &str| {
        let mut command = place.openssl(&enc("aes-128-ctr", "out"));
        run(command.env("OPENSSL_CONF", place.path(cnf)), 1);
    };
    refuses("user.cnf");
    let made = run(
        &mut under(
            &place,
            "user.cnf",
            "openssl env --no-measure --output ours.cnf",
        ),
        0,
    );
    assert!(words(&made).contains("validated"), "{made:?}");
    refuses("ours.cnf");
    let ours = || std::fs::read_to_string(place.path("ours.cnf")).unwrap();
    let first = ours();
    assert!(first.contains("user.cnf") && first.contains("fips=yes,?provider=cipherlane"));
    // Done again in the shell that has it by now, it is the same.
    run(
        &mut under(
            &place,
            "ours.cnf",
            "openssl env --no-measure --output ours.cnf",
        ),
        0,
    );
    assert_eq!(ours(), first);
    refuses("ours.cnf");
    // And so is one that is made from it.
    run(
        &mut under(
            &place,
            "ours.cnf",
            "openssl env --no-measure --output more.cnf",
        ),
        0,
    );
    refuses("more.cnf");
    let said = words(&run(&mut under(&place, "more.cnf", "openssl status"), 1));
    assert!(
        said.contains("FIPS 140") && said.contains("more.cnf' line"),
        "{said}"
    );
    diagnosed(
        &place,
        "ours.cnf",
        &["fips=yes", "where FIPS 140 is demanded"],
    );

    // What is not there is not passed over, and the user's own file not written over.
    let mut absent = under(
        &place,
        "absent.cnf",
        "openssl env --no-measure --output x.cnf",
    );
    refused(&mut absent, 2, &["absent.cnf", "unset it"]);
    let mut over = under(
        &place,
        "user.cnf",
        "openssl env --no-measure --output user.cnf",
    );
    refused(&mut over, 2, &["user.cnf", "--output"]);
    assert_eq!(
        std::fs::read_to_string(place.path("user.cnf")).unwrap(),
        VALIDATED
    );
}

#[test]
fn a_user_without_such_a_query_is_served_under_a_configuration_of_their_own() {
    let place = Place::new();
    place.write("in", data(1000));
    let user = "openssl_conf = init\n[init]\nproviders = list\n[list]\ndefault = on\n\
                [on]\nactivate = 1\n[req]\ndistinguished_name = dn\nprompt = no\n\
                [dn]\nCN = of the user\n";
    place.write("user.cnf", user);
    run(
        &mut under(
            &place,
            "user.cnf",
            "openssl env --no-measure --output ours.cnf",
        ),
        0,
    );
    run(&mut under(&place, "ours.cnf", "openssl status"), 0);
    let request = "req -new -newkey rsa:2048 -nodes -keyout k -noout -subject";
    let mut request = place.openssl(request);
    let subject = run(request.env("OPENSSL_CONF", place.path("ours.cnf")), 0);
    assert!(words(&subject).contains("of the user"), "{subject:?}");
}
