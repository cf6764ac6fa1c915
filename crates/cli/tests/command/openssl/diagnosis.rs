//! What `openssl status` finds wrong.

use std::path::Path;
use std::time::{Duration, SystemTime};

use super::{changed, configured, diagnosed, provider, under, words};
use crate::place::run;

#[test]
fn mistakes_in_the_configuration_are_diagnosed() {
    let place = configured();
    let module = provider().canonicalize().unwrap().display().to_string();
    changed(&place, "missing.cnf", &module, "/nowhere/cipherlane.so");
    diagnosed(
        &place,
        "missing.cnf",
        &["'/nowhere/cipherlane.so' is missing"],
    );

    let garbage = place
        .write("garbage.so", "no library")
        .display()
        .to_string();
    changed(&place, "garbage.cnf", &module, &garbage);
    diagnosed(&place, "garbage.cnf", &["cannot load", "too short"]);

    changed(&place, "strict.cnf", "= ?provider", "= provider");
    diagnosed(&place, "strict.cnf", &["has no '?'", "strict.cnf' line"]);

    changed(
        &place,
        "other.cnf",
        "?provider=cipherlane",
        "?provider=default",
    );
    diagnosed(&place, "other.cnf", &["asks for another provider"]);

    let entry = "[cipherlane_default]\nactivate = 1";
    changed(&place, "default.cnf", entry, "[cipherlane_default]");
    diagnosed(
        &place,
        "default.cnf",
        &["default provider", "not activated"],
    );

    let entry = "default = cipherlane_default";
    changed(&place, "only.cnf", entry, "");
    diagnosed(&place, "only.cnf", &["not the default provider"]);

    let entry = format!("module = {module}\nactivate = 1");
    changed(&place, "idle.cnf", &entry, "");
    let said = words(&run(&mut under(&place, "idle.cnf", "openssl status"), 1));
    assert!(said.contains("the provider cipherlane of"), "{said}");

    let entry = "cipherlane = cipherlane_provider";
    changed(&place, "absent.cnf", entry, "");
    diagnosed(
        &place,
        "absent.cnf",
        &["does not list", "cipherlane openssl env"],
    );

    diagnosed(&place, "no-such.cnf", &["no-such.cnf", "unset it"]);
}

#[test]
fn a_provider_of_another_version_is_diagnosed() {
    let place = configured();
    let mut bytes = std::fs::read(provider()).unwrap();
    let own = concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes();
    let at: Vec<usize> = (0..bytes.len() - own.len())
        .filter(|&at| bytes[at..].starts_with(own))
        .collect();
    assert!(!at.is_empty());
    at.iter().for_each(|&at| bytes[at] = b'9');
    let old = place.write("old.so", bytes).display().to_string();
    let module = provider().canonicalize().unwrap().display().to_string();
    changed(&place, "old.cnf", &module, &old);
    diagnosed(&place, "old.cnf", &["is version 9", "install it again"]);
}

#[test]
fn an_older_build_of_the_same_version_is_diagnosed() {
    let place = configured();
    let mut bytes = std::fs::read(provider()).unwrap();
    // Loaders pass over what follows a library's end.
    bytes.push(0);
    let old = place.write("old.so", bytes);
    let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1);
    let file = std::fs::File::options().write(true).open(&old).unwrap();
    file.set_modified(long_ago).unwrap();
    let module = provider().canonicalize().unwrap().display().to_string();
    changed(&place, "old.cnf", &module, &old.display().to_string());
    let newer = format!("is an older build than '{module}'");
    diagnosed(&place, "old.cnf", &[&newer, "install it again"]);
}

#[test]
fn a_kernel_that_demands_validated_ciphers_is_told() {
    let place = configured();
    let enabled = "/proc/sys/crypto/fips_enabled";
    if !rustix::process::geteuid().is_root() || !Path::new(enabled).exists() {
        eprintln!("NOT TESTED: it needs root and a kernel with {enabled}");
        return;
    }
    // Such a system takes another provider than ours, here since the first one wins.
    let module = provider().canonicalize().unwrap().display().to_string();
    let cnf = format!(
        "openssl_conf = i\n[i]\nproviders = p\n[p]\ndefault = on\ncipherlane = c\n\
         [on]\nactivate = 1\n[c]\nmodule = {module}\nactivate = 1\n"
    );
    place.write("kernel.cnf", cnf);
    diagnosed(&place, "kernel.cnf", &["prefers another one's AES"]);
    place.write("one", "1\n");
    let program = env!("CARGO_BIN_EXE_cipherlane");
    let script = format!("mount --bind one {enabled} && exec {program} openssl status");
    let mut command = place.command("unshare");
    command.args(["--mount", "sh", "-c", &script]);
    let said = words(&run(
        command.env("OPENSSL_CONF", place.path("kernel.cnf")),
        1,
    ));
    assert!(said.contains("fips_enabled"), "{said}");
}
