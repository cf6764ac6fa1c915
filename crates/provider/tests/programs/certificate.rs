//! Keys and certificates, made by `openssl`.

use crate::place::{From, Place, succeeded};

/// `rsa.key`, `rsa.pem`, `ec.key` and `ec.pem`, for the name localhost.
pub(crate) fn certify(place: &Place) {
    for (name, key) in [
        ("rsa", &["rsa:2048"][..]),
        ("ec", &["ec", "-pkeyopt", "ec_paramgen_curve:P-256"]),
    ] {
        let (pem, certificate) = (format!("{name}.key"), format!("{name}.pem"));
        succeeded(
            place
                .command("openssl", From::Default)
                .env_remove("OPENSSL_CONF")
                .args(["req", "-x509", "-nodes", "-subj", "/CN=localhost"])
                .args(["-addext", "subjectAltName=DNS:localhost", "-newkey"])
                .args(key)
                .args(["-keyout", &pem, "-out", &certificate]),
        );
    }
}
