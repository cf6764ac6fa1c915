//! `openssl install`: the provider for the whole system, and back.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::Value;

use super::{cipherlane, diagnosed, provider, under, words};
use crate::place::{Place, refused, run, same};
use crate::schema::judge;

#[test]
fn install_can_be_done_again_and_undone() {
    let place = Place::new();
    let before =
        "openssl_conf = init\n[init]\nproviders = list\n[list]\nlegacy = old\n[old]\nx = 1";
    place.write("openssl.cnf", format!("{before}\n"));
    let line = "openssl install --no-measure --modules-dir modules --openssl-conf openssl.cnf";
    let cnf = || std::fs::read_to_string(place.path("openssl.cnf")).unwrap();

    let printed = run(&mut cipherlane(&place, &format!("{line} --print")), 0);
    assert!(words(&printed).contains("default_properties = ?provider=cipherlane"));
    assert_eq!(place.names(), ["openssl.cnf"]);

    run(&mut cipherlane(&place, line), 0);
    let files = ["modules", "openssl.cnf", "openssl.cnf.before-cipherlane"];
    assert_eq!(place.names(), files);
    assert!(same(&place.path("modules/cipherlane.so"), provider()));
    run(&mut under(&place, "openssl.cnf", "openssl status"), 0);

    let installed = cnf();
    let again = run(&mut cipherlane(&place, line), 0);
    assert!(words(&again).contains("Nothing to do"), "{again:?}");
    assert_eq!(cnf(), installed);
    assert_eq!(place.names(), files);

    // A file that has become another is copied again.
    place.write("modules/cipherlane.so", "old");
    diagnosed(&place, "openssl.cnf", &["cannot load"]);
    run(&mut cipherlane(&place, line), 0);
    run(&mut under(&place, "openssl.cnf", "openssl status"), 0);

    run(&mut cipherlane(&place, &format!("{line} --uninstall")), 0);
    assert_eq!(cnf(), format!("{before}\n"));
    assert!(!place.path("modules/cipherlane.so").exists());
    assert_eq!(
        place.names(),
        ["modules", "openssl.cnf"],
        "the backup is gone"
    );
    let gone = run(
        &mut cipherlane(&place, &format!("{line} --uninstall --json")),
        0,
    );
    let gone: Value = serde_json::from_slice(&gone.stdout).unwrap();
    assert_eq!(gone["steps"], Value::Array(Vec::new()));
}

#[test]
fn a_configuration_of_validated_providers_alone_is_left_alone() {
    let place = Place::new();
    let user = "openssl_conf = init\n[init]\nproviders = list\n\
                [list]\nfips = on\nbase = on\n[on]\nactivate = 1\n";
    place.write("user.cnf", user);
    let mut env = under(
        &place,
        "user.cnf",
        "openssl env --no-measure --output ours.cnf",
    );
    refused(
        &mut env,
        1,
        &[
            "FIPS 140",
            "user.cnf' line 5",
            "no configuration was written",
        ],
    );
    assert_eq!(place.names(), ["user.cnf"]);
    place.write("openssl.cnf", user);
    let line = "openssl install --no-measure --modules-dir modules --openssl-conf openssl.cnf";
    refused(&mut cipherlane(&place, line), 1, &["FIPS 140"]);
    assert_eq!(place.names(), ["openssl.cnf", "user.cnf"]);
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn what_is_installed_cannot_be_changed_by_others() {
    let place = Place::new();
    place.write("openssl.cnf", "a = b\n");
    set_mode(&place.path("openssl.cnf"), 0o666);
    std::fs::create_dir(place.path("modules")).unwrap();
    let old = place.write("modules/cipherlane.so", "old");
    set_mode(&old, 0o6777);
    let line = "openssl install --no-measure --modules-dir modules --openssl-conf openssl.cnf";
    run(&mut cipherlane(&place, line), 0);
    assert_eq!(mode(&old), 0o755);
    assert_eq!(mode(&place.path("openssl.cnf")), 0o644);
    run(&mut cipherlane(&place, &format!("{line} --uninstall")), 0);

    // Where others could put another file, nothing is installed.
    let refuses = |place: &Place, words: &[&str]| {
        refused(&mut cipherlane(place, line), 2, words);
        assert!(!place.path("modules/cipherlane.so").exists());
        assert_eq!(
            std::fs::read(place.path("openssl.cnf")).unwrap(),
            b"a = b\n"
        );
    };
    for bits in [0o777, 0o1777, 0o707] {
        set_mode(&place.path("modules"), bits);
        refuses(&place, &["modules'", "everyone", "chmod"]);
    }
    set_mode(&place.path("modules"), 0o755);
    if rustix::process::geteuid().is_root() {
        let chown = |uid, gid| std::os::unix::fs::chown(place.path("modules"), uid, gid).unwrap();
        chown(Some(65534), None);
        refuses(&place, &["modules'", "user 65534"]);
        chown(Some(0), Some(65534));
        set_mode(&place.path("modules"), 0o775);
        refuses(&place, &["modules'", "group 65534"]);
        chown(None, Some(0));
    }
    // A directory above it counts as well, but not one like /tmp.
    set_mode(&place.path("."), 0o777);
    refuses(&place, &["everyone"]);
    set_mode(&place.path("."), 0o1777);
    refuses(&place, &["'openssl.cnf' there"]);
    set_mode(&place.path("."), 0o755);
    run(&mut cipherlane(&place, line), 0);
}

#[test]
fn a_callers_directory_of_modules_is_not_installed_into() {
    let place = Place::new();
    place.write("openssl.cnf", "");
    let elsewhere = place.path("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let line = "openssl install --no-measure --openssl-conf openssl.cnf --print --json";
    for sudo in [false, true] {
        let mut command = cipherlane(&place, line);
        command.env("OPENSSL_MODULES", &elsewhere);
        if sudo {
            command.env("SUDO_UID", "1000");
        }
        let output = run(&mut command, 0).stdout;
        judge("openssl-install", &output);
        let report: Value = serde_json::from_slice(&output).unwrap();
        let to = report["steps"][0]["copy"]["to"].as_str().unwrap();
        assert!(to.ends_with("ossl-modules/cipherlane.so"), "{to}");
    }
}
