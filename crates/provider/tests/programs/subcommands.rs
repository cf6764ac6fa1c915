//! The sub-commands of `openssl` that encrypt: what one writes with the provider, another reads
//! without, the other way round, and with the provider at both ends.

use std::fs;
use std::process::Command;

use crate::certificate::certify;
use crate::ends::{Ends, Work, data, write};
use crate::place::{From, Place, succeeded};

/// A pair of sub-commands: the first makes `made` of `data`, the second makes `back` of `made`.
/// "@" stands for the cipher.
struct Commands {
    write: &'static str,
    read: &'static str,
    ciphers: &'static [[&'static str; 2]],
    /// Whether all of the data are encrypted, and not a key only.
    whole: bool,
}

const LEN: usize = 300_007;

const CBC: [&str; 2] = ["aes-256-cbc", "AES-256-CBC"];

const ALL: [Commands; 8] = [
    Commands {
        write: "enc -@ -pbkdf2 -salt -pass pass:word -in data -out made",
        read: "enc -d -@ -pbkdf2 -pass pass:word -in made -out back",
        ciphers: &[
            CBC,
            ["aes-128-ctr", "AES-128-CTR"],
            ["aes-192-ecb", "AES-192-ECB"],
        ],
        whole: true,
    },
    Commands {
        write: "cms -encrypt -binary -stream -@ -in data -out made -outform DER rsa.pem",
        read: "cms -decrypt -binary -in made -inform DER -out back -inkey rsa.key -recip rsa.pem",
        ciphers: &[
            CBC,
            ["aes-128-cbc", "AES-128-CBC"],
            ["aes-256-gcm", "AES-256-GCM"],
        ],
        whole: true,
    },
    // Key agreement, which wraps the key of the message.
    Commands {
        write: "cms -encrypt -binary -@ -in data -out made -outform PEM -recip ec.pem",
        read: "cms -decrypt -binary -in made -inform PEM -out back -inkey ec.key -recip ec.pem",
        ciphers: &[
            ["aes-192-cbc", "AES-192-CBC"],
            ["aes-128-gcm", "AES-128-GCM"],
        ],
        whole: true,
    },
    Commands {
        write: "cms -EncryptedData_encrypt -binary -@ -secretkey \
                000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f \
                -in data -out made -outform DER",
        read: "cms -EncryptedData_decrypt -binary -secretkey \
               000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f \
               -in made -inform DER -out back",
        ciphers: &[CBC],
        whole: true,
    },
    Commands {
        write: "cms -encrypt -binary -@ -pwri_password word -in data -out made -outform DER",
        read: "cms -decrypt -binary -pwri_password word -in made -inform DER -out back",
        ciphers: &[CBC],
        whole: true,
    },
    Commands {
        write: "smime -encrypt -binary -@ -in data -out made -outform DER rsa.pem",
        read: "smime -decrypt -binary -in made -inform DER -out back -inkey rsa.key -recip rsa.pem",
        ciphers: &[CBC, ["aes-128-cbc", "AES-128-CBC"]],
        whole: true,
    },
    Commands {
        write: "pkcs12 -export -inkey rsa.key -in rsa.pem -out made -passout pass:word \
                -keypbe @ -certpbe @",
        read: "pkcs12 -in made -passin pass:word -nodes -nocerts -out back",
        ciphers: &[CBC, ["aes-128-cbc", "AES-128-CBC"]],
        whole: false,
    },
    Commands {
        write: "pkey -in rsa.key -@ -passout pass:word -out made",
        read: "pkey -in made -passin pass:word -out back",
        ciphers: &[CBC, ["aes-128-cbc", "AES-128-CBC"]],
        whole: false,
    },
];

fn openssl(mut command: Command, line: &str, cipher: &str) {
    succeeded(command.args(line.replace('@', cipher).split_whitespace()));
}

/// The lines of a key's PEM file, without what stands around them.
fn key(file: &[u8]) -> String {
    let text = String::from_utf8_lossy(file);
    let from = text.find("-----BEGIN").expect("a key");
    text[from..].to_owned()
}

#[test]
fn what_one_encrypts_the_other_decrypts() {
    let place = Place::new();
    certify(&place);
    let data = data(LEN, 9);
    write(&place, "data", &data);
    let rsa = fs::read(place.path().join("rsa.key")).unwrap();
    for ends in Ends::each(&place) {
        for commands in &ALL {
            for [cipher, provided] in commands.ciphers {
                openssl(ends.client("openssl"), commands.write, cipher);
                openssl(ends.server("openssl"), commands.read, cipher);
                let back = fs::read(place.path().join("back")).unwrap();
                let bytes = match commands.whole {
                    true => {
                        assert!(back == data, "{ends}: {} {cipher}", commands.write);
                        LEN
                    }
                    false => {
                        assert_eq!(key(&back), key(&rsa), "{ends}: {} {cipher}", commands.write);
                        1000
                    }
                };
                let work = Work {
                    cipher: provided,
                    client: bytes,
                    server: bytes,
                };
                ends.prove(&format!("{} {cipher}", commands.write), &[work]);
            }
        }
    }
}

/// Time stamps are signed and not encrypted: the provider is loaded, and nothing breaks.
#[test]
fn time_stamps_are_as_before() {
    let place = Place::new();
    succeeded(place.command("openssl", From::Default).args([
        "req",
        "-x509",
        "-nodes",
        "-subj",
        "/CN=stamps",
        "-newkey",
        "rsa:2048",
        "-keyout",
        "ts.key",
        "-out",
        "ts.pem",
        "-config",
        "/dev/null",
        "-addext",
        "extendedKeyUsage=critical,timeStamping",
    ]));
    write(&place, "data", &data(LEN, 10));
    // The sections of a time stamping authority, after those of the provider.
    let mut settings = fs::read_to_string(place.configuration()).unwrap();
    settings += "[tsa]\ndefault_tsa = authority\n[authority]\nserial = serial\n\
                 signer_digest = sha256\ndigests = sha256\ndefault_policy = 1.2.3.4\n";
    let settings = write(&place, "stamps.cnf", settings.as_bytes());
    write(&place, "serial", b"01\n");
    for (asks, answers) in [
        (From::Cipherlane, From::Default),
        (From::Default, From::Cipherlane),
        (From::Cipherlane, From::Cipherlane),
    ] {
        let ts = |from, line: &str| {
            let mut command = place.command("openssl", from);
            succeeded(command.args(line.split(' ')));
        };
        ts(asks, "ts -query -data data -sha256 -cert -out query");
        let line = format!(
            "ts -reply -config {} -section authority -queryfile query -signer ts.pem \
             -inkey ts.key -out reply",
            settings.display()
        );
        ts(answers, &line);
        ts(asks, "ts -verify -queryfile query -in reply -CAfile ts.pem");
    }
}
