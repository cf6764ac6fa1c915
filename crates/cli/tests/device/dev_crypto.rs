//! `/dev/crypto` that `device cuse` serves, in a guest whose kernel has CUSE: a program in C
//! written to the interface, OpenSSL's own engine for it, and the conformance kit over the driver
//! `cryptodev`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use cipherlane_core::conformance::check;
use cipherlane_core::{Algorithm, Config, Driver, Transform, Unavailable};
use cipherlane_drivers::cryptodev::Cryptodev;
use cipherlane_drivers::cryptodev::header::{
    CIOCASYMFEAT, CIOCAUTHCRYPT, CIOCCRYPT, CIOCFSESSION, CIOCGSESSINFO, CIOCGSESSION, CryptAuthOp,
    CryptOp, SessionInfo, SessionOp,
};
use serde_json::Value;
use tempfile::TempDir;

use crate::rig::run_guest;
use crate::schema::judge;

/// In front of each script: the device.
const BEGIN: &str = "\
set -e
serve() {
    cipherlane device cuse \"$@\" 2>>log &
    server=$!
    tries=0
    until [ -c /dev/crypto ]; do
        sleep 0.2
        tries=$((tries + 1))
        [ $tries -lt 300 ] || { cat log; exit 1; }
    done
}
status() { cipherlane device status --status /run/cipherlane-cuse-crypto.status \"$@\"; }
";

/// Where the repository is.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The program in C, compiled.
fn program(place: &TempDir) -> PathBuf {
    let program = place.path().join("cryptodev");
    let mut compiler = Command::new("cc");
    compiler.args(["-O2", "-Wall", "-Wextra", "-Werror", "-pthread", "-o"]);
    compiler.arg(&program);
    let compiled = compiler.arg(root().join("guests/cryptodev.c")).output();
    let compiled = compiled.unwrap();
    assert!(compiled.status.success(), "{compiled:?}");
    program
}

/// Runs a script in a guest that has CUSE and these programs.
fn guest(programs: &[&Path], options: &[&str], script: &str) -> Option<String> {
    let mut arguments = vec!["--module", "cuse", "--program"];
    arguments.push(env!("CARGO_BIN_EXE_cipherlane"));
    for program in programs {
        arguments.extend(["--program", program.to_str().unwrap()]);
    }
    arguments.extend(options);
    run_guest(&arguments, &format!("{BEGIN}{script}"), &[], |_| {})
}

#[test]
fn the_layout_is_that_of_the_c_compiler() {
    let place = tempfile::tempdir().unwrap();
    let told = Command::new(program(&place)).arg("layout").output();
    let told = String::from_utf8(told.unwrap().stdout).unwrap();
    let mut expected = String::new();
    let structures = [
        ("session_op", SessionOp::SIZE, SessionOp::FIELDS),
        ("session_info_op", SessionInfo::SIZE, SessionInfo::FIELDS),
        ("crypt_op", CryptOp::SIZE, CryptOp::FIELDS),
        ("crypt_auth_op", CryptAuthOp::SIZE, CryptAuthOp::FIELDS),
    ];
    for (name, size, fields) in structures {
        expected += &format!("struct {name} {size}\n");
        for (field, offset, size) in fields {
            let field = match field.split_once('_') {
                Some((of @ ("cipher" | "hash"), "name")) => format!("{of}_info.cra_name"),
                Some((of @ ("cipher" | "hash"), "driver")) => format!("{of}_info.cra_driver_name"),
                _ => (*field).to_owned(),
            };
            expected += &format!("{name}.{field} {offset} {size}\n");
        }
    }
    for (name, number) in [
        ("CIOCGSESSION", CIOCGSESSION),
        ("CIOCFSESSION", CIOCFSESSION),
        ("CIOCCRYPT", CIOCCRYPT),
        ("CIOCASYMFEAT", CIOCASYMFEAT),
        ("CIOCGSESSINFO", CIOCGSESSINFO),
        ("CIOCAUTHCRYPT", CIOCAUTHCRYPT),
    ] {
        expected += &format!("{name} {number}\n");
    }
    assert_eq!(told, expected);
}

#[test]
fn a_program_in_c_is_served_and_told_when_the_server_is_gone() {
    let place = tempfile::tempdir().unwrap();
    let script = "\
serve
cryptodev answers
cryptodev threads
echo STATUS $(status --json)
status
# There is one of that name.
! cipherlane device cuse 2>>log
grep -q 'there is one of that name' log
# Killed in the middle of requests: each caller is told, and nothing hangs.
cryptodev loop >loop1 & one=$!
cryptodev loop >loop2 & two=$!
sleep 2
kill -9 $server
wait $one
wait $two
cat loop1 loop2
[ ! -e /dev/crypto ]
# Another one serves at the same place.
serve --name crypto --threads 1
cryptodev answers
kill $server
wait $server
[ ! -e /dev/crypto ]
tail -n 4 log
rmmod cuse
! cipherlane device cuse 2>log
cat log
";
    let Some(text) = guest(&[&program(&place)], &[], script) else {
        return;
    };
    let answered = text.matches("all answers are right").count();
    assert_eq!(answered, 2, "{text}");
    assert!(text.contains("all threads are served"), "{text}");
    let status = text.lines().find_map(|line| line.strip_prefix("STATUS "));
    let status = status.expect("a status");
    judge("cuse-status", status.as_bytes());
    let status: Value = serde_json::from_str(status).unwrap();
    assert_eq!(
        (&status["files"], &status["sessions"]),
        (&0.into(), &0.into())
    );
    assert!(status["requests"].as_u64().unwrap() >= 3200, "{status}");
    assert_eq!(status["refused"]["wrong tag"], 1, "{status}");
    let told = text.matches(" after some requests").count();
    assert_eq!(told, 2, "{text}");
    assert!(text.contains("modprobe cuse"), "{text}");
}

/// The driver with some of its algorithms, and a key length of each. It stands before a real
/// driver, and so it is none for tests over the kernels.
struct Part(Cryptodev);

const SOME: [&str; 4] = [
    "cbc(aes)",
    "gcm(aes)",
    "hmac(sha256)",
    "authenc(hmac(sha256),rfc3686(ctr(aes)))",
];

impl Driver for Part {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn version(&self) -> String {
        self.0.version()
    }

    fn priority(&self) -> i32 {
        self.0.priority()
    }

    fn probe(&self) -> Result<(), Unavailable> {
        self.0.probe()
    }

    fn offers(&self, algorithm: &Algorithm) -> Result<(), Unavailable> {
        match SOME.contains(&algorithm.name) {
            true => self.0.offers(algorithm),
            false => Err(Unavailable::NotOffered("not now".to_owned())),
        }
    }

    fn takes_key(&self, algorithm: &Algorithm, key_len: usize) -> bool {
        algorithm.key_lengths().first() == Some(&key_len)
    }

    fn transform(
        &self,
        algorithm: &'static Algorithm,
        key: &[u8],
    ) -> Result<Box<dyn Transform>, Unavailable> {
        self.0.transform(algorithm, key)
    }

    fn notes(&self) -> Vec<String> {
        self.0.notes()
    }
}

fn conforms(driver: Arc<dyn Driver>) {
    if let Err(reason) = driver.probe() {
        return crate::rig::skip("/dev/crypto", &reason.to_string());
    }
    let report = check(&driver);
    assert!(report.passed(), "{report}");
    println!("conforms: {}", driver.notes().join("; "));
}

fn driver() -> Cryptodev {
    Cryptodev::new(&Config::default()).unwrap()
}

#[test]
fn some_of_the_driver_conforms() {
    conforms(Arc::new(Part(driver())));
}

#[test]
#[ignore = "long"]
fn the_driver_conforms() {
    conforms(Arc::new(driver()));
}

/// Runs a test of this program in a guest that has a device; what the guest has printed.
fn test_in_guest(test: &str, before: &str, limit: &str) -> Option<String> {
    let itself = std::env::current_exe().unwrap();
    let name = itself.file_name().unwrap().to_str().unwrap();
    let options = "--nocapture --include-ignored";
    let script =
        format!("serve\n{before}/bin/{name} --exact dev_crypto::{test} {options} 2>&1\nstatus\n");
    let text = guest(&[&itself], &["--limit", limit], &script)?;
    assert!(text.contains("conforms: "), "{text}");
    Some(text)
}

#[test]
fn some_of_the_driver_conforms_in_a_guest() {
    let before = "\
# Nobody opens the device before somebody asks for the driver.
head -c 100000 /dev/zero >plain
number=00112233445566778899aabbccddeeff
cipherlane enc -aes-128-ctr -K $number -iv $number -in plain -out sealed && echo SEALED
echo OPENED $(status --json)
cipherlane speed cbc --drivers software,cryptodev --sizes 4K --seconds 0.05 2>&1
";
    let Some(text) = test_in_guest("some_of_the_driver_conforms", before, "400") else {
        return;
    };
    for served in [
        "cbc-aes-cipherlane",
        "gcm-aes-cipherlane",
        "hmac-sha256-cipherlane",
    ] {
        assert!(text.contains(served), "no {served} in\n{text}");
    }
    assert!(text.contains("SEALED"), "{text}");
    let opened = text.lines().find_map(|line| line.strip_prefix("OPENED "));
    let opened: Value = serde_json::from_str(opened.expect("a status")).unwrap();
    assert_eq!(opened["files_opened"], 0, "{opened}");
    let measured = text.lines().any(|line| line.starts_with("cryptodev  "));
    assert!(measured, "{text}");
}

#[test]
#[ignore = "long"]
fn the_driver_conforms_in_a_guest() {
    test_in_guest("the_driver_conforms", "", "3600");
}

/// OpenSSL's engine from the source that `crates/provider/openssl-3.5` builds, as a shared library
/// for the libcrypto of this machine. `Err`: why there is none here.
fn engine(place: &TempDir) -> Result<PathBuf, String> {
    let manifest = root().join("crates/provider/openssl-3.5/Cargo.toml");
    let metadata = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--offline"])
        .arg("--manifest-path")
        .arg(manifest)
        .output()
        .map_err(|error| error.to_string())?;
    let metadata: Value = serde_json::from_slice(&metadata.stdout)
        .map_err(|_| "cargo has not fetched crates/provider/openssl-3.5".to_owned())?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let mut sources = packages.filter(|package| package["name"] == "openssl-src");
    let source = sources
        .next()
        .and_then(|package| package["manifest_path"].as_str());
    let source = Path::new(source.unwrap_or("/")).with_file_name("openssl");
    let engine = place.path().join("devcrypto.so");
    let compiled = Command::new("cc")
        .args(["-O2", "-w", "-shared", "-fPIC", "-idirafter"])
        .arg(source.join("include"))
        .arg("-I")
        .arg(root().join("guests"))
        .arg("-o")
        .arg(&engine)
        .arg(source.join("engines/e_devcrypto.c"))
        .arg("-lcrypto")
        .output()
        .map_err(|error| error.to_string())?;
    match compiled.status.success() {
        true => Ok(engine),
        false => Err(String::from_utf8_lossy(&compiled.stderr).into_owned()),
    }
}

#[test]
fn openssls_engine_is_served() {
    let place = tempfile::tempdir().unwrap();
    let engine = match engine(&place) {
        Ok(engine) => engine,
        Err(reason) => return crate::rig::skip("OpenSSL's engine for /dev/crypto", &reason),
    };
    let told = Command::new("openssl").args(["version", "-e"]).output();
    let told = String::from_utf8(told.expect("openssl is installed").stdout).unwrap();
    let engines = told.split('"').nth(1).expect("a directory of engines");
    let file = format!("{}:{engines}/devcrypto.so", engine.display());
    let script = "\
serve --accelerator
head -c 100000 /dev/urandom >in
openssl engine -t -c devcrypto
for cipher in aes-128-cbc aes-192-cbc aes-256-cbc aes-128-ctr aes-256-ctr; do
    options=\"-$cipher -k secret -iter 1 -S 0102030405060708\"
    openssl enc -engine devcrypto $options -in in -out sealed
    openssl enc $options -in in -out expected
    cmp sealed expected
    openssl enc -d -engine devcrypto $options -in expected -out opened
    cmp in opened
    echo \"same $cipher\"
done 2>&1
echo STATUS $(status --json)
";
    let options = ["--program", "openssl", "--file", &file];
    let Some(text) = guest(&[], &options, script) else {
        return;
    };
    assert!(text.contains("[ available ]"), "{text}");
    assert_eq!(text.matches("same aes-").count(), 5, "{text}");
    let status = text.lines().find_map(|line| line.strip_prefix("STATUS "));
    let status: Value = serde_json::from_str(status.expect("a status")).unwrap();
    // All of the files went through the device, each in two directions.
    assert!(
        status["bytes"].as_u64().unwrap() >= 10 * 100_000,
        "{status}"
    );
}
