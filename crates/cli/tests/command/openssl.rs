//! `cipherlane openssl` with the real provider and the real `openssl`.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

use serde_json::Value;

use crate::place::{HEX, IV, Place, data, refused, run, same};

/// The provider as cargo builds it, beside the command.
fn provider() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let profile = Path::new(env!("CARGO_BIN_EXE_cipherlane"))
            .parent()
            .unwrap();
        let file = profile.join("libcipherlane_provider.so");
        // With the tests of the whole project it is built, but not laid beside the command.
        let built = profile.join("deps/libcipherlane_provider.so");
        let written = |path: &Path| std::fs::metadata(path).and_then(|m| m.modified()).ok();
        if written(&built) > written(&file) {
            let _ = std::fs::remove_file(&file);
            std::fs::hard_link(&built, &file).unwrap();
        }
        // A test of this crate alone does not build it.
        if !file.exists() {
            let mut cargo = Command::new(env!("CARGO"));
            cargo
                .args(["build", "-p", "cipherlane-provider", "--target-dir"])
                .arg(profile.parent().unwrap())
                .current_dir(env!("CARGO_MANIFEST_DIR"));
            if profile.ends_with("release") {
                cargo.arg("--release");
            }
            run(&mut cargo, 0);
        }
        file
    })
}

/// The command, without a configuration of OpenSSL of whoever runs the test.
fn cipherlane(place: &Place, line: &str) -> Command {
    provider();
    let mut command = place.cipherlane(line);
    command
        .env_remove("OPENSSL_CONF")
        .env_remove("OPENSSL_MODULES");
    command
}

/// Under the configuration of this name.
fn under(place: &Place, cnf: &str, line: &str) -> Command {
    let mut command = cipherlane(place, line);
    command.env("OPENSSL_CONF", place.path(cnf));
    command
}

/// A place with the configuration `ours.cnf`.
fn configured() -> Place {
    let place = Place::new();
    run(&mut cipherlane(&place, "openssl env --output ours.cnf"), 0);
    place
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// The text of a table or of wrapped lines, with one space between words.
fn words(output: &Output) -> String {
    let all = text(&output.stdout) + &text(&output.stderr);
    all.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// `status` must end with 1, and say these words.
#[track_caller]
fn diagnosed(place: &Place, cnf: &str, expected: &[&str]) {
    let said = words(&run(&mut under(place, cnf, "openssl status"), 1));
    for part in expected.iter().chain(&["remedy:"]) {
        assert!(said.contains(part), "'{part}' is not in: {said}");
    }
    let json = run(&mut under(place, cnf, "openssl status --json"), 1);
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    let problems = json["problems"].as_array().unwrap();
    assert_eq!(problems.len(), 1, "{json:#}");
}

/// A configuration like ours but for one change.
fn changed(place: &Place, name: &str, from: &str, to: &str) {
    let ours = std::fs::read_to_string(place.path("ours.cnf")).unwrap();
    let text = ours.replacen(from, to, 1);
    assert_ne!(ours, text, "'{from}' is not in: {ours}");
    place.write(name, text);
}

fn enc(cipher: &str, out: &str) -> String {
    format!("enc -{cipher} -K {} -iv {IV} -in in -out {out}", &HEX[..32])
}

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

#[test]
fn env_is_for_the_shell_and_keeps_the_configuration_of_the_system() {
    let place = Place::new();
    let output = run(&mut cipherlane(&place, "openssl env"), 0);
    let file = place.path("home/.config/cipherlane/openssl.cnf");
    let export = format!("export OPENSSL_CONF='{}'\n", file.display());
    assert_eq!(text(&output.stdout), export);
    let written = std::fs::read_to_string(&file).unwrap();
    let json = run(&mut cipherlane(&place, "openssl env --json"), 0);
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["openssl_conf"], file.to_str().unwrap());
    assert_eq!(std::fs::read_to_string(&file).unwrap(), written);
    // A request for a certificate needs [req] of the system's file, and the default provider.
    let mut request = place.openssl("req -new -newkey rsa:2048 -nodes -keyout k -subj /CN=x");
    run(request.env("OPENSSL_CONF", &file), 0);
    let garbage = place.write("garbage.so", "no library");
    let mut refuse = cipherlane(&place, "openssl env --module");
    refused(
        refuse.arg(garbage),
        1,
        &["garbage.so", "cannot load", "--module"],
    );
}

#[test]
fn install_can_be_done_again_and_undone() {
    let place = Place::new();
    let before =
        "openssl_conf = init\n[init]\nproviders = list\n[list]\nlegacy = old\n[old]\nx = 1";
    place.write("openssl.cnf", format!("{before}\n"));
    let line = "openssl install --modules-dir modules --openssl-conf openssl.cnf";
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
        &mut under(&place, "user.cnf", "openssl env --output ours.cnf"),
        0,
    );
    assert!(words(&made).contains("validated"), "{made:?}");
    refuses("ours.cnf");
    let ours = || std::fs::read_to_string(place.path("ours.cnf")).unwrap();
    let first = ours();
    assert!(first.contains("user.cnf") && first.contains("fips=yes,?provider=cipherlane"));
    // Done again in the shell that has it by now, it is the same.
    run(
        &mut under(&place, "ours.cnf", "openssl env --output ours.cnf"),
        0,
    );
    assert_eq!(ours(), first);
    refuses("ours.cnf");
    // And so is one that is made from it.
    run(
        &mut under(&place, "ours.cnf", "openssl env --output more.cnf"),
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
    let mut absent = under(&place, "absent.cnf", "openssl env --output x.cnf");
    refused(&mut absent, 2, &["absent.cnf", "unset it"]);
    let mut over = under(&place, "user.cnf", "openssl env --output user.cnf");
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
        &mut under(&place, "user.cnf", "openssl env --output ours.cnf"),
        0,
    );
    run(&mut under(&place, "ours.cnf", "openssl status"), 0);
    let request = "req -new -newkey rsa:2048 -nodes -keyout k -noout -subject";
    let mut request = place.openssl(request);
    let subject = run(request.env("OPENSSL_CONF", place.path("ours.cnf")), 0);
    assert!(words(&subject).contains("of the user"), "{subject:?}");
}

#[test]
fn a_configuration_of_validated_providers_alone_is_left_alone() {
    let place = Place::new();
    let user = "openssl_conf = init\n[init]\nproviders = list\n\
                [list]\nfips = on\nbase = on\n[on]\nactivate = 1\n";
    place.write("user.cnf", user);
    let mut env = under(&place, "user.cnf", "openssl env --output ours.cnf");
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
    let line = "openssl install --modules-dir modules --openssl-conf openssl.cnf";
    refused(&mut cipherlane(&place, line), 1, &["FIPS 140"]);
    assert_eq!(place.names(), ["openssl.cnf", "user.cnf"]);
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
    let line = "openssl install --modules-dir modules --openssl-conf openssl.cnf";
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
    let line = "openssl install --openssl-conf openssl.cnf --print --json";
    for sudo in [false, true] {
        let mut command = cipherlane(&place, line);
        command.env("OPENSSL_MODULES", &elsewhere);
        if sudo {
            command.env("SUDO_UID", "1000");
        }
        let report: Value = serde_json::from_slice(&run(&mut command, 0).stdout).unwrap();
        let to = report["steps"][0]["copy"]["to"].as_str().unwrap();
        assert!(to.ends_with("ossl-modules/cipherlane.so"), "{to}");
    }
}
