//! Builds a libcrypto 3.5 with little more than its AES, in a third of the time that a whole
//! one takes, and links it into a library that is loaded like a distribution's: the crate
//! has no sources of the script by which OpenSSL does that.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// What is left out. Providers must be loadable, so modules are not.
const WITHOUT: &[&str] = &[
    "argon2",
    "aria",
    "async",
    "bf",
    "blake2",
    "camellia",
    "cast",
    "cmac",
    "cmp",
    "cms",
    "comp",
    "ct",
    "deprecated",
    "des",
    "dgram",
    "dh",
    "docs",
    "dsa",
    "ec",
    "engine",
    "filenames",
    "gost",
    "http",
    "idea",
    "legacy",
    "md4",
    "mdc2",
    "ml-dsa",
    "ml-kem",
    "ocsp",
    "ocb",
    "psk",
    "quic",
    "rc2",
    "rc4",
    "rmd160",
    "scrypt",
    "seed",
    "siphash",
    "siv",
    "slh-dsa",
    "sm3",
    "sm4",
    "sock",
    "srp",
    "srtp",
    "ssl",
    "tests",
    "tls",
    "ts",
    "ui-console",
    "whirlpool",
];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    let build = out.join("openssl");
    fs::create_dir_all(&build).expect("OUT_DIR can be written");
    let make = |arguments: &[&str]| {
        let mut make = Command::new("make");
        make.current_dir(&build).args(arguments);
        if let Some(flags) = env::var_os("CARGO_MAKEFLAGS") {
            make.env("MAKEFLAGS", flags);
        }
        run(make);
    };
    let mut configure = Command::new("perl");
    configure
        .current_dir(&build)
        .arg(openssl_src::source_dir().join("Configure"))
        .arg("no-shared")
        .args(WITHOUT.iter().map(|feature| format!("no-{feature}")));
    run(configure);
    make(&["-s", "build_generated"]);
    make(&["-s", "libcrypto.a"]);
    let library = build.join("libcrypto.so.3");
    let mut link = Command::new("cc");
    link.current_dir(&build)
        .args([
            "-shared",
            "-Wl,-Bsymbolic",
            "-Wl,--whole-archive",
            "libcrypto.a",
        ])
        .args(["-Wl,--no-whole-archive", "-ldl", "-pthread", "-o"])
        .arg(&library);
    run(link);
    println!("cargo::rustc-env=LIBCRYPTO_3_5={}", library.display());
}

fn run(mut command: Command) {
    let status = command.status().unwrap_or_else(|error| {
        panic!("{command:?}: {error}; it takes perl, make and a C compiler")
    });
    assert!(status.success(), "{command:?}: {status}");
}
