//! Programs that keep what they have been given encrypted: one process writes with the provider, another reads with
//! OpenSSL's own ciphers, and the other way round.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::ends::{data, lacks, write};
use crate::place::{From, Place, skip, succeeded};
use crate::running::{Running, free_port, may_mount, root, wait_until};

const DATA: usize = (3 << 20) + 77;

/// Who writes and who reads.
const BOTH_WAYS: [(From, From); 2] = [
    (From::Cipherlane, From::Default),
    (From::Default, From::Cipherlane),
];

/// Asks that the provider did at least `bytes` of a cipher, since it was asked last.
#[track_caller]
fn prove(place: &Place, cipher: &str, bytes: usize) {
    let used = place.used();
    let done = used.get(cipher).copied().unwrap_or(0);
    assert!(done >= bytes as u64, "{cipher}: {used:?}");
}

#[test]
fn borg() {
    if lacks("borg", &["/usr/bin/borg"]) {
        return;
    }
    for (writer, reader) in BOTH_WAYS {
        let place = Place::new();
        let original = data(DATA, 1);
        write(&place, "original", &original);
        let borg = |from, words: &[&str]| {
            let mut borg = place.command("/usr/bin/borg", from);
            borg.args(words)
                .env("BORG_PASSPHRASE", "correct horse")
                .env("BORG_BASE_DIR", place.path().join("borg"));
            succeeded(&mut borg);
        };
        borg(writer, &["init", "--encryption=repokey", "archive"]);
        borg(writer, &["create", "archive::one", "original"]);
        fs::remove_file(place.path().join("original")).unwrap();
        borg(reader, &["extract", "archive::one"]);
        assert!(fs::read(place.path().join("original")).unwrap() == original);
        prove(&place, "AES-256-CTR", DATA);
    }
}

#[test]
fn sqlcipher() {
    if lacks("sqlcipher", &["/usr/bin/sqlcipher"]) {
        return;
    }
    for (writer, reader) in BOTH_WAYS {
        let place = Place::new();
        let ask = |from, key: &str, words: &str| {
            let mut sqlcipher = place.command("/usr/bin/sqlcipher", from);
            let said =
                succeeded(sqlcipher.args(["table.db", &format!("PRAGMA key='{key}'; {words}")]));
            String::from_utf8(said.stdout).unwrap()
        };
        let fill = "CREATE TABLE t(a, b); WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c WHERE x<50000) \
                    INSERT INTO t SELECT x, hex(x*x) FROM c;";
        ask(writer, "one", fill);
        let count = ask(
            reader,
            "one",
            "SELECT count(*), sum(a), sum(length(b)) FROM t; PRAGMA rekey='two';",
        );
        assert!(count.contains("50000|1250025000|907520"), "{count}");
        let check = ask(writer, "two", "PRAGMA integrity_check;");
        assert!(check.contains("ok"), "{check}");
        prove(&place, "AES-256-CBC", 1 << 20);
    }
}

#[test]
fn xmlsec() {
    if lacks(
        "xmlsec1",
        &[
            "/usr/bin/xmlsec1",
            "/usr/lib/x86_64-linux-gnu/libxmlsec1-openssl.so.1",
        ],
    ) {
        return;
    }
    const CBC: &str = "http://www.w3.org/2001/04/xmlenc#";
    const GCM: &str = "http://www.w3.org/2009/xmlenc11#";
    let ciphers = [
        (CBC, "aes128-cbc", 16, "AES-128-CBC"),
        (CBC, "aes256-cbc", 32, "AES-256-CBC"),
        (GCM, "aes192-gcm", 24, "AES-192-GCM"),
        (GCM, "aes256-gcm", 32, "AES-256-GCM"),
    ];
    for ((space, name, key, cipher), (writer, reader)) in ciphers
        .into_iter()
        .flat_map(|of| BOTH_WAYS.map(|ways| (of, ways)))
    {
        let place = Place::new();
        let original = data(DATA, 2);
        write(&place, "original", &original);
        write(&place, "key", &data(key, 3));
        let template = format!(
            "<EncryptedData xmlns=\"http://www.w3.org/2001/04/xmlenc#\"><EncryptionMethod \
             Algorithm=\"{space}{name}\"/><KeyInfo xmlns=\"http://www.w3.org/2000/09/xmldsig#\"><KeyName>k</KeyName>\
             </KeyInfo><CipherData><CipherValue/></CipherData></EncryptedData>"
        );
        write(&place, "template.xml", template.as_bytes());
        let xmlsec = |from, words: &[&str]| {
            let mut xmlsec = place.command("/usr/bin/xmlsec1", from);
            xmlsec
                .arg(words[0])
                .args(["--crypto", "openssl", "--aeskey:k", "key"]);
            succeeded(xmlsec.args(&words[1..]));
        };
        xmlsec(
            writer,
            &[
                "--encrypt",
                "--binary-data",
                "original",
                "--output",
                "sealed.xml",
                "template.xml",
            ],
        );
        xmlsec(reader, &["--decrypt", "--output", "opened", "sealed.xml"]);
        assert!(
            fs::read(place.path().join("opened")).unwrap() == original,
            "{name}"
        );
        prove(&place, cipher, DATA);
    }
}

/// A file system in user space that encrypts: how it is made and mounted.
struct Mounted<'a> {
    place: &'a Place,
    program: &'a str,
    options: &'a [&'a str],
}

impl Mounted<'_> {
    /// Does something in the file system while it is mounted.
    fn with(&self, from: From, work: impl FnOnce(&Path)) {
        let there = self.place.path().join("plain");
        let password = fs::File::open(self.place.path().join("password")).unwrap();
        let mut command = self.place.command(self.program, from);
        command
            .args(self.options)
            .args([&self.place.path().join("sealed"), &there])
            .stdin(password)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut server = Running::start(&mut command);
        wait_until("the file system", || {
            assert!(!server.ended(), "{command:?} ended");
            let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
            mounts.contains(there.to_str().unwrap())
        });
        work(&there);
        let loaded = fs::read_to_string(format!("/proc/{}/maps", server.process())).unwrap();
        let ours = loaded.contains("libcipherlane_provider.so");
        assert_eq!(ours, from == From::Cipherlane, "{command:?}");
        succeeded(Command::new("fusermount").arg("-u").arg(&there));
        wait_until("the end of the file system", || server.ended());
    }
}

fn file_system(name: &str, program: &str, first: &[&str], options: &[&str], cipher: Option<&str>) {
    if lacks(name, &[program, "/usr/bin/fusermount", "/dev/fuse"]) {
        return;
    }
    if !root() || !may_mount() {
        skip(name, "this user may not mount");
        return;
    }
    for (writer, reader) in BOTH_WAYS {
        let place = Place::new();
        write(&place, "password", b"correct horse\n");
        for folder in ["sealed", "plain"] {
            fs::create_dir(place.path().join(folder)).unwrap();
        }
        if !first.is_empty() {
            succeeded(place.command(program, writer).args(first));
        }
        let mounted = Mounted {
            place: &place,
            program,
            options,
        };
        let original = data(DATA, 4);
        mounted.with(writer, |there| {
            fs::write(there.join("file"), &original).unwrap()
        });
        mounted.with(reader, |there| {
            assert!(fs::read(there.join("file")).unwrap() == original);
        });
        if let Some(cipher) = cipher {
            // The end of a file is no whole block.
            prove(&place, cipher, DATA - 1024);
        }
    }
}

#[test]
fn encfs() {
    let options = ["-f", "--standard", "--stdinpass"];
    file_system(
        "encfs",
        "/usr/bin/encfs",
        &[],
        &options,
        Some("AES-192-CBC"),
    );
}

/// Programs in Go end without the handlers that count; GCM with a nonce of 16 bytes.
#[test]
fn gocryptfs() {
    let first = [
        "-quiet",
        "-init",
        "-scryptn=12",
        "-openssl=true",
        "-passfile=password",
        "sealed",
    ];
    let options = ["-fg", "-quiet", "-openssl=true", "-passfile=password"];
    file_system("gocryptfs", "/usr/bin/gocryptfs", &first, &options, None);
}

/// Tables, the logs of InnoDB and of replication, temporary files, and the functions of SQL.
#[test]
fn mariadb() {
    if lacks(
        "mariadb",
        &[
            "/usr/sbin/mariadbd",
            "/usr/bin/mariadb",
            "/usr/bin/mariadb-install-db",
        ],
    ) {
        return;
    }
    for (algorithm, cipher) in [("AES_CBC", "AES-128-CBC"), ("AES_CTR", "AES-128-CTR")] {
        for (writer, reader) in BOTH_WAYS {
            let place = Place::new();
            let keys = data(16, 5)
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect::<String>();
            write(&place, "keys", format!("1;{keys}\n").as_bytes());
            let user = root().then_some("--user=root");
            let folder = place.path().join("tables");
            let folder = format!("--datadir={}", folder.display());
            let mut install = place.command("/usr/bin/mariadb-install-db", From::Default);
            succeeded(
                install
                    .args(["--no-defaults", "--skip-test-db", &folder])
                    .args(user),
            );
            let port = free_port();
            let socket = place.path().join("socket");
            let ask = |words: &str| {
                let mut client = place.command("/usr/bin/mariadb", From::Default);
                client.args([
                    "--no-defaults",
                    "--user=root",
                    "--batch",
                    "--skip-column-names",
                ]);
                client.arg("--socket").arg(&socket);
                client.args(["--execute", words]).output().unwrap()
            };
            let serve = |from, work: &dyn Fn()| {
                let mut server = place.command("/usr/sbin/mariadbd", from);
                server
                    .args(["--no-defaults", &folder, &format!("--port={port}")])
                    .args(user);
                server.arg("--socket").arg(&socket);
                server.args([
                    "--bind-address=127.0.0.1",
                    "--plugin-load-add=file_key_management",
                    "--file-key-management-filename=../keys",
                    &format!("--file-key-management-encryption-algorithm={algorithm}"),
                    "--innodb-encrypt-tables=FORCE",
                    "--innodb-encrypt-log=ON",
                    "--encrypt-binlog=ON",
                    "--log-bin=changes",
                    "--server-id=1",
                    "--aria-encrypt-tables=ON",
                    "--encrypt-tmp-disk-tables=ON",
                    "--encrypt-tmp-files=ON",
                ]);
                let log = fs::File::create(place.path().join("server.log")).unwrap();
                let server = Running::start(server.stderr(log));
                wait_until("the server", || ask("SELECT 1").status.success());
                work();
                server.end(libc::SIGTERM);
            };
            serve(writer, &|| {
                let filled = ask(
                    "CREATE DATABASE d; USE d; CREATE TABLE t(a INT PRIMARY KEY, b TEXT) ENGINE=InnoDB; \
                     INSERT INTO t SELECT seq, REPEAT(MD5(seq), 10) FROM seq_1_to_20000; \
                     CREATE TABLE u ENGINE=Aria AS SELECT * FROM t;",
                );
                assert!(filled.status.success(), "{filled:?}");
            });
            serve(reader, &|| {
                let told = ask(
                    "USE d; SELECT COUNT(*), SUM(BINARY b = BINARY REPEAT(MD5(a), 10)), \
                     SUM(AES_DECRYPT(AES_ENCRYPT(b, 'k'), 'k') = b) FROM t; \
                     SELECT SUM(t.b = u.b) FROM t JOIN u USING (a); CHECK TABLE t, u; \
                     SELECT HEX(AES_ENCRYPT('abc', 'k'))",
                );
                assert!(told.status.success(), "{told:?}");
                let told = String::from_utf8_lossy(&told.stdout).into_owned();
                assert!(told.contains("20000\t20000\t20000"), "{told}");
                assert_eq!(told.matches("status\tOK").count(), 2, "{told}");
                assert!(told.contains("AA215862CFA049B2886E7E0A97EC8AD3"), "{told}");
            });
            prove(&place, cipher, 1 << 20);
        }
    }
}
