//! Programs that the provider cannot serve, since they have their ciphers from another library:
//! `docs/programs.md` names them, and must not be wrong.

use std::path::Path;
use std::process::Command;

use crate::place::{skip, succeeded};

/// A program, and the library that it has its ciphers from.
const EXCLUDED: [[&str; 2]; 7] = [
    ["/usr/bin/wget", "libgnutls.so"],
    ["/usr/lib/git-core/git-remote-https", "libgnutls.so"],
    ["/usr/lib/apt/methods/http", "libgnutls.so"],
    ["/usr/bin/gpgsm", "libgcrypt.so"],
    ["/usr/bin/gpg", "libgcrypt.so"],
    ["/usr/sbin/chronyd", "libgnutls.so"],
    ["/usr/bin/qemu-img", "libnettle.so"],
];

#[test]
fn what_is_named_as_excluded_has_no_tls_from_openssl() {
    for [program, library] in EXCLUDED {
        if !Path::new(program).exists() {
            skip(&format!("{program} is excluded"), "it is not installed");
            continue;
        }
        let linked = succeeded(Command::new("ldd").arg(program)).stdout;
        let linked = String::from_utf8_lossy(&linked);
        assert!(
            linked.contains(library) && !linked.contains("libssl.so"),
            "{program}: {linked}"
        );
    }
}
