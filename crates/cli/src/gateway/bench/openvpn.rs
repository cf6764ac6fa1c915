//! OpenVPN 2 between the two ends: with OpenSSL's own ciphers, or with those of this project's
//! OpenSSL provider.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::peers::program;
use super::rig::{INNER, OUTER, Rig, call};
use crate::failure::Failure;
use crate::openssl::{self, Statistics};

/// The cipher of both.
const CIPHER: &str = "AES-256-GCM";

/// What it needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OpenVpn {
    program: PathBuf,
    /// The file of this project's provider, where OpenSSL is to use it.
    provider: Option<PathBuf>,
}

impl OpenVpn {
    /// With OpenSSL's own ciphers; or why it cannot be measured.
    pub(crate) fn find() -> Result<OpenVpn, String> {
        program("openssl")?;
        Ok(OpenVpn {
            program: program("openvpn")?,
            provider: None,
        })
    }

    /// With the provider's ciphers; or why it cannot be measured.
    pub(crate) fn find_with_provider() -> Result<OpenVpn, String> {
        let openvpn = OpenVpn::find()?;
        let provider = openssl::provider().map_err(|failure| failure.to_string())?;
        Ok(OpenVpn {
            provider: Some(provider),
            ..openvpn
        })
    }

    pub(crate) fn name(&self) -> &'static str {
        match self.provider {
            None => "openvpn",
            Some(_) => "openvpn-cipherlane",
        }
    }

    /// Starts both ends; what must hold once they have ended.
    pub(crate) fn start(&self, rig: &mut Rig) -> Result<Option<Evidence>, Failure> {
        let evidence = match &self.provider {
            None => None,
            Some(_) => Some(Evidence(Statistics::new()?)),
        };
        let configuration = match &self.provider {
            // The system's configuration may name the provider.
            None => PathBuf::from("/dev/null"),
            Some(provider) => configure(rig, provider)?,
        };
        let prints = [certify(rig, "a")?, certify(rig, "b")?];
        for (end, name) in [(0, "a"), (1, "b")] {
            let file = |kind: &str| rig.directory().join(format!("{name}.{kind}"));
            let (cert, key) = (file("crt"), file("key"));
            let mut command = rig.command(end, &self.program);
            let own = match end {
                0 => format!("--tls-client --remote {} 1194 --nobind", OUTER[1]),
                _ => format!("--tls-server --dh none --local {} --lport 1194", OUTER[1]),
            };
            command.args(own.split_whitespace());
            // The kernel's own data channel would not ask OpenSSL.
            let common = "--dev ovpn0 --dev-type tun --proto udp --disable-dco --topology subnet \
                          --sndbuf 1048576 --rcvbuf 1048576 --verb 1";
            command.args(common.split_whitespace());
            command.args(["--cipher", CIPHER, "--data-ciphers", CIPHER]);
            command.args(["--ifconfig", INNER[end], "255.255.255.0"]);
            command.args(["--peer-fingerprint", &prints[1 - end]]);
            command.arg("--cert").arg(cert).arg("--key").arg(key);
            command.env("OPENSSL_CONF", &configuration);
            if let Some(Evidence(statistics)) = &evidence {
                statistics.of(&mut command);
            }
            rig.start(end, command, &format!("openvpn-{name}.log"))?;
        }
        Ok(evidence)
    }
}

/// A configuration of OpenSSL with the provider, as users get it. Every cipher is offered: it is
/// measured here whether the provider is faster.
fn configure(rig: &Rig, provider: &Path) -> Result<PathBuf, Failure> {
    let file = rig.directory().join("openssl.cnf");
    let own = std::env::current_exe();
    let own = own.map_err(|error| Failure::io("find", "this program", &error))?;
    let mut write = Command::new(own);
    write.args(["openssl", "env", "--no-measure", "--module"]);
    call(write.arg(provider).arg("--output").arg(&file))?;
    Ok(file)
}

/// Makes the key and the certificate of an end; the certificate's fingerprint.
fn certify(rig: &Rig, name: &str) -> Result<String, Failure> {
    let file = |kind: &str| rig.directory().join(format!("{name}.{kind}"));
    let mut make = Command::new("openssl");
    make.args(["req", "-x509", "-newkey", "ec", "-pkeyopt"]);
    make.args(["ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj"]);
    make.arg(format!("/CN={name}"));
    make.arg("-keyout").arg(file("key"));
    call(make.arg("-out").arg(file("crt")))?;
    let mut print = Command::new("openssl");
    print.args(["x509", "-noout", "-fingerprint", "-sha256", "-in"]);
    let text = call(print.arg(file("crt")))?;
    let print = text.trim().rsplit('=').next();
    Ok(print.unwrap_or_default().to_owned())
}

/// The provider's counters, which its processes write as they end.
pub(crate) struct Evidence(Statistics);

impl Evidence {
    /// Whether the provider of each end encrypted or decrypted all that was carried; if not, the
    /// figures are those of OpenSSL's own ciphers.
    pub(crate) fn check(&self, carried: f64) -> Result<(), Failure> {
        let processes = self.0.processes()?;
        let bytes: Vec<u64> = processes.iter().map(|one| one.bytes(CIPHER)).collect();
        let whole = bytes.iter().filter(|bytes| **bytes as f64 >= carried);
        match whole.count() {
            2 => Ok(()),
            _ => Err(Failure::Runtime(format!(
                "gateway bench: OpenVPN carried {carried:.0} bytes and the provider's counters of \
                 {CIPHER} have {bytes:?}, so it did not serve both ends; 'cipherlane openssl \
                 status' says what is wrong with the configuration"
            ))),
        }
    }
}
