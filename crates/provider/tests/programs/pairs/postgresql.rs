//! A cluster of PostgreSQL in the place. Its server refuses to be root.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::ends::Ends;
use crate::place::{From, Place, skip, succeeded};
use crate::running::{Running, free_port, root, wait_until};

use super::start;

/// Debian's user and group nobody and nogroup.
const NOBODY: u32 = 65534;

pub(super) struct Cluster {
    programs: PathBuf,
    data: PathBuf,
    port: u16,
}

impl Cluster {
    /// Where the newest version's programs lie; a test without them is skipped.
    pub(super) fn programs(test: &str) -> Option<PathBuf> {
        let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
        let programs = versions
            .filter_map(|version| Some(version.ok()?.path().join("bin")))
            .filter(|programs| programs.join("initdb").exists())
            .max();
        if programs.is_none() {
            let reason = "/usr/lib/postgresql is not installed; scripts/needs test";
            skip(test, reason);
        }
        programs
    }

    pub(super) fn new(place: &Place, programs: PathBuf) -> Cluster {
        let data = place.path().join("cluster");
        fs::create_dir(&data).unwrap();
        let keep = |path: &Path, mode| {
            fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
            if root() {
                chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
            }
        };
        let files = ["rsa.pem", "rsa.key"].map(|name| {
            let file = place.path().join(format!("cluster-{name}"));
            fs::copy(place.path().join(name), &file).unwrap();
            keep(&file, 0o600);
            file
        });
        keep(&data, 0o700);
        // Whoever may not see the folder where the provider was built finds it here.
        place.copy_library();
        let port = free_port();
        let cluster = Cluster {
            programs,
            data,
            port,
        };
        let mut initdb = cluster.as_nobody(place.command("setpriv", From::Default), "initdb");
        initdb.args([
            "--auth=trust",
            "--username=tester",
            "--no-sync",
            "--no-locale",
        ]);
        succeeded(initdb.args(["--encoding=UTF8", "-D"]).arg(&cluster.data));
        let [certificate, key] = files.map(|file| file.display().to_string());
        let settings = format!(
            "listen_addresses = '127.0.0.1'\nport = {port}\nunix_socket_directories = ''\n\
             fsync = off\nssl = on\nssl_cert_file = '{certificate}'\nssl_key_file = '{key}'\n\
             log_min_messages = error\n"
        );
        fs::write(cluster.data.join("postgresql.conf"), settings).unwrap();
        let rules = "hostssl all all 127.0.0.1/32 trust\n";
        fs::write(cluster.data.join("pg_hba.conf"), rules).unwrap();
        cluster
    }

    /// One of its programs: where root runs the test, as the user nobody.
    fn as_nobody(&self, mut setpriv: Command, program: &str) -> Command {
        if root() {
            let id = NOBODY.to_string();
            setpriv.args(["--reuid", &id, "--regid", &id, "--clear-groups"]);
        }
        setpriv.arg(self.programs.join(program));
        setpriv
    }

    /// The server.
    pub(super) fn start(&self, ends: &Ends) -> Running {
        let mut postgres = self.as_nobody(ends.server("setpriv"), "postgres");
        postgres.arg("-D").arg(&self.data);
        let server = start(ends.place, postgres, self.port);
        // It listens before it is ready.
        wait_until("PostgreSQL", || {
            let isready = self.programs.join("pg_isready");
            let mut isready = ends.place.command(isready, From::Default);
            isready.args(["-q", "-h", "127.0.0.1", "-p", &self.port.to_string()]);
            isready
                .env("PGSSLMODE", "disable")
                .status()
                .unwrap()
                .success()
        });
        server
    }

    pub(super) fn psql(&self, ends: &Ends) -> Command {
        let mut psql = ends.client(self.programs.join("psql"));
        psql.args(["--no-psqlrc", "--set", "ON_ERROR_STOP=1", "--dbname"])
            .arg(format!(
                "host=localhost hostaddr=127.0.0.1 port={} user=tester dbname=postgres \
                 sslmode=verify-full sslrootcert=rsa.pem",
                self.port
            ));
        psql
    }
}
